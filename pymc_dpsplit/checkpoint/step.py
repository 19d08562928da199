"""The step that stores a chain while it is drawn, and replays what is stored."""

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from pymc.model import Model, modelcontext
from pymc.sampling import mcmc
from pymc.step_methods.arraystep import PopulationArrayStepShared
from pymc.step_methods.compound import BlockedStep, CompoundStep, flatten_steps
from pymc.step_methods.state import DataClassState
from pymc.util import get_random_generator

from pymc_dpsplit.checkpoint import origin
from pymc_dpsplit.checkpoint.chain_files import ChainFiles
from pymc_dpsplit.checkpoint.method_state import capture, restore
from pymc_dpsplit.checkpoint.recording import Point, Recording, Stats


class Checkpoint(CompoundStep):
    """All steps of a model, with chains that survive the death of their process.

    The same script run again continues: draws that are stored are replayed, not computed, and
    the chain goes on with the bits it would have had.  Draws of an unfinished chunk, fewer than
    `every`, are computed again.

    Parameters
    ----------
    folder : path
        For the chains of one run; made if it does not exist.
    every : int
        Draws between two checkpoints of a chain.
    step : step method or sequence of them, optional
        Ready-made steps for some of the variables, as in `pm.sample`.
    model : pymc.Model, optional
        By default the one of the context.
    compile_kwargs : dict, optional
        Arguments for compiling, as in `pm.sample`.
    **options : dict
        Options of the steps by their names, as in `pm.sample`: ``dpsplit={...}``,
        ``nuts={...}``.

    Raises
    ------
    ValueError
        If an argument is out of range, if there is no model, or if the folder holds something
        else or chains of another model, other options or other versions; while sampling, if it
        holds chains of another `random_seed` or `tune`, or a damaged file.
    TypeError
        While sampling, if a step has a state that cannot be stored without pickle.

    Warns
    -----
    UserWarning
        If the first draw, which is computed again as a trial, comes out differently: another
        processor or library for linear algebra, other initial values, or a changed model.

    Notes
    -----
    Give the checkpoint alone to ``pm.sample(step=...)``, and `random_seed` with it.  More
    `draws` than before lengthen finished chains; more `chains` are added.  In a model that NUTS
    samples alone, `pm.sample` initialises it by jitter and a mass matrix only if it makes the
    step itself; to have that, give the step and the starting points of ``pm.init_nuts(...)``.

    Warnings that NUTS attaches to a draw come back as None; all other statistics are replayed.

    Examples
    --------
    >>> import tempfile
    >>> import pymc as pm
    >>> import pymc_dpsplit as dps
    >>> with tempfile.TemporaryDirectory() as folder, pm.Model() as model:
    ...     _ = dps.DPMixture("x", 1.0, dps.Normal(0, 0.1, 2, 1), observed=[0.0, 0.1, 5.0])
    ...     step = dps.Checkpoint(folder, every=20, dpsplit={"kernel": "collapsed"})
    ...     idata = pm.sample(40, tune=20, step=step, random_seed=1, progressbar=False)
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        every: int = 50,
        step: Any = None,
        model: Model | None = None,
        compile_kwargs: dict[str, Any] | None = None,
        **options: dict[str, Any],
    ) -> None:
        model = _model(model)
        self.every = _checked_every(every)
        self.folder = _made(folder)
        super().__init__(_methods(model, step, compile_kwargs, options))
        self._origin = origin.describe(model, flatten_steps(self), options)
        for manifest in origin.chains_in(self.folder):
            origin.refuse_other_run(manifest, self._origin, self.folder)
        self._recording: Recording | None = None
        self._fresh: list[Any] = []
        self._n_done = 0
        self._n_draws = 0

    def setup_chain(self, rng: Any, tune: int, draws: int) -> None:
        """Find the chain of a random generator, or begin it; called by PyMC for each.

        Parameters
        ----------
        rng : numpy.random.Generator
        tune, draws : int
            Tuning iterations, and those kept.
        """
        rng = get_random_generator(rng, copy=False)
        # Before the generator is spawned from, which changes it.
        self._recording = Recording(self._files(origin.stream(rng), tune))
        if len(self.methods) == 1:  # PyMC gives the generator itself to a step that stands alone
            self.methods[0].setup_chain(rng, tune, draws)
        else:
            super().setup_chain(rng, tune, draws)
        self._fresh = [method.sampling_state for method in flatten_steps(self)]
        self._n_done, self._n_draws = 0, tune + draws

    def step(self, point: Point) -> tuple[Point, Stats]:
        """Replay a draw if it is stored, else compute and take it.

        Parameters
        ----------
        point : dict
            Value of every variable; not modified.

        Returns
        -------
        point : dict
        stats : list of dict
        """
        if self._recording is None:
            raise ValueError("Checkpoint.step was called before setup_chain; use pm.sample.")
        if self._n_done < self._recording.n_stored:
            return self._replayed(point, self._recording)
        point, stats = super().step(point)
        self._recording.add(point, stats)
        self._n_done += 1
        if self._recording.n_pending >= self.every or self._n_done == self._n_draws:
            methods = zip(flatten_steps(self), self._fresh, strict=True)
            self._recording.commit([capture(method, fresh) for method, fresh in methods])
        return point, stats

    def _replayed(self, point: Point, recording: Recording) -> tuple[Point, Stats]:
        drawn, stats = recording.draw(self._n_done)
        if self._n_done == 0:
            self._try_first_draw(point, drawn)
        self._n_done += 1
        if self._n_done == recording.n_stored:
            # At once: PyMC may end the tuning between this draw and the next.
            for method, captured in zip(flatten_steps(self), recording.methods(), strict=True):
                restore(method, captured)
        return drawn, stats

    def _try_first_draw(self, point: Point, stored: Point) -> None:
        """Warn if the stored chain is not the one that would be drawn here."""
        drawn, _ = super().step(point)
        changed = [name for name in stored if not np.array_equal(drawn[name], stored[name], True)]
        if changed:
            warnings.warn(
                f"The first draw of {', '.join(changed)} differs from that in {self.folder}: the "
                "processor, the initial values or the model changed, and what follows is not the "
                "chain that an uninterrupted run would give.",
                stacklevel=3,
            )

    def _files(self, rng: dict[str, Any], tune: int) -> ChainFiles:
        """Files of the chain with a stream of random numbers."""
        for other in origin.chains_in(self.folder):
            origin.refuse_other_seed(other, rng, self.folder)
        files = ChainFiles(origin.chain_folder(self.folder, rng))
        manifest = files.manifest()
        if manifest is None:
            files.begin({**self._origin, "tune": tune, "rng": rng})
        else:
            origin.refuse_other_chain(manifest, rng, tune, files.folder)
        return files


def _model(model: Model | None) -> Model:
    try:
        return modelcontext(model)
    except TypeError as error:
        raise ValueError("Checkpoint needs a model; make it inside one or give model=.") from error


def _checked_every(every: Any) -> int:
    is_integer = isinstance(every, int | np.integer) and not isinstance(every, bool)
    if not is_integer or every < 1:
        raise ValueError(f"every={every!r} is out of range; give an integer of at least 1.")
    return int(every)


def _made(folder: str | os.PathLike[str]) -> Path:
    path = Path(folder).resolve()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise ValueError(f"folder={str(folder)!r} is a file; give a folder.") from error
    return path


def _methods(
    model: Model, step: Any, compile_kwargs: dict[str, Any] | None, options: dict[str, Any]
) -> list[BlockedStep | CompoundStep]:
    """Return the steps that PyMC would take."""
    provided, selected = mcmc.assign_step_methods(model, step)
    steps = mcmc.instantiate_steppers(
        model, provided, selected, step_kwargs=options, compile_kwargs=compile_kwargs or {}
    )
    methods = steps if isinstance(steps, list) else [steps]
    for method in (one for several in methods for one in flatten_steps(several)):
        if type(method)._state_class is DataClassState:
            raise ValueError(
                f"step={type(method).__name__} declares no state to store (_state_class); give "
                "another step."
            )
        if isinstance(method, PopulationArrayStepShared):
            raise ValueError(
                f"step={type(method).__name__} moves chains together, which cannot be "
                "checkpointed; give another step."
            )
    return methods
