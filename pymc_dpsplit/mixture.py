"""`DPMixture`: declare a Dirichlet-process mixture in a PyMC model."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.transforms import log
from pymc.model import Model
from pymc.pytensorf import rvs_in_graph
from pytensor.graph.basic import Variable
from pytensor.tensor.random.variable import shared_rng

from pymc_dpsplit.components.arguments import is_integer, positive_scalar, shown
from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.components.unmoved_rows import what_no_step_moves
from pymc_dpsplit.variables import MissingEntries, MixtureRows, RandomMeasure
from pymc_dpsplit.variables.dims import (
    add_names,
    by_dims,
    checked_dims,
    entries_of,
    feature_dims,
    number_of_rows,
)
from pymc_dpsplit.variables.hyperparameters import (
    as_real_tensor,
    checked_hyperparameters,
    foreign_rvs,
    refuse_foreign_rvs,
)
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
from pymc_dpsplit.variables.shared_labels import (
    read_shared_labels,
    refuse_taken_names,
    register_shared_labels,
)

# Labels are numbered in int32.
_MOST_OBSERVATIONS = np.iinfo(np.int32).max


def DPMixture(  # noqa: N802  (used like the distributions of PyMC)
    name: str,
    alpha: Any,
    component: ComponentFamily,
    *,
    observed: Any = None,
    groups: Any = None,
    counts: Any = None,
    labels: Any = None,
    dims: str | Sequence[str] | None = None,
    shape: int | Sequence[int] | None = None,
    max_clusters: int | None = None,
) -> Variable:
    """Declare a Dirichlet-process mixture in the current model.

    The function adds the free variables ``{name}_n_clusters``, ``{name}_new_weight``,
    ``{name}_weights`` and one for each cluster parameter, such as ``{name}_mu``; `DPSplitMerge`
    samples them.  It also adds the variable ``{name}``.  With `observed` this is an observed
    variable, whose density has the labels summed out.  Without `observed` it is latent, and other
    parts of the model may depend on it.

    Parameters
    ----------
    name : str
        Name of the mixture in the model.
    alpha : float or PyMC variable
        Concentration, positive; a variable or expression is sampled with the rest of the model.
    component : ComponentFamily
        Component family with the hyperparameters of its base measure, for instance `MvNormal`.
        Hyperparameters that are PyMC variables or expressions are sampled with the rest of the
        model.
    observed : array-like, pm.Data, pymc.dims.Data or expression, optional
        One observation per row: shape (N,) for a family of scalars such as `Normal`, otherwise
        (N, D); counts and codes are whole numbers, converted to floats.  NumPy, pandas, polars,
        xarray or nested lists; `numpy.memmap`, Zarr and HDF5, see the notes; a SciPy sparse matrix
        of counts for `Multinomial`; a data frame with strings and categories for `Product`.
        Entries that are NaN or masked are missing: the step imputes them as
        ``{name}_unobserved``, ordered by row and then by feature.  If a mean that depends on other
        variables is subtracted, as in ``y - X @ beta``, the mixture models the errors of a
        regression, and the model also has ``{name}_labels``.  It has them too if the density of a
        row depends on a variable (`sigma` of `NormalKnownSigma`).  Without `observed` the mixture
        is latent.
    groups : array-like of int or str, shape (N,), optional
        Group of each row, such as a subject with several rows: rows with equal ids have one label,
        and given it they are independent.  A group is one item of the process, of which cluster
        sizes, weights and ``{name}_labels`` are; these have the dimension ``{name}_group``.
    counts : array-like of int, shape (N,), optional
        Whole numbers from 1: row i stands for ``counts[i]`` equal rows with one label.
    labels : array-like of int, shape (N,), optional
        Known labels, -1 where unknown: rows with the same known label are in one cluster in every
        draw.  Rows with different known labels may be in one cluster too; nothing keeps them apart.
        Unlike with `groups`, every row is an observation of the process.
    dims : str or sequence of str, optional
        Names of the dimensions of `observed`, or of the latent variable.  Parameters share the
        dimension of features; by default it is ``{name}_feature``.  Names of the columns and rows
        of a frame, and coordinates of a DataArray, become coordinates of the model, unless it has
        other ones; the dimensions are then by default those of the DataArray, or ``{name}_row``
        and ``{name}_feature``.
    shape : int or sequence of int, optional
        Shape of the latent variable, if `dims` does not determine it.  With `observed` it must
        equal the shape of the data.
    max_clusters : int, optional
        Number of rows recorded per draw in the weights and parameters, largest clusters first.
        The chain is not truncated: ``{name}_n_clusters`` is exact, and `pm.sample` reports at the
        end if draws had more clusters than rows.  The default is as many rows as fit in 256 KiB
        per draw, but at least 10, at most 64 and at most N.  If other variables depend on every
        cluster (latent mixtures, means and hyperparameters that are variables) a draw with more
        clusters is an error; the default is then as many rows as fit in 32 KiB, but at least 128
        and at most N.

    Returns
    -------
    TensorVariable
        The observed or latent variable.

    Raises
    ------
    ValueError
        With one sentence that names the argument, the fault and the remedy.

    Warns
    -----
    UserWarning
        If ties in `observed` make the posterior improper under the base measure of a `Component`.

    Notes
    -----
    The step of a latent mixture also moves an intercept beside it, as in ``b0 + b[group]``, where
    the likelihood determines only the sum; the prior of the intercept must be on the real line.

    NUTS samples a latent mixture; it may need ``pm.sample(target_accept=0.95)``, because the number
    of clusters changes.  To draw values for new groups, change the dimension and call
    ``pm.sample_posterior_predictive(idata, sample_vars=["b"], predictions=True)``.
    ``{name}_labels`` contains N integers per draw; use `var_names` of `pm.sample` to omit it.

    Groups and counts need a conjugate family, and complete data that are no variable; the trace
    holds them in ``constant_data``.  `loo` and `pm.compute_log_likelihood` give one value for each
    group.  New rows of `predict` and `density` are each a group of their own.  See docs/method.md,
    eq. (7.47)-(7.50).

    With `labels` the posterior is that of the mixture of all rows, given that rows of a known label
    are together; that they are is evidence on alpha.  `sample_labels` gives labels of rows.  `loo`
    and `pm.compute_log_likelihood` give one value for the rows of a label, and one for each other
    row.  What groups need, labels need; rows cannot be drawn, see `predict`.

    For leave-one-out cross-validation see `loo`.  `pm.compute_log_likelihood` computes one value
    for each row that has an observed entry, and leaves other rows out.  The checks of ArviZ that
    compare single entries, such as `az.loo_pit`, take one feature at a time, and the rows that
    have it: ``az.loo_pit(idata.sel(feature="a", obs_id=rows))``.

    Large data.  float32 halves the memory: the data stay float32, all arithmetic is in float64,
    and draws equal those for the same numbers given as float64.  Other types become float64.
    (`pm.Data` converts to PyTensor's ``floatX``.)  A C-contiguous array of 16 MiB or more is used
    without a copy: do not modify it while the model is in use.  The same holds for a
    `numpy.memmap` of any size, which a sweep reads sequentially; a pickled model, and so a process
    that samples a chain, opens its file by name.  A memory map of another type or layout, and a
    chunked array of Zarr or HDF5, are read once and converted to a temporary file in the
    folder of Python's `tempfile`; the file is deleted with the model.  Data with missing entries
    are kept in memory.  Sparse data stay sparse; the group `observed_data` contains them only if
    they take at most 64 MiB as an array.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_dpsplit as dps
    >>> with pm.Model() as model:
    ...     alpha = pm.Gamma("alpha", 2, 4)
    ...     x = dps.DPMixture("x", alpha, dps.Normal(0, 0.1, 2, 1), observed=[0.0, 0.1, 5.0])
    >>> [rv.name for rv in model.free_RVs]
    ['alpha', 'x_n_clusters', 'x_new_weight', 'x_weights', 'x_mu', 'x_sigma']

    The first and the last row are known to belong together:

    >>> with pm.Model() as model:
    ...     rows, known = [0.0, 0.1, 5.0], [0, -1, 0]
    ...     x = dps.DPMixture("x", 1.0, dps.Normal(0, 0.1, 2, 1), observed=rows, labels=known)
    >>> dps.find_map(model, random_seed=1).labels
    array([0, 0, 0])
    """
    model = _current_model(name)
    names = Names() if isinstance(observed, Variable) else names_in(observed)
    dims = entries_of(dims)
    try:
        observed, dims = by_dims(observed, dims)
        _check_component(component)
        data = _checked_data(observed, component, shape, dims, model)
        component = data.component
        shared = read_shared_labels(groups, counts, labels, observed, data)
        n_items = data.shape[0] if shared is None else shared.n_groups
        n_obs = data.shape[0] if shared is None else shared.n_observations
        inputs = [
            _checked_alpha(alpha, model),
            *checked_hyperparameters(component, data.shape[1], model),
        ]
        needs_all = data.is_labelled or bool(rvs_in_graph(inputs[1:]))
        grows = may_grow(observed) and not data.is_labelled
        shape_of_items = n_items, data.shape[1]
        n_kept = checked_max_clusters(max_clusters, component, shape_of_items, needs_all, grows)
        data_dims = checked_dims(dims, data.shape, component, names, name, model)
        _check_names(name, component, data, model)
        refuse_taken_names(name, shared, model)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if data.warning is not None:
        warnings.warn(f"{name}: {data.warning}", UserWarning, stacklevel=2)
    n_features = data.shape[1]
    target, bare = model.name_for(name), _without_variables(component)
    op = RandomMeasure(target, bare, n_obs, n_features, n_kept, data.is_labelled)
    concentration, *hyperparameters = inputs
    measure = op.make_node(_new_rng(), *inputs).outputs[1:]
    add_names(data_dims, names, model)
    _register_measure(name, measure, data_dims, model)
    occupied = measure[: op.n_measure]
    given = [concentration, *occupied, *hyperparameters]
    extra = _extras(name, data, measure, given, bare, data_dims, model)
    if may_grow(observed) and component.holds_covariates and not component.has_covariates:
        extra["covariates"] = data.values[:, :-1]
    is_latent = data.values is None
    rows = MixtureRows(target, bare, n_features, data.dtype, is_latent, tuple(extra), shared)
    x: Any = rows(_new_rng(), number_of_rows(data, data_dims, model), *given, *extra.values())
    if is_latent:
        return model.register_rv(x, name, dims=data_dims)
    register_shared_labels(name, shared, data_dims, model)
    return register_observed(x, name, data, data_dims, model)


def _new_rng() -> Variable:
    return shared_rng(seed=None)


def _current_model(name: Any) -> Model:
    model = Model.get_context(error_if_none=False)
    if model is None:
        raise ValueError(
            f"DPMixture {name!r} is declared outside a model; put it inside `with pm.Model():`."
        )
    if not isinstance(name, str) or not name:
        raise ValueError(f"name={name!r} is not a name; give a non-empty string.")
    return model


def _check_component(component: Any) -> None:
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


def _without_variables(component: ComponentFamily) -> ComponentFamily:
    """Return a copy of a component without variables, which are inputs of the ops instead."""
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
        n_obs, n_features = _latent_shape(component, shape, dims, model)
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


def _latent_shape(
    component: ComponentFamily, shape: Any, dims: Any, model: Model
) -> tuple[int, int]:
    """Return the number of rows N and of features D of a latent variable."""
    wanted = "(N, D)" if component.row_ndim else "(N,)"
    if shape is None and dims is None:
        raise ValueError(
            "observed is missing; pass observed=, or dims= or shape= to say how many values a "
            "latent mixture has."
        )
    if shape is None:
        known = model.dim_lengths
        unknown = [dim for dim in dims if not isinstance(dim, str) or dim not in known]
        if unknown:
            raise ValueError(
                f"dims={shown(dims)} of a latent mixture names {shown(unknown[0])}, which is not a "
                f"dimension of the model; add it to its coords, or pass shape={wanted}."
            )
        lengths = [int(model.dim_lengths[dim].eval()) for dim in dims]
    else:
        lengths = lengths_of(shape)
    are_lengths = all(is_integer(n) and 0 < n <= _MOST_OBSERVATIONS for n in lengths)
    if len(lengths) != 1 + component.row_ndim or not are_lengths:
        given = shown(tuple(lengths)) if shape is None else shown(shape)
        raise ValueError(
            f"shape={given} does not suit a latent mixture of {type(component).__name__}; give "
            f"{wanted}, of positive integers."
        )
    return int(lengths[0]), int(lengths[1]) if component.row_ndim else 1


def _checked_alpha(alpha: Any, model: Model) -> Variable:
    """Return alpha as a scalar of the graph."""
    if not isinstance(alpha, Variable):
        if alpha is None:
            raise ValueError(
                "alpha=None is no concentration; give a positive number, or a variable such as "
                'pm.Gamma("alpha", 2, 4).'
            )
        if isinstance(alpha, str | bytes):
            raise ValueError(f"alpha={shown(alpha)} is a string; give a positive number.")
        return pt.constant(positive_scalar("alpha", alpha))
    refuse_foreign_rvs("alpha", alpha, model)
    tensor = as_real_tensor("alpha", alpha)
    if tensor.type.ndim and any(length != 1 for length in tensor.type.shape):
        raise ValueError(
            f"alpha={alpha} has shape {tensor.type.shape}; give a scalar, for instance alpha[0]."
        )
    if not rvs_in_graph(alpha):
        positive_scalar("alpha", alpha.eval())
    return tensor.reshape(()) if tensor.type.ndim else tensor


def _check_names(name: str, component: ComponentFamily, data: Observed, model: Model) -> None:
    roles = [*ROLES, *component.parameters]
    roles += ["labels"] * data.is_labelled + ["unobserved"] * bool(len(data.initial_values))
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
    name: str, measure: Sequence[Variable], data_dims: tuple[str, ...] | None, model: Model
) -> None:
    """Register each output of the random measure as a free variable of the model."""
    op: RandomMeasure = measure[0].owner.op
    cluster = f"{op.target}_cluster"
    model.add_coord(cluster, range(op.max_clusters))
    features: tuple[str, ...] = ()
    if op.component.row_ndim:
        features = feature_dims(name, op.n_features, data_dims, model)
    dims: dict[str, tuple[str, ...] | None] = {"weights": (cluster,)}
    for key, ndim in op.component.parameters.items():
        own = {f"{op.target}_{dim}": of for dim, of in op.component.own_dims(key).items()}
        feature_names = model.coords[features[0]] if features else None
        known = op.component.own_coords(key, feature_names)
        for (dim, length), own_dim in zip(own.items(), op.component.own_dims(key), strict=True):
            model.add_coord(dim, known.get(own_dim, range(length)))
        dims[key] = (cluster, *features[:ndim], *own)
    dims["labels"] = data_dims and data_dims[:1]
    for rv, role in zip(measure, op.roles, strict=True):
        # Log transform, because the weight of the remainder underflows if alpha is small.
        transform = log if role == "new_weight" else None
        model.register_rv(rv, f"{name}_{role}", dims=dims.get(role), default_transform=transform)


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
    if data.is_labelled:
        extra["labels"] = measure[-1]
    if data.mean is not None:
        extra["mean"] = data.mean.astype("float64")
    if len(data.initial_values):
        mean: Any = pt.zeros(len(data.initial_values))
        if data.mean is not None:
            mean = pt.broadcast_to(data.mean, data.values.shape).reshape(data.shape)
            mean = mean[data.missing_index]
        op = MissingEntries(model.name_for(name), component, len(data.initial_values))
        entries: Any = op(_new_rng(), *data.missing_index, data.initial_values, mean, *given)
        dim = f"{model.name_for(name)}_hole"
        model.add_coord(dim, names_of_holes(data, data_dims, model))
        model.register_rv(entries, f"{name}_unobserved", dims=(dim,))
        if data.is_labelled:
            extra["unobserved"] = entries
    return extra
