"""`HDPMixture`: declare a mixture of rows in groups in a PyMC model."""

import warnings
from collections.abc import Sequence
from typing import Any

import pytensor.tensor as pt
from pymc.distributions.transforms import log
from pymc.model import Model
from pymc.pytensorf import rvs_in_graph
from pytensor.graph.basic import Variable
from pytensor.tensor.random.variable import shared_rng

from pymc_dpsplit.components.arguments import shown
from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.components.unmoved_rows import what_no_step_moves
from pymc_dpsplit.hierarchical_model.groups import RowGroups, column_of_groups, read_groups
from pymc_dpsplit.hierarchical_model.latent_rows import LatentGroupedRows
from pymc_dpsplit.hierarchical_model.measure import LABELS, GroupedRows, HierarchicalMeasure
from pymc_dpsplit.hierarchical_model.missing import GroupedMissing
from pymc_dpsplit.mixture.declaration import (
    check_component,
    current_model,
    parameter_dims,
    without_variables,
)
from pymc_dpsplit.mixture.latent_shape import latent_shape
from pymc_dpsplit.variables.dims import (
    add_names,
    by_dims,
    checked_dims,
    entries_of,
    number_of_rows,
    refuse_reserved,
)
from pymc_dpsplit.variables.hyperparameters import checked_hyperparameters, checked_scalar
from pymc_dpsplit.variables.max_clusters import checked_max_clusters
from pymc_dpsplit.variables.names import Names, names_in
from pymc_dpsplit.variables.observed import (
    Observed,
    names_of_holes,
    read_observed,
    register_observed,
)

# Names of the constants that hold the group of each row and the number of rows of each group, after
# that of the mixture.
GROUPS, GROUP_SIZES = "groups", "group_sizes"

_MEANING = 'concentration; give a positive number, or a variable such as pm.Gamma("{}", 2, 2)'


def HDPMixture(  # noqa: N802  (used like the distributions of PyMC)
    name: str,
    alpha: Any,
    gamma: Any,
    component: ComponentFamily,
    *,
    groups: Any,
    observed: Any = None,
    dims: str | Sequence[str] | None = None,
    shape: int | Sequence[int] | None = None,
    group_dim: str | None = None,
    max_clusters: int | None = None,
) -> Variable:
    """Declare a mixture of rows in groups, under a hierarchical Dirichlet process.

    Groups share clusters, in shares of their own: each group is a Dirichlet process with
    concentration alpha around a global measure, which is one with concentration gamma [1]_.

    The function adds to the current model the free variables ``{name}_n_clusters``,
    ``{name}_new_weight``, ``{name}_weights``, one for each cluster parameter, such as
    ``{name}_mu``, and ``{name}_n_tables``; `HDPMixtureStep` samples them.  It also adds the
    variable ``{name}`` and the constants ``{name}_groups``, the position of the group of each row,
    and ``{name}_group_sizes``.  With `observed` the rows ``{name}`` are observed.  Without it they
    are latent, and other parts of the model may depend on them; ``{name}_labels`` is then a
    variable too.

    Parameters
    ----------
    name : str
        Name of the mixture in the model.
    alpha : float or PyMC variable
        Concentration of groups, positive: the larger, the more alike are the shares of groups.
    gamma : float or PyMC variable
        Concentration of the global measure, positive: the larger, the more clusters there are.
    component : ComponentFamily
        Family with the hyperparameters of its base measure, for instance `MvNormal`, or any
        distribution of PyMC, `Component`; with covariates too.
        Hyperparameters that are PyMC variables are sampled with the rest of the model.
    groups : array-like of int or str, shape (N,), or pm.Data, or str
        Group of each row, in any order of rows, or the name of a column of `observed`, which then
        is not modelled.  Groups in ``pm.Data`` are those that it holds now.
    observed : array-like or pm.Data, optional
        One row per observation: shape (N,) for a family of scalars such as `Normal`, otherwise
        (N, D).  Missing entries (NaN, or a masked array) become the free variable
        ``{name}_unobserved``, which the step draws.  Without `observed` the rows are latent.
    dims : str or sequence of str, optional
        Names of the dimensions of `observed`, or of the latent variable, as in `DPMixture`.
    shape : int or sequence of int, optional
        Shape of the latent variable, if `dims` does not determine it.
    group_dim : str, optional
        Name of the dimension of groups, by default ``{name}_group``.  If the model has a
        coordinate of that name, it lists the groups, of which some may have no rows.
    max_clusters : int, optional
        Number of clusters recorded per draw, largest weight first.  The chain is not truncated:
        ``{name}_n_clusters`` is exact.  The default is that of `DPMixture`.

    Returns
    -------
    TensorVariable
        The observed or latent variable.

    Raises
    ------
    ValueError
        With one sentence that names the argument, the fault and the remedy.

    Notes
    -----
    Latent rows are for instance the effects of subjects in groups: ``b = HDPMixture("b", ..,
    groups=clinic, dims="subject")`` and ``pm.Normal("y", b[subject], ..)``.  NUTS moves the rows
    given labels and parameters; if each observation depends on one row, the step also moves rows
    together with their labels.  Give such a model no intercept beside ``b``: the base measure has
    one, and the step does not move both together as that of `DPMixture` does.

    ``{name}_weights`` are the weights of clusters in the global measure, which are those expected
    in a new group.  The weights of the groups are summed out in the chain; `predict` uses their
    expectation given the labels.  The labels of rows are in ``sample_stats``, and `sample_labels`
    returns them; those of latent rows are in ``posterior``.  The log probability of the model is
    eq. (16.6) of docs/method.md: it has no term for observed rows, which cannot be drawn from the
    model.  The density of latent rows is that given their labels, and they can be drawn.

    References
    ----------
    .. [1] Teh, Jordan, Beal & Blei (2006), Hierarchical Dirichlet processes, JASA 101.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_dpsplit as dps
    >>> with pm.Model() as model:
    ...     alpha, gamma = pm.Gamma("alpha", 2, 2), pm.Gamma("gamma", 2, 2)
    ...     x = dps.HDPMixture(
    ...         "x", alpha, gamma, dps.Normal(0, 0.1, 2, 1), groups=["a", "b", "a", "b"],
    ...         observed=[0.1, 5.2, 0.3, -0.2], group_dim="patient",
    ...     )
    >>> model.coords["patient"]
    ('a', 'b')

    Effects of subjects in clinics, each subject seen once:

    >>> with pm.Model(coords={"subject": range(4)}) as model:
    ...     b = dps.HDPMixture(
    ...         "b", 1.0, 1.0, dps.Normal(0, 0.1, 2, 1), groups=["a", "b", "a", "b"],
    ...         dims="subject",
    ...     )
    ...     y = pm.Normal("y", b, 0.5, observed=[0.1, 5.2, 0.3, -0.2])
    >>> model["b_labels"].type.shape
    (4,)
    """
    model = current_model("HDPMixture", name)
    dims = entries_of(dims)
    try:
        groups, observed = column_of_groups(groups, observed)
        names = Names() if isinstance(observed, Variable) else names_in(observed)
        observed, dims = by_dims(observed, dims)
        check_component(component)
        data = _checked_data(observed, component, shape, dims, model)
        component, is_latent = data.component, data.values is None
        of_rows = read_groups(groups, group_dim, data.shape[0], observed, name, model)
        concentrations = [
            checked_scalar(key, value, model, _MEANING.format(key))
            for key, value in {"alpha": alpha, "gamma": gamma}.items()
        ]
        hyperparameters = checked_hyperparameters(component, data.shape[1], model)
        needs_all = is_latent or bool(rvs_in_graph(hyperparameters))
        n_kept = checked_max_clusters(max_clusters, component, data.shape, needs_all, False)
        data_dims = checked_dims(dims, data.shape, component, names, name, model)
        bare = without_variables(component)
        target, n_features = model.name_for(name), data.shape[1]
        op = HierarchicalMeasure(target, bare, of_rows, n_features, n_kept, is_latent)
        _check_names(name, op, bool(len(data.initial_values)), model)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if data.warning is not None:
        warnings.warn(f"{name}: {data.warning}", UserWarning, stacklevel=2)
    add_names(data_dims, names, model)
    if of_rows.dim not in model.dim_lengths:
        model.add_coord(of_rows.dim, of_rows.names)
    node = op.make_node(shared_rng(seed=None), *concentrations, *hyperparameters)
    _register_measure(name, node.outputs[1:], data_dims, model)
    _register_missing(name, data, node.outputs[1:], data_dims, model)
    if is_latent:
        latent = _latent_rows(node, number_of_rows(data, data_dims, model))
        x: Any = model.register_rv(latent, name, dims=data_dims)
    else:
        rows = GroupedRows(target, data.dtype, n_features if component.row_ndim else None)
        x = rows(shared_rng(seed=None), data.shape[0], *node.outputs[1:])
        x = register_observed(x, name, data, data_dims, model)
    _register_groups(name, of_rows, data_dims, model)
    return x


def _latent_rows(node: Any, n_rows: Any) -> Any:
    """Return the variable of latent rows, whose measure is that of a node."""
    op: HierarchicalMeasure = node.op
    of = dict(zip(op.roles, node.outputs[1:], strict=True))
    parameters = [of[key] for key in op.component.parameters]
    rows = LatentGroupedRows(op.target, op.component, op.n_features)
    given = of[LABELS], of["n_clusters"], *parameters, *node.inputs[3:]
    others = [out for out in of.values() if out not in given]
    return rows(shared_rng(seed=None), n_rows, *given, *others)


def _checked_data(
    observed: Any, component: ComponentFamily, shape: Any, dims: Any, model: Model
) -> Observed:
    """Read the rows, or the shape of latent ones, and refuse those that the step cannot treat."""
    if observed is None:
        return _latent_data(component, shape, dims, model)
    if shape is not None:
        raise ValueError(
            f"shape={shown(shape)} is given beside observed, which has a shape; leave shape out."
        )
    data = read_observed(observed, component)
    if data.mean is not None:
        raise ValueError(
            "observed is data less a mean, which a hierarchical mixture cannot take; give the data "
            "alone."
        )
    if data.is_labelled:
        raise ValueError(
            "component has a variable in the density of a row "
            f"({', '.join(component.likelihood_arguments)}); give a number in its place."
        )
    return data


def _latent_data(component: ComponentFamily, shape: Any, dims: Any, model: Model) -> Observed:
    """Return the shape of a latent variable."""
    unmoved = what_no_step_moves(component)
    if unmoved:
        raise ValueError(
            f"observed is missing, and rows of {type(component).__name__} cannot be latent, as no "
            f"step moves {unmoved}; pass observed=."
        )
    n_rows, n_features = latent_shape(component, shape, dims, model)
    return Observed((n_rows, n_features), component.for_n_features(n_features))


def _check_names(
    name: str, op: HierarchicalMeasure, has_missing_entries: bool, model: Model
) -> None:
    refuse_reserved(name, model)
    roles = [*op.roles, GROUPS, GROUP_SIZES, *["unobserved"] * has_missing_entries]
    for suffix in ("", *(f"_{role}" for role in roles)):
        if model.named_vars.tree_contains(model.name_for(name + suffix)):
            raise ValueError(
                f"name={name!r} is taken: the model already has a variable {name + suffix!r}; "
                "choose another name."
            )
    own = [dim for key in op.component.parameters for dim in op.component.own_dims(key)]
    for dim in ("cluster", *own, *["hole"] * has_missing_entries):
        if f"{model.name_for(name)}_{dim}" in model.coords:
            raise ValueError(
                f"name={name!r} is taken: the model already has a dimension '{name}_{dim}'; "
                "choose another name."
            )


def _register_measure(
    name: str,
    measure: Sequence[Variable],
    data_dims: tuple[str, ...] | None,
    model: Model,
) -> None:
    """Register the outputs of the measure, with the dimensions that `DPMixture` gives them."""
    op: HierarchicalMeasure = measure[0].owner.op
    cluster = f"{op.target}_cluster"
    model.add_coord(cluster, range(op.max_clusters))
    dims: dict[str, Any] = {"weights": (cluster,), **parameter_dims(name, op, data_dims, model)}
    dims[LABELS] = data_dims and data_dims[:1]
    for rv, role in zip(measure, op.roles, strict=True):
        # Log transform, because the weight of the remainder underflows if gamma is small.
        transform = log if role == "new_weight" else None
        model.register_rv(rv, f"{name}_{role}", dims=dims.get(role), default_transform=transform)


def _register_missing(
    name: str,
    data: Observed,
    measure: Sequence[Variable],
    data_dims: tuple[str, ...] | None,
    model: Model,
) -> None:
    """Register the missing entries, if there are any, with a name for each."""
    if not len(data.initial_values):
        return
    op: HierarchicalMeasure = measure[0].owner.op
    missing = GroupedMissing(op.target, op.component, len(data.initial_values))
    start = *data.missing_index, data.initial_values
    entries: Any = missing(shared_rng(seed=None), *start, *measure)
    dim = f"{op.target}_hole"
    model.add_coord(dim, names_of_holes(data, data_dims, model))
    model.register_rv(entries, f"{name}_unobserved", dims=(dim,))


def _register_groups(
    name: str, of_rows: RowGroups, dims: tuple[str, ...] | None, model: Model
) -> None:
    """Add the groups of rows, and their sizes, to the model as constants, which traces record."""
    held = {
        GROUPS: (of_rows.group_of_row, None if dims is None else dims[:1]),
        GROUP_SIZES: (of_rows.sizes, (of_rows.dim,)),
    }
    for suffix, (values, over) in held.items():
        constant: Any = pt.constant(values, name=model.name_for(f"{name}_{suffix}"))
        model.register_data_var(constant, dims=over)
