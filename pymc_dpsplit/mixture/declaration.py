"""Declaration of a mixture in a PyMC model, under any law of the partition."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pytensor.tensor as pt
from pymc.model import Model
from pymc.pytensorf import rvs_in_graph
from pytensor.graph.basic import Variable
from pytensor.tensor.random.variable import shared_rng

from pymc_dpsplit.components.arguments import shown
from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.components.unmoved_rows import what_no_step_moves
from pymc_dpsplit.mixture.latent_shape import latent_shape
from pymc_dpsplit.mixture.law_arguments import DeclaredLaw
from pymc_dpsplit.variables import MissingEntries, MixtureRows, RandomMeasure
from pymc_dpsplit.variables.dims import (
    add_names,
    by_dims,
    checked_dims,
    entries_of,
    feature_dims,
    number_of_rows,
    refuse_reserved,
)
from pymc_dpsplit.variables.hyperparameters import checked_hyperparameters, foreign_rvs
from pymc_dpsplit.variables.max_clusters import checked_max_clusters
from pymc_dpsplit.variables.measure import ROLES
from pymc_dpsplit.variables.names import Names, names_in
from pymc_dpsplit.variables.observed import (
    Observed,
    lengths_of,
    may_grow,
    names_of_holes,
    read_observed,
    register_observed,
)
from pymc_dpsplit.variables.remainder_transform import remainder_transform
from pymc_dpsplit.variables.shared_labels import (
    read_shared_labels,
    refuse_taken_names,
    register_shared_labels,
)


def declare_mixture(
    kind: str,
    name: str,
    law_of: Callable[[Model], DeclaredLaw],
    component: ComponentFamily,
    *,
    observed: Any,
    groups: Any,
    counts: Any,
    labels: Any,
    dims: str | Sequence[str] | None,
    shape: int | Sequence[int] | None,
    max_clusters: int | None,
) -> Variable:
    """Register the variables of a mixture in the current model; return the observed or latent one.

    Parameters
    ----------
    kind : str
        Name of the public function, for a message.
    name : str
    law_of : callable
        From the model to the law of the partition; raises ValueError.
    component : ComponentFamily
    observed, groups, counts, labels, dims, shape, max_clusters
        As in `DPMixture`.

    Returns
    -------
    TensorVariable
    """
    model = current_model(kind, name)
    names = Names() if isinstance(observed, Variable) else names_in(observed)
    dims = entries_of(dims)
    try:
        observed, dims = by_dims(observed, dims)
        check_component(component)
        data = _checked_data(observed, component, shape, dims, model)
        component = data.component
        shared = read_shared_labels(groups, counts, labels, observed, data)
        n_items = data.shape[0] if shared is None else shared.n_groups
        n_obs = data.shape[0] if shared is None else shared.n_observations
        law = law_of(model)
        hyperparameters = checked_hyperparameters(component, data.shape[1], model)
        needs_all = data.is_labelled or bool(rvs_in_graph(hyperparameters))
        of_rows = component.covariate_data
        grows = (of_rows is not None or may_grow(observed)) and not data.is_labelled
        shape_of_items = n_items, data.shape[1]
        n_kept = checked_max_clusters(max_clusters, component, shape_of_items, needs_all, grows)
        n_kept = n_kept if law.n_components is None else min(n_kept, law.n_components)
        data_dims = checked_dims(dims, data.shape, component, names, name, model)
        _check_names(name, component, data, law, model)
        refuse_taken_names(name, shared, model)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if data.warning is not None:
        warnings.warn(f"{name}: {data.warning}", UserWarning, stacklevel=3)
    n_features = data.shape[1]
    target, bare = model.name_for(name), without_variables(component)
    form = data.is_labelled, law.is_finite, law.discount_varies
    op = RandomMeasure(target, bare, n_obs, n_features, n_kept, *form)
    measure = op.make_node(_new_rng(), *law.numbers, *hyperparameters).outputs[1:]
    add_names(data_dims, names, model)
    _register_measure(name, measure, law, data_dims, model)
    occupied = measure[: op.n_measure]
    given = [*law.numbers, *occupied, *hyperparameters]
    extra = _extras(name, data, measure, given, bare, data_dims, model)
    if may_grow(observed) and component.holds_covariates and not component.has_covariates:
        extra["covariates"] = data.values[:, :-1]
    is_latent = data.values is None
    rows = MixtureRows(target, bare, n_features, data.dtype, is_latent, tuple(extra), shared)
    n_rows = number_of_rows(data, data_dims, model) if of_rows is None else of_rows.shape[0]
    x: Any = rows(_new_rng(), n_rows, *given, *extra.values())
    if is_latent:
        return model.register_rv(x, name, dims=data_dims)
    register_shared_labels(name, shared, data_dims, model)
    return register_observed(x, name, data, data_dims, model)


def _new_rng() -> Variable:
    return shared_rng(seed=None)


def current_model(kind: str, name: Any) -> Model:
    """Return the model of the context, in which a mixture of that name is declared.

    Parameters
    ----------
    kind : str
        Name of the public function, for a message.
    name : str

    Returns
    -------
    pymc.Model

    Raises
    ------
    ValueError
        If there is no model, or the name is none.
    """
    model = Model.get_context(error_if_none=False)
    if model is None:
        raise ValueError(
            f"{kind} {name!r} is declared outside a model; put it inside `with pm.Model():`."
        )
    if not isinstance(name, str) or not name:
        raise ValueError(f"name={name!r} is not a name; give a non-empty string.")
    return model


def check_component(component: Any) -> None:
    """Raise ValueError unless the argument `component` is a component family."""
    if isinstance(component, type) and issubclass(component, ComponentFamily):
        raise ValueError(
            f"component is the class {component.__name__}; give an instance with its "
            f"hyperparameters, or {component.__name__}.from_data(observed)."
        )
    if not isinstance(component, ComponentFamily):
        raise ValueError(
            f"component={shown(component)} is not a component family; give one of this package, "
            "for instance MvNormal(mu0, kappa0, nu0, psi0)."
        )


def without_variables(component: ComponentFamily) -> ComponentFamily:
    """Return a copy of a component without variables, which are inputs of the ops instead.

    Parameters
    ----------
    component : ComponentFamily

    Returns
    -------
    ComponentFamily
        Hyperparameters that are variables are replaced by their names.
    """
    return component.with_hyperparameters(
        {
            key: str(value) if isinstance(value, Variable) else value
            for key, value in component.hyperparameters.items()
        }
    )


def _checked_data(
    observed: Any, component: ComponentFamily, shape: Any, dims: Any, model: Model
) -> Observed:
    """Split `observed` into its parts, or find the shape of a latent variable."""
    unmoved = what_no_step_moves(component)
    if observed is None and unmoved:
        raise ValueError(
            f"observed is missing, and rows of {type(component).__name__} cannot be latent, as no "
            f"step moves {unmoved}; pass observed=."
        )
    if observed is None:
        n_obs, n_features = latent_shape(component, shape, dims, model)
        return Observed((n_obs, n_features), component.for_n_features(n_features))
    data = read_observed(observed, component)
    if data.mean is not None and foreign_rvs(data.mean, model):
        raise ValueError(
            "observed holds a distribution that is not in this model; declare it by name."
        )
    expected = data.shape if component.row_ndim else data.shape[:1]
    if shape is not None and tuple(lengths_of(shape)) != expected:
        raise ValueError(
            f"shape={shown(shape)} differs from the shape {expected} of observed; leave shape out."
        )
    return data


def _check_names(
    name: str, component: ComponentFamily, data: Observed, law: DeclaredLaw, model: Model
) -> None:
    refuse_reserved(name, model)
    roles = [*ROLES, *component.parameters]
    roles += ["labels"] * data.is_labelled + ["unobserved"] * bool(len(data.initial_values))
    roles += ["log_weights"] * law.discount_varies
    roles += ["n_components"] * (law.component_count is not None)
    for suffix in ("", *(f"_{role}" for role in roles)):
        if model.named_vars.tree_contains(model.name_for(name + suffix)):
            raise ValueError(
                f"name={name!r} is taken: the model already has a variable {name + suffix!r}; "
                "choose another name."
            )
    own = [dim for key in component.parameters for dim in component.own_dims(key)]
    for dim in ("cluster", *own):
        if f"{model.name_for(name)}_{dim}" in model.coords:
            raise ValueError(
                f"name={name!r} is taken: the model already has a dimension '{name}_{dim}'; "
                "choose another name."
            )


def _register_measure(
    name: str,
    measure: Sequence[Variable],
    law: DeclaredLaw,
    data_dims: tuple[str, ...] | None,
    model: Model,
) -> None:
    """Register the outputs of the random measure, and a random number of components."""
    if law.component_count is not None:
        model.register_rv(law.component_count, f"{name}_n_components")
    op: RandomMeasure = measure[0].owner.op
    cluster = f"{op.target}_cluster"
    model.add_coord(cluster, range(op.max_clusters))
    dims: dict[str, tuple[str, ...] | None] = {"weights": (cluster,)}
    dims |= parameter_dims(name, op, data_dims, model)
    dims["labels"] = data_dims and data_dims[:1]
    for rv, role in zip(measure, op.roles, strict=True):
        transform = remainder_transform(op.is_finite) if role == "new_weight" else None
        model.register_rv(rv, f"{name}_{role}", dims=dims.get(role), default_transform=transform)


def parameter_dims(
    name: str, op: Any, data_dims: tuple[str, ...] | None, model: Model
) -> dict[str, tuple[str, ...]]:
    """Return the dimensions of the cluster parameters, adding missing ones to the model.

    Parameters
    ----------
    name : str
        Name of the mixture.
    op : RandomMeasure or HierarchicalMeasure
        That draws them.
    data_dims : tuple of str, optional
        Those of the observations.
    model : pymc.Model

    Returns
    -------
    dict
    """
    features: tuple[str, ...] = ()
    if op.component.row_ndim:
        features = feature_dims(name, op.n_features, data_dims, model)
    dims = {}
    for key, ndim in op.component.parameters.items():
        own = {f"{op.target}_{dim}": of for dim, of in op.component.own_dims(key).items()}
        feature_names = model.coords[features[0]] if features else None
        known = op.component.own_coords(key, feature_names)
        for (dim, length), own_dim in zip(own.items(), op.component.own_dims(key), strict=True):
            model.add_coord(dim, known.get(own_dim, range(length)))
        dims[key] = (f"{op.target}_cluster", *features[:ndim], *own)
    return dims


def _extras(
    name: str,
    data: Observed,
    measure: Sequence[Variable],
    given: Sequence[Variable],
    component: ComponentFamily,
    data_dims: tuple[str, ...] | None,
    model: Model,
) -> dict[str, Variable]:
    """Return additional inputs of the observations; register the missing entries."""
    extra: dict[str, Variable] = {}
    op: RandomMeasure = measure[0].owner.op
    if data.is_labelled:
        extra["labels"] = measure[op.roles.index("labels")]
    if data.mean is not None:
        extra["mean"] = data.mean.astype("float64")
    if len(data.initial_values):
        mean: Any = pt.zeros(len(data.initial_values))
        if data.mean is not None:
            mean = pt.broadcast_to(data.mean, data.values.shape).reshape(data.shape)
            mean = mean[data.missing_index]
        missing = MissingEntries(op.target, component, len(data.initial_values))
        entries: Any = missing(_new_rng(), *data.missing_index, data.initial_values, mean, *given)
        dim = f"{op.target}_hole"
        model.add_coord(dim, names_of_holes(data, data_dims, model))
        model.register_rv(entries, f"{name}_unobserved", dims=(dim,))
        if data.is_labelled:
            extra["unobserved"] = entries
    return extra
