"""The step method: carries values between PyMC's point and the chain; holds no algorithm.

One step owns one mixture.  It reads the concentration and the hyperparameters from the point,
advances the chain, draws weights and parameters given the partition and writes them to a new
point.  The partition itself lives here, not in the point.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from pymc.model import Model, modelcontext
from pymc.sampling import mcmc
from pymc.step_methods.compound import BlockedStep, Competence, CompoundStep, StepMethodState
from pymc.step_methods.state import dataclass_state
from pymc.util import get_random_generator
from rich.markup import escape
from rich.progress import TextColumn
from rich.table import Column

from pymc_dpsplit import sampler
from pymc_dpsplit.components.given import given
from pymc_dpsplit.components.non_conjugate import NonConjugate
from pymc_dpsplit.data.blocks import column_means
from pymc_dpsplit.data.sparse_rows import Rows
from pymc_dpsplit.exchange import LikelyRows, exchange, exchange_incomplete, impute
from pymc_dpsplit.moves.partition import log_n_clusters
from pymc_dpsplit.moves.slice import slice_draw
from pymc_dpsplit.moves.start import draw_n_start
from pymc_dpsplit.options import Options, refuse_collapsed, refuse_unknown
from pymc_dpsplit.plan import autocorrelation_time, lengthen, make_plan
from pymc_dpsplit.report import labels_stat, stats_of, stats_types
from pymc_dpsplit.threads import new_pool
from pymc_dpsplit.variables import (
    concentration_prior,
    is_owned,
    mixtures_of,
    reader_of_points,
    refuse_dependents,
    refuse_impossible,
    row_likelihood,
)
from pymc_dpsplit.variables.reading import Reading

# Greedy moves are used in the first third of tuning, and no longer than this.
_MOST_GREEDY_DRAWS = 100
# Draws of tuning between two plans.
_REPLAN_EVERY = 25
# Statistics of the partition by which mixing is judged.
_MIXING = ("occupied", "entropy", "log_joint")


@dataclass_state
class DPSplitMergeState(StepMethodState):
    """All that a chain needs to go on: PyMC saves and restores it."""

    labels: np.ndarray | None = None
    totals: np.ndarray | None = None
    n_tune: int = 0
    n_done: int = 0
    n_iterations: int = 1
    attempts: float = 0.0
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
        Given by `pm.sample` to every step method.
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
        Threads that share a sweep, at most the cores there are.  The draws do not depend on it.
        One by default, as `pm.sample` gives each core a chain; more pay when there are more
        cores than chains and from about 1e5 observations on.
    attempts : int, optional
        Split/merge attempts per iteration.  By default as many as cost 15 % of the sweep:
        less than one on average where a sweep is quick.
    iterations : int, optional
        Iterations per draw.  By default as many as cost little beside PyMC itself, and more,
        up to 50 ms a draw, for a chain that the second half of tuning shows to mix slowly;
        then kept.
    start_clusters : int, optional
        Number of clusters to start from; also ``pm.sample(initvals={"x_n_clusters": 5})``, which
        may differ by chain.  By default each chain draws it log-uniformly from 1 to min(50, N),
        so that chains start over-dispersed.
    start_labels : array of int, shape (N,), or result of `find_map` or `dp_means`, optional
        Partition to start from.  All chains then start alike, and R-hat no longer tells
        when all miss the same region.  Where labels are variables of the model, also
        ``initvals={"x_labels": labels}``, which may differ by chain.
    exchanges : int
        For a latent mixture: moves per draw of its values together with their labels.  They are
        made where the likelihood has a factor for each value, whatever its form; the statistic
        ``{name}_exchanged`` counts the values that moved.  For missing entries: any number but
        0 makes one such move of each incomplete row.
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
        refuse_unknown(kwargs)
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
        attempts: int | None = None,
        iterations: int | None = None,
        start_clusters: int | None = None,
        start_labels: Any = None,
        exchanges: int = 10,
        keep_labels: bool = False,
    ) -> None:
        del blocked
        model = modelcontext(model)
        self.options = Options(
            kernel,
            threads,
            attempts,
            iterations,
            start_clusters,
            getattr(start_labels, "labels", start_labels),
            exchanges,
            keep_labels,
        )
        (self.mixture,) = mixtures_of(vars, model)
        refuse_dependents(self.mixture, model)
        self._keeps_parameters = isinstance(self.mixture.component, NonConjugate)
        refuse_collapsed(kernel, self.mixture.name, self._keeps_parameters)
        self.vars = [model.rvs_to_values[rv] for rv in self.mixture.owned]
        self.rng = get_random_generator(rng)
        self._reader = reader_of_points(self.mixture, model, compile_kwargs or {})
        point = model.initial_point() if initial_point is None else initial_point
        refuse_impossible(self._reader, model, point)
        self.mixture.labels_in(point)
        rows = self._reader.read(point).rows
        self._centre(rows)
        self.options.refuse_start_of_other_length(self.mixture.name, rows.shape[0])
        exchanges_rows = self.mixture.is_latent and not self._keeps_parameters
        self._likelihood = row_likelihood(self.mixture, model, point) if exchanges_rows else None
        self._incomplete = self.mixture.incomplete()
        self._concentration = concentration_prior(self.mixture, model, point)
        n_labels = rows.shape[0] if self.options.keep_labels else None
        self.stats_dtypes_shapes = stats_types(self.mixture.name, n_labels)
        self.stats_dtypes = [{key: of for key, (of, _) in self.stats_dtypes_shapes.items()}]
        self._forget()

    def _centre(self, rows: Rows) -> None:
        """Take the observations relative to their mean, for the sake of rounding."""
        self._shift = column_means(rows)
        self._data: Any = None
        self._made_for: Any = None

    def _target_of(self, reading: Reading) -> sampler.Target:
        """What the chain samples; prior and data are made once if they do not change."""
        component = self.mixture.component
        if self._made_for is not reading.values or self._data is None:
            self._prior = component.prior(reading.values, self._shift)
            self._made_for = reading.values
        if self._data is None:
            self._data = component.arranged(reading.rows)
        return sampler.Target(self._prior, self._data, reading.alpha)

    def _forget(self) -> None:
        """Reset what belongs to one chain."""
        self.labels: np.ndarray | None = None
        self.n_tune = self.n_done = 0
        self.n_iterations = 1
        self.attempts = 0.0
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
        reading = self._reader.read(point)
        if not self._reader.rows_are_fixed:
            self._centre(reading.rows)
        target = self._target_of(reading)
        state = self._chain_state(target, point)
        plan = self._planned(target, state)
        state, tally = sampler.advance(self._form(), target, state, self.rng, plan, self._threads())
        target, state, point, n_exchanged = self._exchanged(
            target, state, reading, point, plan, tally
        )
        self.labels, self.totals = state
        self.n_done += 1
        target, concentration = self._with_new_alpha(target, state, point)
        stats = stats_of(self.mixture.name, target, state, tally, plan.n_iterations, n_exchanged)
        if self.options.keep_labels:
            stats[f"{self.mixture.name}_labels"] = labels_stat(state)
        values = self._redrawn(target, state, reading, point)
        self._remember(stats)
        stats[f"{self.mixture.name}_seconds"] = time.perf_counter() - began
        return {**point, **concentration, **values}, [stats]

    def _with_new_alpha(
        self, target: sampler.Target, state: sampler.ChainState, point: dict[str, np.ndarray]
    ) -> tuple[sampler.Target, dict[str, np.ndarray]]:
        """Move alpha given the number of clusters, its weights summed out, eq. (38)."""
        if self._concentration is None:
            return target, {}
        prior, name = self._concentration.given(point), self._concentration.value_name
        n_clusters, n_obs = len(state.stats), len(state.labels)

        def log_density(value: float) -> float:
            log_prior, alpha = prior(value)
            if not (np.isfinite(log_prior) and 0.0 < alpha < np.inf):
                return -np.inf
            return log_prior + log_n_clusters(n_clusters, n_obs, alpha)

        value = slice_draw(log_density, float(point[name]), 1.0, self.rng)
        kept = np.asarray(value, point[name].dtype)
        return target._replace(alpha=prior(value)[1]), {name: kept}

    def _exchanged(
        self,
        target: sampler.Target,
        state: sampler.ChainState,
        reading: Reading,
        point: dict[str, np.ndarray],
        plan: sampler.Plan,
        tally: np.ndarray,
    ) -> tuple[sampler.Target, sampler.ChainState, dict[str, np.ndarray], int]:
        """Move rows that are latent or incomplete with their labels."""
        component, rows, total = self.mixture.component, reading.rows, 0
        if len(self._incomplete.where) and self.options.exchanges:
            target, state, total = exchange_incomplete(
                component, reading.values, target, state, rows, self._incomplete, self.rng
            )
        if self._likelihood is None or not self.options.exchanges:
            return target, state, point, total
        self._likelihood.hold(point)
        log_likelihood, single = self._likelihood.evaluate, plan._replace(n_iterations=1)
        present = LikelyRows(rows, log_likelihood(rows))
        for _ in range(self.options.exchanges):
            target, state, present, n_accepted = exchange(
                component, reading.values, target, state, present, log_likelihood, self.rng
            )
            state, more = sampler.advance(self._form(), target, state, self.rng, single)
            tally += more
            total += n_accepted
        name = self.mixture.name
        return target, state, {**point, name: present.rows.reshape(point[name].shape)}, total

    def _redrawn(
        self,
        target: sampler.Target,
        state: sampler.ChainState,
        reading: Reading,
        point: dict[str, np.ndarray],
    ) -> dict[str, np.ndarray]:
        """Draw the measure given the partition, and what is missing given both."""
        mixture, component = self.mixture, given(self.mixture.component, reading.values)
        measure = sampler.measure(target, state, self.rng)
        parameters = component.unpack(measure.params, self._shift)
        needs_labels = mixture.is_labelled or mixture.unobserved is not None
        labels = measure.rank[state.labels] if needs_labels else state.labels
        values = mixture.point_values(
            len(state.stats), measure.weights, measure.log_rest, parameters, labels
        )
        if mixture.unobserved is not None:
            name = mixture.value_names["unobserved"]
            known = reading.rows, point[name], self._incomplete
            values[name] = impute(component, *known, parameters, labels, self.rng)
        return values

    def _chain_state(
        self, target: sampler.Target, point: dict[str, np.ndarray]
    ) -> sampler.ChainState:
        """State of the chain: as it was left, or a new start."""
        goes_on = self._reader.rows_are_fixed or self._keeps_parameters
        if self.labels is not None and goes_on and self.totals is not None:
            return sampler.ChainState(self.labels, self.totals)
        labels = self._first_labels(point) if self.labels is None else self.labels
        if labels is not None:
            return sampler.resume(target, labels)
        n_start = self.options.start_clusters or self.mixture.count_in(point) or None
        if n_start is None and self.mixture.needs_all_rows:
            n_start = min(draw_n_start(self.rng, target.data.shape[0]), self.mixture.max_clusters)
        return sampler.start(target, self.rng, n_start)

    def _first_labels(self, point: dict[str, np.ndarray]) -> np.ndarray | None:
        """Labels to start from, if the user gave them."""
        labels = self.options.start_labels
        if labels is None:
            labels = self.mixture.labels_in(point)
        return None if labels is None else np.unique(labels, return_inverse=True)[1]

    def _form(self) -> sampler.KernelForm:
        greedy_draws = min(self.n_tune // 3, _MOST_GREEDY_DRAWS)
        if self.options.kernel == "exact" and self.n_done < greedy_draws:
            return sampler.GREEDY
        return sampler.KERNELS[self.options.kernel]

    def _planned(self, target: sampler.Target, state: sampler.ChainState) -> sampler.Plan:
        """Plan of this draw: made anew in the first half of tuning, frozen after the second."""
        kernel = self.options.kernel
        first_half = self.n_tune - len(self.history)
        if self.focus is None or (self.n_done < first_half and self.n_done % _REPLAN_EVERY == 0):
            plan = make_plan(kernel, target, state, self.options.attempts)
            self.n_iterations, self.attempts, self.focus = plan
        plan = sampler.Plan(self.options.iterations or self.n_iterations, self.attempts, self.focus)
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
        if self._pool is None:
            self._pool = new_pool(self.options.threads)
        return self._pool

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to one process: threads, views of the data, addresses."""
        own = dict.fromkeys(("_pool", "_data", "_prior", "_made_for"))
        return {**self.__dict__, **own}

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
