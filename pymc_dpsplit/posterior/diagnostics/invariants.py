"""Label-invariant quantities of a run, and their convergence statistics."""

from typing import Any

import arviz_stats
import numpy as np
import xarray as xr

# arviz_stats has no type annotations.
azs: Any = arviz_stats

_MOST_ELEMENTS = 1000
# R-hat and ESS split each chain in two and need two draws in each half.
LEAST_DRAWS = 4


def invariant_quantities(
    posterior: xr.Dataset, stats: xr.Dataset, name: str, mixtures: list[str]
) -> xr.Dataset:
    """Collect label-invariant quantities: all scalars, and one element of each array.

    The element with the smallest bulk ESS represents an array, such as a latent mixture, missing
    entries or regression coefficients.

    Parameters
    ----------
    posterior, stats : Dataset
        The groups posterior and sample_stats of a trace.
    name : str
        Name of the mixture.
    mixtures : list of str
        Names of all mixtures of the trace; quantities of other mixtures are excluded.

    Returns
    -------
    Dataset
        Variables of float64, each (chain, draw).

    Raises
    ------
    ValueError
        If a quantity that every mixture records is missing.
    """
    foreign = {f"{other}_{kind}" for other in mixtures for kind in ("n_clusters", "new_weight")}
    own = [f"{name}_n_clusters", f"{name}_new_weight"]
    return collect_quantities(
        posterior, stats, own, [f"{name}_entropy", f"{name}_log_joint"], foreign
    )


def collect_quantities(
    posterior: xr.Dataset,
    stats: xr.Dataset,
    own: list[str],
    own_stats: list[str],
    foreign: set[str],
) -> xr.Dataset:
    """Collect all scalars of the posterior, one element of each array, and some statistics.

    Parameters
    ----------
    posterior, stats : Dataset
    own, own_stats : list of str
        What the two must hold.
    foreign : set of str
        Other scalars of the posterior, which are excluded unless they are among `own`.

    Returns
    -------
    Dataset
        Variables of float64, each (chain, draw).

    Raises
    ------
    ValueError
        If one of `own` or `own_stats` is missing.
    """
    for group, members, wanted in (
        ("posterior", posterior, own),
        ("sample_stats", stats, own_stats),
    ):
        for variable in wanted:
            if variable not in members:
                raise ValueError(
                    f"the group {group} of idata has no variable {variable}; "
                    "give the trace as pm.sample returned it."
                )
    scalars = [
        str(key)
        for key, values in posterior.data_vars.items()
        if set(values.dims) == {"chain", "draw"} and key not in foreign
    ]
    picked = {key: posterior[key] for key in [*scalars, *own]}
    picked |= _worst_elements(posterior)
    picked |= {key: stats[key] for key in own_stats}
    return xr.Dataset(picked).transpose("chain", "draw").astype(float)


def _worst_elements(posterior: xr.Dataset) -> dict[str, xr.DataArray]:
    """Find the element that mixes worst in each array of floats without a cluster dimension.

    It skips arrays of more than 1000 elements, because each ESS takes about a millisecond.
    """
    found = {}
    of_weights = [
        of.dims for key, of in posterior.data_vars.items() if f"{key}".endswith("_weights")
    ]
    clusters = {dim for dims in of_weights for dim in dims}
    for name, values in posterior.data_vars.items():
        dims = [dim for dim in values.dims if dim not in ("chain", "draw")]
        is_numbered = any(str(dim).endswith("_cluster") or dim in clusters for dim in dims)
        if not dims or is_numbered or values.dtype.kind != "f" or values.size == 0:
            continue
        flat = values.stack(element=dims).transpose("chain", "draw", "element")
        varies = (flat.max(("chain", "draw")) > flat.min(("chain", "draw"))).to_numpy()
        if flat.sizes["element"] > _MOST_ELEMENTS or not varies.any():
            continue
        candidates = np.flatnonzero(varies)
        sizes = [
            float(azs.ess(flat.isel(element=[j]).drop_vars(["element", *dims])).squeeze())
            if flat.sizes["draw"] >= LEAST_DRAWS
            else 0.0
            for j in candidates
        ]
        worst = int(candidates[np.argmin(sizes)])
        labels = [str(flat.coords[dim].to_numpy()[worst]) for dim in dims]
        found[f"{name}[{', '.join(labels)}]"] = flat.isel(element=worst, drop=True)
    return found


def tabulate(draws: xr.Dataset) -> xr.Dataset:
    """Compute the statistics of every quantity, as described in `Diagnosis.table`.

    Parameters
    ----------
    draws : Dataset
        Each variable (chain, draw).

    Returns
    -------
    Dataset
        Over ``quantity`` and ``chain``; NaN where a statistic is not defined.
    """
    values = np.stack([of.values for of in draws.data_vars.values()])
    is_constant = (values == values[:, :1, :1]).all((1, 2))
    # R-hat and ESS are meaningless for a constant, and undefined if a draw is not finite.
    is_judged = ~is_constant & np.isfinite(values).all((1, 2))
    with np.errstate(invalid="ignore"):
        columns = {"mean": values.mean((1, 2)), "sd": values.std((1, 2))}
        chain_mean = values.mean(2)
    columns |= {name: np.full(len(values), np.nan) for name in ("r_hat", "ess_bulk", "ess_tail")}
    chain_error = np.full(chain_mean.shape, np.nan)
    if is_judged.any() and values.shape[2] >= LEAST_DRAWS:
        judged = xr.DataArray(values[is_judged], dims=("quantity", "chain", "draw"))
        for name, statistic in _statistics(judged).items():
            columns[name][is_judged] = statistic
        chain_error[is_judged] = _chain_errors(judged)
    return xr.Dataset(
        {
            **{name: ("quantity", column) for name, column in columns.items()},
            "is_constant": ("quantity", is_constant),
            "is_judged": ("quantity", is_judged),
            "chain_mean": (("quantity", "chain"), chain_mean),
            "chain_error": (("quantity", "chain"), chain_error),
        },
        coords={"quantity": list(draws.data_vars), "chain": draws["chain"].values},
    )


def _statistics(judged: xr.DataArray) -> dict[str, np.ndarray]:
    """Return ESS, and with several chains R-hat, of `judged` (quantity, chain, draw)."""
    # ArviZ divides by the variance of deviations from the median, which is zero for a quantity with
    # two equally frequent values.
    with np.errstate(divide="ignore", invalid="ignore"):
        found = {f"ess_{of}": azs.ess(judged, method=of).values for of in ("bulk", "tail")}
        if judged.sizes["chain"] > 1:
            found["r_hat"] = azs.rhat(judged).values
    return found


def _chain_errors(judged: xr.DataArray) -> np.ndarray:
    """Return the standard errors (quantity, chain) of chain means, from the ESS of each chain."""
    each = [judged.isel(chain=[chain]) for chain in range(judged.sizes["chain"])]
    return np.stack(
        [one.values.std((1, 2)) / np.sqrt(azs.ess(one, method="mean")) for one in each], 1
    )


def largest_disagreement(table: xr.Dataset) -> tuple[str, int, float]:
    """Find the chain whose mean is furthest from that of the others, in standard errors.

    Parameters
    ----------
    table : Dataset
        From `tabulate`, with at least two chains.

    Returns
    -------
    quantity : str
    chain : int or str
    distance : float
        Infinite if the means differ and both standard errors are zero.
    """
    means, errors = table["chain_mean"].values, np.nan_to_num(table["chain_error"].values)
    n_others = means.shape[1] - 1
    gap = np.abs(means - (means.sum(1, keepdims=True) - means) / n_others)
    variance = errors**2
    variance += (variance.sum(1, keepdims=True) - errors**2) / n_others**2
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.where(gap > 0, gap / np.sqrt(variance), 0.0)
    quantity, chain = np.unravel_index(np.argmax(distance), distance.shape)
    return (
        str(table["quantity"].values[quantity]),
        table["chain"].values.tolist()[chain],
        float(distance[quantity, chain]),
    )
