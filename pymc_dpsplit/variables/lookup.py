"""Find the mixtures of a model and the variables that belong to them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from pymc.model import Model
from pymc.pytensorf import rvs_in_graph
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_dpsplit.components.arguments import shown
from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.components.shared_labels.items import Items
from pymc_dpsplit.moves.patterns import Incomplete
from pymc_dpsplit.variables.measure import (
    OwnedByStep,
    RandomMeasure,
    label_dtype,
    overflow_message,
    pad_rows,
)
from pymc_dpsplit.variables.missing import MissingEntries
from pymc_dpsplit.variables.n_components import NumberOfComponents
from pymc_dpsplit.variables.rows import MixtureRows, centred_rows

# By how much the weights of a draw may miss one: traces may have been stored in float32.
_MEASURE_ROUNDING = 1e-3


@dataclass(frozen=True)
class MixtureVariables:
    """Variables of one mixture, found in the graph of a model.

    Attributes
    ----------
    name : str
    component : ComponentFamily
        Family; its own hyperparameters are not used, but those in `hyperparameters`.
    discount, strength : TensorVariable
        Parameters of the law of the partition; the strength of a `DPMixture` is alpha.
    hyperparameters : dict
        Name to TensorVariable.
    measure : dict
        Role to free variable: ``"n_clusters"``, ``"new_weight"``, ``"weights"``, each cluster
        parameter and, if labels are variables of the model, ``"labels"``; ``"log_weights"`` if the
        discount is one.
    value_names : dict
        The same roles, and ``"unobserved"`` if entries are missing, to the name of the value in a
        point.
    log_new_weight : bool
        Whether a point contains the logarithm of the new weight.
    rv : TensorVariable
        The observed variable, or the latent one.
    unobserved : TensorVariable, optional
        Missing entries of the data.
    data : TensorVariable
        Observations (N,) or (N, D) that the step partitions: the value of `rv`, with missing
        entries filled in, less their mean; an expression if these are variables.
    n_features : int
        Number of features D of an observation.
    n_components : TensorVariable, optional
        Number of components, if it is a variable of the mixture.
    """

    name: str
    component: ComponentFamily
    discount: Variable
    strength: Variable
    hyperparameters: dict[str, Variable]
    measure: dict[str, Variable]
    value_names: dict[str, str]
    log_new_weight: bool
    rv: Variable
    unobserved: Variable | None
    data: Variable
    n_features: int
    n_components: Variable | None = None

    @property
    def owned(self) -> list[Variable]:
        """Return the free variables that the step moves."""
        others = self.unobserved, self.n_components
        return [*self.measure.values(), *(of for of in others if of is not None)]

    @property
    def law(self) -> tuple[Variable, Variable]:
        """Return discount and strength."""
        return self.discount, self.strength

    def names_of_law(self, model: Model) -> set[str]:
        """Return the names of the variables of a model that determine discount and strength."""
        rvs: Any = model.basic_RVs
        above = ancestors(self.law, blockers=rvs)
        return {str(of.name) for of in above if of.name in model.named_vars}

    @property
    def is_finite(self) -> bool:
        """Return whether the mixture is declared with a finite number of components."""
        return bool(self.measure["weights"].owner.op.is_finite)

    # Those that every draw reads are found once.
    @cached_property
    def items(self) -> Items:
        """Return the form of the observations that kernels read: rows, or groups of rows."""
        return Items(self.component, self.rv.owner.op.shared)

    @cached_property
    def max_clusters(self) -> int:
        """Return the number of rows L recorded per draw."""
        return int(self.measure["weights"].type.shape[0])

    @property
    def is_latent(self) -> bool:
        """Return whether the observations are a latent variable, which other steps may move."""
        return bool(self.rv.owner.op.is_latent)

    @property
    def is_labelled(self) -> bool:
        """Return whether the labels are a variable of the model."""
        return "labels" in self.measure

    @property
    def needs_all_rows(self) -> bool:
        """Return whether other variables depend on every cluster, so that all must be recorded."""
        vary = bool(rvs_in_graph(list(self.hyperparameters.values())))
        return self.is_labelled or vary

    def point_values(
        self,
        n_clusters: int,
        weights: np.ndarray,
        log_rest: float,
        parameters: Mapping[str, np.ndarray],
        labels: np.ndarray | None = None,
        sum_log_weights: float = np.nan,
    ) -> dict[str, np.ndarray]:
        """Return the entries of a point for this measure, in new arrays.

        Parameters
        ----------
        n_clusters : int
            Number of occupied clusters K.
        weights : ndarray of float64, shape (K,)
            In decreasing order; the first `max_clusters` are recorded.
        log_rest : float
            Logarithm of the weight of the remainder.
        parameters : mapping
            Name to ndarray (K, ...), in the same order.
        labels : ndarray of int, shape (N,), optional
            In the same order; required if labels are variables.
        sum_log_weights : float
            Required if the discount is a variable.

        Returns
        -------
        dict
            Name of value to ndarray.

        Raises
        ------
        ValueError
            If other variables depend on clusters that are not recorded.
        """
        if n_clusters > self.max_clusters and self.needs_all_rows:
            raise ValueError(overflow_message(self.name, n_clusters, self.max_clusters))
        # `step.draws_ahead` writes the same entries for many draws at once.
        new_weight = log_rest if self.log_new_weight else math.exp(log_rest)
        values = {
            "n_clusters": np.asarray(n_clusters, dtype=np.int64),
            "new_weight": np.asarray(new_weight),
            "weights": pad_rows(weights, self.measure["weights"].type.shape, 0.0),
        }
        for name, parameter in parameters.items():
            values[name] = pad_rows(parameter, self.measure[name].type.shape, np.nan)
        if self.is_labelled:
            values["labels"] = np.asarray(labels).astype(label_dtype(self.max_clusters))
        if "log_weights" in self.measure:
            values["log_weights"] = np.asarray(sum_log_weights)
        return {self.value_names[role]: value for role, value in values.items()}

    @property
    def read_from(self) -> list[Any]:
        """Return the graphs of what the step reads: law, hyperparameters, rows and covariates."""
        covariates = self.component.covariate_data
        return [*self.law, *self.hyperparameters.values(), self.data, covariates]

    def incomplete(self) -> Incomplete:
        """Return the rows with missing entries, in the order of `unobserved`."""
        if self.unobserved is None:
            return Incomplete(np.empty(0, np.int64), np.empty((0, self.n_features), bool))
        node: Any = self.unobserved.owner
        where, features = (index.data for index in node.inputs[1:3])
        rows, position = np.unique(where, return_inverse=True)
        is_missing = np.zeros((len(rows), self.n_features), bool)
        is_missing[position, features] = True
        return Incomplete(rows, is_missing)

    def count_in(self, point: Mapping[str, np.ndarray]) -> int:
        """Return the number of clusters in an initial point, 0 unless the user set it.

        Parameters
        ----------
        point : mapping
            Point of the model.

        Returns
        -------
        int

        Raises
        ------
        ValueError
            If the user set weights or parameters instead, from which no chain can start.
        """
        n_clusters = int(point[self.value_names["n_clusters"]])
        names = [self.value_names[key] for key in self.component.parameters]
        given = [name for name in names if not np.isnan(point[name][1:]).all()]
        if point[self.value_names["weights"]].any():
            given.append(self.value_names["weights"])
        # By default the remainder is all there is.
        if point[self.value_names["new_weight"]] != (0.0 if self.log_new_weight else 1.0):
            given.append(f"{self.name}_new_weight")
        if given and not n_clusters:
            raise ValueError(
                f"initvals holds {given[0]}, from which a mixture cannot start; give "
                f"{self.value_names['n_clusters']}, the number of clusters to start from."
            )
        return n_clusters

    def measure_in(
        self, point: Mapping[str, np.ndarray]
    ) -> tuple[np.ndarray, float, dict[str, np.ndarray]]:
        """Return the random measure in a point that is a draw of a chain.

        Parameters
        ----------
        point : mapping
            Point of the model.

        Returns
        -------
        weights : ndarray of float64, shape (K,)
        log_rest : float
            Logarithm of the weight of the remainder.
        parameters : dict
            Name to ndarray (K, ...).

        Raises
        ------
        ValueError
            If the point holds no measure, or not all of its clusters.
        """
        of = {role: point[name] for role, name in self.value_names.items()}
        n_clusters, new_weight = int(of["n_clusters"]), float(of["new_weight"])
        weights = np.asarray(of["weights"][:n_clusters], np.float64)
        parameters = {key: np.asarray(of[key])[:n_clusters] for key in self.component.parameters}
        log_rest = new_weight if self.log_new_weight else float(np.log(new_weight))
        is_whole = 0 < n_clusters <= self.max_clusters
        is_whole = is_whole and abs(weights.sum() + math.exp(log_rest) - 1.0) < _MEASURE_ROUNDING
        if not (is_whole and all(np.isfinite(value).all() for value in parameters.values())):
            raise ValueError(
                f"{self.name}: initvals holds no whole draw of the mixture, from which a chain "
                "could continue; give dps.extend the trace, or leave continues out."
            )
        return weights, log_rest, parameters

    def labels_in(self, point: Mapping[str, np.ndarray]) -> np.ndarray | None:
        """Return the labels that the user set in an initial point, or None.

        Parameters
        ----------
        point : mapping
            Point of the model.

        Returns
        -------
        ndarray of int, shape (N,), or None

        Raises
        ------
        ValueError
            If a label is not that of a cluster.
        """
        labels = point[self.value_names["labels"]] if self.is_labelled else np.zeros(1)
        self.refuse_labels(labels)
        return labels if labels.any() else None

    def refuse_labels(self, labels: np.ndarray) -> None:
        """Raise ValueError if one of the labels to start from is not that of a cluster."""
        if labels.min() < 0 or labels.max() >= self.max_clusters:
            raise ValueError(
                f"{self.name}: initvals holds labels {labels.min():.15g} to {labels.max():.15g}; "
                f"give labels from 0 to max_clusters - 1 = {self.max_clusters - 1}."
            )


def model_of_context(model: Any) -> Model:
    """Return a model that was given, by default the one of the context.

    Raises
    ------
    ValueError
        If there is none, or what was given is no model.
    """
    model = Model.get_context(error_if_none=False) if model is None else model
    if model is None:
        raise ValueError(
            "model is not given, and there is none in the context; give model=, or make the call "
            "inside `with model:`."
        )
    if not isinstance(model, Model):
        raise ValueError(f"model={shown(model)} is not a model; give one made by pm.Model().")
    return model


def is_owned(variable: Any, step_name: str | None = None) -> bool:
    """Return whether the step of a mixture, or the step of that name, moves a variable."""
    op = getattr(getattr(variable, "owner", None), "op", None)
    return isinstance(op, OwnedByStep) and step_name in (None, op.step_name)


def rows_by_mixture(model: Model) -> dict[str, Any]:
    """Return the variables of rows in a model, also of mixtures of which other variables are not.

    Parameters
    ----------
    model : pymc.Model

    Returns
    -------
    dict
        Name of mixture to TensorVariable.
    """
    others = (rv for rv in model.basic_RVs if rv.owner is not None and not is_owned(rv))
    return {rv.owner.op.target: rv for rv in others if hasattr(rv.owner.op, "target")}


def find_mixtures(model: Model) -> dict[str, MixtureVariables]:
    """Find the mixtures whose observations and variables are all in a model.

    Parameters
    ----------
    model : pymc.Model

    Returns
    -------
    dict
        Name to `MixtureVariables`, in order of declaration.
    """
    rvs: dict[str, Variable] = {}
    unobserved: dict[str, Variable] = {}
    nodes: dict[str, Any] = {}
    for rv in model.basic_RVs:
        op = None if rv.owner is None else rv.owner.op
        if isinstance(op, MixtureRows):
            rvs[op.target] = rv
        elif isinstance(op, MissingEntries):
            unobserved[op.target] = rv
        elif isinstance(op, RandomMeasure):
            nodes[op.target] = rv.owner
    return {
        name: _variables_of(node, rvs[name], unobserved.get(name), model)
        for name, node in nodes.items()
        if name in rvs and set(node.outputs[1:]) <= set(model.free_RVs)
    }


def _variables_of(
    node: Any, rv: Any, unobserved: Variable | None, model: Model
) -> MixtureVariables:
    op: RandomMeasure = node.op
    _, discount, strength, *hyperparameters = node.inputs
    measure = dict(zip(op.roles, node.outputs[1:], strict=True))
    names = {role: str(model.rvs_to_values[of].name) for role, of in measure.items()}
    extra = rv.owner.op.extra(rv.owner.inputs)
    if unobserved is not None:
        names["unobserved"] = str(model.rvs_to_values[unobserved].name)
        extra["unobserved"] = unobserved
    value = model.rvs_to_values[rv] if rv in model.observed_RVs else rv
    return MixtureVariables(
        name=op.target,
        component=op.component,
        discount=discount,
        strength=strength,
        hyperparameters=dict(
            zip(op.component.hyperparameter_ndims(), hyperparameters, strict=True)
        ),
        measure=measure,
        value_names=names,
        log_new_weight=model.rvs_to_transforms[measure["new_weight"]] is not None,
        rv=rv,
        unobserved=unobserved,
        data=centred_rows(value, extra),
        n_features=op.n_features,
        n_components=_component_count(op.target, strength, model),
    )


def _component_count(target: str, strength: Variable, model: Model) -> Variable | None:
    """Return the variable of the number of components that a strength depends on, if any."""
    variables: Any = model.free_RVs
    for rv in ancestors([strength], blockers=variables):
        op = None if rv.owner is None else rv.owner.op
        if isinstance(op, NumberOfComponents) and op.target == target and rv in variables:
            return rv
    return None
