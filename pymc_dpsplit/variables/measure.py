"""Random measure of a mixture: an op that draws the weights and parameters of all clusters.

The op has several outputs, each a free variable of the model.  Outputs are drawn jointly and have a
joint density, so a component family need not factorise its base measure into conditionals.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from types import MappingProxyType
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
from pymc_dpsplit.moves.forward import (
    draw_block_sizes,
    draw_new_weight,
    draw_occupied_weights,
    draw_partition,
)
from pymc_dpsplit.moves.partition_law import PartitionLaw
from pymc_dpsplit.variables.base_density import base_log_density
from pymc_dpsplit.variables.inputs import named_hyperparameters
from pymc_dpsplit.variables.law import is_dirichlet, law_terms
from pymc_dpsplit.variables.object_mode import ObjectModeOp
from pymc_dpsplit.variables.owned_terms import conditional_term

# Roles of the outputs before the cluster parameters; output 0 of the node is the generator.
ROLES = ("n_clusters", "new_weight", "weights")


class OwnedByStep:
    """Marker of ops whose variables only the step of the mixture `target` may move.

    Attributes
    ----------
    target : str
        Name of the mixture.
    step_name, step_class : str
        Name that PyMC knows the step by, and its class.
    """

    target: str
    step_name, step_class = "dpsplit", "DPSplitMerge"


def parameter_shapes(component: ComponentFamily, max_clusters: int, n_features: int) -> list[Any]:
    """Return the shape (L, ...) of the variable of each cluster parameter.

    Parameters
    ----------
    component : ComponentFamily
    max_clusters : int
        Number of rows L.
    n_features : int
        Number of features D.

    Returns
    -------
    list of tuple of int
    """
    return [
        (max_clusters, *component.shape_of(name, ndim, n_features))
        for name, ndim in component.parameters.items()
    ]


def label_dtype(max_clusters: int) -> str:
    """Return the smallest signed integer type for the labels of `max_clusters` clusters."""
    return "int16" if max_clusters <= np.iinfo(np.int16).max else "int32"


def overflow_message(target: str, n_clusters: int, max_clusters: int) -> str:
    """Return the message for a draw with more clusters than rows, when all must be recorded.

    Parameters
    ----------
    target : str
        Name of the mixture.
    n_clusters, max_clusters : int
        Number of clusters of the draw, and of rows.

    Returns
    -------
    str
    """
    return (
        f"{target}: a draw has {n_clusters} clusters, but max_clusters={max_clusters} rows, and "
        "other variables of the model depend on all of them; set max_clusters= higher in "
        "DPMixture, at most the number of observations is ever needed."
    )


@lru_cache(maxsize=16)
def _filled(shape: tuple[int, ...], fill: float) -> np.ndarray:
    """Return an array to copy, which takes a quarter of the time of `np.full`."""
    return np.full(shape, fill)


def pad_rows(values: np.ndarray, shape: tuple[int, ...], fill: float) -> np.ndarray:
    """Copy values of clusters to the first rows of a new array; only the first L if K > L.

    Parameters
    ----------
    values : ndarray, shape (K, ...)
    shape : tuple of int
        Shape (L, ...) of the result.
    fill : float
        Value of other rows.

    Returns
    -------
    ndarray of float64
    """
    padded = _filled(shape, fill).copy()
    n_kept = min(values.shape[0], shape[0])
    padded[:n_kept] = values[:n_kept]
    return padded


# Numbers of observations that replace those of a declaration, by the name of the mixture.
_N_OBS: ContextVar[Mapping[str, int]] = ContextVar("_N_OBS", default=MappingProxyType({}))


@contextmanager
def measured_after(n_obs: Mapping[str, int]) -> Iterator[None]:
    """Draw measures after other numbers of observations than those of their declaration.

    Parameters
    ----------
    n_obs : mapping
        Name of a mixture, in which labels are not variables, to its number of observations.
    """
    token = _N_OBS.set(n_obs)
    try:
        yield
    finally:
        _N_OBS.reset(token)


class RandomMeasure(OwnedByStep, ObjectModeOp, RNGConsumerOp, MeasurableOp):
    """Occupied part of a random measure after `n_obs` observations.

    Inputs are a generator, discount and strength of the law of the partition, and the
    hyperparameters.  Outputs are the generator, the number of clusters K, the weight of the
    remainder, the weights (L,), each cluster parameter (L, ...) and, if `labelled`, the label (N,)
    of each observation; if the `discount_varies`, also the sum of the log weights of all K
    clusters.  Clusters are in order of decreasing weight; rows from K on have weight 0 and NaN
    parameters.  If K > L the largest L clusters are recorded; with labels, which may refer to the
    others, this is an error.

    Parameters
    ----------
    target : str
        Name of the mixture.
    component : ComponentFamily
        Family; the hyperparameters are inputs, and those of `component` are not used.
    n_obs : int
        Number of observations.
    n_features : int
        Number of features D of an observation.
    max_clusters : int
        Number of rows L.
    labelled : bool
        Whether labels are variables of the model.
    is_finite : bool
        Whether the number of components is finite.
    discount_varies : bool
        Whether the discount is a variable, whose conditional density depends on all weights.
    """

    __props__ = (
        "target",
        "component",
        "n_obs",
        "n_features",
        "max_clusters",
        "labelled",
        "is_finite",
        "discount_varies",
    )
    _print_name = ("DPMeasure", r"\operatorname{DPMeasure}")
    name = "DPMeasure"

    def __init__(
        self,
        target: str,
        component: ComponentFamily,
        n_obs: int,
        n_features: int,
        max_clusters: int,
        labelled: bool,
        is_finite: bool = False,
        discount_varies: bool = False,
    ) -> None:
        self.target = target
        self.component = component
        self.n_obs = n_obs
        self.n_features = n_features
        self.max_clusters = max_clusters
        self.labelled = labelled
        self.is_finite = is_finite
        self.discount_varies = discount_varies

    @property
    def roles(self) -> tuple[str, ...]:
        """Return the role of every output except the generator."""
        more = ("labels",) * self.labelled + ("log_weights",) * self.discount_varies
        return (*ROLES, *self.component.parameters, *more)

    @property
    def n_measure(self) -> int:
        """Return the number of outputs without the generator, the labels and the log weights."""
        return len(ROLES) + len(self.component.parameters)

    @property
    def output_types(self) -> list[TensorType]:
        """Return the type of every output except the generator."""
        parameters = parameter_shapes(self.component, self.max_clusters, self.n_features)
        types = [TensorType("int64", ()), TensorType("float64", ())]
        types += [TensorType("float64", of) for of in [(self.max_clusters,), *parameters]]
        if self.labelled:
            types.append(TensorType(label_dtype(self.max_clusters), (self.n_obs,)))
        if self.discount_varies:
            types.append(TensorType("float64", ()))
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
        _, discount, strength, *hyperparameters = node.inputs
        shown = [strength] if is_dirichlet(discount) else [strength, discount]
        return [*shown, *hyperparameters]

    def infer_shape(self, node: Apply, shapes: Any) -> list[Any]:
        return [None, *(tuple(map(pt.constant, of.shape)) for of in self.output_types)]

    @override
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        rng, discount, strength, *hyperparameters = inputs
        rng = custom_rng_deepcopy(rng)
        values = named_hyperparameters(self.component, hyperparameters)
        law = PartitionLaw(float(discount), float(strength))
        labels, weights, new_weight = self._draw_partition(rng, law)
        n_kept = min(len(weights), self.max_clusters)
        parameters = self.component.draw_base(rng, values, n_kept)
        drawn = [rng, np.asarray(len(weights)), np.asarray(new_weight)]
        drawn.append(pad_rows(weights, (self.max_clusters,), 0.0))
        shapes = parameter_shapes(self.component, self.max_clusters, self.n_features)
        for name, shape in zip(self.component.parameters, shapes, strict=True):
            drawn.append(pad_rows(parameters[name], shape, np.nan))
        if self.labelled:
            drawn.append(labels.astype(label_dtype(self.max_clusters)))
        if self.discount_varies:
            drawn.append(np.asarray(np.log(weights).sum()))
        for storage, value in zip(output_storage, drawn, strict=True):
            storage[0] = value

    def _draw_partition(
        self, rng: np.random.Generator, law: PartitionLaw
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Draw the labels (N,), the weights (K,) in decreasing order, and the remainder."""
        n_obs = _N_OBS.get().get(self.target, self.n_obs)
        # Without a discount the remainder is independent of the partition, and drawn first.
        new_weight = draw_new_weight(rng, law, n_obs, 0) if law.discount == 0.0 else 0.0
        if law.discount == 0.0 and not self.labelled:
            sizes = draw_block_sizes(rng, law.strength, n_obs)
            weights = np.sort(draw_occupied_weights(rng, law, sizes, new_weight))[::-1]
            return np.empty(0, np.int64), weights, new_weight
        seats = draw_partition(rng, law, n_obs)
        sizes = np.bincount(seats)
        if law.discount != 0.0:
            new_weight = draw_new_weight(rng, law, n_obs, len(sizes))
        weights = draw_occupied_weights(rng, law, sizes, new_weight)
        if not self.labelled:
            return np.empty(0, np.int64), np.sort(weights)[::-1], new_weight
        if len(weights) > self.max_clusters:
            raise ValueError(overflow_message(self.target, len(weights), self.max_clusters))
        order = np.argsort(-weights, kind="stable")
        return np.argsort(order)[seats], weights[order], new_weight

    @override
    def __str__(self) -> str:
        return f"{self.name}{{{self.target}}}"


@_logprob.register(RandomMeasure)
def _measure_logprob(
    op: RandomMeasure,
    values: Sequence[Any],
    rng: Variable,
    discount: Any,
    strength: Any,
    *hyperparameters: Variable,
    **kwargs: Any,
) -> list[Any]:
    """Return the log-probability terms of the outputs, see `law_terms`.

    The term of the first parameter is the joint density of all parameters.
    """
    if len(values) != len(op.output_types):
        raise NotImplementedError(
            f"The variables of the mixture {op.target!r} have a joint log-probability; give a "
            "value for each of them."
        )
    n_parameters = len(op.component.parameters)
    n_clusters, new_weight, weights, *rest = values
    parameters = rest[:n_parameters]
    more = dict(zip(op.roles[op.n_measure :], rest[n_parameters:], strict=True))
    base = base_log_density(op.component, n_clusters, parameters, hyperparameters)
    fixed = [n_clusters, *parameters, *hyperparameters]
    zero: Any = pt.zeros((), dtype="float64")
    law = law_terms(discount, strength, n_clusters, new_weight, more.get("log_weights"))
    terms = [
        law.n_clusters,
        law.new_weight,
        zero,
        conditional_term(base, zero, fixed),
        *([zero] * (n_parameters - 1)),
    ]
    if "labels" in more:
        label = more["labels"]
        # At the initial point there are no clusters yet, and labels are placeholders.
        chosen = pt.where(n_clusters > 0, pt.log(weights[label]), 0.0)
        terms.append(conditional_term(chosen, pt.zeros_like(chosen), [n_clusters, weights]))
    if "log_weights" in more:
        terms.append(law.log_weights)
    return terms


class CentralParameters(ObjectModeOp):
    """Cluster parameters whose first row is a central value of the base measure."""

    __props__ = ("measure",)

    def __init__(self, measure: RandomMeasure) -> None:
        self.measure = measure

    @override
    def make_node(self, *inputs: Any) -> Apply:
        n_parameters = len(self.measure.component.parameters)
        types = self.measure.output_types[len(ROLES) : len(ROLES) + n_parameters]
        return Apply(self, list(inputs), [of() for of in types])

    @override
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        component = self.measure.component
        central = component.central(named_hyperparameters(component, inputs))
        for name, storage, out in zip(
            component.parameters, output_storage, node.outputs, strict=True
        ):
            storage[0] = pad_rows(central[name][None], out.type.shape, np.nan)


@_support_point.register(RandomMeasure)
def _measure_support_point(
    op: RandomMeasure,
    rv: Variable,
    rng: Variable,
    discount: Variable,
    strength: Variable,
    *hyperparameters: Variable,
) -> Variable:
    """Return an initial point with K = 0, for which the step chooses the initial partition.

    The first row of the parameters is a central value of the base measure, so that densities given
    the labels, which are all 0, are finite.
    """
    role = rv.owner.outputs.index(rv) - 1
    if op.roles[role] in op.component.parameters:
        return CentralParameters(op).make_node(*hyperparameters).outputs[role - len(ROLES)]
    if op.roles[role] == "new_weight":
        return pt.constant(1.0)
    of = op.output_types[role]
    return pt.constant(np.zeros(of.shape, of.dtype))
