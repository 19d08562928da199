"""NUTS forms of the Gaussian families; docs/method.md, eq. (13.2)-(13.3).

Locations are in units of the prior expectation of the spread of a cluster, so that the jitter of
starting points suits data on any scale.  The parametrisation is centred, because given data the
mean of a cluster is nearly independent of its spread.
"""

from typing import Any, ClassVar, override

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.transforms import ordered as in_order
from pytensor.graph.basic import Constant

from pymc_dpsplit.finite.form import Clusters, NutsForm, Values
from pymc_dpsplit.finite.started import declare_started, starting_at

LOG_2PI = float(np.log(2.0 * np.pi))
_LEAST_GAP = 1e-3  # smallest gap between ordered initial locations


class IndependentNormal(NutsForm):
    """Mean and scale of each feature: gamma inverse variances, and means normal given them."""

    signature: ClassVar[tuple[str, ...]] = ("d", "d")

    @override
    def start(self, rows: np.ndarray, groups: np.ndarray, values: Values) -> dict[str, np.ndarray]:
        mu0, kappa0, a0, b0 = (np.atleast_1d(values[key]) for key in ("mu0", "kappa0", "a0", "b0"))
        size, mean = group_means(rows, groups, mu0)
        scatter = np.stack(
            [((rows[own] - m) ** 2).sum(0) for own, m in zip(groups, mean, strict=True)]
        )
        pull = size / (kappa0 + size)
        b = b0 + 0.5 * (scatter + kappa0 * pull * (mean - mu0) ** 2)
        spread = b0 * (a0 + 0.5 * size) / b
        return {"location": pull * (mean - mu0) / np.sqrt(b0 / a0), "spread": spread}

    @override
    def declare(self, name: str, values: Values, start: Values, ordered: bool) -> Clusters:
        mu0, kappa0, a0, b0 = (values[key] for key in ("mu0", "kappa0", "a0", "b0"))
        spread = declare_started(f"{name}_spread", pm.Gamma, a0, 1.0, start=start["spread"])
        location = declare_started(
            f"{name}_location",
            pm.Normal,
            0.0,
            _for_features(pt.sqrt(a0 / (kappa0 * spread)), start["location"].ndim),
            start=start["location"],
            transform=in_order if ordered else None,
        )
        mu, sigma = mu0 + pt.sqrt(b0 / a0) * location, pt.sqrt(b0 / spread)
        return Clusters((mu, sigma), {"mu": mu, "sigma": sigma})

    @override
    def log_density(self, rows: Any, *inputs: Any) -> Any:
        mu, sigma = inputs
        scaled = (rows[:, None] - mu) / sigma
        return (-0.5 * scaled**2).sum(-1) - (pt.log(sigma) + 0.5 * LOG_2PI).sum(-1)

    @override
    def draw(self, labels: Any, *inputs: Any) -> Any:
        mu, sigma = inputs
        return pm.Normal.dist(mu[labels], sigma[labels])


class ScalarNormal(IndependentNormal):
    """The case of scalars, whose clusters can be ordered by their means."""

    signature: ClassVar[tuple[str, ...]] = ("", "")
    is_ordered: ClassVar[bool] = True

    @override
    def start(self, rows: np.ndarray, groups: np.ndarray, values: Values) -> dict[str, np.ndarray]:
        found = super().start(rows, groups, values)
        return {"location": in_steps(found["location"][:, 0]), "spread": found["spread"][:, 0]}

    @override
    def log_density(self, rows: Any, *inputs: Any) -> Any:
        mu, sigma = inputs
        return -0.5 * (((rows[:, None] - mu) / sigma) ** 2 + LOG_2PI) - pt.log(sigma)


class FullNormal(NutsForm):
    """Whitening matrices B C^-1, psi0 = C C', with factors B of Bartlett (1933)."""

    signature: ClassVar[tuple[str, ...]] = ("d", "dd")

    @override
    def start(self, rows: np.ndarray, groups: np.ndarray, values: Values) -> dict[str, np.ndarray]:
        mu0, kappa0, nu0, psi0 = (
            np.asarray(values[key]) for key in ("mu0", "kappa0", "nu0", "psi0")
        )
        size, mean = group_means(rows, groups, mu0)
        root = np.linalg.cholesky(psi0)
        pull = size / (kappa0 + size)
        gap = mean - mu0
        scatter = np.stack(
            [(rows[own] - m).T @ (rows[own] - m) for own, m in zip(groups, mean, strict=True)]
        )
        scatter += (kappa0 * pull)[:, :, None] * gap[:, :, None] * gap[:, None, :]
        cov = (psi0 + scatter) / (nu0 + size)[:, :, None]
        factor = np.linalg.inv(np.linalg.cholesky(cov)) @ root
        location = np.linalg.solve(root, (pull * gap).T).T * np.sqrt(nu0)
        below = np.tril_indices(len(mu0), -1)
        diagonal = np.diagonal(factor, axis1=1, axis2=2)
        found = {"location": location, "pivots": diagonal**2}
        return found | ({"slopes": factor[:, *below]} if len(below[0]) else {})

    @override
    def declare(self, name: str, values: Values, start: Values, ordered: bool) -> Clusters:
        mu0, kappa0, nu0, psi0 = (values[key] for key in ("mu0", "kappa0", "nu0", "psi0"))
        n_clusters, d = start["pivots"].shape
        j = np.arange(d)
        degrees = nu0 - (d - 1.0 - j)
        pivots = declare_started(
            f"{name}_pivots", pm.Gamma, 0.5 * degrees, 0.5, start=start["pivots"]
        )
        factor: Any = pt.zeros((n_clusters, d, d))
        factor = factor[:, j, j].set(pt.sqrt(pivots))
        if d > 1:
            below = np.tril_indices(d, -1)
            slopes = declare_started(f"{name}_slopes", pm.Normal, 0.0, 1.0, start=start["slopes"])
            factor = factor[:, *below].set(slopes)
        location = pm.CustomDist(
            f"{name}_location",
            factor,
            kappa0 / nu0,
            dist=_draw_location,
            logp=_location_logp,
            signature="(d,d),()->(d)",
            shape=(n_clusters, d),
            support_point=starting_at(start["location"]),
        )
        root, unit = root_and_inverse(psi0)
        mu = mu0 + location @ root.T / pt.sqrt(nu0)
        whitening = (factor.reshape((n_clusters * d, d)) @ unit).reshape((n_clusters, d, d))
        scale = root @ _invert_lower(factor, d)
        return Clusters((mu, whitening), {"mu": mu, "cov": scale @ scale.transpose((0, 2, 1))})

    @override
    def log_density(self, rows: Any, *inputs: Any) -> Any:
        mu, whitening = inputs
        n_clusters, d = mu.shape[0], mu.shape[1]
        # One matrix product for all clusters, whose whitening matrices have d rows each.
        white = rows @ whitening.reshape((n_clusters * d, d)).T
        centre = (whitening * mu[:, None, :]).sum(2).reshape((n_clusters * d,))
        squared = ((white - centre) ** 2).reshape((rows.shape[0], n_clusters, d)).sum(2)
        log_det = pt.log(pt.diagonal(whitening, axis1=1, axis2=2)).sum(1)
        return log_det - 0.5 * (squared + d * LOG_2PI)

    @override
    def draw(self, labels: Any, *inputs: Any) -> Any:
        mu, whitening = inputs
        own = mu[labels]
        return own + _unwhiten(whitening[labels], pm.Normal.dist(pt.zeros_like(own)))


def in_steps(location: np.ndarray) -> np.ndarray:
    """Locations (K,) in order, each a little above the one before."""
    in_turn = np.sort(location)
    return in_turn[0] + np.cumsum(np.maximum(np.diff(in_turn, prepend=in_turn[0]), _LEAST_GAP))


def group_means(
    rows: np.ndarray, groups: np.ndarray, otherwise: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return size (K, 1) and mean (K, D) of each group, or `otherwise` for empty groups.

    Parameters
    ----------
    rows : ndarray of float64, shape (N, D)
    groups : ndarray of bool, shape (K, N)
        Members of each group.
    otherwise : ndarray of float64, shape (D,)
        Mean of empty groups.

    Returns
    -------
    size : ndarray of float64, shape (K, 1)
    mean : ndarray of float64, shape (K, D)
    """
    size = groups.sum(1)[:, None]
    return size, np.where(size > 0, groups @ rows / np.maximum(size, 1), otherwise)


def _for_features(scale: Any, ndim: int) -> Any:
    """Add the axis of features to a scale that all features of a cluster share."""
    return scale[..., None] if ndim > scale.ndim else scale


def _location_logp(value: Any, factor: Any, ratio: Any) -> Any:
    """Return the log density of a location whose product with `factor` has variance 1 / ratio."""
    white = (factor * value[..., None, :]).sum(-1)
    terms = pt.log(pt.diagonal(factor, axis1=-2, axis2=-1)) - 0.5 * (ratio * white**2 + LOG_2PI)
    return (terms + 0.5 * pt.log(ratio)).sum(-1)


def _draw_location(factor: Any, ratio: Any, _size: Any) -> Any:
    noise = pm.Normal.dist(pt.zeros(factor.shape[:-1]))
    return _unwhiten(factor, noise) / pt.sqrt(ratio)


def _unwhiten(factor: Any, noise: Any) -> Any:
    """Solve lower triangular systems (n, D, D) for vectors (n, D), given noise (n, D)."""
    return pt.linalg.solve_triangular(factor, noise[..., None], lower=True)[..., 0]


def root_and_inverse(psi0: Any) -> tuple[Any, Any]:
    """Return the lower Cholesky factor of a matrix, and the inverse of the factor.

    Parameters
    ----------
    psi0 : symbolic matrix (D, D)

    Returns
    -------
    root, inverse : symbolic matrix (D, D)
    """
    if isinstance(psi0, Constant):  # PyTensor compiles linear algebra slowly
        root = np.linalg.cholesky(psi0.data)
        return pt.constant(root), pt.constant(np.linalg.inv(root))
    root = pt.linalg.cholesky(psi0)
    return root, pt.linalg.solve_triangular(root, pt.eye(psi0.shape[0]), lower=True)


def _invert_lower(factor: Any, d: int) -> Any:
    """Invert lower triangular matrices (K, D, D) row by row, which compiles fast."""
    rows: list[Any] = []
    for i in range(d):
        rest = sum((factor[:, i, j, None] * rows[j] for j in range(i)), start=pt.zeros(d))
        rows.append((np.eye(d)[i] - rest) / factor[:, i, i, None])
    return pt.stack(rows, axis=1)
