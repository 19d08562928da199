"""MAP-DPM and DP-means once more, written naively."""

from typing import Any

import numpy as np
from scipy.special import gammaln


def log_joint(family: Any, rows: np.ndarray, labels: np.ndarray, alpha: float) -> float:
    """Log density of rows (n, D) and their partition, eq. (1.4)."""
    total = gammaln(alpha) - gammaln(alpha + len(labels))
    for k in np.unique(labels):
        members = rows[labels == k]
        total += np.log(alpha) + gammaln(len(members)) + family.log_marginal(members)
    return float(total)


def with_label(labels: np.ndarray, i: int, label: int) -> np.ndarray:
    """Labels with that of observation i changed."""
    changed = labels.copy()
    changed[i] = label
    return changed


def choices(labels: np.ndarray, i: int) -> np.ndarray:
    """Labels that observation i may have: of the clusters of the others, and a new one."""
    return np.append(np.unique(np.delete(labels, i)), labels.max() + 1)


def sweep(
    family: Any, rows: np.ndarray, labels: np.ndarray, alpha: float, least_gain: float
) -> np.ndarray:
    """Give each observation in turn the label of the highest joint density."""
    labels = labels.copy()
    for i in range(len(labels)):
        present = log_joint(family, rows, labels, alpha)
        options = choices(labels, i)
        heights = [log_joint(family, rows, with_label(labels, i, k), alpha) for k in options]
        if max(heights) > present + least_gain:
            labels[i] = options[int(np.argmax(heights))]
    return labels


def sweep_that_forgets_to_remove(
    family: Any, rows: np.ndarray, labels: np.ndarray, alpha: float
) -> np.ndarray:
    """The same with each observation counted in its own cluster while it is judged; WRONG."""
    labels = labels.copy()
    for i in range(len(labels)):
        options = np.append(np.unique(labels), labels.max() + 1)
        masses = []
        for k in options:
            members = rows[labels == k]
            known = family.log_marginal(members) if len(members) else 0.0
            predictive = family.log_marginal(np.vstack([members, rows[i]])) - known
            masses.append(np.log(len(members) or alpha) + predictive)
        labels[i] = options[int(np.argmax(masses))]
    return labels


def dp_means(
    rows: np.ndarray, order: np.ndarray, centre: np.ndarray, penalty: float, n_iterations: int
) -> tuple[np.ndarray, list[float]]:
    """Labels, and objective after each of so many iterations, Kulis & Jordan, algorithm 1."""
    labels = np.zeros(len(rows), int)
    centres = [centre]
    path = []
    for _ in range(n_iterations):
        for i in order:
            distances = [np.sum((rows[i] - centre) ** 2) for centre in centres]
            if min(distances) > penalty:
                centres.append(rows[i])
                labels[i] = len(centres) - 1
            else:
                labels[i] = int(np.argmin(distances))
        labels = np.unique(labels, return_inverse=True)[1]
        centres = [rows[labels == k].mean(0) for k in range(labels.max() + 1)]
        within = sum(np.sum((rows[i] - centres[labels[i]]) ** 2) for i in range(len(rows)))
        path.append(within + penalty * len(centres))
    return labels, path
