"""Groups of rows that share a label: small examples, and their marginals by repeated rows."""

from typing import Any

import numpy as np

from pymc_dpsplit import sampler
from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.components.shared_labels.items import Items, SharedLabels
from pymc_dpsplit.data.blocks import column_centres
from pymc_dpsplit.moves.partition_law import dirichlet_process
from tests.support.partition_laws import LogPrior, posterior_under
from tests.support.partitions import enumerate_partitions, exact_posterior

# Groups of one, two and three rows that are not side by side, and rows that stand for several.
GROUP_OF_ROW = np.array([0, 1, 0, 2, 3, 2, 4, 2])
COUNTS = np.array([1.0, 3.0, 1.0, 1.0, 2.0, 4.0, 1.0, 1.0])


def shared_labels(n_rows: int, counted: bool = True) -> SharedLabels:
    """The first `n_rows` of the example, of at most eight."""
    counts = COUNTS[:n_rows] if counted else np.ones(n_rows)
    return SharedLabels(GROUP_OF_ROW[:n_rows], counts)


def repeated(rows: np.ndarray, shared: SharedLabels, groups: Any) -> np.ndarray:
    """All rows of groups, each as often as it is counted."""
    of_groups = [np.flatnonzero(shared.group_of_row == g) for g in groups]
    members = np.concatenate([np.empty(0, np.int64), *of_groups])
    return rows[np.repeat(members, shared.counts[members].astype(int))]


def known_labels(known: Any) -> SharedLabels:
    """Rows of equal known labels in groups, and rows with -1 in groups of their own."""
    known = np.asarray(known, np.int64)
    ids = np.where(known >= 0, known, known.max() + 1 + np.arange(len(known)))
    _, first, position = np.unique(ids, return_index=True, return_inverse=True)
    number = np.argsort(np.argsort(first))[position]
    return SharedLabels(number, np.ones(len(known)), known=known)


def keeps_together(known: np.ndarray) -> np.ndarray:
    """Whether each partition of the rows (P, N) separates no rows of a known label, (P,)."""
    partitions = enumerate_partitions(len(known))
    is_kept = np.ones(len(partitions), bool)
    for label in np.unique(known[known >= 0]):
        own = partitions[:, known == label]
        is_kept &= (own == own[:, :1]).all(1)
    return is_kept


def law_of_known_labels(
    twin: Any, rows: np.ndarray, known: np.ndarray, alpha: float, log_prior: LogPrior | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Partitions of the rows (P, N) that keep known labels together, and their posterior (P,).

    It is that of all partitions of the rows, restricted to these; under a Dirichlet process, or
    under `log_prior`.
    """
    is_kept = keeps_together(known)
    if log_prior is None:
        law = exact_posterior(twin, rows, alpha)[is_kept]
    else:
        law = posterior_under(log_prior, twin, rows)[is_kept]
    return enumerate_partitions(len(rows))[is_kept], law / law.sum()


class MarginalOfGroups:
    """Log marginals of clusters of groups, for `exact_posterior` over the indices of groups."""

    def __init__(self, twin: Any, rows: np.ndarray, shared: SharedLabels) -> None:
        self.twin, self.rows, self.shared = twin, rows, shared

    def log_marginal(self, groups: np.ndarray) -> float:
        found: float = self.twin.log_marginal(repeated(self.rows, self.shared, groups))
        return found


def target_of_groups(
    component: ComponentFamily, rows: np.ndarray, shared: SharedLabels, alpha: float
) -> sampler.Target:
    """Target of the sampler for groups of rows (N, D)."""
    items = Items(component, shared)
    values = component.check(component.hyperparameters, rows.shape[1])
    prior = items.prior(values, column_centres(rows))
    return sampler.Target(prior, items.arranged(rows), dirichlet_process(alpha))
