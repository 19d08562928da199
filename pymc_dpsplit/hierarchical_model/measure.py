"""Global measure of a hierarchical mixture, and its rows, as random variables of PyMC."""

from collections.abc import Sequence
from typing import Any, override

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.distribution import _support_point
from pymc.logprob.abstract import MeasurableOp, _logprob
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.random.op import RNGConsumerOp
from pytensor.tensor.random.utils import custom_rng_deepcopy
from pytensor.tensor.type import TensorType

from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.hierarchical_model.groups import RowGroups
from pymc_dpsplit.moves.franchise import Seated, draw_franchise, seat_in_franchise
from pymc_dpsplit.variables.base_density import base_log_density
from pymc_dpsplit.variables.inputs import named_hyperparameters
from pymc_dpsplit.variables.measure import (
    ROLES,
    CentralParameters,
    OwnedByStep,
    label_dtype,
    overflow_message,
    pad_rows,
    parameter_shapes,
)
from pymc_dpsplit.variables.object_mode import ObjectModeOp
from pymc_dpsplit.variables.owned_terms import conditional_term, kept_term
from pymc_dpsplit.variables.rising import log_rising

N_TABLES, LABELS = "n_tables", "labels"


class HierarchicalMeasure(OwnedByStep, ObjectModeOp, RNGConsumerOp, MeasurableOp):
    """Global weights and parameters of clusters, with the weights of groups summed out.

    Inputs are a generator, alpha, gamma and the hyperparameters.  Outputs are the generator, the
    number of clusters K, the weight of the remainder, the weights (L,) in decreasing order, each
    cluster parameter (L, ...), the number of tables and, if `labelled`, the label (N,) of each row.

    Parameters
    ----------
    target : str
        Name of the mixture.
    component : ComponentFamily
        Family; the hyperparameters are inputs, and those of `component` are not used.
    groups : RowGroups
    n_features : int
        Number of features D of a row.
    max_clusters : int
        Number of rows L.
    labelled : bool
        Whether labels are variables of the model.
    """

    __props__ = ("target", "component", "groups", "n_features", "max_clusters", "labelled")
    _print_name = ("HDPMeasure", r"\operatorname{HDPMeasure}")
    name = "HDPMeasure"
    step_name, step_class = "hdp", "HDPMixtureStep"
    is_finite = False

    def __init__(
        self,
        target: str,
        component: ComponentFamily,
        groups: RowGroups,
        n_features: int,
        max_clusters: int,
        labelled: bool = False,
    ) -> None:
        self.target = target
        self.component = component
        self.groups = groups
        self.n_features = n_features
        self.max_clusters = max_clusters
        self.labelled = labelled

    @property
    def roles(self) -> tuple[str, ...]:
        """Return the role of every output except the generator."""
        return (*ROLES, *self.component.parameters, N_TABLES, *[LABELS] * self.labelled)

    @property
    def output_types(self) -> list[TensorType]:
        """Return the type of every output except the generator."""
        parameters = parameter_shapes(self.component, self.max_clusters, self.n_features)
        types = [TensorType("int64", ()), TensorType("float64", ())]
        types += [TensorType("float64", of) for of in [(self.max_clusters,), *parameters]]
        types.append(TensorType("int64", ()))
        if self.labelled:
            n_rows = len(self.groups.group_of_row)
            types.append(TensorType(label_dtype(self.max_clusters), (n_rows,)))
        return types

    @override
    def make_node(self, *inputs: Any) -> Apply:
        rng, *numbers = inputs
        tensors = [pt.as_tensor(value).astype("float64") for value in numbers]
        return Apply(self, [rng, *tensors], [rng.type(), *(of() for of in self.output_types)])

    @override
    def update(self, node: Apply) -> dict[Variable, Variable]:
        return {node.inputs[0]: node.outputs[0]}

    def dist_params(self, node: Apply) -> list[Variable]:
        """Return the inputs that PyMC prints."""
        return list(node.inputs[1:])

    def infer_shape(self, node: Apply, shapes: Any) -> list[Any]:
        return [None, *(tuple(map(pt.constant, of.shape)) for of in self.output_types)]

    @override
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        rng, alpha, gamma, *hyperparameters = inputs
        rng = custom_rng_deepcopy(rng)
        values = named_hyperparameters(self.component, hyperparameters)
        labels, tables, weights, log_rest = self._seated(float(alpha), float(gamma), rng)
        n_clusters, order = len(tables), np.argsort(-weights, kind="stable")
        if self.labelled and n_clusters > self.max_clusters:
            raise ValueError(overflow_of_groups(self.target, n_clusters, self.max_clusters))
        parameters = self.component.draw_base(rng, values, min(n_clusters, self.max_clusters))
        drawn = self.padded(weights[order], parameters)
        measure = {"n_clusters": n_clusters, "new_weight": np.exp(log_rest), **drawn}
        measure[N_TABLES] = tables.sum()
        if self.labelled:
            measure[LABELS] = np.argsort(order)[labels].astype(label_dtype(self.max_clusters))
        output_storage[0][0] = rng
        for role, storage in zip(self.roles, output_storage[1:], strict=True):
            storage[0] = np.asarray(measure[role])

    def _seated(self, alpha: float, gamma: float, rng: np.random.Generator) -> Seated:
        """Draw clusters of the rows, and labels (N,) only if these are variables."""
        if self.labelled:
            return seat_in_franchise(self.groups.group_of_row, alpha, gamma, rng)
        nobody = np.empty(0, np.int64)
        return Seated(nobody, *draw_franchise(self.groups.sizes, alpha, gamma, rng))

    def padded(
        self, weights: np.ndarray, parameters: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Return weights and parameters of the first L clusters, as the model holds them."""
        of = {"weights": pad_rows(weights, (self.max_clusters,), 0.0)}
        shapes = parameter_shapes(self.component, self.max_clusters, self.n_features)
        for name, shape in zip(self.component.parameters, shapes, strict=True):
            of[name] = pad_rows(parameters[name], shape, np.nan)
        return of

    @override
    def __str__(self) -> str:
        return f"{self.name}{{{self.target}}}"


def overflow_of_groups(target: str, n_clusters: int, max_clusters: int) -> str:
    """Return the message for a draw with more clusters than rows, when all must be recorded."""
    message = overflow_message(target, n_clusters, max_clusters)
    return message.replace("DPMixture", "HDPMixture")


@_logprob.register(HierarchicalMeasure)
def _measure_logprob(
    op: HierarchicalMeasure,
    values: Sequence[Any],
    rng: Variable,
    alpha: Any,
    gamma: Any,
    *hyperparameters: Variable,
    **kwargs: Any,
) -> list[Any]:
    """Return the log of eq. (16.6), and the base density.

    Factors without concentrations and hyperparameters are omitted, because the step draws from the
    exact conditional laws.
    """
    if len(values) != len(op.output_types):
        raise NotImplementedError(
            f"The variables of the mixture {op.target!r} have a joint log-probability; give a "
            "value for each of them."
        )
    n_parameters = len(op.component.parameters)
    n_clusters, new_weight, weights, *rest = values
    parameters, (n_tables, *labels) = rest[:n_parameters], rest[n_parameters:]
    base = base_log_density(op.component, n_clusters, parameters, hyperparameters)
    zero: Any = pt.zeros((), dtype="float64")
    sizes, times = unique_sizes(op.groups)
    of_sizes = -pt.sum(times * log_rising(alpha, sizes))
    return [
        n_clusters * pt.log(gamma),
        (gamma - 1.0) * pt.log(new_weight),
        # The support alone; PyMC requires that every variable has a term.
        kept_term(pt.log(pt.all(weights >= 0.0).astype("float64")), values),
        conditional_term(base, zero, [n_clusters, *parameters, *hyperparameters]),
        *([zero] * (len(parameters) - 1)),
        n_tables * pt.log(alpha) + of_sizes,
        # Given tables and global weights, labels have no factor with a concentration.
        *(pt.zeros(of.shape, dtype="float64") for of in labels),
    ]


def unique_sizes(groups: RowGroups) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct sizes of groups, and how many groups have each."""
    return np.unique(groups.sizes, return_counts=True)


@_support_point.register(HierarchicalMeasure)
def _measure_support_point(
    op: HierarchicalMeasure,
    rv: Variable,
    rng: Variable,
    alpha: Variable,
    gamma: Variable,
    *hyperparameters: Variable,
) -> Variable:
    """Return an initial point without clusters, for which the step chooses a start."""
    role = rv.owner.outputs.index(rv) - 1
    if op.roles[role] in op.component.parameters:
        central = CentralParameters(op).make_node(*hyperparameters)
        return central.outputs[role - len(ROLES)]
    of = op.output_types[role]
    return pt.constant(np.full(of.shape, op.roles[role] == "new_weight", of.dtype))


class GroupedRows(ObjectModeOp, RNGConsumerOp, MeasurableOp):
    """Rows of a hierarchical mixture; inputs are a generator, N, and outputs of the measure.

    Parameters
    ----------
    target : str
        Name of the mixture.
    dtype : str
        Of the rows.
    n_features : int or None
        Number of features D of a row; None if rows are scalars.
    """

    __props__ = ("target", "dtype", "n_features")
    _print_name = ("HDPMixture", r"\operatorname{HDPMixture}")
    name = "HDPMixture"
    default_output = 1
    has_density = False
    instead_of_density = "use dps.loo or dps.loo_groups"
    # As `variables.rows.MixtureRows` has them.
    shared, is_latent, extras = None, False, ()

    def __init__(self, target: str, dtype: str, n_features: int | None) -> None:
        self.target = target
        self.dtype = dtype
        self.n_features = n_features

    @override
    def make_node(self, *inputs: Any) -> Apply:
        rng, n_rows, *measure = inputs
        shape = (None,) if self.n_features is None else (None, self.n_features)
        out = TensorType(self.dtype, shape)()
        return Apply(self, [rng, pt.as_tensor(n_rows), *measure], [rng.type(), out])

    @override
    def update(self, node: Apply) -> dict[Variable, Variable]:
        return {node.inputs[0]: node.outputs[0]}

    def dist_params(self, node: Apply) -> list[Variable]:
        """Return the inputs that PyMC prints."""
        return list(node.inputs[2:])

    def infer_shape(self, node: Apply, shapes: Any) -> list[Any]:
        more = () if self.n_features is None else (pt.constant(self.n_features),)
        return [None, (node.inputs[1], *more)]

    @override
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        raise NotImplementedError(
            f"Rows of {self.target} cannot be drawn, as the point of the model does not hold the "
            "weights of its groups; pass var_names= without it."
        )

    @override
    def __str__(self) -> str:
        return f"{self.name}{{{self.target}}}"


@_logprob.register(GroupedRows)
def _rows_logprob(
    op: GroupedRows,
    values: Sequence[Any],
    rng: Variable,
    n_rows: Any,
    *measure: Any,
    **kwargs: Any,
) -> Any:
    """Return zeros (N,): the density of rows given their clusters depends on no variable."""
    return pt.zeros((n_rows,), dtype="float64")
