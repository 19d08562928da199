"""Step method for mixtures: transfers values between PyMC's point and the chain.

One step owns one mixture.  It reads the concentration and the hyperparameters from the point,
advances the chain, draws weights and parameters given the partition and writes them to a new
point.  The partition is kept in the step, not in the point.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from pymc.model import Model
from pymc.step_methods.compound import BlockedStep, Competence
from pymc.step_methods.state import WithSamplingState

from pymc_dpsplit import sampler
from pymc_dpsplit.components.nonconjugate.family import NonconjugateFamily
from pymc_dpsplit.data.blocks import column_centres
from pymc_dpsplit.kernels.threads import new_pool
from pymc_dpsplit.moves.strength import StrengthPrior
from pymc_dpsplit.step import draws_ahead
from pymc_dpsplit.step.chain_memory import DPSplitMergeState
from pymc_dpsplit.step.chain_start import first_state
from pymc_dpsplit.step.concentration_move import (
    for_a_search,
    move_concentrations,
    moved_by_kernels,
    strength_prior,
    with_present_law,
)
from pymc_dpsplit.step.drawn_values import drawn_values, with_drawn_entries
from pymc_dpsplit.step.early_tuning import n_early_draws, searched
from pymc_dpsplit.step.exchanges import exchanges_of
from pymc_dpsplit.step.intercept_move import move_intercepts
from pymc_dpsplit.step.kernel_choice import AUTO, COLLAPSED, SLICES, choose_kernel
from pymc_dpsplit.step.options import Options, check_published, refuse_kernel, refuse_unknown
from pymc_dpsplit.step.progress_bar import progress_columns, progress_update
from pymc_dpsplit.step.sampler_stats import labels_stat, plan_of, stats_of, stats_types
from pymc_dpsplit.step.schedule import adapted_iterations, make_schedule
from pymc_dpsplit.step.step_arguments import checked_point, compile_options, own_generator
from pymc_dpsplit.step.target_reader import TargetReader
from pymc_dpsplit.tuning import history as tuning_history
from pymc_dpsplit.variables import (
    DataRead,
    concentrations_to_move,
    evaluator_of_points,
    graphs_read,
    intercepts_of,
    is_owned,
    mixtures_of,
    model_of_context,
    refuse_dependents,
    refuse_impossible,
)
from pymc_dpsplit.variables.conditioning import Conditioning
from pymc_dpsplit.variables.declared_models import one_step_each
from pymc_dpsplit.variables.step_registration import register_step


class DPSplitMerge(BlockedStep):
    """Step method for Dirichlet-process mixtures: exact parallel Gibbs and split/merge moves.

    PyMC assigns it to every `DPMixture` automatically; options are passed as
    ``pm.sample(dpsplit={"threads": 2})``.  It also moves the one variable on which alpha depends.

    Parameters
    ----------
    vars : sequence of variables
        Variables of one or more mixtures; each mixture gets its own step.
    model : pymc.Model, optional
        By default the model of the context.
    rng : numpy.random.Generator or int, optional
        `pm.sample` passes one for every chain.
    initial_point : dict, optional
        Passed by `pm.sample` to every step method.
    compile_kwargs : dict, optional
        Arguments for the function that computes the law of the partition and the hyperparameters.
    blocked : bool
        Not used: the variables of a mixture always move together.
    kernel : str
        ``"auto"``, the default: ``"collapsed-split-merge"`` for up to four features and so few
        observations that a sweep takes no more than 0.07 ms, some hundreds; else ``"exact"``.
        ``"exact"``: a floored-slice sweep over all labels; a collapsed scan of the observations
        likeliest to found clusters (with fewer than five features only if sweeps do not let them),
        or of a random window if clusters have fewer than 1.5 members per sufficient statistic;
        then split/merge attempts and transfers.
        ``"collapsed"``: collapsed Gibbs (Neal 2000, algorithm 3), sequential;
        ``"collapsed-split-merge"`` also has attempts between anchored pairs.  All leave the
        posterior exactly invariant.  docs/samplers.md has those of the literature; some are not
        exact and warn.
    threads : int
        Number of threads, at most the number of cores.  The draws do not depend on it.  The
        default is one, as `pm.sample` runs one chain per core; more threads pay off if there are
        more cores than chains, and from about 1e5 observations on.  With a million observations
        sweeps by 16 threads took a sixth to an eighth of the time, see docs/performance.md.
    attempts : int, optional
        Split/merge attempts per iteration.  By default as many as cost 15 % of the sweep in the
        first half of tuning and mostly 5 % from then on, 2 % with fewer than five features, at most
        2; less than one on average if a sweep is fast.
    iterations : int, optional
        Iterations per draw, fixed after tuning.  By default as many as cost little beside PyMC,
        and more, up to 50 ms per draw, if a chain mixes slowly in the second half of tuning.
        A chain that needs twice as many or more has them in the last quarter of tuning already,
        and fewer again in its second half if its draws are nearly independent.
    start_clusters : int, optional
        Number of clusters to start from; also ``pm.sample(initvals={"x_n_clusters": 5})``, which
        may differ by chain.  By default each chain draws it log-uniformly from 1 to min(50, N),
        so that chains start over-dispersed.
    start_labels : array of int, shape (N,), or result of `find_map` or `dp_means`, optional
        Partition to start from.  All chains then start from the same partition, and R-hat does
        not detect a region that all of them miss.  If labels are variables of the model, also
        ``initvals={"x_labels": labels}``, which may differ by chain.
    exchanges : int
        For a latent mixture: joint updates of its values and their labels per draw.  They are
        made if the likelihood has one factor per value, of any form; the statistic
        ``{name}_exchanged`` counts the values that moved.  For missing entries: any number but
        0 makes one such update of each incomplete row.
    keep_labels : bool, optional
        Store the labels of every draw in ``sample_stats`` as ``{name}_labels``; by default if a
        cluster has 50 parameters or more, and labels take a twentieth of their memory or less.
    continues : bool
        The initial values are a whole draw of a chain, which `extend` gives.  The labels are
        drawn given its measure, unless they are variables, and no tuning draw is greedy.
    **of_kernel : int, bool or sequence of float
        What one sampler of the literature takes beside these, such as ``truncation=30`` with
        ``kernel="truncated"``; docs/samplers.md.

    Notes
    -----
    ``{name}_log_joint`` is the log density of data and partition, docs/method.md, eq. (1.4), given
    the other values of the same draw.  docs/sample_stats.md lists all statistics.

    Raises
    ------
    ValueError
        If an option is not known or out of range, if the variables are not those of a mixture, or
        if anything but Deterministics and its own observations depends on the mixture.

    References
    ----------
    .. [1] Chang & Fisher (2013), Parallel Sampling of DP Mixture Models using Sub-Cluster
       Splits, NIPS: the sampler on which this one is modelled.  docs/method.md derives the
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
        model = model_of_context(model)
        refuse_unknown(kwargs)
        chosen = mixtures_of(vars, model)
        if len(chosen) == 1:
            return super().__new__(cls, chosen[0].owned, model=model, **kwargs)
        rng = own_generator(kwargs.pop("rng", None))
        new = partial(super().__new__, cls)
        return one_step_each(new, chosen, rng, {**kwargs, "model": model})

    def __init__(
        self,
        vars: Any = None,
        *,
        model: Model | None = None,
        rng: Any = None,
        initial_point: Any = None,
        compile_kwargs: dict[str, Any] | None = None,
        blocked: bool = True,
        kernel: str = AUTO,
        threads: int = 1,
        attempts: int | None = None,
        iterations: int | None = None,
        start_clusters: int | None = None,
        start_labels: Any = None,
        exchanges: int = 10,
        keep_labels: bool | None = None,
        continues: bool = False,
        **of_kernel: Any,
    ) -> None:
        del blocked
        model = model_of_context(model)
        work = kernel, threads, attempts, iterations
        start = start_clusters, getattr(start_labels, "labels", start_labels)
        self.options = Options(*work, *start, exchanges, keep_labels, continues, of_kernel)
        (self.mixture,) = mixtures_of(vars, model)
        refuse_dependents(self.mixture, model)
        self._keeps_parameters = isinstance(self.mixture.component, NonconjugateFamily)
        refuse_kernel(kernel, self.mixture.name, not self._keeps_parameters)
        self.rng = own_generator(rng)
        evaluator = evaluator_of_points(self.mixture, model, compile_options(compile_kwargs))
        point = checked_point(initial_point, model)
        refuse_impossible(evaluator, model, point)
        self.mixture.labels_in(point)
        if continues:
            self.mixture.measure_in(point)
        conditioning = evaluator.read(point)
        check_published(kernel, self.mixture.name, conditioning.law, of_kernel)
        self.data_read = DataRead(self.mixture.name, graphs_read(self.mixture, model))
        self._reader = TargetReader(self.mixture, evaluator)
        self._reader.centre(column_centres(conditioning.rows))
        if kernel == AUTO:
            made = None if self._keeps_parameters else self._reader.target_of(conditioning)
            kernel = SLICES if made is None else choose_kernel(made)
        self.kernel = kernel
        self._settings = self.options.settings()
        n_labels = self.mixture.items.number_of_observations(conditioning.rows)
        self.options.refuse_start(self.mixture.name, n_labels, self.mixture.items)
        self._exchanges = exchanges_of(self.mixture, model, point, exchanges)
        self._concentrations = concentrations_to_move(self.mixture, model, point)
        self.vars = [model.rvs_to_values[rv] for rv in self.mixture.owned]
        self.vars += moved_by_kernels(self._concentrations)
        self._intercepts = intercepts_of(self.mixture, model, point)
        self._keeps_labels = self.options.keeps_labels(self.mixture, n_labels)
        kept = n_labels if self._keeps_labels else None
        self.stats_dtypes_shapes = stats_types(self.mixture.name, kept)
        self.stats_dtypes = [{key: of for key, (of, _) in self.stats_dtypes_shapes.items()}]
        given = self.mixture, model, self.kernel, self.vars, self._concentrations
        self._compared = draws_ahead.values_to_compare(*given)  # None if one by one
        self._forget()

    def _forget(self) -> None:
        """Reset the state of the chain."""
        self.labels: np.ndarray | None = None
        self.n_tune = self.n_done = 0
        self.n_iterations = self.least_iterations = 1
        self.attempts = 0.0
        self.scan_list: np.ndarray | None = None
        self.window, self.regroupings = 0, 0.5
        self.history = tuning_history.empty_history(0)
        self.cluster_stats: np.ndarray | None = None
        self.of_rows, self.of_clusters = sampler.NOTHING_KEPT
        self._pool: ThreadPoolExecutor | None = None
        self._ahead: draws_ahead.DrawsAhead | None = None
        self._looks, self.n_draws = draws_ahead.LooksAtState(), 0

    def setup_chain(self, rng: Any, tune: int, draws: int) -> None:
        """Reset the state; PyMC calls this at the start of each chain.

        Parameters
        ----------
        rng : numpy.random.Generator
        tune, draws : int
            Number of tuning draws and of draws kept.
        """
        super().setup_chain(rng, tune, draws)
        self._forget()
        self.n_tune, self.n_draws = tune, tune + draws
        self.history = tuning_history.empty_history(tune)

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
        began, early = time.perf_counter(), self._is_early()
        if self._ahead is not None and self._ahead.goes_on_from(point):
            return self._given(self._ahead, point)
        self._take_back()
        point = for_a_search(self._concentrations, point) if early else point
        conditioning, target = self._reader.read(point)
        state = self._chain_state(target, conditioning, point)
        strength = strength_prior(self._concentrations, point, conditioning.law, self.rng, early)
        schedule = self._scheduled(target, state, strength)
        form, pool = self._form(), self._threads()
        read = conditioning, self._reader.shift, point
        if self._compared is not None and pool is None and not early:
            begun = draws_ahead.begin(self.kernel, target, state, schedule, self.rng)
            given = *read[:2], self._compared, self.rng, self._n_alike()
            ahead = draws_ahead.draw_ahead(self.mixture, begun, *given)
            if ahead is not None:
                ahead.seconds = (time.perf_counter() - began) / len(ahead.stats)
                return self._given(ahead, point)
        if early:
            progress = state, schedule, self.n_done, self._n_early()
            state = searched(self.mixture, form, target, *progress, self.rng, pool)
        state, counts = sampler.advance(form, target, state, self.rng, schedule, pool)
        target = with_present_law(target, strength)
        target, state, point, n_exchanged = self._exchanges.apply(
            form, target, state, *read, schedule, counts, self.rng
        )
        target, state, point = move_intercepts(self._intercepts, target, state, point, self.rng)
        self.labels, self.cluster_stats, self.of_rows, self.of_clusters = state
        self.n_done += 1
        target, concentrations = move_concentrations(
            self._concentrations, point, target, strength, state, self.rng
        )
        measure = sampler.measure(target, state, self.rng)
        known = conditioning, point, self._reader.shift, self._exchanges.incomplete
        values = drawn_values(self.mixture, measure, state.labels, *known, self.rng)
        if self.mixture.unobserved is not None:
            rest = conditioning, point, values, self._exchanges.incomplete
            target, state, measure = with_drawn_entries(self.mixture, target, state, measure, *rest)
        plan = plan_of(self.kernel, target, schedule)
        of_partition = measure.log_joint, measure.entropy, measure.largest_share
        drawn = len(state.stats), of_partition, counts, plan, n_exchanged
        stats = stats_of(self.mixture.name, target, *drawn)
        if self._keeps_labels:
            stats |= labels_stat(self.mixture, state.labels)
        tuning_history.record(self.history, self.n_tune, self.n_done, stats, self.mixture.name)
        stats[f"{self.mixture.name}_seconds"] = time.perf_counter() - began
        return {**point, **concentrations, **values}, [stats]

    def _given(
        self, ahead: draws_ahead.DrawsAhead, point: dict[str, np.ndarray]
    ) -> tuple[dict[str, np.ndarray], list[Any]]:
        """Give the next of the draws that were made ahead."""
        values, stats, self.labels = ahead.give()
        self.n_done += 1
        stats[f"{self.mixture.name}_seconds"] = ahead.seconds
        # The record has no sufficient statistics, which only the last draw leaves.
        self._ahead, self.cluster_stats = ahead, None
        if ahead.all_given:
            self._ahead, self.cluster_stats = None, ahead.end.stats
        if self._keeps_labels:
            stats |= labels_stat(self.mixture, self.labels)
        tuning_history.record(self.history, self.n_tune, self.n_done, stats, self.mixture.name)
        return {**point, **values}, [stats]

    def _n_alike(self) -> float:
        """Number of draws with the present schedule, before the state is looked at."""
        alike = tuning_history.draws_with_one_schedule(self.history, self.n_tune, self.n_done)
        return min(alike, self.n_draws - self.n_done, self._looks.n_until_next(self.n_done))

    def _take_back(self) -> None:
        """Forget the draws that were made and not given, as if they had not been made."""
        if self._ahead is not None:
            state = self._ahead.beginning.after(self._ahead.n_given, self.rng)
            self.labels, self.cluster_stats = state[:2]
            self._ahead = None
            self._looks.note_in_the_middle(self.n_done)

    @property
    def sampling_state(self) -> Any:
        """Return the state after the last draw that was given."""
        self._take_back()
        self._looks.note(self.n_done)
        return super().sampling_state

    @sampling_state.setter
    def sampling_state(self, state: Any) -> None:
        self._ahead = None
        WithSamplingState.sampling_state.fset(self, state)
        self._looks.note(self.n_done)

    def _chain_state(
        self, target: sampler.Target, conditioning: Conditioning, point: dict[str, np.ndarray]
    ) -> sampler.ChainState:
        """State of the chain: that of the previous draw, or a new start."""
        if self.labels is None:
            given = self.mixture, self.options, conditioning, self._reader.shift, point
            return first_state(*given, target, self.rng)
        stats = self.cluster_stats
        if stats is None or not (self._reader.rows_are_fixed or self._keeps_parameters):
            stats = sampler.resume(target, self.labels).stats
        return sampler.ChainState(self.labels, stats, self.of_rows, self.of_clusters)

    def _n_early(self) -> int:
        """Number of draws that search for clusters instead of following the posterior."""
        return 0 if self.options.continues else n_early_draws(self.kernel, self.n_tune)

    def _is_early(self) -> bool:
        return self.n_done < self._n_early()

    def _form(self) -> str:
        is_greedy = self.kernel == SLICES and self._is_early()
        return sampler.GREEDY if is_greedy else self.kernel

    def _scheduled(
        self, target: sampler.Target, state: sampler.ChainState, strength: StrengthPrior
    ) -> sampler.Schedule:
        """Schedule of this draw: renewed in the first half of tuning, frozen after the second."""
        kernel, first_half = self.kernel, self.n_tune - len(self.history)
        is_renewed = self.n_done % tuning_history.RESCHEDULE_EVERY == 0 and self.n_done < first_half
        if self.scan_list is None or is_renewed or 0 < self.n_done == first_half:
            given = self.options.attempts, self._settings, self.n_done >= first_half
            schedule = make_schedule(kernel, target, state, *given)
            self.n_iterations, self.attempts, self.scan_list = schedule[:3]
            self.least_iterations = schedule.n_iterations
            self.window, self.regroupings = schedule.window, schedule.regroupings
        kept = self.scan_list, strength, self._settings, self.window, self.regroupings
        n_iterations = self.options.iterations or self.n_iterations
        schedule = sampler.Schedule(n_iterations, self.attempts, *kept)
        if self.options.iterations is None and self.n_done <= self.n_tune:
            is_ahead = self._compared is not None and self.n_done == self.n_tune
            known = schedule, self.least_iterations, kernel, target, state
            adapted = partial(adapted_iterations, *known, is_ahead=is_ahead)
            of_tuning = self.history, self.n_tune, self.n_done
            reviewed = tuning_history.review(n_iterations, adapted, *of_tuning)
            self.n_iterations, self.history = reviewed
            schedule = schedule._replace(n_iterations=self.n_iterations)
        if kernel == COLLAPSED and self.options.attempts is None and self._is_early():
            return schedule._replace(attempts=1.0)
        return schedule

    def _threads(self) -> ThreadPoolExecutor | None:
        """Pool of threads, created in the process that uses it."""
        if self._pool is None:
            self._pool = new_pool(self.options.threads)
        return self._pool

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the threads, which belong to one process."""
        self._take_back()
        self._looks.note(self.n_done)
        return {**self.__dict__, "_pool": None}

    def _progressbar_config(self, n_chains: int = 1) -> tuple[list[Any], dict[str, list[Any]]]:
        return progress_columns(self.mixture.name, n_chains)

    def _make_progressbar_update_functions(self) -> tuple[Callable[..., dict[str, Any]], ...]:
        return (progress_update(self.mixture.name),)

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
        return Competence.IDEAL if is_owned(var, DPSplitMerge.name) else Competence.INCOMPATIBLE


register_step(DPSplitMerge)
