"""The step method: carries values between PyMC's point and the chain; holds no algorithm.

One step owns one mixture.  It reads the concentration and the hyperparameters from the point,
advances the chain, draws weights and parameters given the partition and writes them to a new
point.  The partition itself lives here, not in the point.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from arviz_stats.base import array_stats  # type: ignore[attr-defined]
from pymc.model import Model, modelcontext
from pymc.pytensorf import compile as compile_function
from pymc.sampling import mcmc
from pymc.step_methods.compound import BlockedStep, Competence, CompoundStep, StepMethodState
from pymc.step_methods.state import dataclass_state
from pymc.util import get_random_generator
from pytensor.graph.traversal import explicit_graph_inputs
from rich.markup import escape
from rich.progress import TextColumn
from rich.table import Column

from pymc_dpsplit import sampler
from pymc_dpsplit.moves.partition import entropy, log_joint
from pymc_dpsplit.moves.tally import (
    MERGES_ACCEPTED,
    MERGES_PROPOSED,
    SPLITS_ACCEPTED,
    SPLITS_PROPOSED,
)
from pymc_dpsplit.plan import lengthen, make_plan
from pymc_dpsplit.variables import MixtureVariables, is_owned, mixtures_of, refuse_dependents

# Greedy moves are used in the first third of tuning, and no longer than this.
_MOST_GREEDY_DRAWS = 100
# Draws of tuning between two plans.
_REPLAN_EVERY = 25
# Statistics of the partition by which mixing is judged.
_MIXING = ("occupied", "entropy", "log_joint")
# Fewer draws say nothing about autocorrelation.
_LEAST_HISTORY = 50
# What PyMC gives to every step method, besides the options.
_ARGUMENTS_OF_PYMC = ("model", "rng", "initial_point", "compile_kwargs", "blocked")


@dataclass(frozen=True)
class Options:
    """Options of the step, as given in ``pm.sample(dpsplit={...})``.

    See `DPSplitMerge` for their meaning.
    """

    kernel: str
    threads: int
    attempts: int
    iterations: int | None
    start_clusters: int | None
    keep_labels: bool

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, str) or self.kernel not in sampler.KERNELS:
            known = ", ".join(repr(name) for name in sampler.KERNELS)
            raise ValueError(f"kernel={self.kernel!r} is not known; choose one of {known}.")
        for name, least in {"threads": 1, "attempts": 0}.items():
            _check_integer(name, getattr(self, name), least)
        for name in ("iterations", "start_clusters"):
            if getattr(self, name) is not None:
                _check_integer(name, getattr(self, name), 1)
        if not isinstance(self.keep_labels, bool | np.bool_):
            raise ValueError(f"keep_labels={self.keep_labels!r} is neither; give True or False.")


def _check_integer(name: str, value: Any, least: int) -> None:
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_integer or value < least:
        raise ValueError(f"{name}={value!r} is out of range; give an integer of at least {least}.")


def _refuse_unknown_options(given: Any) -> None:
    options = tuple(Options.__dataclass_fields__)
    for name in given:
        if name not in (*options, *_ARGUMENTS_OF_PYMC):
            raise ValueError(
                f"{name!r} is not an option of dpsplit; choose among {', '.join(options)}."
            )


def _reader(
    mixture: MixtureVariables, model: Model, compile_kwargs: dict[str, Any]
) -> Callable[[dict[str, np.ndarray]], tuple[float, dict[str, np.ndarray]]]:
    """Return a function from a point to alpha and the checked hyperparameters."""
    names = list(mixture.hyperparameters)
    wanted = [mixture.alpha, *mixture.hyperparameters.values()]
    outs = model.replace_rvs_by_values(wanted)
    values = set(model.value_vars)
    ins = [var for var in explicit_graph_inputs(outs) if var in values]
    function = compile_function(
        ins, outs, on_unused_input="ignore", trust_input=True, **compile_kwargs
    )
    ins_names = [str(var.name) for var in ins]

    def read(point: dict[str, np.ndarray]) -> tuple[float, dict[str, np.ndarray]]:
        alpha, *numbers = function(*(point[name] for name in ins_names))
        checked = mixture.component.check(
            dict(zip(names, numbers, strict=True)), mixture.n_features
        )
        return float(alpha), checked

    return read


def autocorrelation_time(history: np.ndarray) -> float:
    """Longest autocorrelation time of the columns (T, q), in rows; 1 if T is small."""
    varying = history[:, np.ptp(history, axis=0) > 0] if len(history) else history
    if len(history) < _LEAST_HISTORY or not varying.shape[1]:
        return 1.0
    sizes = [array_stats.ess(column[None], chain_axis=0, draw_axis=1) for column in varying.T]
    return float(len(history) / min(sizes))


@dataclass_state
class DPSplitMergeState(StepMethodState):
    """All that a chain needs to go on: PyMC saves and restores it."""

    labels: np.ndarray | None = None
    totals: np.ndarray | None = None
    n_tune: int = 0
    n_done: int = 0
    n_iterations: int = 1
    focus: np.ndarray | None = None
    history: np.ndarray


class DPSplitMerge(BlockedStep):
    """Step method for Dirichlet-process mixtures: exact parallel Gibbs and split/merge moves.

    PyMC assigns it to every `DPMixture` by itself; the options below are given as
    ``pm.sample(dpsplit={"threads": 2})``.

    Parameters
    ----------
    vars : sequence of variables
        Variables of one or more mixtures; several mixtures get a step each.
    model : pymc.Model, optional
        By default the one of the context.
    rng : numpy.random.Generator or int, optional
        `pm.sample` sets one for every chain.
    initial_point : dict, optional
        Not used: given by `pm.sample` to every step method.
    compile_kwargs : dict, optional
        Arguments for the function that computes alpha and the hyperparameters.
    blocked : bool
        Not used: the variables of a mixture always move together.
    kernel : {"exact", "collapsed"}
        ``"exact"``: a floored-slice sweep over all labels; from five features on, a collapsed
        scan of the observations likeliest to found clusters; then split/merge attempts.
        ``"collapsed"``: collapsed Gibbs (Neal 2000, algorithm 3), sequential.  Both leave the
        posterior exactly invariant.
    threads : int
        Threads that share a sweep.  The draws do not depend on it.
    attempts : int
        Split/merge attempts per iteration.
    iterations : int, optional
        Iterations per draw.  By default as many as cost little beside PyMC itself, and more,
        up to 50 ms a draw, for a chain that the second half of tuning shows to mix slowly;
        then kept.
    start_clusters : int, optional
        Number of clusters to start from.  By default each chain draws it log-uniformly from
        1 to min(50, N), so that chains start over-dispersed.
    keep_labels : bool
        Store the labels of every draw in ``sample_stats`` as ``{name}_labels``.

    Raises
    ------
    ValueError
        If an option is not known or out of range, if the variables are not those of a mixture, or
        if anything but Deterministics and its own observations depends on the mixture.

    References
    ----------
    .. [1] Chang & Fisher (2013), Parallel Sampling of DP Mixture Models using Sub-Cluster
       Splits, NIPS: the sampler after which this one is built.  docs/method.md derives the
       moves used here, which unlike the published ones are exact.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_dpsplit as dps
    >>> with pm.Model() as model:
    ...     _ = dps.DPMixture("x", 1.0, dps.Normal(0, 0.1, 2, 1), observed=[0.0, 0.1, 5.0])
    ...     step = dps.DPSplitMerge(model.free_RVs, kernel="collapsed")
    >>> step.name
    'dpsplit'
    """

    name = "dpsplit"
    _state_class = DPSplitMergeState

    def __new__(cls, vars: Any = None, *, model: Model | None = None, **kwargs: Any) -> Any:
        model = modelcontext(model)
        _refuse_unknown_options(kwargs)
        chosen = mixtures_of(vars, model)
        if len(chosen) == 1:
            return super().__new__(cls, chosen[0].owned, model=model, **kwargs)
        rngs = get_random_generator(kwargs.pop("rng", None)).spawn(len(chosen))
        steps = []
        for mixture, rng in zip(chosen, rngs, strict=True):
            arguments = {**kwargs, "model": model, "rng": rng, "blocked": True}
            step = super().__new__(cls, mixture.owned, **arguments)
            step.__init__(mixture.owned, **arguments)
            steps.append(step)
        return CompoundStep(steps)

    def __init__(
        self,
        vars: Any = None,
        *,
        model: Model | None = None,
        rng: Any = None,
        initial_point: Any = None,
        compile_kwargs: dict[str, Any] | None = None,
        blocked: bool = True,
        kernel: str = "exact",
        threads: int = 1,
        attempts: int = 2,
        iterations: int | None = None,
        start_clusters: int | None = None,
        keep_labels: bool = False,
    ) -> None:
        del initial_point, blocked
        model = modelcontext(model)
        self.options = Options(kernel, threads, attempts, iterations, start_clusters, keep_labels)
        (self.mixture,) = mixtures_of(vars, model)
        refuse_dependents(self.mixture, model)
        self.vars = [model.rvs_to_values[rv] for rv in self.mixture.owned]
        self.rng = get_random_generator(rng)
        self._read = _reader(self.mixture, model, compile_kwargs or {})
        rows = self.mixture.rows()
        self._shift = rows.mean(0)
        self._data = np.ascontiguousarray(rows - self._shift)
        self._declare_stats()
        self._forget()

    def _declare_stats(self) -> None:
        name = self.mixture.name
        self.stats_dtypes_shapes: dict[str, tuple[Any, list[int]]] = {
            f"{name}_log_joint": (np.float64, []),
            f"{name}_entropy": (np.float64, []),
            f"{name}_largest_share": (np.float64, []),
            f"{name}_occupied": (np.int64, []),
            f"{name}_splits_proposed": (np.int64, []),
            f"{name}_splits_accepted": (np.int64, []),
            f"{name}_merges_proposed": (np.int64, []),
            f"{name}_merges_accepted": (np.int64, []),
            f"{name}_iterations": (np.int64, []),
            f"{name}_seconds": (np.float64, []),
        }
        if self.options.keep_labels:
            n_obs = self._data.shape[0]
            row = np.dtype((np.min_scalar_type(n_obs), (n_obs,)))
            self.stats_dtypes_shapes[f"{name}_labels"] = (row, [n_obs])
        self.stats_dtypes = [{key: of for key, (of, _) in self.stats_dtypes_shapes.items()}]

    def _forget(self) -> None:
        """Reset what belongs to one chain."""
        self.labels: np.ndarray | None = None
        self.n_tune = 0
        self.n_done = 0
        self.n_iterations = 1
        self.focus: np.ndarray | None = None
        self.history = np.empty((0, len(_MIXING)))
        self.totals: np.ndarray | None = None
        self._pool: ThreadPoolExecutor | None = None

    def setup_chain(self, rng: Any, tune: int, draws: int) -> None:
        """Forget the chain before; called by PyMC at the start of each.

        Parameters
        ----------
        rng : numpy.random.Generator
        tune, draws : int
            Tuning iterations, and those kept.
        """
        super().setup_chain(rng, tune, draws)
        self._forget()
        self.n_tune = tune
        self.history = np.empty((tune // 2, len(_MIXING)))

    def step(self, point: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], list[Any]]:
        """Advance the chain by one draw.

        Parameters
        ----------
        point : dict
            Value of every variable; not modified.

        Returns
        -------
        point : dict
        stats : list of one dict
        """
        began = time.perf_counter()
        target = self._target(point)
        state = self._chain_state(target)
        plan = self._planned(target, state)
        state, tally = sampler.advance(self._form(), target, state, self.rng, plan, self._threads())
        self.labels, self.totals = state
        self.n_done += 1
        measure = sampler.measure(target, state, self.rng)
        values = self.mixture.point_values(
            len(state.stats),
            measure.weights,
            measure.log_rest,
            self.mixture.component.unpack(measure.params, self._shift),
        )
        stats = self._stats(target, state, tally, plan.n_iterations)
        self._remember(stats)
        stats[f"{self.mixture.name}_seconds"] = time.perf_counter() - began
        return {**point, **values}, [stats]

    def _target(self, point: dict[str, np.ndarray]) -> sampler.Target:
        alpha, values = self._read(point)
        if not (np.isfinite(alpha) and alpha > 0):
            raise ValueError(
                f"{self.mixture.name}: alpha became {alpha:g} while sampling; give it a prior on "
                "the positive numbers."
            )
        return sampler.Target(
            self.mixture.component.prior(values, self._shift), self._data, float(alpha)
        )

    def _chain_state(self, target: sampler.Target) -> sampler.ChainState:
        """State of the chain: as it was left, or a new start."""
        if self.labels is None or self.totals is None:
            return sampler.start(target, self.rng, self.options.start_clusters)
        return sampler.ChainState(self.labels, self.totals)

    def _form(self) -> sampler.KernelForm:
        greedy_draws = min(self.n_tune // 3, _MOST_GREEDY_DRAWS)
        if self.options.kernel == "exact" and self.n_done < greedy_draws:
            return sampler.GREEDY
        return sampler.KERNELS[self.options.kernel]

    def _planned(self, target: sampler.Target, state: sampler.ChainState) -> sampler.Plan:
        """Plan of this draw: made anew in the first half of tuning, frozen after the second."""
        kernel, attempts = self.options.kernel, self.options.attempts
        first_half = self.n_tune - len(self.history)
        if self.focus is None or (self.n_done < first_half and self.n_done % _REPLAN_EVERY == 0):
            plan = make_plan(kernel, target, state, attempts)
            self.n_iterations, self.focus = plan.n_iterations, plan.focus
        plan = sampler.Plan(self.options.iterations or self.n_iterations, attempts, self.focus)
        if self.options.iterations is None and self.n_done == self.n_tune:
            plan = lengthen(plan, kernel, target, state, autocorrelation_time(self.history))
            self.n_iterations = plan.n_iterations
        return plan

    def _remember(self, stats: dict[str, Any]) -> None:
        """Keep what the second half of tuning shows of how the chain mixes."""
        row = self.n_done - 1 - (self.n_tune - len(self.history))
        if 0 <= row < len(self.history):
            self.history[row] = [stats[f"{self.mixture.name}_{key}"] for key in _MIXING]

    def _threads(self) -> ThreadPoolExecutor | None:
        """Pool of threads, made in the process that uses it."""
        if self.options.threads == 1:
            return None
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.options.threads)
        return self._pool

    def _stats(
        self, target: sampler.Target, state: sampler.ChainState, tally: np.ndarray, n: int
    ) -> dict[str, Any]:
        name = self.mixture.name
        stats = {
            f"{name}_log_joint": log_joint(target.prior, state.stats, target.alpha),
            f"{name}_entropy": entropy(state.stats),
            f"{name}_largest_share": state.stats[:, 0].max() / len(state.labels),
            f"{name}_occupied": len(state.stats),
            f"{name}_splits_proposed": tally[SPLITS_PROPOSED],
            f"{name}_splits_accepted": tally[SPLITS_ACCEPTED],
            f"{name}_merges_proposed": tally[MERGES_PROPOSED],
            f"{name}_merges_accepted": tally[MERGES_ACCEPTED],
            f"{name}_iterations": n,
        }
        if self.options.keep_labels:
            stats[f"{name}_labels"] = state.labels.astype(np.min_scalar_type(len(state.labels)))
        return stats

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to one process: threads."""
        return {**self.__dict__, "_pool": None}

    def _progressbar_config(self, n_chains: int = 1) -> tuple[list[Any], dict[str, list[Any]]]:
        key = f"{self.mixture.name}_k"
        # Escaped, as rich takes brackets for markup.
        column = Column(escape(f"K[{self.mixture.name}]"), ratio=1)
        field = TextColumn("{task.fields[" + key + "]}", table_column=column)
        return [field], {key: [0] * n_chains}

    def _make_progressbar_update_functions(self) -> tuple[Callable[..., dict[str, Any]], ...]:
        key, source = f"{self.mixture.name}_k", f"{self.mixture.name}_occupied"
        return (lambda stats: {key: stats[source]},)

    @staticmethod
    def competence(var: Any, has_grad: bool) -> Competence:
        """Claim the variables that belong to a mixture, and no others.

        Parameters
        ----------
        var : TensorVariable
        has_grad : bool

        Returns
        -------
        Competence
        """
        del has_grad
        return Competence.IDEAL if is_owned(var) else Competence.INCOMPATIBLE


def register() -> None:
    """Make PyMC assign the step by itself; calling it again changes nothing."""
    if DPSplitMerge not in mcmc.STEP_METHODS:
        mcmc.STEP_METHODS.append(DPSplitMerge)
