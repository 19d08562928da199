"""`DPMixture`: what a user writes in a model."""

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

from pymc_dpsplit.components.arguments import positive_scalar
from pymc_dpsplit.components.declaration import Component
from pymc_dpsplit.variables import MissingEntries, MixtureRows, RandomMeasure
from pymc_dpsplit.variables.hyperparameters import (
    checked_hyperparameters,
    refuse_strangers,
    strangers,
)
from pymc_dpsplit.variables.measure import ROLES
from pymc_dpsplit.variables.observed import (
    Observed,
    latent_rows,
    names_of_holes,
    read_observed,
    register_observed,
)

# Rows kept per draw: at least and at most, and as many as fit in so many bytes.
_LEAST_ROWS, _MOST_ROWS = 10, 64
_BYTES_PER_DRAW = 2**18
# Where other variables depend on every cluster, none may go unrecorded.
_LEAST_ROWS_NEEDED, _BYTES_PER_DRAW_NEEDED = 128, 2**15
_RESERVED_DIMS = ("chain", "draw", "__sample__")


def DPMixture(  # noqa: N802  (used like the distributions of PyMC)
    name: str,
    alpha: Any,
    component: Component,
    *,
    observed: Any = None,
    dims: str | Sequence[str] | None = None,
    shape: int | Sequence[int] | None = None,
    max_clusters: int | None = None,
) -> Variable:
    """Declare a Dirichlet-process mixture in the current model.

    Adds the free variables ``{name}_n_clusters``, ``{name}_new_weight``, ``{name}_weights`` and one
    for each cluster parameter, such as ``{name}_mu``, which `DPSplitMerge` samples, and the
    variable ``{name}`` itself: observed, with a density that has the labels summed out, or without
    `observed` latent, an ordinary variable which other parts of the model may depend on.

    Parameters
    ----------
    name : str
        Name of the mixture in the model.
    alpha : float or PyMC variable
        Positive concentration; a variable or expression is sampled with the rest of the model.
    component : Component
        Family of the clusters with the hyperparameters of its base measure, for instance
        `MvNormal`.  A hyperparameter that is a PyMC variable or expression is sampled with the
        rest of the model.
    observed : array-like, pm.Data or expression, optional
        One observation per row: shape (N,) for a family of scalars such as `Normal`, else
        (N, D); counts and codes are whole numbers, which become floats.  NumPy, pandas, polars,
        xarray or nested lists; `numpy.memmap`, Zarr and HDF5, see the notes; a SciPy sparse matrix
        of counts for `Multinomial`; a data frame with strings and categories for `Product`.
        Entries that are NaN or masked are missing: the step imputes them as
        ``{name}_unobserved``, in the order of rows and then features.  Data less a mean that
        depends on other variables, as in ``y - X @ beta``, make the mixture one of the errors of
        a regression; the model then also has ``{name}_labels``, as it has where the density of a
        row holds a variable (`sigma` of `NormalMean`).  Without `observed` the mixture is latent.
    dims : str or sequence of str, optional
        Names of the dimensions of `observed`, or of the latent variable.  Parameters use that of
        the features too; without it they use ``{name}_feature``.
    shape : int or sequence of int, optional
        Shape of the latent variable, if `dims` does not say it; if `observed` is given too, it
        is checked.
    max_clusters : int, optional
        Rows kept per draw in the weights and parameters, the largest clusters first.  The chain
        is not truncated: ``{name}_n_clusters`` and what it depends on stay exact, and `pm.sample`
        says at the end if draws had more clusters than rows.  By default as many rows as
        fit in 256 KiB per draw, but at least 10, at most 64 and at most N.  Where other variables
        depend on every cluster (latent mixtures, means and hyperparameters that are variables) a
        draw with more clusters is an error, and the default is at least 128 and as many as fit in
        32 KiB, at most N.

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
    NUTS moves a latent mixture; it may want ``pm.sample(target_accept=0.95)``, as clusters come
    and go.  Values for new groups are drawn by
    ``pm.sample_posterior_predictive(idata, sample_vars=["b"], predictions=True)`` after the
    dimension was changed.  ``{name}_labels`` holds N integers per draw; `var_names` of `pm.sample`
    leaves it out.

    Large data.  float32 halves the memory: the data stay float32, all arithmetic is in float64,
    and draws are those of the same numbers given as float64.  Other types become float64.
    (`pm.Data` converts to PyTensor's ``floatX``.)  An array of 16 MiB or more, contiguous by rows,
    is used where it is, without a copy: leave it as it is while the model is in use.  So is a
    `numpy.memmap` of any size, which a sweep reads in order; a pickled model, and so a
    process that samples a chain, opens its file by name.  A map of another type or layout, and
    an array that is read in chunks, such as one of Zarr or an HDF5 data set, is read once and
    written as it is needed to a temporary file (in the folder of Python's `tempfile`), which goes
    when the model goes.  Data with missing entries are held in memory.  Sparse data stay sparse;
    they are in the group `observed_data` only if they take no more than 64 MiB as an array.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_dpsplit as dps
    >>> with pm.Model() as model:
    ...     alpha = pm.Gamma("alpha", 2, 4)
    ...     x = dps.DPMixture("x", alpha, dps.Normal(0, 0.1, 2, 1), observed=[0.0, 0.1, 5.0])
    >>> [rv.name for rv in model.free_RVs]
    ['alpha', 'x_n_clusters', 'x_new_weight', 'x_weights', 'x_mu', 'x_sigma']
    """
    model = _current_model(name)
    try:
        _check_component(component)
        data = _checked_data(observed, component, shape, dims, model)
        component = data.component
        inputs = [
            _checked_alpha(alpha, model),
            *checked_hyperparameters(component, data.shape[1], model),
        ]
        needs_all = data.is_labelled or bool(rvs_in_graph(inputs[1:]))
        n_rows_kept = _checked_max_clusters(max_clusters, component, data.shape, needs_all)
        data_dims = _checked_dims(dims, data.shape, component, model)
        _check_names(name, component, data, model)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if data.caveat is not None:
        warnings.warn(f"{name}: {data.caveat}", UserWarning, stacklevel=2)
    n_obs, n_features = data.shape
    target, bare = model.name_for(name), _without_variables(component)
    op = RandomMeasure(target, bare, n_obs, n_features, n_rows_kept, data.is_labelled)
    concentration, *hyperparameters = inputs
    measure = op.make_node(_new_rng(), *inputs).outputs[1:]
    _register_measure(name, measure, data_dims, model)
    occupied = measure[: op.n_measure]
    given = [concentration, *occupied, *hyperparameters]
    extra = _extras(name, data, measure, given, bare, data_dims, model)
    is_latent = data.data is None
    rows = MixtureRows(target, bare, n_features, data.dtype, is_latent, tuple(extra))
    x: Any = rows(_new_rng(), _number_of_rows(data, data_dims, model), *given, *extra.values())
    if is_latent:
        return model.register_rv(x, name, dims=data_dims)
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
    if isinstance(component, type) and issubclass(component, Component):
        raise ValueError(
            f"component is the class {component.__name__}; give an instance with its "
            f"hyperparameters, or {component.__name__}.from_data(observed)."
        )
    if not isinstance(component, Component):
        raise ValueError(
            f"component={component!r} is not a component family; give one of this package, "
            "for instance MvNormal(mu0, kappa0, nu0, psi0)."
        )


def _without_variables(component: Component) -> Component:
    """Copy of a component that holds no part of the graph, which enters the ops as inputs."""
    return component.with_hyperparameters(
        {
            key: str(value) if isinstance(value, Variable) else value
            for key, value in component.hyperparameters.items()
        }
    )


def _checked_data(
    observed: Any, component: Component, shape: Any, dims: Any, model: Model
) -> Observed:
    """Take `observed` apart, or find the shape of a latent variable."""
    if observed is None and (component.is_discrete or component.is_bounded):
        kind = "whole" if component.is_discrete else "bounded"
        raise ValueError(
            f"observed is missing, and rows of {type(component).__name__} cannot be latent, as no "
            f"step moves {kind} numbers; pass observed=."
        )
    if observed is None:
        return latent_rows(*_latent_shape(component, shape, dims, model), component)
    data = read_observed(observed, component)
    if data.mean is not None and strangers(data.mean, model):
        raise ValueError(
            "observed holds a distribution that is not in this model; declare it by name."
        )
    expected = data.shape if component.row_ndim else data.shape[:1]
    if shape is not None and tuple(np.atleast_1d(shape)) != expected:
        raise ValueError(
            f"shape={shape} differs from the shape {expected} of observed; leave shape out."
        )
    return data


def _latent_shape(component: Component, shape: Any, dims: Any, model: Model) -> tuple[int, int]:
    """Number of rows N and of features D of a latent variable."""
    wanted = "(N, D)" if component.row_ndim else "(N,)"
    if shape is None and dims is None:
        raise ValueError(
            "observed is missing; pass observed=, or dims= or shape= to say how many values a "
            "latent mixture has."
        )
    if shape is None:
        names = (dims,) if isinstance(dims, str) or not np.iterable(dims) else tuple(dims)
        unknown = [dim for dim in names if dim not in model.dim_lengths]
        if unknown:
            raise ValueError(
                f"dims={dims!r} of a latent mixture names {unknown[0]!r}, which is not a dimension "
                f"of the model; add it to its coords, or pass shape={wanted}."
            )
        lengths = [int(model.dim_lengths[dim].eval()) for dim in names]
    else:
        lengths = list(np.atleast_1d(shape))
    are_lengths = all(
        isinstance(n, int | np.integer) and not isinstance(n, bool) and n > 0 for n in lengths
    )
    if len(lengths) != 1 + component.row_ndim or not are_lengths:
        given = tuple(lengths) if shape is None else shape
        raise ValueError(
            f"shape={given} does not suit a latent mixture of {type(component).__name__}; give "
            f"{wanted}, of positive integers."
        )
    return int(lengths[0]), int(lengths[1]) if component.row_ndim else 1


def _checked_max_clusters(
    given: Any, component: Component, shape: tuple[int, int], needs_all: bool
) -> int:
    if given is None:
        n_obs, n_features = shape
        shapes = (component.shape_of(*of, n_features) for of in component.parameters.items())
        numbers = 1 + sum(int(np.prod(shape)) for shape in shapes)
        if needs_all:
            fitting = max(_LEAST_ROWS_NEEDED, _BYTES_PER_DRAW_NEEDED // (8 * numbers))
        else:
            fitting = min(_MOST_ROWS, max(_LEAST_ROWS, _BYTES_PER_DRAW // (8 * numbers)))
        return min(n_obs, fitting)
    is_integer = isinstance(given, int | np.integer) and not isinstance(given, bool)
    if not is_integer or given < 1:
        raise ValueError(
            f"max_clusters={given!r} is not a positive integer; give the number of rows to keep, "
            "or leave it out."
        )
    return int(given)


def _checked_alpha(alpha: Any, model: Model) -> Variable:
    """Return alpha as a scalar of the graph."""
    if not isinstance(alpha, Variable):
        if isinstance(alpha, str | bytes):
            raise ValueError(f"alpha={alpha!r} is a string; give a positive number.")
        return pt.constant(positive_scalar("alpha", alpha))
    refuse_strangers("alpha", alpha, model)
    tensor = pt.as_tensor(alpha)
    if tensor.type.ndim and any(length != 1 for length in tensor.type.shape):
        raise ValueError(
            f"alpha={alpha} has shape {tensor.type.shape}; give a scalar, for instance alpha[0]."
        )
    if not rvs_in_graph(alpha):
        positive_scalar("alpha", alpha.eval())
    return tensor.reshape(()) if tensor.type.ndim else tensor


def _checked_dims(
    dims: Any, shape: tuple[int, int], component: Component, model: Model
) -> tuple[str, ...] | None:
    if dims is None:
        return None
    names = (dims,) if isinstance(dims, str) or not np.iterable(dims) else tuple(dims)
    lengths = shape[: component.row_ndim + 1]
    if len(names) != len(lengths) or not all(isinstance(dim, str) for dim in names):
        wanted = "two names" if component.row_ndim else "one name"
        raise ValueError(
            f"dims={dims!r} must name each dimension of observed (shape {lengths}); give {wanted}."
        )
    if len(set(names)) != len(names):
        raise ValueError(f"dims={dims!r} names a dimension twice; give each its own name.")
    twins = [(f"{dim}_bis", length) for dim, length in zip(names[1:], lengths[1:], strict=True)]
    for dim, length in [*zip(names, lengths, strict=True), *twins]:
        _check_dim(dim, length, model)
    return names


def _check_dim(dim: str, length: int, model: Model) -> None:
    if dim in _RESERVED_DIMS or model.named_vars.tree_contains(dim):
        raise ValueError(
            f"dims holds {dim!r}, which is taken by ArviZ or by a variable of the model; give "
            "the dimension another name."
        )
    known = model.dim_lengths.get(dim)
    if known is not None and int(known.eval()) != length:
        raise ValueError(
            f"dims: dimension {dim!r} has length {int(known.eval())} in the model, but observed "
            f"has {length} there; make the coords and the data agree."
        )


def _check_names(name: str, component: Component, data: Observed, model: Model) -> None:
    roles = [*ROLES, *component.parameters]
    roles += ["labels"] * data.is_labelled + ["unobserved"] * bool(len(data.filling))
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


def _number_of_rows(data: Observed, dims: tuple[str, ...] | None, model: Model) -> Any:
    """Return the number of rows, as an expression that follows later changes of the data."""
    if dims is not None and dims[0] in model.dim_lengths:
        return model.dim_lengths[dims[0]]
    return data.shape[0] if data.data is None else data.data.shape[0]


def _feature_dims(
    name: str, n_features: int, data_dims: tuple[str, ...] | None, model: Model
) -> tuple[str, str]:
    """Return the dimensions of features, adding those the model lacks."""
    feature = f"{model.name_for(name)}_feature" if data_dims is None else data_dims[1]
    if feature not in model.coords:
        model.add_coord(feature, range(n_features))
    twin = f"{feature}_bis"
    if twin not in model.coords:
        labels = model.coords[feature]
        model.add_coord(twin, range(n_features) if labels is None else labels)
    return feature, twin


def _register_measure(
    name: str, measure: Sequence[Variable], data_dims: tuple[str, ...] | None, model: Model
) -> None:
    """Make each output of the random measure a free variable of the model."""
    op: RandomMeasure = measure[0].owner.op
    cluster = f"{op.target}_cluster"
    model.add_coord(cluster, range(op.max_clusters))
    features: tuple[str, ...] = ()
    if op.component.row_ndim:
        features = _feature_dims(name, op.n_features, data_dims, model)
    dims: dict[str, tuple[str, ...] | None] = {"weights": (cluster,)}
    for key, ndim in op.component.parameters.items():
        own = {f"{op.target}_{dim}": of for dim, of in op.component.own_dims(key).items()}
        for dim, length in own.items():
            model.add_coord(dim, range(length))
        dims[key] = (cluster, *features[:ndim], *own)
    dims["labels"] = data_dims and data_dims[:1]
    for rv, role in zip(measure, op.roles, strict=True):
        # The logarithm of the new weight, as the weight itself underflows when alpha is small.
        transform = log if role == "new_weight" else None
        model.register_rv(rv, f"{name}_{role}", dims=dims.get(role), default_transform=transform)


def _extras(
    name: str,
    data: Observed,
    measure: Sequence[Variable],
    given: Sequence[Variable],
    component: Component,
    data_dims: tuple[str, ...] | None,
    model: Model,
) -> dict[str, Variable]:
    """Inputs of the observations beside the measure; registers the missing entries."""
    extra: dict[str, Variable] = {}
    if data.is_labelled:
        extra["labels"] = measure[-1]
    if data.mean is not None:
        extra["mean"] = data.mean.astype("float64")
    if len(data.filling):
        mean: Any = pt.zeros(len(data.filling))
        if data.mean is not None:
            mean = pt.broadcast_to(data.mean, data.data.shape).reshape(data.shape)[data.holes]
        op = MissingEntries(model.name_for(name), component, len(data.filling))
        entries: Any = op(_new_rng(), *data.holes, data.filling, mean, *given)
        dim = f"{model.name_for(name)}_hole"
        model.add_coord(dim, names_of_holes(data, data_dims, model))
        model.register_rv(entries, f"{name}_unobserved", dims=(dim,))
        if data.is_labelled:
            extra["unobserved"] = entries
    return extra
