"""Losses between partitions, pair by pair and cluster by cluster, as the books define them."""

import numpy as np


def entropy(labels: np.ndarray) -> float:
    """Entropy in nats of the shares of equal rows of labels (N,) or (N, 2)."""
    counts = np.unique(labels, axis=0, return_counts=True)[1]
    shares = counts / counts.sum()
    return -float((shares * np.log(shares)).sum())


def vi(truth: np.ndarray, estimate: np.ndarray, a: float = 1.0) -> float:
    """a H(estimate | truth) + (2 - a) H(truth | estimate)."""
    both = entropy(np.stack([truth, estimate], axis=1))
    return a * (both - entropy(truth)) + (2 - a) * (both - entropy(estimate))


def binder(truth: np.ndarray, estimate: np.ndarray, a: float = 1.0) -> float:
    """Mean cost over pairs: a if kept apart wrongly, 2 - a if put together wrongly."""
    first, second = np.triu_indices(len(truth), 1)
    if len(first) == 0:
        return 0.0
    together = truth[first] == truth[second]
    put = estimate[first] == estimate[second]
    return float(np.mean(a * (together & ~put) + (2 - a) * (~together & put)))


LOSSES = {"vi": vi, "binder": binder}
