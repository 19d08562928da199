"""Compilation of kernels before chains start, once, in the process that starts them.

Chains are processes.  If kernels were compiled at their first call, every chain would compile
all of them, with a progress bar that stands still.  So the parent process makes trial draws with
each step of a mixture, one of early tuning, one of later tuning and some ahead, and discards them.
Other processes compile some of the kernels meanwhile, see `kernels.beside`.  Forked chains find the
kernels in memory, other chains in the cache on disk.
"""

import copy
import gc
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba.core import event
from pymc.step_methods.compound import flatten_steps
from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn

from pymc_dpsplit import sampler
from pymc_dpsplit.kernels.beside import compiling_beside
from pymc_dpsplit.moves.conjugate import CONJUGATE
from pymc_dpsplit.moves.nonconjugate.iterations import NONCONJUGATE
from pymc_dpsplit.step.dp_split_merge import DPSplitMerge
from pymc_dpsplit.step.early_tuning import best_of, has_new_starts
from pymc_dpsplit.step.kernel_choice import SLICES
from pymc_dpsplit.step.progress_bar import PlainColumn

_PACKAGE = __name__.split(".")[0]
_LOG = logging.getLogger("pymc")
# Enough tuning for one draw with greedy moves, which are used in its first third, and enough draws
# for some that are made ahead.
_TUNE, _DRAWS = 3, 3


def compile_kernels(step: DPSplitMerge, point: dict[str, np.ndarray]) -> None:
    """Make trial draws with a copy of a step, which compiles all kernels that it calls.

    Parameters
    ----------
    step : DPSplitMerge
        Its chain is not modified; the data that it arranges for kernels are kept.
    point : dict
        Values of all variables from which a chain may start.
    """
    trial = copy.copy(step)
    trial.setup_chain(np.random.default_rng(0), _TUNE, _DRAWS)
    with _without_collection(), compiling_beside():
        target, rng = trial._reader.read(point)[1], np.random.default_rng(0)
        sampler.begin_to_compile(trial._form(), target, rng)
        searches = trial._is_early() and has_new_starts(trial.mixture, target)
        point, _ = trial.step(point)
        if searches and trial.labels is not None:
            state = sampler.resume(target, trial.labels)
            best_of(target, state, state, rng)
        # With no draws left one is made by itself, as in the second half of tuning.
        trial.n_done = _TUNE + _DRAWS
        point, _ = trial.step(point)
        if trial._compared is not None:
            trial.n_done = _TUNE + 1
            trial.step(point)
    # A process forked while threads run may hang.
    if trial._pool is not None:
        trial._pool.shutdown()


@contextmanager
def _without_collection() -> Iterator[None]:
    """Leave cycles of objects in memory; to look for them takes a twelfth of a compilation."""
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_enabled:
            gc.enable()


def compiling_first(sample: Callable[..., Any]) -> Callable[..., Any]:
    """Make `pm.sample` compile kernels before it starts chains."""

    def sampling(*args: Any, **kwargs: Any) -> Any:
        for step in flatten_steps(kwargs["step"]):
            if isinstance(step, DPSplitMerge):
                family = type(step.mixture.component).__name__
                what, shows_progress = f"{family} of {step.mixture.name}", kwargs.get("progressbar")
                with _telling(what, stages_of(step), bool(shows_progress)):
                    compile_kernels(step, kwargs["start"][0])
        return sample(*args, **kwargs)

    return sampling


def stages_of(step: DPSplitMerge) -> frozenset[Callable[..., Any]]:
    """Return kernels that Python calls in a draw, which take long and no other process compiles.

    Parameters
    ----------
    step : DPSplitMerge

    Returns
    -------
    frozenset of callable
        Python functions of the kernels.
    """
    moves = NONCONJUGATE if step._keeps_parameters else CONJUGATE
    continues = step.options.continues
    is_greedy = step.kernel == SLICES and not continues
    chosen = {step.kernel} | ({sampler.GREEDY} if is_greedy else set())
    kernels = moves.start_kernels
    kernels += (moves.redraw_labels,) if continues and not step.mixture.is_labelled else ()
    forms = (sampler.form_of(name, moves.is_conjugate) for name in chosen)
    kernels += tuple(form.iterate for form in forms if form is not None)
    return frozenset(getattr(kernel, "py_func", kernel) for kernel in kernels)


@contextmanager
def _telling(
    what: str, stages: frozenset[Callable[..., Any]], shows_progress: bool
) -> Iterator[None]:
    """Report the compilation of kernels and how far it is, if any is not in the cache."""
    message = f"Compiling the kernels for {what}, once per machine"
    said = PlainColumn(lambda task: f"{message}: {int(task.completed)} of {len(stages)}")
    columns = SpinnerColumn(), said, TimeElapsedColumn()
    progress = Progress(*columns, transient=True, disable=not shows_progress)
    listener = _Count(message, stages, progress)
    try:
        with event.install_listener("numba:compile", listener):
            yield
    finally:
        progress.stop()


class _Count(event.Listener):
    """Listener that advances a progress bar with every stage compiled.

    Parameters
    ----------
    message : str
        Logged when the first kernel is compiled.
    stages : frozenset of callable
        See `stages_of`.
    progress : rich.progress.Progress
    """

    def __init__(
        self, message: str, stages: frozenset[Callable[..., Any]], progress: Progress
    ) -> None:
        self._message, self._progress = message, progress
        # Other processes may compile some kernels, see `kernels.beside`; only this one reports.
        self._process = os.getpid()
        # Some stages are compiled twice, for other kernels too.
        self._left = set(stages)
        self._task: Any = None

    def on_start(self, event: event.Event) -> None:
        """Start the progress bar at the first kernel of this package."""
        is_ours = self._process == os.getpid() and _is_ours(event.data["dispatcher"].py_func)
        if self._task is None and is_ours:
            _LOG.info(self._message)
            self._progress.start()
            self._task = self._progress.add_task("", total=None)

    def on_end(self, event: event.Event) -> None:
        """Count one more stage."""
        function = event.data["dispatcher"].py_func
        is_ours = self._process == os.getpid()
        if is_ours and self._task is not None and function in self._left:
            self._left.remove(function)
            self._progress.advance(self._task)


def _is_ours(function: Callable[..., Any]) -> bool:
    # Functions that PyTensor writes have no module.
    return (function.__module__ or "").startswith(_PACKAGE)
