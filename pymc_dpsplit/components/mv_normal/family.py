"""Gaussian clusters with a full covariance and a normal-inverse-Wishart prior.

Sigma ~ InvWishart(nu0, psi0) and mu | Sigma ~ N(mu0, Sigma / kappa0); see Gelman et al. (2013),
section 3.6, and docs/method.md, eq. (7.4)-(7.7).

Layout.  stats: n, sums (D), lower triangle of the sum of outer products, by rows.  params: log
normaliser, c = W mu (D), whitening matrix W (D x D, lower triangular), so that W x - c is
standard normal.
`predictive` describes the predictive cache.
"""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pymc_dpsplit.components import base
from pymc_dpsplit.components.arguments import real_scalar, rows_of
from pymc_dpsplit.components.component_family import ComponentFamily, Values
from pymc_dpsplit.components.conditional_rows import complete_rows
from pymc_dpsplit.components.doubtful_rows import warn_of_rows
from pymc_dpsplit.components.hyperparameters import (
    COVARIANCE,
    POSITIVE_NUMBER,
    REAL_PER_COLUMN,
    Requirement,
    Requirements,
)
from pymc_dpsplit.components.parameter_laws import draw_gamma
from pymc_dpsplit.components.prior_choice.covariance import choose_covariance
from pymc_dpsplit.components.prior_choice.partitions import share_given
from pymc_dpsplit.data.blocks import moments_of
from pymc_dpsplit.kernels.linalg import invert_lower, log_diagonal_sum
from pymc_dpsplit.kernels.normal_wishart import (
    draw_whitening,
    fill_moments,
    fill_posterior,
    overrelax_whitening,
    set_density,
)
from pymc_dpsplit.kernels.overrelaxation import overrelax_normal
from pymc_dpsplit.kernels.quadratic import fill_log_normal
from pymc_dpsplit.kernels.scatter import add_outer, add_outer_groups
from pymc_dpsplit.kernels.special import log_multigamma
from pymc_dpsplit.kernels.tiles import load_dense_tile
from pymc_dpsplit.kernels.views import part_of, square_of

_LOG_2PI = math.log(2.0 * math.pi)
_LOG_PI = math.log(math.pi)
# Smallest number of features for which bounds save time, see docs/decisions/0016-pruning.md.
_LEAST_BOUNDED = 16


class MvNormalPrior(NamedTuple):
    """Hyperparameters for kernels; `mu0` is relative to the shift of the data.

    `floor` (D,) contains the squared pivots of the Cholesky factor of `psi0`, and `log_norm` is the
    part of the log marginal likelihood that depends on the prior alone.  `has_bounds` is True, or
    None if bounds do not save time, in which case kernels are compiled without them.
    """

    shift: np.ndarray
    mu0: np.ndarray
    kappa0: float
    nu0: float
    psi0: np.ndarray
    floor: np.ndarray
    log_norm: float
    has_bounds: bool | None


def _degrees_of_freedom(name: str, value: Any, n_features: int) -> np.ndarray:
    nu0 = real_scalar(name, value)
    if not nu0 > n_features - 1:
        raise ValueError(
            f"{name}={nu0:g} is too small for {n_features} features; give more than D - 1 = "
            f"{n_features - 1}, for instance D + 2 = {n_features + 2}."
        )
    return np.asarray(nu0)


class MvNormal(ComponentFamily):
    """Normal-inverse-Wishart clusters of vectors.

    ``Sigma ~ InvWishart(nu0, psi0)``, with mean ``psi0 / (nu0 - D - 1)``,
    ``mu | Sigma ~ N(mu0, Sigma / kappa0)``, and observations of the cluster are
    ``N(mu, Sigma)`` [1]_.

    Parameters
    ----------
    mu0 : float or array of shape (D,)
        Mean of the cluster means, in the units of the data.
    kappa0 : float
        Prior precision of the mean, in units of observations; positive.
    nu0 : float
        Degrees of freedom; larger than D - 1.
    psi0 : array of shape (D, D)
        Scale matrix, symmetric positive definite, in squared units of the data.

    Notes
    -----
    In the trace of a mixture ``x`` are ``x_mu`` (K, D), the means, and ``x_cov`` (K, D, D), the
    covariances.  `from_data` chooses ``mu0``, ``kappa0``, ``nu0`` and ``psi0`` by the data.

    References
    ----------
    .. [1] Gelman et al. (2013), Bayesian Data Analysis, 3rd edition, section 3.6.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc_dpsplit as dps
    >>> component = dps.MvNormal(mu0=[0.0, 0.0], kappa0=0.1, nu0=4.0, psi0=np.eye(2))
    >>> component.hyperparameters["nu0"]
    4.0
    """

    requirements: ClassVar[Requirements] = {
        "mu0": REAL_PER_COLUMN,
        "kappa0": POSITIVE_NUMBER,
        "nu0": Requirement(0, _degrees_of_freedom),
        "psi0": COVARIANCE,
    }
    row_ndim: ClassVar[int] = 1
    parameters: ClassVar[dict[str, int]] = {"mu": 1, "cov": 2}
    graph_ndims: ClassVar[dict[str, int]] = {"mu": 1, "precision": 2, "log_det": 0}

    @classmethod
    def from_data(
        cls, observed: Any, *, within: float | None = None, nu0: float | None = None
    ) -> "MvNormal":
        """Return hyperparameters chosen by the data, which decide how many clusters there are.

        ``mu0`` is the mean of the data.  ``psi0 / (nu0 - D - 1)``, the prior mean of a cluster's
        covariance, has a share of the variance of each column of the data, with correlations of
        the same sign and smaller.  The shares, the correlations, ``nu0`` and ``kappa0`` are those
        under which one cluster, or another partition that is found quickly, has the highest log
        joint density.  Without evidence for others they are weakly informative: shares of 0.1,
        ``nu0 = D + 2``, ``kappa0 = 0.1``, and no correlations.

        Parameters
        ----------
        observed : array-like of shape (N, D)
            Finite numbers; NaN or masked entries are ignored.
        within : float, optional
            Guess of the share of the variances that is left within clusters, above 0 and at most 1;
            that of all columns.
        nu0 : float, optional
            Degrees of freedom; larger than D + 1.  The larger, the more alike are the covariances
            of clusters.

        Returns
        -------
        MvNormal

        Raises
        ------
        ValueError
            If the data are empty, not numeric or infinite, all entries of a column are missing, or
            an argument is out of range.

        Warns
        -----
        UserWarning
            If a column does not vary, or there are more columns than rows.

        Notes
        -----
        The choice is deterministic and looks at no more than 2000 rows, see
        docs/method.md, eq. (7.42).

        Examples
        --------
        >>> import pymc_dpsplit as dps
        >>> dps.MvNormal.from_data([[0.0, 1.0], [2.0, 3.0]]).hyperparameters["nu0"]
        4.0
        >>> dps.MvNormal.from_data([[0.0, 1.0], [2.0, 3.0]], within=0.5).hyperparameters["psi0"]
        array([[0.5, 0. ],
               [0. , 0.5]])
        """
        rows = rows_of(observed, cls.row_ndim, may_miss=True)
        warn_of_rows(rows)
        mu0, variance = moments_of(rows)
        if nu0 is not None:
            nu0 = real_scalar("nu0", nu0)
            if not nu0 > len(mu0) + 1:
                raise ValueError(
                    f"nu0={nu0:g} is too small for a prior mean of the covariance of {len(mu0)} "
                    f"features; give more than D + 1 = {len(mu0) + 1}."
                )
        chosen = choose_covariance(rows, mu0, variance, share_given(within), nu0)
        return cls(mu0=mu0, kappa0=chosen.kappa0, nu0=chosen.nu0, psi0=chosen.psi0)

    def prior(self, values: Mapping[str, np.ndarray], shift: np.ndarray) -> MvNormalPrior:
        kappa0, nu0 = float(values["kappa0"]), float(values["nu0"])
        psi0 = np.ascontiguousarray(values["psi0"], dtype=np.float64)
        n_features = psi0.shape[0]
        pivots = np.diag(np.linalg.cholesky(psi0))
        log_norm = (
            nu0 * np.log(pivots).sum()
            + 0.5 * n_features * math.log(kappa0)
            - float(log_multigamma(0.5 * nu0, n_features))
        )
        mu0 = values["mu0"] - shift
        has_bounds = True if n_features >= _LEAST_BOUNDED else None
        return MvNormalPrior(shift, mu0, kappa0, nu0, psi0, pivots**2, log_norm, has_bounds)

    def unpack(self, params: np.ndarray, shift: np.ndarray) -> dict[str, np.ndarray]:
        n_clusters, d = params.shape[0], shift.shape[0]
        mu, cov = np.empty((n_clusters, d)), np.empty((n_clusters, d, d))
        fill_moments(np.ascontiguousarray(params), shift, mu, cov)
        return {"mu": mu, "cov": cov}

    def pack(self, parameters: Mapping[str, np.ndarray], shift: np.ndarray) -> np.ndarray:
        d = shift.shape[0]
        whitening = np.linalg.inv(np.linalg.cholesky(parameters["cov"]))
        params = np.empty((whitening.shape[0], 1 + d + d * d))
        diagonal = np.diagonal(whitening, axis1=1, axis2=2)
        params[:, 0] = np.log(diagonal).sum(1) - 0.5 * d * _LOG_2PI
        params[:, 1 : 1 + d] = np.einsum("kij,kj->ki", whitening, parameters["mu"] - shift)
        params[:, 1 + d :].reshape(-1, d, d)[:] = np.tril(whitening)
        return params

    def central(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {"mu": values["mu0"], "cov": values["psi0"] / values["nu0"]}

    def graph_parameters(self, parameters: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the mean, the inverse of the covariance and its log determinant."""
        whitening = np.linalg.inv(np.linalg.cholesky(parameters["cov"]))
        log_det = -2.0 * np.log(np.diagonal(whitening, axis1=1, axis2=2)).sum(1)
        precision = whitening.transpose(0, 2, 1) @ whitening
        return {"mu": parameters["mu"], "precision": precision, "log_det": log_det}

    def log_base(self, graph_parameters: Values, values: Values, pt: Any) -> Any:
        """Return the log density of mu and the covariance, eq. (7.39)."""
        precision, log_det = graph_parameters["precision"], graph_parameters["log_det"]
        mu0, kappa0, nu0, psi0 = (values[name] for name in ("mu0", "kappa0", "nu0", "psi0"))
        d = precision.shape[1]
        squared = _squared_norm(graph_parameters["mu"] - mu0, precision)
        log_mu = 0.5 * (d * (pt.log(kappa0) - _LOG_2PI) - log_det - kappa0 * squared)
        j = pt.arange(d)
        log_multigamma_nu = 0.25 * d * (d - 1) * _LOG_PI + pt.gammaln(0.5 * (nu0 - j)).sum()
        log_cov = (
            0.5 * nu0 * pt.linalg.slogdet(psi0)[1]
            - 0.5 * nu0 * d * math.log(2.0)
            - log_multigamma_nu
            - 0.5 * (nu0 + d + 1.0) * log_det
            - 0.5 * (psi0 * precision).sum(axis=(1, 2))
        )
        return log_mu + log_cov

    def log_density(self, rows: Any, graph_parameters: Values, pt: Any) -> Any:
        squared = _squared_norm(rows - graph_parameters["mu"], graph_parameters["precision"])
        return -0.5 * (rows.shape[1] * _LOG_2PI + graph_parameters["log_det"] + squared)

    def restrict(
        self, values: Mapping[str, np.ndarray], features: np.ndarray
    ) -> dict[str, np.ndarray]:
        taken = super().restrict(values, features)
        n_left_out = len(values["mu0"]) - len(features)
        return {**taken, "nu0": taken["nu0"] - n_left_out}

    def draw_base(
        self, rng: np.random.Generator, values: Mapping[str, np.ndarray], size: int
    ) -> dict[str, np.ndarray]:
        psi0, nu0, d = values["psi0"], float(values["nu0"]), values["psi0"].shape[0]
        # Bartlett (1933) in reversed order: B'B ~ Wishart(nu0, I) with B lower triangular.  With
        # psi0 = C C' the inverse of B C^-1 is then a root of the covariance.
        bartlett = np.tril(rng.standard_normal((size, d, d)), -1)
        j = np.arange(d)
        bartlett[:, j, j] = np.sqrt(2.0 * draw_gamma(rng, 0.5 * (nu0 - (d - 1 - j)), (size, d)))
        root = np.linalg.cholesky(psi0) @ np.linalg.inv(bartlett)
        noise = rng.standard_normal((size, d, 1)) / math.sqrt(values["kappa0"])
        return {
            "mu": values["mu0"] + (root @ noise)[:, :, 0],
            "cov": root @ root.transpose(0, 2, 1),
        }

    def draw_rows(
        self,
        rng: np.random.Generator,
        parameters: Mapping[str, np.ndarray],
        labels: np.ndarray,
    ) -> np.ndarray:
        mu = parameters["mu"]
        rows = np.empty((labels.shape[0], mu.shape[1]))
        noise = rng.standard_normal(rows.shape)
        for k in np.unique(labels):
            root = np.linalg.cholesky(parameters["cov"][k])
            rows[labels == k] = mu[k] + noise[labels == k] @ root.T
        return rows

    def draw_missing(
        self,
        rng: np.random.Generator,
        rows: np.ndarray,
        is_missing: np.ndarray,
        parameters: Mapping[str, np.ndarray],
        labels: np.ndarray,
    ) -> np.ndarray:
        """Draw from the conditional normal distribution, eq. (7.41)."""
        return complete_rows(rng, rows, is_missing, parameters["mu"], parameters["cov"], labels)


def _squared_norm(gap: Any, precision: Any) -> Any:
    """Return the quadratic forms (n,) of vectors (n, D) and matrices (n, D, D), elementwise."""
    return ((precision * gap[:, None, :]).sum(axis=2) * gap).sum(axis=1)


@base.implements(base.stats_size, MvNormalPrior)
def _stats_size(prior):
    n_features = prior.mu0.shape[0]
    return 1 + n_features + n_features * (n_features + 1) // 2


@base.implements(base.params_size, MvNormalPrior)
def _params_size(prior):
    n_features = prior.mu0.shape[0]
    return 1 + n_features + n_features * n_features


@base.implements(base.tile_size, MvNormalPrior)
def _tile_size(prior):
    return prior.mu0.shape[0]


@base.implements(base.load_tile, MvNormalPrior)
def _load_tile(prior, data, rows, tile):
    load_dense_tile(data, prior.shift, rows, tile)


@base.implements(base.fill_log_density, MvNormalPrior, inline=True)
def _fill_log_density(prior, tile, params, out, scratch):
    d = prior.mu0.shape[0]
    centre, whitening = part_of(params, 1, d), square_of(params, 1 + d, d)
    fill_log_normal(tile, whitening, centre, params[0], out, scratch)


@base.implements(base.add_row, MvNormalPrior, uncounted=True)
def _add_row(prior, data, i, stats):
    add_outer(prior.shift, data, i, stats)


@base.implements(base.add_groups, MvNormalPrior)
def _add_groups(prior, data, members, bounds, stats):
    add_outer_groups(prior.shift, data, members, bounds, stats)


@base.implements(base.log_marginal, MvNormalPrior)
def _log_marginal(prior, stats):
    """Return the log marginal likelihood, eq. (7.7)."""
    n_features = prior.mu0.shape[0]
    mean = np.empty(n_features)
    factor = np.empty((n_features, n_features))
    kappa_n, nu_n = fill_posterior(prior, stats, mean, factor)
    return (
        prior.log_norm
        - 0.5 * stats[0] * n_features * _LOG_PI
        + log_multigamma(0.5 * nu_n, n_features)
        - nu_n * log_diagonal_sum(factor)
        - 0.5 * n_features * math.log(kappa_n)
    )


@base.implements(base.draw_parameters, MvNormalPrior)
def _draw_parameters(prior, stats, rng, params):
    n_features = prior.mu0.shape[0]
    mean = np.empty(n_features)
    factor = np.empty((n_features, n_features))
    kappa_n, nu_n = fill_posterior(prior, stats, mean, factor)
    inverse = np.empty((n_features, n_features))
    invert_lower(factor, inverse)
    whitening = factor
    log_lost = draw_whitening(inverse, nu_n, rng, whitening)
    set_density(whitening, mean, params)
    params[0] += log_lost
    for a in range(n_features):
        params[1 + a] += rng.standard_normal() / math.sqrt(kappa_n)


@base.implements(base.overrelax_parameters, MvNormalPrior)
def _overrelax_parameters(prior, stats, rng, params):
    n_features = prior.mu0.shape[0]
    mean = np.empty(n_features)
    factor = np.empty((n_features, n_features))
    kappa_n, nu_n = fill_posterior(prior, stats, mean, factor)
    inverse = np.empty((n_features, n_features))
    invert_lower(factor, inverse)
    for a in range(n_features):
        factor[a, a + 1 :] = 0.0
    whitening = square_of(params, 1 + n_features, n_features).copy()
    gap = np.empty(n_features)
    for a in range(n_features):
        gap[a] = params[1 + a]
        for b in range(a + 1):
            gap[a] -= whitening[a, b] * mean[b]
    overrelax_whitening(factor, inverse, nu_n, rng, whitening)
    set_density(whitening, mean, params)
    root = math.sqrt(kappa_n)
    for a in range(n_features):
        params[1 + a] += overrelax_normal(rng, gap[a] * root) / root


@base.implements(base.mean_parameters, MvNormalPrior)
def _mean_parameters(prior, stats, params):
    """Use the posterior means of mu and of the precision, nu_n psi_n^-1, finite for every nu_n."""
    n_features = prior.mu0.shape[0]
    mean = np.empty(n_features)
    factor = np.empty((n_features, n_features))
    _, nu_n = fill_posterior(prior, stats, mean, factor)
    whitening = np.empty((n_features, n_features))
    invert_lower(factor, whitening)
    root = math.sqrt(nu_n)
    for a in range(n_features):
        for b in range(a + 1):
            whitening[a, b] *= root
    set_density(whitening, mean, params)
