"""Warning that clusters are so far apart that their sums of squares lose digits."""

from typing import TYPE_CHECKING, Any

import numpy as np
from pymc.model import Model
from pymc.stats.convergence import SamplerWarning, WarningType
from pytensor.tensor.variable import TensorConstant

from pymc_dpsplit.variables import MixtureVariables, find_mixtures

if TYPE_CHECKING:
    import xarray as xr

_EPSILON = float(np.finfo(np.float64).eps)
# Error of the log density of a cluster from which the law of the partition may differ visibly.
_MOST_ERROR = 0.01
# Squared distances in standard deviations below which no sample that fits into memory errs so much.
_NEAR = 1e4


def far_clusters(idata: "xr.DataTree", model: Model) -> list[SamplerWarning]:
    """Return a warning for each mixture of normal distributions whose clusters are too far apart.

    One centre is subtracted from all observations.  The sum of squares of n members that lie r
    standard deviations from it is rounded by n r^2 units in the last place, relative to a variance.

    Parameters
    ----------
    idata : DataTree
        The last draw of each chain is read.
    model : pymc.Model

    Returns
    -------
    list of SamplerWarning
    """
    warnings = []
    for name, mixture in find_mixtures(model).items():
        distances = _squared_distances(idata, mixture)
        if distances is None or not distances[0].max() > _NEAR:
            continue
        squared, weights = distances
        rows: Any = mixture.rv
        n_rows = int(rows.shape[0].eval())
        error = float((_EPSILON * n_rows * weights * squared).max())
        if error > _MOST_ERROR:
            rounded = float(f"{error:.1g}")
            message = (
                f"clusters of {name} lie up to {squared.max() ** 0.5:.0e} of their standard "
                "deviations from the centre of the data, so that sums of squares lose digits and "
                f"log densities err by about {rounded:g}; sample observations that are so far "
                "apart in separate models."
            )
            warnings.append(SamplerWarning(WarningType.BAD_PARAMS, message, "warn"))
    return warnings


def _squared_distances(
    idata: "xr.DataTree", mixture: MixtureVariables
) -> tuple[np.ndarray, np.ndarray] | None:
    """Squared Mahalanobis distances (n,) of clusters from their centre, and their weights (n,)."""
    name, last = mixture.name, idata["posterior"].to_dataset().isel(draw=-1)
    if any(f"{name}_{of}" not in last for of in ("n_clusters", "weights", "mu")):
        return None
    squared: list[np.ndarray] = []
    weights: list[np.ndarray] = []
    for chain in range(last.sizes["chain"]):
        one = last.isel(chain=chain)
        own = one[f"{name}_weights"].to_numpy()[: int(one[f"{name}_n_clusters"])]
        mu = one[f"{name}_mu"].to_numpy()[: len(own)].reshape(len(own), -1)
        spread = _spread(one, mixture)
        if spread is None:
            return None
        away = mu - own @ mu / own.sum()
        covariances = _covariances(spread, *mu.shape)
        scaled = np.linalg.solve(covariances, away[..., None])[..., 0]
        squared.append((away * scaled).sum(1))
        weights.append(own)
    return np.concatenate(squared), np.concatenate(weights)


def _spread(one: "xr.Dataset", mixture: MixtureVariables) -> tuple[str, np.ndarray] | None:
    """Standard deviations or covariances of the clusters of one draw, or of all clusters."""
    for key in ("sigma", "cov"):
        if f"{mixture.name}_{key}" in one:
            return key, one[f"{mixture.name}_{key}"].to_numpy()
        known: Any = mixture.hyperparameters.get(key)
        if isinstance(known, TensorConstant):
            return key, np.asarray(known.data)[None]
    return None


def _covariances(spread: tuple[str, np.ndarray], n: int, d: int) -> np.ndarray:
    """Return the covariances (n, d, d) of n clusters."""
    key, values = spread
    values = values[:n]
    if key == "sigma":
        values = values.reshape(len(values), -1, 1) ** 2 * np.eye(d)
    return np.broadcast_to(values, (n, d, d))
