"""Workloads of the mixing benchmarks: two real data sets, and mixtures drawn from a fixed seed.

W2 is ten Gaussians in two dimensions, overlapping: weights Dirichlet(5, ..., 5), centres
N(0, 4.5^2 I), covariances inverse Wishart with 6 degrees of freedom and mean I; "W2_1e4" has 1e4
rows.  W3 is twenty in eight dimensions, nearly separate: centres N(0, 1.6^2 I), 12 degrees of
freedom, 1e4 rows or, as "W3_1e3", fewer.  One generator draws the mixture and 10,000 test rows,
another, seeded by the mixture's seed and the number of rows, the rows themselves, so that workloads
of all sizes share mixture and test rows.  The prior is the same everywhere but for `psi0`:
alpha = 1, kappa0 = 0.1, nu0 = D + 2, and mu0 the mean of the rows.

Harder are: "student_t", 2,000 scalars of three Student-t clusters with four degrees of freedom, to
which normal clusters are fitted; "overlapping", 5,000 rows of six Gaussians in four dimensions,
centres N(0, 1.2^2 I), 8 degrees of freedom; "forty", 20,000 rows of forty spheres in sixteen
dimensions, centres N(0, 2^2 I); and "gvhd", flow cytometry of 9,083 cells, standardised, where
`DPSPLIT_DATA` names its folder, or a file in it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

import pymc_dpsplit as dps
from benchmarks.data_folder import path_of, why_not
from pymc_dpsplit.demo import DATA_SETS

_N_TEST = 10_000
GVHD = "gvhd_flow.npz"

Mixture = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class Workload:
    """Rows with their prior.

    Attributes
    ----------
    rows : ndarray, shape (N, D)
    psi0 : ndarray, shape (D, D)
        Scale matrix of the inverse Wishart, and its mean.
    mu0 : ndarray, shape (D,)
    points : ndarray, shape (3, D)
        Where the predictive density is followed.
    labels : ndarray of int, shape (N,), or None
        The truth, if there is one.
    test : ndarray, shape (M, D)
        Further rows; M is 0 for real data.
    truth : tuple of arrays, or None
        Weights (K,), means (K, D) and covariances (K, D, D) the rows were drawn from.
    """

    rows: np.ndarray
    psi0: np.ndarray
    mu0: np.ndarray
    points: np.ndarray
    labels: np.ndarray | None
    test: np.ndarray
    truth: Mixture | None
    kappa0: float = 0.1

    @property
    def nu0(self) -> float:
        """Degrees of freedom."""
        return self.rows.shape[1] + 2.0

    @property
    def observed(self) -> np.ndarray:
        """The rows as a user gives them: scalars as a vector."""
        return self.rows[:, 0] if self.rows.shape[1] == 1 else self.rows

    @property
    def component(self) -> Any:
        """The family with this prior; for scalars the inverse gamma that it then is."""
        if self.rows.shape[1] == 1:
            b0 = 0.5 * float(self.psi0[0, 0])
            return dps.Normal(float(self.mu0[0]), self.kappa0, 0.5 * self.nu0, b0)
        return dps.MvNormal(self.mu0, self.kappa0, self.nu0, self.psi0)


def load(name: str, seed: int | None = None) -> Workload:
    """The workload of this name: galaxies, W2_1e3 and the like, see above.

    Parameters
    ----------
    name : str
    seed : int, optional
        Of another mixture of the same kind, and other rows; real data are the same for each.

    Raises
    ------
    ValueError
        If there is none.
    FileNotFoundError
        If it is "gvhd" and its file is not there.
    """
    if name == "galaxies":
        rows = np.sort(DATA_SETS[name].load()[0])[:, None]
        return _real(rows, np.eye(1), np.array([[10.0], [20.0], [26.0]]), rows.mean(0))
    if name == "faithful":
        rows, _ = DATA_SETS[name].load()
        rows = (rows - rows.mean(0)) / rows.std(0)
        points = np.array([[-1.3, -1.2], [0.7, 0.7], [0.0, 0.0]])
        return _real(rows, 0.1 * np.eye(2), points, np.zeros(2))
    if name.startswith("W2_"):
        n_obs = int(float(name[3:]))
        return _synthetic(2 if seed is None else seed, n_obs, 10, 2, spread=4.5, nu=6.0)
    if name == "W3" or name.startswith("W3_"):
        n_obs = int(float(name[3:] or 1e4))
        return _synthetic(3 if seed is None else seed, n_obs, 20, 8, spread=1.6, nu=12.0)
    if name == "overlapping":
        return _synthetic(4 if seed is None else seed, 5000, 6, 4, spread=1.2, nu=8.0)
    if name == "student_t":
        return _student_t(np.random.default_rng(5 if seed is None else seed))
    if name == "forty":
        rows, labels, centres = spheres(20_000, 16, 40, 2.0, 6 if seed is None else seed)
        points = np.stack([centres[0], 0.5 * (centres[1] + centres[2]), centres[3]])
        return Workload(rows, np.eye(16), rows.mean(0), points, labels, rows[:0], None)
    if name == "gvhd":
        return _gvhd()
    raise ValueError(f"there is no workload {name!r}.")


def _real(rows: np.ndarray, psi0: np.ndarray, points: np.ndarray, mu0: np.ndarray) -> Workload:
    return Workload(rows, psi0, mu0, points, None, rows[:0], None)


def _gvhd() -> Workload:
    """Cells of the flow cytometry data, of which three are the points."""
    path = path_of(GVHD)
    if path is None:
        raise FileNotFoundError(why_not(GVHD))
    with np.load(path) as file:
        rows = file["X_pos"].astype(float)
    rows = (rows - rows.mean(0)) / rows.std(0)
    return _real(rows, 0.1 * np.eye(4), rows[[1000, 4000, 8000]], np.zeros(4))


def _student_t(rng: np.random.Generator) -> Workload:
    labels = rng.choice(3, 2000, p=[0.5, 0.3, 0.2])
    rows = np.array([-5.0, 0.0, 6.0])[labels] + rng.standard_t(4.0, 2000)
    points = np.array([[-5.0], [3.0], [10.0]])
    rows = rows[:, None]
    return Workload(rows, np.eye(1), rows.mean(0), points, labels, rows[:0], None)


def _synthetic(
    seed: int, n_obs: int, n_clusters: int, n_features: int, spread: float, nu: float
) -> Workload:
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(n_clusters, 5.0))
    mu = rng.standard_normal((n_clusters, n_features)) * spread
    cov = np.stack([_covariance(rng, nu, n_features) for _ in range(n_clusters)])
    mixture = weights, mu, cov
    test, _ = _draw(rng, mixture, _N_TEST)
    rows, labels = _draw(np.random.default_rng([seed, n_obs]), mixture, n_obs)
    points = np.stack([mu[0], 0.5 * (mu[1] + mu[2]), mu[np.argmin(weights)]])
    return Workload(rows, np.eye(n_features), rows.mean(0), points, labels, test, mixture)


def _covariance(rng: np.random.Generator, nu: float, n_features: int) -> np.ndarray:
    """A draw of the inverse Wishart with mean I, by Bartlett's decomposition."""
    factor = np.tril(rng.standard_normal((n_features, n_features)), -1)
    factor[np.diag_indices(n_features)] = np.sqrt(rng.chisquare(nu - np.arange(n_features)))
    return np.linalg.inv(factor @ factor.T / (nu - n_features - 1.0))


def _draw(rng: np.random.Generator, mixture: Mixture, n_obs: int) -> tuple[np.ndarray, np.ndarray]:
    weights, mu, cov = mixture
    labels = rng.choice(len(weights), n_obs, p=weights)
    noise = rng.standard_normal((n_obs, mu.shape[1]))
    rows = mu[labels]
    root = np.linalg.cholesky(cov)
    for k in range(len(weights)):
        rows[labels == k] += noise[labels == k] @ root[k].T
    return rows, labels


def spheres(
    n_obs: int, n_features: int, n_clusters: int, spread: float, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Equally likely Gaussians of unit covariance: rows, labels and centres N(0, spread^2 I)."""
    rng = np.random.default_rng(seed)
    centres = spread * rng.standard_normal((n_clusters, n_features))
    labels = rng.integers(n_clusters, size=n_obs).astype(np.int32)
    # In place, for the data may be most of the memory there is.
    rows = rng.standard_normal((n_obs, n_features))
    for first in range(0, n_obs, 4096):
        rows[first : first + 4096] += centres[labels[first : first + 4096]]
    return rows, labels, centres
