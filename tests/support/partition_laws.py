"""Laws of partitions, written without the package: seatings one by one, and assignments.

The package has one formula for all of them; here each has its own, from its definition.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import gammaln, logsumexp

from pymc_dpsplit.moves.partition_law import PartitionLaw, dirichlet_process, finite_mixture
from tests.support.partitions import HasMarginal, enumerate_partitions, subset_log_marginals

LogPrior = Callable[[np.ndarray], float]


def seated(alpha: float, discount: float) -> LogPrior:
    """Log probability of canonical labels in a Pitman-Yor process, customer by customer."""

    def log_prior(labels: np.ndarray) -> float:
        sizes: list[int] = []
        total = 0.0
        for n, k in enumerate(labels):
            if k == len(sizes):
                sizes.append(0)
                mass = alpha + discount * k
            else:
                mass = sizes[k] - discount
            sizes[k] += 1
            total += np.log(mass) - np.log(alpha + n) if n else 0.0
        return total

    return log_prior


def assigned(gamma: float, n_components: int) -> LogPrior:
    """Log probability of labels under Dirichlet(gamma) weights of so many components."""

    def log_prior(labels: np.ndarray) -> float:
        sizes = np.bincount(labels)
        n_free = n_components - len(sizes)
        if n_free < 0:
            return -np.inf
        n_ways = gammaln(n_components + 1) - gammaln(n_free + 1)
        whole = gammaln(gamma * n_components) - gammaln(gamma * n_components + len(labels))
        return float(n_ways + whole + (gammaln(gamma + sizes) - gammaln(gamma)).sum())

    return log_prior


# Each law as the package has it, and by its definition.
LAWS: dict[str, tuple[PartitionLaw, LogPrior]] = {
    "Dirichlet process": (dirichlet_process(1.3), seated(1.3, 0.0)),
    "Pitman-Yor": (PartitionLaw(0.3, 0.5), seated(0.5, 0.3)),
    "Pitman-Yor, negative strength": (PartitionLaw(0.3, -0.15), seated(-0.15, 0.3)),
    "Pitman-Yor, strength 0": (PartitionLaw(0.25, 0.0), seated(0.0, 0.25)),
    "finite": (finite_mixture(0.7, 4), assigned(0.7, 4)),
    "finite, often full": (finite_mixture(1.5, 2), assigned(1.5, 2)),
}


def prior_under(log_prior: LogPrior, n: int) -> np.ndarray:
    """Probability of every partition of n points, (Bell(n),)."""
    return np.exp([log_prior(labels) for labels in enumerate_partitions(n)])


def posterior_under(log_prior: LogPrior, family: HasMarginal, rows: np.ndarray) -> np.ndarray:
    """Posterior probability of every partition of the rows (n, D), (Bell(n),)."""
    n = len(rows)
    partitions = enumerate_partitions(n)
    log_marginals = subset_log_marginals(family, rows)
    log_p = np.array([log_prior(labels) for labels in partitions])
    for k in range(n):
        block = partitions == k
        log_p += np.where(block.any(axis=1), log_marginals[block @ 2 ** np.arange(n)], 0.0)
    return np.exp(log_p - logsumexp(log_p))
