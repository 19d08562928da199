"""Step method for hierarchical mixtures: transfers values between PyMC's point and the chain."""

import copy
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from pymc.model import Model
from pymc.pytensorf import compile as compile_function
from pymc.pytensorf import rvs_in_graph
from pymc.step_methods.compound import BlockedStep, Competence, StepMethodState, flatten_steps
from pymc.step_methods.state import dataclass_state
from pymc.util import get_random_generator

from pymc_dpsplit.components.arguments import check_integer
from pymc_dpsplit.components.nonconjugate.family import NonconjugateFamily
from pymc_dpsplit.components.shared_labels.items import Items
from pymc_dpsplit.data.blocks import column_centres, column_means
from pymc_dpsplit.hierarchical.iteration import advance_groups
from pymc_dpsplit.hierarchical.parameters import draw_parameters_of
from pymc_dpsplit.hierarchical.state import (
    GroupedState,
    GroupedTarget,
    start_groups,
    with_statistics,
)
from pymc_dpsplit.hierarchical.tables import redraw_weights
from pymc_dpsplit.hierarchical_model.concentration_move import move_concentrations
from pymc_dpsplit.hierarchical_model.continuation import (
    LastDraws,
    continued_state,
    refuse_another_start,
)
from pymc_dpsplit.hierarchical_model.cost import cost_of_iteration
from pymc_dpsplit.hierarchical_model.dependents import refuse_dependents
from pymc_dpsplit.hierarchical_model.draw_statistics import stats_of, stats_types
from pymc_dpsplit.hierarchical_model.groups import refuse_changed_groups
from pymc_dpsplit.hierarchical_model.kernel_choice import AUTO, refuse_many_clusters, visits_of
from pymc_dpsplit.hierarchical_model.latent_update import Advanced, LatentUpdate, started_from
from pymc_dpsplit.hierarchical_model.lookup import find_hierarchical
from pymc_dpsplit.hierarchical_model.missing import completed, update_incomplete
from pymc_dpsplit.moves.partition_law import dirichlet_process
from pymc_dpsplit.moves.start import draw_n_start
from pymc_dpsplit.moves.target import Target
from pymc_dpsplit.tuning.progress import TunedIterations, before_tuning, with_draw
from pymc_dpsplit.variables.data_read import DataRead, graphs_read
from pymc_dpsplit.variables.declared_models import one_step_each, owner_of, owners_of
from pymc_dpsplit.variables.law import fault_of_concentration
from pymc_dpsplit.variables.lookup import is_owned, model_of_context
from pymc_dpsplit.variables.scalar_priors import moved_alone, priors_to_move
from pymc_dpsplit.variables.step_registration import knowing_steps as knowing_steps
from pymc_dpsplit.variables.step_registration import register_step, steps_last

_KIND = "hierarchical mixture", "HDPMixture"
# Labels are stored by default where those of a draw take no more than this.
_BYTES_PER_DRAW = 2**18


@dataclass_state
class HDPMixtureState(StepMethodState):
    """State from which a chain can be continued.

    Attributes
    ----------
    labels, stats, weights, log_rest
        The fields of `hierarchical.state.GroupedState`; None before the first draw.
    tuning : tuple
        The fields of `tuning.progress.TuningProgress`.
    """

    labels: np.ndarray | None = None
    stats: np.ndarray | None = None
    weights: np.ndarray | None = None
    log_rest: float = 0.0
    tuning: tuple[Any, ...] = ()


class HDPMixtureStep(TunedIterations, BlockedStep):
    """Step method for rows in groups: exact sweeps over all rows, splits and merges.

    PyMC assigns it to every `HDPMixture` automatically; options are passed as
    ``pm.sample(hdp={"attempts": 10})``.

    Parameters
    ----------
    vars : sequence of variables
        Variables of one or more hierarchical mixtures; each gets its own step.
    model : pymc.Model, optional
        By default the model of the context.
    rng : numpy.random.Generator or int, optional
        `pm.sample` passes one for every chain.
    initial_point : dict, optional
        Passed by `pm.sample` to every step method.
    compile_kwargs : dict, optional
        Arguments for the function that computes concentrations and hyperparameters.
    blocked : bool
        Not used: the variables of a mixture always move together.
    iterations : int, optional
        Visits of all rows per draw.  By default as many as cost little beside the rest of a draw; a
        chain that mixes slowly in the second half of tuning gets more, while a draw takes no longer
        than about 50 ms.
    attempts : int
        Splits and merges attempted before each of them.
    kernel : str
        How rows are visited: ``"collapsed"``, one by one, with weights of groups and parameters
        integrated out; ``"slices"``, independently given these, by `threads`; or ``"auto"``, the
        first up to 20,000 rows and the second beyond, and for a `Component`, whose parameters
        cannot be integrated out.  ``"av-parallel"`` is that of Williamson, Dubey & Xing (2013), one
        by one among the clusters of a processor, for comparison.  All are exact.
    threads : int
        Number of threads of a sweep by slices; draws do not depend on it.
    processors : int, optional
        Number of processors of ``kernel="av-parallel"``, by default 4.  They run one after another.
    start_clusters : int, optional
        Number of clusters to start from.  By default each chain draws it log-uniformly from 1 to
        min(50, N), so that chains start over-dispersed.
    exchanges : int
        Number of joint updates of labels and latent rows per draw, if each observation depends on
        one row; 0 leaves the rows to other steps, as it is always for a `Component`.
    keep_labels : bool, optional
        Store the labels of every draw in ``sample_stats`` as ``{name}_labels``.  By default they
        are stored if those of a draw take no more than 256 KiB, up to 65,536 rows; those of latent
        rows are variables, and are not stored twice.
    continues : mapping, optional
        Given by `extend`: name of mixture to the last draws of a trace, from which chains go on.

    Notes
    -----
    A draw conditions on no weights of groups: these and the parameters are integrated out.
    Parameters of a family that is not conjugate are part of the state, and move by slice sampling;
    splits and merges propose them together with the labels.  The step also moves each concentration
    that depends on one scalar variable, with the global weights summed out.  docs/sample_stats.md
    lists all statistics.

    Raises
    ------
    ValueError
        If an option is out of range, the variables are not those of whole hierarchical mixtures,
        or anything but Deterministics depends on them.

    References
    ----------
    .. [1] Teh, Jordan, Beal & Blei (2006), Hierarchical Dirichlet processes, JASA 101: the sampler
       by direct assignment, eq. (16.1) of docs/method.md.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_dpsplit as dps
    >>> with pm.Model() as model:
    ...     _ = dps.HDPMixture(
    ...         "x", 1.0, 1.0, dps.Normal(0, 0.1, 2, 1), groups=[0, 0, 1],
    ...         observed=[0.0, 0.1, 5.0],
    ...     )
    ...     step = dps.HDPMixtureStep(model.free_RVs, start_clusters=2)
    >>> step.name
    'hdp'
    """

    name = "hdp"
    _state_class = HDPMixtureState

    def __new__(cls, vars: Any = None, *, model: Model | None = None, **kwargs: Any) -> Any:
        model = model_of_context(model)
        chosen = owners_of(find_hierarchical(model), vars, model, *_KIND)
        if len(chosen) == 1:
            return super().__new__(cls, chosen[0].owned, model=model, **kwargs)
        rng = get_random_generator(kwargs.pop("rng", None))
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
        iterations: int | None = None,
        attempts: int = 5,
        kernel: str = AUTO,
        threads: int = 1,
        processors: int | None = None,
        start_clusters: int | None = None,
        exchanges: int = 10,
        keep_labels: bool | None = None,
        continues: Mapping[str, LastDraws] | None = None,
    ) -> None:
        del blocked
        model = model_of_context(model)
        if iterations is not None:
            check_integer("iterations", iterations, 1)
        check_integer("attempts", attempts, 0)
        check_integer("threads", threads, 1)
        check_integer("exchanges", exchanges, 0)
        if start_clusters is not None:
            check_integer("start_clusters", start_clusters, 1)
            refuse_another_start(start_clusters, continues)
        self.mixture = owner_of(find_hierarchical(model), vars, model, *_KIND)
        refuse_changed_groups(self.mixture.groups, self.mixture.name, model)
        refuse_dependents(self.mixture, model)
        self.vars = [model.rvs_to_values[rv] for rv in self.mixture.owned]
        read = graphs_read(self.mixture.as_mixture, model)
        self.data_read = DataRead(self.mixture.name, [*self.mixture.concentrations.values(), *read])
        self.rng = get_random_generator(rng)
        self.iterations, self.attempts = iterations, attempts
        self.start_clusters = start_clusters
        self.last_draws = None if continues is None else continues[self.mixture.name]
        point = model.initial_point() if initial_point is None else initial_point
        self._latent: LatentUpdate | None = None
        if self.mixture.is_latent:
            self.mixture.as_mixture.labels_in(point)
            self._latent = LatentUpdate(self.mixture, model, point, exchanges)
        n_rows = len(self.mixture.groups.group_of_row)
        keeps = isinstance(self.mixture.component, NonconjugateFamily)
        self.threads, self.n_processors = visits_of(kernel, n_rows, keeps, threads, processors)
        self._read_rows(point)
        self._compile(model, point, compile_kwargs or {})
        self._target_at(point)
        if keep_labels is None:
            keep_labels = not self.mixture.is_latent and 4 * n_rows <= _BYTES_PER_DRAW
        self.keep_labels = keep_labels
        kept = n_rows if keep_labels else None
        self.stats_dtypes_shapes = stats_types(self.mixture.name, kept)
        self.stats_dtypes = [{key: of for key, (of, _) in self.stats_dtypes_shapes.items()}]
        self._forget()

    def _read_rows(self, point: dict[str, np.ndarray]) -> None:
        """Read the rows, which do not change while a chain runs unless they are latent."""
        groups = self.mixture.groups
        rows = self.mixture.rows if self._latent is None else self._latent.rows_at(point)
        if rows.shape[0] != len(groups.group_of_row):
            raise ValueError(
                f"{self.mixture.name}: observed has {rows.shape[0]} rows, but groups= are of "
                f"{len(groups.group_of_row)}; declare the mixture anew."
            )
        self._items = Items(self.mixture.component)
        self._incomplete = self.mixture.as_mixture.incomplete()
        if self.mixture.unobserved is not None:
            self._rows = rows
            start: Any = self.mixture.unobserved.owner.inputs[3]
            rows = completed(rows, self._incomplete, start.data)
        self._shift = column_centres(rows)
        self._data: Any = self.mixture.component.arranged(rows)

    def _compile(self, model: Model, point: dict[str, np.ndarray], options: Any) -> None:
        """Compile what a draw conditions on, and the priors of the concentrations."""
        mixture = self.mixture
        graphs = [*mixture.concentrations.values(), *mixture.hyperparameters.values()]
        replaced = model.replace_rvs_by_values(graphs)
        self._inputs = [str(value.name) for value in model.value_vars]
        options = {"on_unused_input": "ignore", **options}
        self._evaluate = compile_function(model.value_vars, replaced, **options)
        own, elsewhere = {*mixture.owned, mixture.rv}, mixture.hyperparameters.values()
        self._priors = priors_to_move(mixture.concentrations, own, model, point, elsewhere)
        self.vars += moved_alone(self._priors)

    def _forget(self) -> None:
        """Reset the state of the chain."""
        self.labels: np.ndarray | None = None
        self.stats = self.weights = np.empty(0)
        self.log_rest = 0.0
        self.progress = before_tuning(0)

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
        self.progress = before_tuning(tune)

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
        self._complete(point)
        target, values = self._target_at(point)
        state = self._state(target, point)
        if self.mixture.unobserved is not None:
            target, state, point = self._with_drawn_entries(target, values, state, point)
        cost = cost_of_iteration(target, state, self.attempts, self.threads is not None)
        n_iterations = self.chosen_iterations(len(state.labels), cost)
        work = self.attempts, self.threads, self.n_processors
        advanced = advance_groups(target, state, self.rng, n_iterations, *work)
        (target, state, tables, counts, n_exchanged), point = self._exchanged(
            Advanced(target, *advanced), values, point
        )
        given = self._priors, self._target_at, target, state, tables, point
        target, tables, point = move_concentrations(*given, self.rng)
        state = redraw_weights(target, state, tables, self.rng)
        self.labels, self.stats, self.weights, self.log_rest = state
        params = draw_parameters_of(target.of_rows.prior, state.stats, self.rng)
        order = np.argsort(-state.weights, kind="stable")
        parameters = self._items.unpack(params[order], values, self._shift)
        labels = np.argsort(order)[state.labels]
        drawn = self.mixture.point_values(
            state.weights[order], state.log_rest, parameters, int(tables.sum()), labels
        )
        kept = labels if self.keep_labels else None
        done = counts, n_iterations, n_exchanged
        stats = stats_of(self.mixture.name, target, state, *done, kept)
        self.progress = with_draw(self.progress, stats, self.mixture.name)
        stats[f"{self.mixture.name}_seconds"] = time.perf_counter() - began
        return {**point, **drawn}, [stats]

    def _exchanged(
        self, advanced: Advanced, values: dict[str, np.ndarray], point: dict[str, np.ndarray]
    ) -> tuple[Advanced, dict[str, np.ndarray]]:
        """Move latent rows together with their labels."""
        if self._latent is None:
            return advanced, point
        work = self.attempts, self.threads, self.n_processors
        advanced, point = self._latent.exchanged(
            advanced, values, self._shift, point, *work, self.rng
        )
        self._data = advanced.target.of_rows.data
        return advanced, point

    def _complete(self, point: dict[str, np.ndarray]) -> None:
        """Put the missing entries of a point, or latent rows, in the data."""
        if self._latent is not None:
            rows = self._latent.rows_at(point)
            self._shift, self._data = column_means(rows), self.mixture.component.arranged(rows)
        if self.mixture.unobserved is not None:
            entries = point[self.mixture.value_names["unobserved"]]
            rows = completed(self._rows, self._incomplete, entries)
            self._data = self.mixture.component.arranged(rows)

    def _with_drawn_entries(
        self,
        target: GroupedTarget,
        values: dict[str, np.ndarray],
        state: GroupedState,
        point: dict[str, np.ndarray],
    ) -> tuple[GroupedTarget, GroupedState, dict[str, np.ndarray]]:
        """Redraw the missing entries, and the labels of their rows."""
        name = self.mixture.value_names["unobserved"]
        rows = completed(self._rows, self._incomplete, point[name])
        of_rows = self._items, values, self._shift
        target, state, entries = update_incomplete(
            *of_rows, target, state, rows, self._incomplete, self.rng
        )
        self._data = target.of_rows.data
        return target, state, {**point, name: entries}

    def _state(self, target: GroupedTarget, point: dict[str, np.ndarray]) -> GroupedState:
        """State of the chain: that of the previous draw, also of a trace, or a new start.

        The number of clusters of an initial point is 0, unless the user has given it.
        """
        if self.labels is not None:
            parts: Any = self.labels.copy(), self.stats, self.weights, self.log_rest
            state = GroupedState(*parts)
            return state if self._latent is None else with_statistics(target, state)
        if self.last_draws is not None:
            return continued_state(self.mixture, self.last_draws, point, target)
        given = self.mixture.as_mixture.labels_in(point)
        if given is not None:
            return started_from(given, target)
        n_given = self.mixture.as_mixture.count_in(point)
        n_rows = len(target.group_of_row)
        n_start = self.start_clusters or n_given or draw_n_start(self.rng, n_rows)
        return start_groups(target, min(n_start, n_rows), self.rng)

    def _target_at(
        self, point: dict[str, np.ndarray]
    ) -> tuple[GroupedTarget, dict[str, np.ndarray]]:
        """Target at a point, and the hyperparameters there."""
        mixture = self.mixture
        alpha, gamma, *numbers = self._evaluate(*(point[name] for name in self._inputs))
        for key, value in {"alpha": alpha, "gamma": gamma}.items():
            if not 0.0 < value < np.inf:
                varies = bool(rvs_in_graph(mixture.concentrations[key]))
                fault = fault_of_concentration(key, float(value), varies)
                raise ValueError(f"{mixture.name}: {fault}")
        given = dict(zip(mixture.hyperparameters, numbers, strict=True))
        try:
            values = mixture.component.check(given, mixture.op.n_features)
        except ValueError as error:
            raise ValueError(f"{mixture.name}: {error}") from None
        prior = mixture.component.prior(values, self._shift)
        refuse_many_clusters(mixture.name, prior, float(gamma), self.threads is not None)
        of_rows = Target(prior, self._data, dirichlet_process(float(gamma)))
        groups = mixture.groups
        return GroupedTarget(of_rows, groups.group_of_row, groups.sizes, float(alpha)), values

    @staticmethod
    def competence(var: Any, has_grad: bool) -> Competence:
        """Claim the variables that belong to a hierarchical mixture, and no others.

        Parameters
        ----------
        var : TensorVariable
        has_grad : bool

        Returns
        -------
        Competence
        """
        del has_grad
        return Competence.IDEAL if is_owned(var, HDPMixtureStep.name) else Competence.INCOMPATIBLE


register_step(HDPMixtureStep)
ordering = steps_last(HDPMixtureStep)


def compiling_first(sample: Callable[..., Any]) -> Callable[..., Any]:
    """Make `pm.sample` compile kernels by a trial draw before it starts processes."""

    def sampling(*args: Any, **kwargs: Any) -> Any:
        for step in flatten_steps(kwargs["step"]):
            if isinstance(step, HDPMixtureStep):
                trial = copy.copy(step)
                trial.setup_chain(np.random.default_rng(0), 1, 1)
                trial.step(kwargs["start"][0])
        return sample(*args, **kwargs)

    return sampling
