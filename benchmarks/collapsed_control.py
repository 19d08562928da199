"""Control of the mixing benchmarks: collapsed Gibbs (Neal 2000, algorithm 3) and nothing else.

Normal clusters with a normal-inverse-Wishart prior, in any number of dimensions, as fast as we know
how: a sampler that a page of ours may be compared with.  It shares the vector code over clusters
with the package, as plain numba is slower, and nothing else.

Clusters are in blocks of eight: number r of cluster k is element (k // 8 * height + r) * 8 + k % 8
of a flat table, so that the triangular solve, the logarithm and the exponential run over eight
clusters at once.  Of each cluster the table has

* the posterior mean (D),
* the inverse diagonal of the Cholesky factor L of psi_n (D),
* the elements of L below the diagonal as `fill_triangle` writes them,
* four coefficients c, f, h and c': with q the squared distance of a row under L, the log predictive
  density is c - h log(1 + f q).

The density of a row under its own cluster follows from q under the cluster with the row in it, by
the determinant lemma, and has c' instead of c; so nothing is changed unless the row moves.
Constants by the number of members are in a table, and so is the prior predictive density of each
row.
"""

import math
from typing import NamedTuple

import numpy as np

from benchmarks.workloads import Workload
from pymc_dpsplit.kernels.cluster_blocks import fill_student
from pymc_dpsplit.kernels.cluster_choice import choose_position, workspace_size
from pymc_dpsplit.kernels.cluster_solves import fill_squared_solves, fill_triangle
from pymc_dpsplit.kernels.cluster_table import WIDE
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.lines import on_lines, zeros_on_lines
from pymc_dpsplit.kernels.views import row_of

# Below this share of the determinant that a row leaves, its cluster is computed anew without it.
_LEAST_LEFT = 1e-8
# Sweeps after which everything is computed anew, against rounding.
_SWEEPS_UNTIL_FRESH = 16
_NONE = -1e300


class Control(NamedTuple):
    """Prior, rows, and what is computed of them once.

    Attributes
    ----------
    rows : ndarray, shape (N, D)
    mu0, psi0, kappa0, nu0
        Of the normal-inverse-Wishart prior.
    alone : ndarray, shape (N,)
        Log prior predictive density of each row.
    constant : ndarray, shape (N + 2,)
        By n: log n and the part of the log predictive that depends on n alone.
    height : int
        Numbers per cluster in the table.
    """

    rows: np.ndarray
    mu0: np.ndarray
    psi0: np.ndarray
    kappa0: float
    nu0: float
    alone: np.ndarray
    constant: np.ndarray
    height: int


class Clusters(NamedTuple):
    """State of the clusters; those after the last are empty."""

    size: np.ndarray  # (capacity,)
    mean: np.ndarray  # (capacity, D)
    factor: np.ndarray  # (capacity, D, D)
    table: np.ndarray  # (capacity * height,)


@jitted
def _empty(control, capacity):  # type: ignore[no-untyped-def]
    d = control.mu0.shape[0]
    table = zeros_on_lines(capacity * control.height)
    return Clusters(np.zeros(capacity), np.zeros((capacity, d)), np.zeros((capacity, d, d)), table)


@jitted
def _grown(control, clusters):  # type: ignore[no-untyped-def]
    """Twice as much room for clusters."""
    n = clusters.size.shape[0]
    larger = _empty(control, 2 * n)
    larger.size[:n] = clusters.size
    larger.mean[:n] = clusters.mean
    larger.factor[:n] = clusters.factor
    larger.table[: n * control.height] = clusters.table
    return larger


@jitted
def _tabulate(control, clusters, k):  # type: ignore[no-untyped-def]
    """Write the numbers of cluster k into the table."""
    d, table, n = control.mu0.shape[0], clusters.table, clusters.size[k]
    mean, factor = clusters.mean[k], clusters.factor[k]
    at = k // WIDE * control.height * WIDE + k % WIDE
    c, product = control.constant[int(n)], 1.0
    for j in range(d):
        table[at + j * WIDE] = mean[j]
        table[at + (d + j) * WIDE] = 1.0 / factor[j, j]
        product *= factor[j, j]
        if not 1e-100 < product < 1e100:
            c -= math.log(product)
            product = 1.0
    at += 2 * d * WIDE
    fill_triangle(factor, d, table, at)
    at += d * (d - 1) // 2 * WIDE
    kappa_n = control.kappa0 + n
    table[at] = c - math.log(product)
    table[at + WIDE] = kappa_n / (kappa_n + 1.0)
    table[at + 2 * WIDE] = 0.5 * (control.nu0 + n + 1.0)
    if n > 1.0:
        table[at + 3 * WIDE] = table[at] + control.constant[int(n) - 1] - control.constant[int(n)]


@jitted
def _gather(control, labels, k, left_out, clusters):  # type: ignore[no-untyped-def]
    """Compute cluster k from its members but for the row `left_out`."""
    rows, (n_rows, d) = control.rows, control.rows.shape
    mean, psi = clusters.mean[k], clusters.factor[k]
    n = 0.0
    mean[:] = 0.0
    for i in range(n_rows):
        if labels[i] == k and i != left_out:
            n += 1.0
            for j in range(d):
                mean[j] += rows[i, j]
    for j in range(d):
        mean[j] = (control.kappa0 * control.mu0[j] + mean[j]) / (control.kappa0 + n)
    for a in range(d):
        for b in range(a + 1):
            gaps = (control.mu0[a] - mean[a]) * (control.mu0[b] - mean[b])
            psi[a, b] = control.psi0[a, b] + control.kappa0 * gaps
    for i in range(n_rows):
        if labels[i] == k and i != left_out:
            for a in range(d):
                for b in range(a + 1):
                    psi[a, b] += (rows[i, a] - mean[a]) * (rows[i, b] - mean[b])
    for j in range(d):
        for m in range(j):
            psi[j, j] -= psi[j, m] * psi[j, m]
        psi[j, j] = math.sqrt(psi[j, j])
        for i in range(j + 1, d):
            for m in range(j):
                psi[i, j] -= psi[i, m] * psi[j, m]
            psi[i, j] /= psi[j, j]
    clusters.size[k] = n


@jitted
def _add(control, i, k, clusters, gap):  # type: ignore[no-untyped-def]
    """Add row i to cluster k."""
    d, mean, factor = control.mu0.shape[0], clusters.mean[k], clusters.factor[k]
    kappa_n = control.kappa0 + clusters.size[k]
    scale = math.sqrt(kappa_n / (kappa_n + 1.0))
    for j in range(d):
        gap[j] = control.rows[i, j] - mean[j]
        mean[j] += gap[j] / (kappa_n + 1.0)
        gap[j] *= scale
    for j in range(d):
        r = math.sqrt(factor[j, j] * factor[j, j] + gap[j] * gap[j])
        c, s = factor[j, j] / r, gap[j] / r
        factor[j, j] = r
        for m in range(j + 1, d):
            before = factor[m, j]
            factor[m, j] = c * before + s * gap[m]
            gap[m] = c * gap[m] - s * before
    clusters.size[k] += 1.0


@jitted
def _remove(control, labels, i, k, clusters, gap):  # type: ignore[no-untyped-def]
    """Remove row i from cluster k, which has others; its label is that of another cluster."""
    d, mean, factor = control.mu0.shape[0], clusters.mean[k], clusters.factor[k]
    kappa_n, left = control.kappa0 + clusters.size[k], 1.0
    scale = math.sqrt(kappa_n / (kappa_n - 1.0))
    for j in range(d):
        gap[j] = control.rows[i, j] - mean[j]
        mean[j] -= gap[j] / (kappa_n - 1.0)
        gap[j] *= scale
    for j in range(d):
        squared = factor[j, j] * factor[j, j] - gap[j] * gap[j]
        left *= squared / (factor[j, j] * factor[j, j])
        if not (squared > 0.0 and left > _LEAST_LEFT):
            _gather(control, labels, k, -1, clusters)
            return
        r = math.sqrt(squared)
        c, s = r / factor[j, j], gap[j] / factor[j, j]
        factor[j, j] = r
        for m in range(j + 1, d):
            factor[m, j] = (factor[m, j] - s * gap[m]) / c
            gap[m] = c * gap[m] - s * factor[m, j]
    clusters.size[k] -= 1.0


@jitted
def _log_mass_without(control, labels, i, k, clusters):  # type: ignore[no-untyped-def]
    """Log mass of row i in its own cluster k, which has others, from these themselves."""
    alone, d, n = _empty(control, 1), control.mu0.shape[0], clusters.size[k]
    _gather(control, np.where(labels == k, 0, 1), 0, i, alone)
    q, gap, log_diagonal = 0.0, np.empty(d), 0.0
    for j in range(d):
        gap[j] = control.rows[i, j] - alone.mean[0, j]
        for m in range(j):
            gap[j] -= alone.factor[0, j, m] * gap[m]
        gap[j] /= alone.factor[0, j, j]
        q += gap[j] * gap[j]
        log_diagonal += math.log(alone.factor[0, j, j])
    kappa_n = control.kappa0 + n
    grown = 1.0 + q * (kappa_n - 1.0) / kappa_n
    return control.constant[int(n) - 1] - log_diagonal - 0.5 * (control.nu0 + n) * math.log(grown)


@jitted
def _fill_masses(control, labels, i, own, n_clusters, clusters, gap, mass):  # type: ignore[no-untyped-def]
    """Write log masses of row i under all clusters, without it; if own < 0, it is alone."""
    height, table = control.height, clusters.table
    kappa_n = control.kappa0 + (clusters.size[own] if own >= 0 else 1.0)
    ratio = (kappa_n + 1.0) / (kappa_n - 1.0)
    # Without limits: all systems are solved to the end.
    row, below, beyond = row_of(control.rows, i), -math.inf, math.inf
    fill_squared_solves(
        table, height, row, n_clusters, own, ratio, below, beyond, clusters.size, gap, mass
    )
    if not fill_student(table, height, height - 4, mass, n_clusters, own, ratio, 1.0, mass):
        mass[own] = _log_mass_without(control, labels, i, own, clusters)


@jitted
def _refresh(control, labels, n_slots, clusters):  # type: ignore[no-untyped-def]
    for k in range(n_slots):
        _gather(control, labels, k, -1, clusters)
        if clusters.size[k] > 0.0:
            _tabulate(control, clusters, k)


@jitted
def _close(control, k, clusters):  # type: ignore[no-untyped-def]
    """Empty cluster k; until a new cluster takes the number, no row joins it."""
    clusters.size[k] = 0.0
    at = k // WIDE * control.height * WIDE + k % WIDE + (control.height - 4) * WIDE
    table = clusters.table
    table[at], table[at + WIDE], table[at + 2 * WIDE] = _NONE, 0.0, 0.0


@jitted
def _open(n_slots, empty, clusters):  # type: ignore[no-untyped-def]
    """The first number that no cluster has, now that of one without rows."""
    k = 0
    while k < n_slots and clusters.size[k] > 0.0:
        k += 1
    clusters.size[k] = 0.0
    clusters.mean[k] = empty.mean[0]
    clusters.factor[k] = empty.factor[0]
    return k


@jitted
def _sweep(control, labels, n_slots, clusters, empty, log_alpha, rng):  # type: ignore[no-untyped-def]
    """Redraw every label; returns the number of slots, some of them empty, and the clusters."""
    d, capacity = control.mu0.shape[0], clusters.size.shape[0]
    gap, even = on_lines(d * WIDE), zeros_on_lines(capacity)
    mass, weights = on_lines(capacity), on_lines(workspace_size(capacity))
    for i in range(labels.shape[0]):
        own = labels[i]
        is_alone = clusters.size[own] == 1.0
        _fill_masses(control, labels, i, -1 if is_alone else own, n_slots, clusters, gap, mass)
        log_new, left_out = log_alpha + control.alone[i], own if is_alone else -1
        reference, u = control.alone[i], rng.random()
        k = choose_position(
            mass, even, left_out, -math.inf, n_slots, log_new, reference, u, weights
        )
        if k == own or (is_alone and k == n_slots):
            continue
        if k == n_slots:
            k = _open(n_slots, empty, clusters)
            n_slots = max(n_slots, k + 1)
        labels[i] = k
        _add(control, i, k, clusters, gap)
        _tabulate(control, clusters, k)
        if clusters.size[own] == 1.0:
            _close(control, own, clusters)
        else:
            _remove(control, labels, i, own, clusters, gap)
            _tabulate(control, clusters, own)
        if n_slots + 1 >= capacity:
            clusters = _grown(control, clusters)
            capacity = clusters.size.shape[0]
            mass, even = on_lines(capacity), zeros_on_lines(capacity)
            weights = on_lines(workspace_size(capacity))
    while clusters.size[n_slots - 1] == 0.0:
        n_slots -= 1
    return n_slots, clusters


@jitted
def _draw_log_alpha(log_alpha, n_clusters, n_rows, shape, rate, rng):  # type: ignore[no-untyped-def]
    """Draw log alpha ~ Gamma(shape, rate) given K (Escobar & West 1995, section 6)."""
    g = rng.standard_gamma(math.exp(log_alpha) + 1.0)
    log_eta = math.log(g / (g + rng.standard_gamma(float(n_rows))))
    odds = (shape + n_clusters - 1.0) / (n_rows * (rate - log_eta))
    extra = 0.0 if rng.random() * (1.0 + odds) < odds else -1.0
    return math.log(rng.standard_gamma(shape + n_clusters + extra) / (rate - log_eta))


@jitted
def _run(control, labels, alpha, shape, rate, n_sweeps, thin, rng):  # type: ignore[no-untyped-def]
    n_slots, n_rows = int(labels.max()) + 1, labels.shape[0]
    clusters = _empty(control, (2 * n_slots // WIDE + 2) * WIDE)
    empty = _empty(control, 1)
    _gather(control, np.ones(n_rows, labels.dtype), 0, -1, empty)
    kept = np.empty((n_sweeps // thin, n_rows), labels.dtype)
    alphas, log_alpha = np.empty(n_sweeps // thin), math.log(alpha)
    for s in range(n_sweeps):
        if s % _SWEEPS_UNTIL_FRESH == 0:
            _refresh(control, labels, n_slots, clusters)
        n_slots, clusters = _sweep(control, labels, n_slots, clusters, empty, log_alpha, rng)
        if shape > 0.0:
            n_clusters = np.count_nonzero(clusters.size)
            log_alpha = _draw_log_alpha(log_alpha, n_clusters, n_rows, shape, rate, rng)
        if (s + 1) % thin == 0:
            kept[s // thin] = labels
            alphas[s // thin] = math.exp(log_alpha)
    return kept, alphas


def control_of(workload: Workload) -> Control:
    """Prepare the control for the rows and the prior of a workload."""
    rows = np.ascontiguousarray(workload.rows, np.float64)
    n_rows, d = rows.shape
    n = np.arange(n_rows + 2.0)
    freedom, kappa_n = workload.nu0 + n - d + 1.0, workload.kappa0 + n
    lgamma = np.vectorize(math.lgamma, otypes=[float])
    constant = lgamma(0.5 * (freedom + d)) - lgamma(0.5 * freedom)
    constant -= 0.5 * d * (math.log(math.pi) + np.log((kappa_n + 1.0) / kappa_n))
    root = np.linalg.cholesky(workload.psi0)
    white = np.linalg.solve(root, (rows - workload.mu0).T)
    grown = 1.0 + (white**2).sum(0) * workload.kappa0 / (workload.kappa0 + 1.0)
    alone = constant[0] - np.log(np.diag(root)).sum() - 0.5 * (workload.nu0 + 1) * np.log(grown)
    constant[1:] += np.log(n[1:])
    height = 4 + 2 * d + d * (d - 1) // 2
    return Control(
        rows,
        np.asarray(workload.mu0, np.float64),
        np.asarray(workload.psi0, np.float64),
        float(workload.kappa0),
        float(workload.nu0),
        alone,
        constant,
        height,
    )


def sample(
    control: Control,
    labels: np.ndarray,
    n_sweeps: int,
    rng: np.random.Generator,
    *,
    alpha: float = 1.0,
    gamma: tuple[float, float] | None = None,
    thin: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """Run a chain.

    Parameters
    ----------
    control : Control
    labels : ndarray of int, shape (N,)
        Where to start, numbered from 0 without gaps.
    n_sweeps : int
    rng : numpy.random.Generator
    alpha : float
        Concentration, and where it starts if it is sampled.
    gamma : tuple of float, optional
        Shape and rate of the prior of alpha, which is then sampled.
    thin : int
        Every `thin`-th sweep is kept.

    Returns
    -------
    labels : ndarray of int32, shape (n_sweeps // thin, N)
    alpha : ndarray, shape (n_sweeps // thin,)
    """
    shape, rate = gamma or (0.0, 0.0)
    start = np.array(labels, np.int32)
    kept: tuple[np.ndarray, np.ndarray] = _run(
        control, start, alpha, shape, rate, n_sweeps, thin, rng
    )
    return kept
