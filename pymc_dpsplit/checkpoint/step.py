"""`Checkpoint`: a step that stores a chain while it is drawn, and replays stored draws."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from pymc.model import Model, modelcontext
from pymc.sampling import mcmc
from pymc.step_methods.arraystep import PopulationArrayStepShared
from pymc.step_methods.compound import BlockedStep, CompoundStep, flatten_steps
from pymc.step_methods.state import DataClassState
from pymc.util import get_random_generator

from pymc_dpsplit.checkpoint import chain_lock, origin
from pymc_dpsplit.checkpoint.chain_files import ChainFiles
from pymc_dpsplit.checkpoint.method_state import capture, restore
from pymc_dpsplit.checkpoint.recording import Point, Recording, Stats


class Checkpoint(CompoundStep):
    """All steps of a model, with chains that can be continued if their process is killed.

    Running the same script again continues the chains: stored draws are replayed instead of
    computed, and later draws are bit-identical to those of an uninterrupted run.  Draws of an
    unfinished chunk, fewer than `every`, are computed again.

    Parameters
    ----------
    folder : path
        Folder for the chains of one run; created if it does not exist.
    every : int
        Number of draws between two checkpoints of a chain.
    step : step method or sequence of them, optional
        Steps for some of the variables, as in `pm.sample`.
    model : pymc.Model, optional
        By default that of the context.
    compile_kwargs : dict, optional
        Options of compilation, as in `pm.sample`.
    **options : dict
        Options of the steps by their names, as in `pm.sample`: ``dpsplit={...}``,
        ``nuts={...}``.

    Raises
    ------
    ValueError
        If an argument is out of range, if there is no model, or if the folder contains other files
        or chains of another model, other options or other versions, or if another process draws its
        chains.  While sampling, if the folder contains chains of another `random_seed` or `tune`,
        or a damaged file.
    OSError
        If draws cannot be written, as on a full disk or in a read-only folder.
    TypeError
        While sampling, if the state of a step cannot be stored without pickle.

    Warns
    -----
    UserWarning
        If the first draw, which is recomputed as a check, differs from the stored one, because of
        another processor or linear algebra library, other initial values or a changed model, or,
        without a mixture in the model, a first run in which PyTensor compiled what this run loads.

    Notes
    -----
    Pass the checkpoint as the only step, ``pm.sample(step=...)``, together with `random_seed`.
    With more `draws` than before finished chains are extended, and with more `chains` new ones are
    added.  In a model that only NUTS samples, `pm.sample` applies jitter and an initial mass matrix
    only if it creates the step itself; to use them, pass the step and the starting points of
    ``pm.init_nuts(...)``.

    Warnings that NUTS attaches to a draw are replayed as None; all other statistics are replayed
    unchanged.

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
        chain_lock.refuse_if_held(self.folder)
        super().__init__(_methods(model, step, compile_kwargs, options))
        self._origin = origin.describe(model, flatten_steps(self), options)
        for manifest in origin.chains_in(self.folder):
            origin.refuse_other_run(manifest, self._origin, self.folder)
        self._chain = self.folder
        self._recording: Recording | None = None
        self._fresh: list[Any] = []
        self._n_done = 0
        self._n_draws = 0

    def setup_chain(self, rng: Any, tune: int, draws: int) -> None:
        """Find or start the chain of a random generator; PyMC calls this for each chain.

        Parameters
        ----------
        rng : numpy.random.Generator
        tune, draws : int
            Number of tuning iterations and of draws.
        """
        rng = get_random_generator(rng, copy=False)
        # Read before the generator is spawned, which changes its state.
        stream = origin.stream(rng)
        self._chain = origin.chain_folder(self.folder, stream)
        with self._drawing():
            self._recording = self._recording_of(stream, tune, draws)
        if len(self.methods) == 1:  # PyMC does not spawn the generator for a single step
            self.methods[0].setup_chain(rng, tune, draws)
        else:
            super().setup_chain(rng, tune, draws)
        self._fresh = [method.sampling_state for method in flatten_steps(self)]
        self._n_done, self._n_draws = 0, tune + draws

    def step(self, point: Point) -> tuple[Point, Stats]:
        """Replay a draw if it is stored; otherwise compute and record it.

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
        with self._drawing():
            return self._drawn(point, self._recording)

    @contextmanager
    def _drawing(self) -> Iterator[None]:
        """Give the lock of the chain back where drawing it ends early."""
        try:
            yield
        except BaseException:
            chain_lock.let_go(self._chain)
            raise

    def _drawn(self, point: Point, recording: Recording) -> tuple[Point, Stats]:
        point, stats = super().step(point)
        recording.add(point, stats)
        self._n_done += 1
        is_last = self._n_done == self._n_draws
        if recording.n_pending >= self.every or is_last:
            methods = zip(flatten_steps(self), self._fresh, strict=True)
            recording.commit([capture(method, fresh) for method, fresh in methods])
        if is_last:
            chain_lock.let_go(self._chain)
        return point, stats

    def _replayed(self, point: Point, recording: Recording) -> tuple[Point, Stats]:
        drawn, stats = recording.draw(self._n_done)
        if self._n_done == 0:
            self._try_first_draw(point, drawn)
        self._n_done += 1
        if self._n_done == recording.n_stored:
            # Restored immediately, because PyMC may end the tuning before the next draw.
            for method, captured in zip(flatten_steps(self), recording.methods(), strict=True):
                restore(method, captured)
        return drawn, stats

    def _try_first_draw(self, point: Point, stored: Point) -> None:
        """Warn if the first draw, recomputed here, differs from the stored one."""
        drawn, _ = super().step(point)
        changed = [name for name in stored if not np.array_equal(drawn[name], stored[name], True)]
        if changed:
            warnings.warn(
                f"The first draw of {', '.join(changed)} differs from that in {self.folder}: the "
                "processor, the initial values or the model changed, or PyTensor's cache was empty "
                "in the first run, and what follows is not the chain that an uninterrupted run "
                "would give.",
                stacklevel=3,
            )

    def _recording_of(self, rng: dict[str, Any], tune: int, draws: int) -> Recording:
        """Return the recording of the chain of a random generator."""
        for other in origin.chains_in(self.folder):
            origin.refuse_other_seed(other, rng, self.folder)
        # Finished chains are replayed from a folder that can only be read, too.
        with suppress(OSError):
            chain_lock.hold(self._chain)
        files = ChainFiles(self._chain)
        manifest = files.manifest()
        if manifest is None:
            files.begin({**self._origin, "tune": tune, "rng": rng})
        else:
            origin.refuse_other_chain(manifest, rng, tune, files.folder)
        recording = Recording(files)
        if recording.n_stored >= tune + draws:
            chain_lock.let_go(self._chain)
        else:
            with files.writing():
                chain_lock.hold(self._chain)
            files.try_to_write()
        return recording


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
    try:
        path = Path(folder).resolve()
    except (TypeError, ValueError) as error:
        raise ValueError(f"folder={folder!r} is not a path; give that of a folder.") from error
    try:
        path.mkdir(parents=True, exist_ok=True)
        next(path.iterdir(), None)
    except (FileExistsError, NotADirectoryError) as error:
        raise ValueError(f"folder={str(folder)!r} is a file; give a folder.") from error
    except OSError as error:
        raise ValueError(
            f"folder={str(folder)!r} cannot be made or read ({error.strerror}); give a folder in "
            "which you may write."
        ) from error
    return path


def _methods(
    model: Model, step: Any, compile_kwargs: dict[str, Any] | None, options: dict[str, Any]
) -> list[BlockedStep | CompoundStep]:
    """Return the steps that PyMC would use."""
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
