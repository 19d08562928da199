"""`density`: posterior density of a mixture, or of a margin of it, as a table."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import arviz_base as azb
import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.components.arguments import check_integer
from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.components.linear_regression.family import LinearRegression
from pymc_dpsplit.posterior.density.conditioned_columns import (
    Conditioned,
    columns_without_law,
    conditioned_columns,
)
from pymc_dpsplit.posterior.density.feature_laws import (
    FAR_OUT,
    CountLaw,
    Density,
    FeatureLaw,
    GaussianLaw,
    NumberLaw,
)
from pymc_dpsplit.posterior.density.grids import chosen_grids
from pymc_dpsplit.posterior.trace.categories import names_of_codes
from pymc_dpsplit.posterior.trace.features import (
    Feature,
    chosen_features,
    feature_names,
    given_values,
)
from pymc_dpsplit.posterior.trace.gaussian_density import (
    GaussianDraws,
    conditioned,
    density_at,
    gaussian_draws,
    gaussian_spread,
    refuse_shapes,
)
from pymc_dpsplit.posterior.trace.groups import choose_mixture, group_of
from pymc_dpsplit.posterior.trace.hierarchical import declared_mixture
from pymc_dpsplit.posterior.trace.labels import recorded_measures
from pymc_dpsplit.posterior.trace.log_density import log_density_by_model
from pymc_dpsplit.posterior.trace.places import spread_places
from pymc_dpsplit.posterior.trace.rows_in_groups import trace_of_group
from pymc_dpsplit.posterior.trace.values import PlottedValues, plotted_values
from pymc_dpsplit.variables import MixtureVariables

# Counts of few observations may go far beyond those observed.
_COUNTS_BEYOND = 20
# Log densities of values outside the support of a family are below it.
_IMPOSSIBLE = -1e200
# Draws that tell where the clusters are along each of two features, if that takes an integration.
_FEW_SAMPLES = 20
_PROBABILITIES = (0.05, 0.25, 0.5, 0.75, 0.95)


def density(
    idata: xr.DataTree,
    *,
    model: Model | None = None,
    var_name: str | None = None,
    features: Feature | Sequence[Feature] | None = None,
    given: Mapping[Feature, float] | None = None,
    group: Any = None,
    grid: Any = None,
    probabilities: Sequence[float] = _PROBABILITIES,
    num_samples: int = 200,
    ci_prob: float | None = None,
) -> xr.Dataset:
    """Compute the posterior density of a mixture in one or two features, over a grid.

    In each draw a mixture has a density, and for one feature a distribution function and quantiles.
    The result contains their posterior mean, standard deviation and pointwise interval.  Other
    features are integrated out, or conditioned on if `given` has them.

    Parameters
    ----------
    idata : DataTree
        As returned by `pm.sample`.
    model : pymc.Model, optional
        The sampled model, by default that of the context.  It is required for families that are
        not Gaussian, and for data whose mean depends on other variables.
    var_name : str, optional
        Name of the mixture; required if the trace contains several.
    features : int, str or sequence of one or two of them, optional
        Features whose marginal density is computed, as indices or labels of the coordinate; by
        default the first two that have one.
    given : dict, optional
        Feature to value: the density, distribution function and quantiles of a draw are then those
        given these values of other features.  The response of a `LinearRegression` has a density
        given all of its covariates, and given features of other parts of a `Product`.
    group : int or str, optional
        For an `HDPMixture`: name of the group whose density is computed; by default that of a row
        of a new group.
    grid : array_like, shape (G,), or two of them, optional
        Values of the feature or of each of two, ascending; by default evenly spaced over the range
        of the data with a margin, 500 of one feature and 100 of each of two, or whole numbers.
        Where clusters are narrow they are not even, but closer near clusters, and up to twice as
        many.
    probabilities : sequence of float
        Probabilities of the quantiles of one feature.
    num_samples : int
        Largest number of draws to use, evenly spaced over all chains.
    ci_prob : float, optional
        Probability of the equal-tailed intervals; by default that of ArviZ,
        ``rcParams["stats.ci_prob"]``.

    Returns
    -------
    Dataset
        Variables over ``statistic``, which is mean, sd, and the ends of the interval, such as
        ``eti89_lb``:

        ``density``, over ``grid``, and ``grid_bis`` for two features
            Of a feature of whole numbers, its probabilities.
        ``cdf``, over ``grid``
            Probability of values up to that of the grid.
        ``quantile``, over ``probability``
            NaN if it lies outside the range that was computed.

        The coordinates ``category`` and ``category_bis`` along the grids hold the names of
        categories, where the model knows them.  The attribute ``feature`` of a grid is the name of
        the feature, and ``is_discrete`` of the Dataset says whether any feature has whole numbers;
        ``given`` says what is conditioned on.

    Raises
    ------
    ValueError
        If the mixture has no such density, if the trace lacks the values or draws have more
        clusters than were recorded, if the model is required or `pm.set_data` has replaced what is
        read of it, or if an argument is out of range.

    Notes
    -----
    For Gaussian families the density of a draw is that of its occupied clusters, with weights
    scaled to sum to 1.  The remainder, of weight ``{name}_new_weight`` (about alpha / (alpha + N),
    more with a discount; of a new group of an `HDPMixture` about gamma / (gamma + T) with T tables,
    often a tenth or more), is omitted, because its density depends on the prior, which is not in
    the trace; `predict` includes it.  For other families the remainder is included.

    Distribution functions of Gaussian families and of whole numbers are exact.  Others are
    integrated by the midpoint rule over cells that are halved where it matters, from the smallest
    value less a thousand times the range of the data (from 0, if all are positive) to the largest
    plus as much; what lies outside is left out.

    Examples
    --------
    >>> import arviz as az
    >>> import numpy as np
    >>> import pymc_dpsplit as dps
    >>> drawn = {"x_n_clusters": np.full((1, 2), 1), "x_weights": np.full((1, 2, 1), 0.9)}
    >>> drawn |= {"x_mu": np.zeros((1, 2, 1)), "x_sigma": np.ones((1, 2, 1))}
    >>> observed = {"x": np.array([-1.0, 0.3, 0.8])}
    >>> idata = az.from_dict({"posterior": drawn, "observed_data": observed})
    >>> found = dps.density(idata, grid=[-1.0, 0.0, 1.0], probabilities=[0.5, 0.975])
    >>> found["density"].sel(statistic="mean").values.round(3)
    array([0.242, 0.399, 0.242])
    >>> round(float(found["quantile"].sel(statistic="mean", probability=0.975)), 2)
    1.96
    """
    name = choose_mixture(idata, var_name)
    check_integer("num_samples", num_samples, 1)
    idata = idata if group is None else trace_of_group(idata, name, group)
    ci_prob = azb.rcParams["stats.ci_prob"] if ci_prob is None else ci_prob
    if not 0 < ci_prob < 1:
        raise ValueError(f"ci_prob={ci_prob} must lie between 0 and 1.")
    model = Model.get_context(error_if_none=False) if model is None else model
    shown = plotted_values(idata, name, model, num_samples)
    at_given = given_values(given, features, shown.values)
    # The parameter of the spread of Gaussians, or the mixture of the model.
    source = gaussian_spread(idata, name, model) or _mixture_of(name, model)
    _refuse_other_features(source, shown.values)
    lawless = _without_law(source, at_given)
    keep = chosen_features(features, at_given, shown.values, lawless)
    values = values_of(shown, keep)
    names = [name] if keep is None else [feature_names(shown.values)[i] for i in keep]
    if isinstance(source, str):
        refuse_shapes(group_of(idata, "posterior"), name, shown.values.shape[1:], source)
        both = None if keep is None else (*keep, *at_given)
        draws = gaussian_draws(idata, name, both, num_samples, source)
        if at_given:
            draws = conditioned(draws, np.array(list(at_given.values())))
        is_whole = [False] * len(names)
        at: Density = partial(density_at, draws=draws)
        laws: list[FeatureLaw | None] = [_margin(draws, i) for i in range(len(names))]
    else:
        is_whole = [bool(source.component.discrete_features(source.n_features)[i])
                    for i in keep or (0,)]  # fmt: skip
        given_to = _conditioned(source, keep or (0,), at_given, names)
        at = _by_model(idata, source, model, keep or (0,), at_given, given_to, num_samples)
        laws = [None] * len(names)
        if grid is None or len(names) == 1:
            laws = _laws_by_model(idata, source, model, keep or (0,), at_given, values, num_samples)
    grids = chosen_grids(grid, values, is_whole, laws)
    found = _as_dataset(at, laws, grids, names, any(is_whole), _checked(probabilities), ci_prob)
    if at_given:
        known = feature_names(shown.values)
        found.attrs["given"] = ", ".join(f"{known[d]} = {x:g}" for d, x in at_given.items())
    return _with_categories(found, names_of_codes(name, model), keep or (0,))


def values_of(shown: PlottedValues, keep: tuple[int, ...] | None) -> np.ndarray:
    """Return the values (n, F) of the features `keep`, without rows that miss one of them."""
    values = shown.values.to_numpy().reshape(len(shown.values), -1)[:, keep or (0,)].astype(float)
    return values[np.isfinite(values).all(1)]


def _mixture_of(name: str, model: Model | None) -> MixtureVariables:
    mixture = None if model is None else declared_mixture(model, name)
    if mixture is None:
        raise ValueError(
            f"mixture {name} is not of Gaussians, as far as its trace tells, so that its density "
            "depends on the model; give model=, with which idata was sampled."
        )
    if mixture.component.has_covariates:
        raise ValueError(
            f"mixture {name} of {type(mixture.component).__name__} has no density of a single "
            "number, because that of a row depends on its covariates; use az.plot_ppc_dist on "
            "posterior predictive draws."
        )
    return mixture


def _refuse_other_features(source: str | MixtureVariables, values: xr.DataArray) -> None:
    """Refuse values of another number of features than the mixture of the model has."""
    n_features = 1 if values.ndim == 1 else values.shape[1]
    if not isinstance(source, str) and source.n_features != n_features:
        raise ValueError(
            f"{source.name} has {n_features} features in idata, but {source.n_features} in the "
            "model; give the model with which idata was sampled."
        )


def _without_law(source: str | MixtureVariables, given: Mapping[int, float]) -> set[int]:
    if isinstance(source, str):
        return set()
    return columns_without_law(source.component, tuple(given), source.n_features)


def _conditioned(
    mixture: MixtureVariables, keep: tuple[int, ...], given: Mapping[int, float], names: list[str]
) -> Conditioned:
    """Refuse features of a family that has a law of whole rows only, given totals or covariates."""
    found = conditioned_columns(mixture.component, keep, tuple(given), mixture.n_features)
    if isinstance(found, ComponentFamily):
        raise ValueError(
            f"mixture {mixture.name} has no density of {' and '.join(map(repr, names))}, because "
            f"{_remedy(found)}."
        )
    return found


def _remedy(family: ComponentFamily) -> str:
    kind = type(family).__name__
    if isinstance(family, LinearRegression):
        return (
            f"{kind} is a law of the response given its covariates; give the response as features= "
            "and all of its covariates by given=, or features of other families"
        )
    return (
        f"single columns of {kind} have no law of their own; give features= of other families, "
        f"and by given= all columns of {kind} or none"
    )


def _by_model(
    idata: xr.DataTree,
    mixture: MixtureVariables,
    model: Any,
    keep: tuple[int, ...],
    given: Mapping[int, float],
    given_to: Conditioned,
    most: int,
) -> Density:
    """Return the density of some features, given others, as a function of points (G, F)."""
    posterior = recorded_measures(idata, mixture)
    places = spread_places(posterior, most)

    def log_density(points: np.ndarray, features: tuple[int, ...]) -> np.ndarray:
        order = np.argsort(features)  # families take features in ascending order
        rows, margin = np.ascontiguousarray(points[:, order]), tuple(sorted(features))
        return log_density_by_model(posterior, mixture, model, rows, places, margin)

    alone, fixed = ([given[d] for d in of] for of in (given_to.alone, given_to.jointly))
    log_given: Any = log_density(np.array([alone]), given_to.alone) if alone else np.zeros(1)
    if not (log_given > _IMPOSSIBLE).all():
        raise ValueError("given holds values of density zero; give possible ones.")

    def found(points: np.ndarray) -> np.ndarray:
        rows = np.column_stack([points, np.tile(fixed, (len(points), 1))])
        joint = log_density(rows, (*keep, *given_to.jointly))
        density: np.ndarray = np.exp(joint - log_given)
        return density

    return found


def _margin(draws: GaussianDraws, i: int) -> GaussianLaw:
    """Return the law of one of the features."""
    one = slice(i, i + 1)
    return GaussianLaw(GaussianDraws(draws.weights, draws.mu[..., one], draws.cov[..., one, one]))


def _laws_by_model(
    idata: xr.DataTree,
    mixture: MixtureVariables,
    model: Any,
    keep: tuple[int, ...],
    given: Mapping[int, float],
    values: np.ndarray,
    most: int,
) -> list[FeatureLaw | None]:
    """Return the law of each feature by itself, None if it has none."""
    # Those of two features only choose a grid.
    most = most if len(keep) == 1 else min(most, _FEW_SAMPLES)
    n_features, found = mixture.n_features, list[FeatureLaw | None]()
    is_whole = mixture.component.discrete_features(n_features)
    for i, feature in enumerate(keep):
        given_to = conditioned_columns(mixture.component, (feature,), tuple(given), n_features)
        if isinstance(given_to, ComponentFamily):
            found.append(None)
        else:
            at = _by_model(idata, mixture, model, (feature,), given, given_to, most)
            found.append(_numerical(at, values[:, i], bool(is_whole[feature])))
    return found


def _numerical(at: Density, values: np.ndarray, is_whole: bool) -> FeatureLaw:
    """Return the law of a feature whose distribution function has no closed form."""
    low, high = values.min(), values.max()
    spread = (high - low) or 1.0
    if is_whole:
        return CountLaw(at, int(np.ceil(high + 3 * spread)) + _COUNTS_BEYOND)
    far = FAR_OUT * spread
    return NumberLaw(at, 0.0 if low > 0 else low - far, high + far, values)


def _checked(probabilities: Any) -> np.ndarray:
    given = np.atleast_1d(np.asarray(probabilities, dtype=float))
    if given.ndim != 1 or not ((given > 0) & (given < 1)).all():
        raise ValueError(
            f"probabilities={probabilities!r} must lie between 0 and 1; give those of quantiles."
        )
    return given


def _as_dataset(
    at: Density,
    laws: list[FeatureLaw | None],
    grids: list[np.ndarray],
    names: list[str],
    is_discrete: bool,
    probabilities: np.ndarray,
    ci_prob: float,
) -> xr.Dataset:
    summarise = partial(_summary, ci_prob=ci_prob)
    dims = ["grid", "grid_bis"][: len(grids)]
    points = np.stack(np.meshgrid(*grids, indexing="ij"), axis=-1).reshape(-1, len(grids))
    shape = (-1, *(len(of) for of in grids))
    found: dict[str, Any] = {"density": (dims, at(points).reshape(shape))}
    coords: dict[str, Any] = {
        dim: (dim, of, {"feature": name, "long_name": name})
        for dim, of, name in zip(dims, grids, names, strict=True)
    }
    law = laws[0]
    if len(grids) == 1 and law is not None:
        found["cdf"] = (dims, law.cdf(grids[0]))
        found["quantile"] = (["probability"], law.quantiles(probabilities))
        coords["probability"] = probabilities
    interval = f"eti{100 * ci_prob:.0f}"
    coords["statistic"] = ["mean", "sd", f"{interval}_lb", f"{interval}_ub"]
    variables = {
        key: ([*over, "statistic"], summarise(drawn)) for key, (over, drawn) in found.items()
    }
    attrs = {"is_discrete": int(is_discrete), "ci_prob": ci_prob}  # netCDF has no booleans
    return xr.Dataset(variables, coords=coords, attrs=attrs)


def _with_categories(
    found: xr.Dataset, names: Mapping[int, Sequence[str]], keep: tuple[int, ...]
) -> xr.Dataset:
    """Add the names of categories along the grids of features that have some."""
    dims = [dim for dim in ("grid", "grid_bis") if dim in found.dims]
    for dim, feature in zip(dims, keep, strict=True):
        if feature in names:
            known = dict(enumerate(names[feature]))
            along = [known.get(int(code), "") for code in found[dim].to_numpy()]
            found = found.assign_coords({dim.replace("grid", "category"): (dim, along)})
    return found


def _summary(drawn: np.ndarray, ci_prob: float) -> np.ndarray:
    """Return mean, standard deviation and interval (..., 4) over draws (S, ...)."""
    tail = (1 - ci_prob) / 2
    ends = np.quantile(drawn, [tail, 1 - tail], axis=0)
    return np.stack([drawn.mean(0), drawn.std(0), *ends], axis=-1)
