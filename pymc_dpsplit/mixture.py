"""`DPMixture`: what a user writes in a model."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.transforms import log
from pymc.model import Model
from pymc.pytensorf import rvs_in_graph
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import graph_inputs
from pytensor.tensor.random.variable import shared_rng
from scipy import sparse

from pymc_dpsplit.components.arguments import positive_scalar, rows_of
from pymc_dpsplit.components.base import Component
from pymc_dpsplit.variables.measure import ROLES, RandomMeasure
from pymc_dpsplit.variables.rows import MixtureRows

_LEAST_ROWS, _MOST_ROWS = 10, 64
_BYTES_PER_DRAW = 2**18
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
    observed variable ``{name}``, whose density has the labels summed out.

    Parameters
    ----------
    name : str
        Name of the mixture in the model.
    alpha : float or PyMC variable
        Positive concentration; a variable or expression is sampled with the rest of the model.
    component : Component
        Family of the clusters with the hyperparameters of its base measure, for instance
        `MvNormal`.
    observed : array-like or pm.Data
        One observation per row: shape (N,) for a family of scalars such as `Normal`, else
        (N, D).  NumPy, pandas, polars, xarray or nested lists; finite numbers.
    dims : str or sequence of str, optional
        Names of the dimensions of `observed`.  Parameters use that of the features too;
        without it they use ``{name}_feature``.
    shape : int or sequence of int, optional
        Shape of `observed`; if given it is checked.
    max_clusters : int, optional
        Rows kept per draw in the weights and parameters, the largest clusters first.  The chain
        is not truncated: ``{name}_n_clusters`` and what it depends on stay exact, and `pm.sample`
        says at the end if draws had more clusters than rows.  By default as many rows as
        fit in 256 KiB per draw, but at least 10, at most 64 and at most N.

    Returns
    -------
    TensorVariable
        The observed variable.

    Raises
    ------
    ValueError
        With one sentence that names the argument, the fault and the remedy.

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
        data, rows = _checked_data(observed, component, shape)
        values = _checked_hyperparameters(component, rows.shape[1])
        n_rows_kept = _checked_max_clusters(max_clusters, component, rows)
        concentration = _checked_alpha(alpha, model)
        data_dims = _checked_dims(dims, rows, component, model)
        _check_names(name, component, model)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    n_obs, n_features = rows.shape
    op = RandomMeasure(model.name_for(name), component, n_obs, n_features, n_rows_kept)
    hyperparameters = [pt.constant(values[key]) for key in component.hyperparameter_ndims()]
    measure = op.make_node(_new_rng(), concentration, *hyperparameters).outputs[1:]
    _register_measure(name, measure, component, data_dims, model)
    n_rows = _number_of_rows(data, data_dims, model)
    inputs = [concentration, *measure, *hyperparameters]
    x = MixtureRows(op.target, component, n_features)(_new_rng(), n_rows, *inputs)
    return model.register_rv(x, name, observed=data, dims=data_dims)


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


def _checked_hyperparameters(component: Component, n_features: int) -> dict[str, np.ndarray]:
    for key, value in component.hyperparameters.items():
        if isinstance(value, Variable):
            raise ValueError(
                f"{key} is a PyMC variable, but hyperparameters must be numbers or arrays in "
                "this version; give a number."
            )
    return component.check(component.hyperparameters, n_features)


def _checked_data(observed: Any, component: Component, shape: Any) -> tuple[Any, np.ndarray]:
    """Return what the model observes, and its rows now (N, D)."""
    if observed is None:
        raise ValueError(
            "observed is missing, and latent mixtures are not available in this version; pass "
            "observed=."
        )
    if sparse.issparse(observed):
        raise ValueError(
            "observed is a sparse matrix, which this component cannot read; give "
            "observed.toarray()."
        )
    values = _values_of_data(observed) if isinstance(observed, Variable) else observed
    rows = rows_of(values, component.row_ndim)
    expected = rows.shape if component.row_ndim else rows.shape[:1]
    if shape is not None and tuple(np.atleast_1d(shape)) != expected:
        raise ValueError(
            f"shape={shape} differs from the shape {expected} of observed; leave shape out."
        )
    return observed if isinstance(observed, Variable) else rows.reshape(expected), rows


def _values_of_data(observed: Variable) -> np.ndarray:
    roots = list(graph_inputs([observed]))
    if rvs_in_graph(observed) or not all(isinstance(r, SharedVariable | Constant) for r in roots):
        raise ValueError(
            f"observed={observed} depends on variables of the model; give an array or pm.Data."
        )
    return np.asarray(observed.eval())


def _checked_max_clusters(given: Any, component: Component, rows: np.ndarray) -> int:
    if given is None:
        n_obs, n_features = rows.shape
        numbers = 1 + sum(n_features**ndim for ndim in component.parameters.values())
        fitting = _BYTES_PER_DRAW // (8 * numbers)
        return min(n_obs, max(_LEAST_ROWS, min(_MOST_ROWS, fitting)))
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
    strangers = [rv for rv in rvs_in_graph(alpha) if rv not in model.root.basic_RVs]
    if strangers:
        raise ValueError(
            "alpha holds a distribution that is not in this model; declare it by name, as in "
            'pm.Gamma("alpha", 2, 4), inside the model.'
        )
    tensor = pt.as_tensor(alpha)
    if tensor.type.ndim and any(length != 1 for length in tensor.type.shape):
        raise ValueError(
            f"alpha={alpha} has shape {tensor.type.shape}; give a scalar, for instance alpha[0]."
        )
    if not rvs_in_graph(alpha):
        positive_scalar("alpha", alpha.eval())
    return tensor.reshape(()) if tensor.type.ndim else tensor


def _checked_dims(
    dims: Any, rows: np.ndarray, component: Component, model: Model
) -> tuple[str, ...] | None:
    if dims is None:
        return None
    names = (dims,) if isinstance(dims, str) or not np.iterable(dims) else tuple(dims)
    lengths = rows.shape[: component.row_ndim + 1]
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


def _check_names(name: str, component: Component, model: Model) -> None:
    for suffix in ("", *(f"_{role}" for role in (*ROLES, *component.parameters))):
        if model.named_vars.tree_contains(model.name_for(name + suffix)):
            raise ValueError(
                f"name={name!r} is taken: the model already has a variable {name + suffix!r}; "
                "choose another name."
            )
    if f"{model.name_for(name)}_cluster" in model.coords:
        raise ValueError(
            f"name={name!r} is taken: the model already has a dimension '{name}_cluster'; choose "
            "another name."
        )


def _number_of_rows(data: Any, dims: tuple[str, ...] | None, model: Model) -> Any:
    """Return the number of rows, as an expression that follows later changes of the data."""
    if dims is not None and dims[0] in model.dim_lengths:
        return model.dim_lengths[dims[0]]
    return data.shape[0]


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
    name: str,
    measure: Sequence[Variable],
    component: Component,
    data_dims: tuple[str, ...] | None,
    model: Model,
) -> None:
    """Make each output of the random measure a free variable of the model."""
    op: RandomMeasure = measure[0].owner.op
    cluster = f"{op.target}_cluster"
    model.add_coord(cluster, range(op.max_clusters))
    features: tuple[str, ...] = ()
    if component.row_ndim:
        features = _feature_dims(name, op.n_features, data_dims, model)
    dims: list[tuple[str, ...] | None] = [None, None, (cluster,)]
    dims += [(cluster, *features[:ndim]) for ndim in component.parameters.values()]
    for rv, role, rv_dims in zip(measure, (*ROLES, *component.parameters), dims, strict=True):
        # The logarithm of the new weight, as the weight itself underflows when alpha is small.
        transform = log if role == "new_weight" else None
        model.register_rv(rv, f"{name}_{role}", dims=rv_dims, default_transform=transform)
