"""Exact laws of partitions where something else has to be integrated as well.

Whatever stands beside the partition, be it a hyperparameter, a slope or a missing entry, enters
through the marginal likelihood of a set of rows.  A *table* holds the log marginal of every
subset of n rows, (2^n,), bit i of the position meaning row i; a variable that all rows share
gives a table for every node of a grid, (G, 2^n).

Integrals over smooth densities that vanish at both ends are sums over equal steps: that rule
converges faster than any power of the step, so a grid is checked by halving it.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from scipy.special import gammaln, logsumexp, multigammaln

from tests.reference import families as naive
from tests.support.partitions import enumerate_partitions, n_clusters_of

_TAIL = 1e-13  # probability beyond either end of a grid


class Grid(NamedTuple):
    """Nodes (G,) of an integral over a prior, and the logarithm of their weights (G,)."""

    nodes: np.ndarray
    log_weights: np.ndarray


def grid_of(prior: Any, n_nodes: int = 160) -> Grid:
    """Grid for a frozen distribution of SciPy on the real line or on the positive numbers."""
    low, high = prior.ppf(_TAIL), prior.isf(_TAIL)
    if prior.support()[0] >= 0.0:
        logs = np.linspace(np.log(low), np.log(high), n_nodes)
        nodes, log_jacobian = np.exp(logs), logs + np.log(logs[1] - logs[0])
    else:
        nodes = np.linspace(low, high, n_nodes)
        log_jacobian = np.full(n_nodes, np.log(nodes[1] - nodes[0]))
    return Grid(nodes, prior.logpdf(nodes) + log_jacobian)


def fixed(value: float) -> Grid:
    """Grid of a number that is known."""
    return Grid(np.array([value]), np.zeros(1))


def members_of(mask: int, n: int) -> list[int]:
    """Rows of the subset at a position of a table."""
    return [i for i in range(n) if mask >> i & 1]


def table_of(log_marginal: Callable[[np.ndarray], float], rows: np.ndarray) -> np.ndarray:
    """Table (2^n,) of rows (n, D)."""
    n = len(rows)
    return np.array([0.0, *(log_marginal(rows[members_of(m, n)]) for m in range(1, 2**n))])


def block_masks(n: int) -> np.ndarray:
    """Position in a table of the block of each point in each partition, int64 (Bell(n), n)."""
    labels = enumerate_partitions(n)
    together = labels[:, :, None] == labels[:, None, :]
    return together @ 2 ** np.arange(n)


def log_joint(tables: np.ndarray, n: int) -> np.ndarray:
    """Log of prod_k Gamma(n_k) m(S_k) for each table (..., 2^n) and partition, (..., Bell(n))."""
    labels, positions = enumerate_partitions(n), 2 ** np.arange(n)
    total = np.zeros((*tables.shape[:-1], len(labels)))
    for k in range(n):
        block = labels == k
        # The empty set has table 0, and Gamma(1) = 1.
        total += tables[..., block @ positions] + gammaln(np.maximum(block.sum(axis=1), 1))
    return total


def log_alpha_joint(alpha: np.ndarray, n: int) -> np.ndarray:
    """Log of alpha^K Gamma(alpha) / Gamma(alpha + n) for each alpha and K = 0 .. n, (A, n + 1)."""
    a = alpha[:, None]
    return gammaln(a) - gammaln(a + n) + np.log(a) * np.arange(n + 1)


class Posterior(NamedTuple):
    """Joint law of the node of a grid and the partition (G, Bell(n)); law of alpha's node (A,)."""

    joint: np.ndarray
    alpha: np.ndarray

    @property
    def partitions(self) -> np.ndarray:
        """Law of the partition, (Bell(n),)."""
        return self.joint.sum(axis=0)

    @property
    def nodes(self) -> np.ndarray:
        """Law of the node of the grid, (G,)."""
        return self.joint.sum(axis=1)


def posterior(tables: np.ndarray, log_weights: np.ndarray, alpha: Grid) -> Posterior:
    """Posterior from the tables (G, 2^n) at the nodes of a grid with those weights (G,)."""
    return shared_posterior([tables], log_weights, alpha)[0]


def shared_posterior(
    mixtures: Sequence[np.ndarray], log_weights: np.ndarray, alpha: Grid
) -> list[Posterior]:
    """Posterior of several mixtures, whose tables (G, 2^n) depend on one grid, and on one alpha."""
    log_joints = []  # of alpha, node and partition, (A, G, Bell(n)), but for the prior
    for tables in mixtures:
        n = int(np.log2(tables.shape[-1]))
        by_k = log_alpha_joint(alpha.nodes, n)
        log_joints.append(log_joint(tables, n) + by_k[:, None, n_clusters_of(n)])
    log_totals = [logsumexp(joint, axis=2) for joint in log_joints]
    common = sum(log_totals) + alpha.log_weights[:, None] + log_weights
    common = np.exp(common - logsumexp(common))
    return [
        Posterior(
            np.einsum("ag,agp->gp", common, np.exp(joint - total[..., None])), common.sum(axis=1)
        )
        for joint, total in zip(log_joints, log_totals, strict=True)
    ]


def moments(law: np.ndarray, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means (2,) and variances (2,) of a grid's variable and of its square."""
    values = np.stack([nodes, nodes**2])
    means = values @ law
    return means, (values - means[:, None]) ** 2 @ law


def block_average(joint: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Average (n, ...) over a joint law (G, Bell(n)) of what depends on a point and its block.

    `values` has shape (G, 2^n, n, ...): a table of each node for each point.
    """
    n = values.shape[2]
    masks = block_masks(n)
    return np.stack(
        [np.einsum("gp,gp...->...", joint, values[:, masks[:, i], i]) for i in range(n)]
    )


# --- latent rows with Gaussian noise -------------------------------------------------------


class Latent(NamedTuple):
    """Table (2^n,) of noisy scalars; first and second moment of the true ones (2^n, n, 2)."""

    table: np.ndarray
    values: np.ndarray


def noisy_table(
    family: naive.Normal, y: np.ndarray, noise: np.ndarray, n_nodes: int = 160
) -> Latent:
    """Table of y_i ~ N(b_i, noise_i^2) with b a cluster of the family.

    Given the variance v of a cluster, y is normal with covariance diag(noise^2 + v) + v / kappa0;
    v is integrated over its prior.
    """
    n = len(y)
    variance, log_weights = grid_of(stats.invgamma(family.a0, scale=family.b0), n_nodes)
    latent = Latent(np.zeros(2**n), np.zeros((2**n, n, 2)))
    for mask in range(1, 2**n):
        rows = members_of(mask, n)
        eye, ones = np.eye(len(rows)), np.ones((len(rows), len(rows)))
        prior = variance[:, None, None] * (eye + ones / family.kappa0)
        inverse = np.linalg.inv(prior + np.diag(noise[rows] ** 2))
        residual = y[rows] - family.mu0
        scaled = inverse @ residual
        log_density = 0.5 * (
            np.linalg.slogdet(inverse)[1] - scaled @ residual - len(rows) * np.log(2.0 * np.pi)
        )
        log_terms = log_weights + log_density
        latent.table[mask] = logsumexp(log_terms)
        weights = np.exp(log_terms - latent.table[mask])
        mean = family.mu0 + np.einsum("gij,gj->gi", prior, scaled)
        spread = np.einsum("gii->gi", prior - prior @ inverse @ prior)
        latent.values[mask, rows] = np.stack([weights @ mean, weights @ (mean**2 + spread)], 1)
    return latent


# --- missing entries -------------------------------------------------------------------------


def log_marginals(twin: Any, rows: np.ndarray) -> np.ndarray:
    """Log marginal (G,) of many sets of rows (G, n, D) at once, for a twin of any family."""
    if isinstance(twin, naive.DiagNormal):
        columns = enumerate(twin.features)
        return sum(log_marginals(feature, rows[..., j : j + 1]) for j, feature in columns)
    if isinstance(twin, naive.Normal):
        # An inverse-Wishart law of one dimension is an inverse-gamma law.
        twin = naive.MvNormal(twin.mu0, twin.kappa0, 2.0 * twin.a0, 2.0 * np.eye(1) * twin.b0)
    n, d = rows.shape[1:]
    kappa, nu = twin.kappa0 + n, twin.nu0 + n
    mean = rows.mean(axis=1)
    centred, gap = rows - mean[:, None], mean - twin.mu0
    psi = twin.psi0 + np.einsum("gni,gnj->gij", centred, centred)
    psi = psi + twin.kappa0 * n / kappa * gap[:, :, None] * gap[:, None, :]
    return (
        multigammaln(nu / 2, d)
        - multigammaln(twin.nu0 / 2, d)
        + 0.5 * twin.nu0 * np.linalg.slogdet(twin.psi0)[1]
        - 0.5 * nu * np.linalg.slogdet(psi)[1]
        + 0.5 * d * np.log(twin.kappa0 / kappa)
        - 0.5 * n * d * np.log(np.pi)
    )


class Holes(NamedTuple):
    """Table (2^n,) of rows with missing entries; a function of every entry, (2^n, n, D, 2).

    The last axis is the mean of the function and of its square given the rows of the subset.
    """

    table: np.ndarray
    values: np.ndarray


def holes_table(
    twin: Any,
    rows: np.ndarray,
    function: Callable[[np.ndarray], np.ndarray],
    n_nodes: int = 240,
) -> Holes:
    """Table of rows (n, D) with NaN where an entry is missing, and means of a function of it.

    Each missing entry is integrated over the whole line, x = centre + sinh(u), which gives the
    tails of Student's law an exponential end.
    """
    n, d = rows.shape
    u = np.linspace(-10.0, 10.0, n_nodes)
    centre = np.nanmean(rows, axis=0)
    found = Holes(np.zeros(2**n), np.zeros((2**n, n, d, 2)))
    for mask in range(1, 2**n):
        chosen = members_of(mask, n)
        where = np.argwhere(np.isnan(rows[chosen]))
        mesh = np.meshgrid(*[u] * len(where), indexing="ij")
        steps = np.stack([axis.ravel() for axis in mesh], axis=-1) if mesh else np.empty((1, 0))
        filled = np.tile(rows[chosen], (len(steps), 1, 1))
        x = centre[where[:, 1]] + np.sinh(steps)
        filled[:, where[:, 0], where[:, 1]] = x
        log_terms = log_marginals(twin, filled)
        log_terms = log_terms + np.sum(np.log(np.cosh(steps) * (u[1] - u[0])), axis=1)
        found.table[mask] = logsumexp(log_terms)
        weights = np.exp(log_terms - found.table[mask])
        for (i, j), entry in zip(where, function(x).T, strict=True):
            found.values[mask, chosen[i], j] = weights @ entry, weights @ entry**2
    return found


def summed_holes_table(
    twin: Any,
    rows: np.ndarray,
    function: Callable[[np.ndarray], np.ndarray],
    support: Sequence[int],
) -> Holes:
    """Do the same for a family with independent columns, whose entries lie in `support`.

    A missing entry leaves its column without one row; given the others it has their predictive.
    """
    n, d = rows.shape
    entries = np.array(support, float)
    found = Holes(np.zeros(2**n), np.zeros((2**n, n, d, 2)))
    for mask in range(1, 2**n):
        chosen = members_of(mask, n)
        for j in range(d):
            column, own = rows[chosen, j], twin.restricted(np.array([j]))
            present = column[~np.isnan(column)][:, None]
            found.table[mask] += own.log_marginal(present)
            for i in np.flatnonzero(np.isnan(column)):
                log_law = [own.log_predictive(np.array([x]), present) for x in entries]
                means = np.exp(log_law) @ np.stack([function(entries), function(entries) ** 2], 1)
                found.values[mask, chosen[i], j] = means
    return found


def column_holes_table(
    twins: Sequence[Any],
    rows: np.ndarray,
    function: Callable[[np.ndarray], np.ndarray],
    supports: Sequence[Sequence[float] | None],
    n_nodes: int = 400,
) -> Holes:
    """Do the same for columns with twins of their own, of which nothing but marginals is known.

    A support is that of a column, None for the real line.
    """
    n, d = rows.shape
    found = Holes(np.zeros(2**n), np.zeros((2**n, n, d, 2)))
    u = np.linspace(-8.0, 8.0, n_nodes)
    for j, (twin, support) in enumerate(zip(twins, supports, strict=True)):
        entries = np.nanmean(rows[:, j]) + np.sinh(u) if support is None else np.array(support)
        log_volume = np.log(np.cosh(u) * (u[1] - u[0])) if support is None else 0.0
        of_entries = np.stack([function(entries), function(entries) ** 2], 1)
        for mask in range(1, 2**n):
            chosen = members_of(mask, n)
            column = rows[chosen, j]
            present = column[~np.isnan(column)][:, None]
            log_marginal = twin.log_marginal(present) if len(present) else 0.0
            found.table[mask] += log_marginal
            holes = np.flatnonzero(np.isnan(column))
            if len(holes):
                joint = [twin.log_marginal(np.vstack([present, [[x]]])) for x in entries]
                law = np.exp(np.array(joint) - log_marginal + log_volume)
                np.testing.assert_allclose(law.sum(), 1.0, atol=1e-3)
                found.values[mask, np.array(chosen)[holes], j] = law @ of_entries / law.sum()
    return found
