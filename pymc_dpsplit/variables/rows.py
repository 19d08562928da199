"""Random variable of the observations of a mixture, with its log-probability."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, override

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.distribution import _support_point
from pymc.logprob.abstract import MeasurableOp, _logprob
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.basic import infer_static_shape
from pytensor.tensor.random.op import RNGConsumerOp
from pytensor.tensor.random.utils import custom_rng_deepcopy
from pytensor.tensor.type import TensorType

from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.components.fixed_hyperparameters import with_values
from pymc_dpsplit.components.linear_regression.family import LinearRegression
from pymc_dpsplit.components.shared_labels.items import Items, SharedLabels
from pymc_dpsplit.moves.forward import draw_labelled_rows, draw_labels
from pymc_dpsplit.moves.partition_law import PartitionLaw, remainder_law
from pymc_dpsplit.variables.graph_parameters import graph_parameters_at
from pymc_dpsplit.variables.inputs import named_hyperparameters, named_parameters
from pymc_dpsplit.variables.log_density import kept_weights, log_density_of
from pymc_dpsplit.variables.object_mode import ObjectModeOp
from pymc_dpsplit.variables.owned_terms import conditional_term

# Latent mixtures whose rows are drawn without the labels that the graph holds.
_WITHOUT_LABELS: ContextVar[Collection[str]] = ContextVar("_WITHOUT_LABELS", default=())


@contextmanager
def drawn_without_labels(targets: Collection[str]) -> Iterator[None]:
    """Draw rows of latent mixtures from the measure, as those of new items.

    Parameters
    ----------
    targets : collection of str
        Names of the mixtures.
    """
    token = _WITHOUT_LABELS.set(targets)
    try:
        yield
    finally:
        _WITHOUT_LABELS.reset(token)


class RowsOp(ObjectModeOp, RNGConsumerOp, MeasurableOp):
    """What random variables of rows have in common: their shape, and their generator.

    The first two inputs are a generator and the number of rows.

    Attributes
    ----------
    target : str
        Name of the mixture.
    component : ComponentFamily
    n_features : int
        Number of features D of a row.
    dtype : str
    """

    target: str
    component: ComponentFamily
    n_features: int
    dtype: str
    default_output = 1

    def _shape(self, n_rows: Any) -> tuple[Any, ...]:
        return (n_rows, *([self.n_features] * self.component.row_ndim))

    @override
    def make_node(self, *inputs: Any) -> Apply:
        rng, n_rows, *rest = inputs
        n_rows = pt.as_tensor(n_rows).astype("int64")
        _, static = infer_static_shape(self._shape(n_rows))
        out = TensorType(self.dtype, static)()
        tensors = [pt.as_tensor(value) for value in rest]
        return Apply(self, [rng, n_rows, *tensors], [rng.type(), out])

    @override
    def update(self, node: Apply) -> dict[Variable, Variable]:
        return {node.inputs[0]: node.outputs[0]}

    def infer_shape(self, node: Apply, shapes: Any) -> list[Any]:
        return [None, self._shape(node.inputs[1])]

    @override
    def __str__(self) -> str:
        return f"{self.name}{{{self.target}}}"


class MixtureRows(RowsOp):
    """Observations, independent given the random measure.

    Inputs are a generator, the number of rows, discount and strength of the law of the partition,
    then the number of clusters, the weight of the remainder, the weights, each cluster parameter
    and each hyperparameter, then the extras.  Rows that fall in the remainder are partitioned by
    its law, with parameters from the base measure, so that rows drawn together follow the process
    exactly.

    Parameters
    ----------
    target : str
        Name of the mixture.
    component : ComponentFamily
    n_features : int
        Number of features D of an observation.
    dtype : {"float64", "float32"}
        Type of the rows, that of the data, so that data need not be converted.
    is_latent : bool
        Whether the rows are a variable that other steps move; its density conditions on the labels.
    extras : tuple of str
        Roles of additional inputs.  An observed mixture, whose density has the labels summed out,
        has none.  ``"labels"``: the mixture is latent, or its density also has a form given the
        labels, because other steps move ``"mean"``, one for each row, or the
        `likelihood_arguments` of the family.  ``"unobserved"``: in this case, the missing entries
        of the data, which are variables.  ``"covariates"``: those that rows of the data hold, if
        `pm.set_data` may replace them; drawn rows have them.
    shared : SharedLabels, optional
        Groups of rows with one label each; then the density is that of the groups.
    """

    __props__ = ("target", "component", "n_features", "dtype", "is_latent", "extras", "shared")
    _print_name = ("DPMixture", r"\operatorname{DPMixture}")
    name = "DPMixture"

    def __init__(
        self,
        target: str,
        component: ComponentFamily,
        n_features: int,
        dtype: str,
        is_latent: bool,
        extras: tuple[str, ...],
        shared: SharedLabels | None = None,
    ) -> None:
        self.target = target
        self.component = component
        self.n_features = n_features
        self.dtype = dtype
        self.is_latent = is_latent
        self.extras = extras
        self.shared = shared

    @property
    def n_measure(self) -> int:
        """Return the number of inputs that form the random measure."""
        return 3 + len(self.component.parameters)

    def extra(self, inputs: Sequence[Any]) -> dict[str, Any]:
        """Return the extras among the inputs of a node, by role."""
        first = len(inputs) - len(self.extras)
        return dict(zip(self.extras, inputs[first:], strict=True))

    def dist_params(self, node: Apply) -> list[Variable]:
        """Return the inputs that PyMC prints, without the number of rows and constants."""
        return list(node.inputs[4 : 4 + self.n_measure])

    @override
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        rng, n_rows, discount, strength, n_clusters, new_weight, weights, *rest = inputs
        rng = custom_rng_deepcopy(rng)
        extra = self.extra(inputs)
        weights, _ = kept_weights(n_clusters, new_weight, weights)
        rest = rest[: len(rest) - len(extra)]
        parameters, values = named_parameters(self.component, rest, len(weights))
        law = remainder_law(PartitionLaw(float(discount), float(strength)), len(weights))
        component = self.component
        if "covariates" in extra:
            assert isinstance(component, LinearRegression)
            component = component.with_known(extra["covariates"])
        if self._keeps_labels(extra, int(n_rows)) and n_clusters > 0:
            labels = extra["labels"].astype(np.int64)
        elif self.shared is not None:
            labels = self._draw_shared_labels(rng, int(n_rows), law, weights)
        else:
            labels = draw_labels(rng, int(n_rows), law, weights)
        rows = draw_labelled_rows(rng, component, labels, parameters, values)
        output_storage[0][0] = rng
        rows = rows + extra["mean"] if "mean" in extra else rows
        output_storage[1][0] = rows.astype(self.dtype, copy=False)

    def _keeps_labels(self, extra: Mapping[str, Any], n_rows: int) -> bool:
        """Whether rows are drawn given labels: those of a latent mixture, unless rows are new."""
        is_new = self.target in _WITHOUT_LABELS.get() or len(extra.get("labels", ())) != n_rows
        return self.is_latent and not is_new

    def _draw_shared_labels(
        self, rng: np.random.Generator, n_rows: int, law: PartitionLaw, weights: np.ndarray
    ) -> np.ndarray:
        """Draw a label for each group, and return those of the rows."""
        assert self.shared is not None
        if self.shared.known is not None:
            raise ValueError(
                f"{self.target} cannot be drawn with labels=, as its rows of a known label are "
                "together because that was observed; leave it out by var_names=, and use predict "
                "or density for new rows."
            )
        if self.shared.has_counts:
            raise ValueError(
                f"{self.target} cannot be drawn with counts=, as rows that a drawn row stands for "
                "would differ from it; give groups= and every row, or leave it out by var_names=."
            )
        n_known = len(self.shared.group_of_row)
        if n_rows != n_known:
            raise ValueError(
                f"{self.target} is to be drawn with {n_rows} rows, but groups= names the groups of "
                f"{n_known}; draw as many rows, or declare the mixture anew."
            )
        labels = draw_labels(rng, self.shared.n_groups, law, weights)
        return labels[self.shared.group_of_row]


@_logprob.register(MixtureRows)
def _rows_logprob(
    op: MixtureRows,
    values: Sequence[Variable],
    rng: Variable,
    n_rows: Variable,
    discount: Variable,
    strength: Variable,
    *inputs: Variable,
    **kwargs: Any,
) -> Variable:
    """Return the log-probability of each item, in either form; docs/method.md, section 8."""
    extra = op.extra(inputs)
    rows = centred_rows(values[0], extra)
    measure = list(inputs[: op.n_measure])
    hyperparameters = inputs[op.n_measure : len(inputs) - len(op.extras)]
    n_clusters, _, _, *parameters = measure
    given_labels: Any = None
    if "labels" in extra:
        known = n_clusters, parameters, hyperparameters
        given_labels = log_density_given_labels(op.component, rows, extra["labels"], *known)
    if op.is_latent:
        return given_labels
    observed = centred_rows(values[0], {k: v for k, v in extra.items() if k == "mean"})
    items = Items(op.component, op.shared)
    given = [*measure, *hyperparameters, *([discount, strength] if items.depends_on_law else [])]
    density = log_density_of(items, observed, *given)
    fixed = pt.zeros(density.shape) if given_labels is None else given_labels
    return conditional_term(density, fixed, measure)


def log_density_given_labels(
    component: ComponentFamily,
    rows: Any,
    labels: Any,
    n_clusters: Variable,
    parameters: Sequence[Variable],
    hyperparameters: Sequence[Variable],
) -> Any:
    """Return the log density of each row (N,) given its label.

    Parameters
    ----------
    component : ComponentFamily
    rows : TensorVariable, shape (N,) or (N, D)
    labels : TensorVariable of int, shape (N,)
    n_clusters : TensorVariable
    parameters, hyperparameters : sequence of TensorVariable
        In the order of the component.

    Returns
    -------
    TensorVariable
    """
    of_clusters = graph_parameters_at(component, n_clusters, parameters)
    at = {name: value[labels] for name, value in of_clusters.items()}
    names = component.hyperparameter_ndims()
    known = with_values(component, dict(zip(names, hyperparameters, strict=True)))
    return known.log_density(rows, at, pt)


def centred_rows(value: Any, extra: Mapping[str, Any]) -> Any:
    """Return the data that the mixture models: missing entries filled in, mean subtracted.

    Parameters
    ----------
    value : TensorVariable
    extra : mapping
        ``"mean"`` and ``"unobserved"``, if the mixture has them.

    Returns
    -------
    TensorVariable, shape (N,) or (N, D)
        Of float64, or of float32 if the values are float32 and unchanged.
    """
    rows = pt.as_tensor(value)
    if {"mean", "unobserved"} & set(extra) or rows.type.dtype != "float32":
        rows = rows.astype("float64")
    if "unobserved" in extra:
        holes = pt.isnan(rows).nonzero()
        rows = pt.set_subtensor(rows[holes], extra["unobserved"])
    return rows - extra["mean"] if "mean" in extra else rows


class CentralRows(ObjectModeOp):
    """Constant rows of one central cluster, the initial value of a latent mixture."""

    __props__ = ("rows",)

    def __init__(self, rows: Any) -> None:
        # The op of the rows, with its family and their type.
        self.rows = rows

    @override
    def make_node(self, *inputs: Any) -> Apply:
        out = TensorType(self.rows.dtype, (None,) * (1 + self._ndim))()
        return Apply(self, list(inputs), [out])

    @property
    def _ndim(self) -> int:
        return self.rows.component.row_ndim

    @override
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        n_rows, *hyperparameters = inputs
        values = named_hyperparameters(self.rows.component, hyperparameters)
        component = with_values(self.rows.component, values)
        central = component.central(values)
        one = {name: value[None] for name, value in central.items()}
        labels = np.zeros(int(n_rows), np.int64)
        rows = component.draw_rows(np.random.default_rng(0), one, labels)
        output_storage[0][0] = rows.astype(self.rows.dtype, copy=False)


@_support_point.register(MixtureRows)
def _rows_support_point(
    op: MixtureRows, rv: Variable, rng: Variable, n_rows: Variable, *inputs: Variable
) -> Variable:
    hyperparameters = inputs[2 + op.n_measure : len(inputs) - len(op.extras)]
    return CentralRows(op)(n_rows, *hyperparameters)  # type: ignore[return-value]
