"""MAP-DPM for rows in groups from one starting partition: tables and weights are summed out."""

from typing import NamedTuple

import numpy as np

from pymc_dpsplit.estimates.grouped_concentrations import GroupedConcentrations, Point
from pymc_dpsplit.hierarchical.conditional_modes import climb_in_groups, likely_merge_gains
from pymc_dpsplit.hierarchical.seatings import Seatings, seatings_of
from pymc_dpsplit.hierarchical.state import GroupedTarget, count_groups
from pymc_dpsplit.hierarchical.summaries import log_marginals
from pymc_dpsplit.moves.collapsed.conditional_modes import LEAST_GAIN
from pymc_dpsplit.moves.partition import gather_stats

# Most steps of expectation and maximisation for the concentrations of one partition.
_MOST_STEPS = 50
# Relative change of a concentration below which it has converged.
_SETTLED = 1e-5


class GroupedSummit(NamedTuple):
    """A partition of rows in groups, and what is computed from it.

    Attributes
    ----------
    point : dict
        Values of all variables of the model.
    target : GroupedTarget
        With the concentrations of the point.
    labels : ndarray of int32, shape (N,)
        Clusters 0 .. K - 1, none empty.
    stats : ndarray of float64, shape (K, S)
    counts : ndarray of int64, shape (J, K)
        Number of rows of each group in each cluster.
    seatings : Seatings
    log_joint : float
        Log density of rows and partition, eq. (16.14).
    """

    point: Point
    target: GroupedTarget
    labels: np.ndarray
    stats: np.ndarray
    counts: np.ndarray
    seatings: Seatings
    log_joint: float


class GroupedClimb(NamedTuple):
    """Result of a climb.

    Attributes
    ----------
    summit : GroupedSummit
    path : ndarray of float64, shape (T,)
        Log joint density plus log prior density of concentrations after each iteration; it does
        not decrease.
    has_settled : bool
        Whether the last iteration changed nothing.
    """

    summit: GroupedSummit
    path: np.ndarray
    has_settled: bool

    @property
    def objective(self) -> float:
        """The objective after the last iteration."""
        return float(self.path[-1])


def climb_groups(
    target: GroupedTarget,
    point: Point,
    concentrations: GroupedConcentrations,
    labels: np.ndarray,
    rows: np.ndarray,
    max_iterations: int,
) -> GroupedClimb:
    """Repeat sweeps, eq. (16.16), merges and updates of concentrations until nothing improves.

    Every change is kept only if the exact log joint density rises: a sweep moves rows by the mean
    global weights before it, which change with the partition.

    Parameters
    ----------
    target : GroupedTarget
        With the concentrations of `point`.
    point : dict
        Values of all variables.
    concentrations : GroupedConcentrations
    labels : ndarray of int, shape (N,)
        Starting clusters 0 .. K - 1, none empty.
    rows : ndarray of int64, shape (N,)
        Order in which rows are visited.
    max_iterations : int

    Returns
    -------
    GroupedClimb
    """
    summit = _summit(target, point, labels)
    path: list[float] = []
    has_settled = False
    while not has_settled and len(path) < max_iterations:
        before = summit
        after = _swept(before, rows)
        if after.log_joint <= before.log_joint + LEAST_GAIN:
            after = _merged(before)
        has_settled = after is before
        # While the partition changes, one step each is enough.
        n_steps = _MOST_STEPS if has_settled else 1
        summit, has_moved = _with_modes(after, concentrations, n_steps)
        has_settled = has_settled and not has_moved
        path.append(summit.log_joint + concentrations.log_prior(summit.point))
    return GroupedClimb(summit, np.array(path), has_settled)


def _summit(target: GroupedTarget, point: Point, labels: np.ndarray) -> GroupedSummit:
    """Compute everything from labels, whose numbers may have gaps."""
    labels = np.unique(labels, return_inverse=True)[1].astype(np.int32)
    prior, data, law = target.of_rows
    n_clusters = int(labels.max()) + 1
    stats = gather_stats(prior, data, labels, n_clusters)
    counts = count_groups(target, labels, n_clusters)
    seatings = seatings_of(counts, target.alpha, law.strength)
    of_rows = float(np.sum(log_marginals(prior, stats)))
    log_joint = of_rows + seatings.log_probability
    return GroupedSummit(point, target, labels, stats, counts, seatings, float(log_joint))


def _swept(before: GroupedSummit, rows: np.ndarray) -> GroupedSummit:
    """Return what a sweep over the rows makes of a partition."""
    labels, seatings = before.labels.copy(), before.seatings
    n_moved = climb_in_groups(
        before.target, labels, before.stats, seatings.weights, seatings.rest, rows
    )
    return _summit(before.target, before.point, labels) if n_moved else before


def _merged(before: GroupedSummit) -> GroupedSummit:
    """Merge the pair of clusters that raises the joint density most, of the likeliest pairs."""
    known = before.stats, before.counts, before.seatings.weights
    gains = likely_merge_gains(before.target, *known)
    best, n_clusters = before, len(before.stats)
    for pair in np.argsort(-gains, axis=None)[:n_clusters]:
        a, b = np.unravel_index(pair, gains.shape)
        if a <= b:
            break
        labels = np.where(before.labels == a, b, before.labels)
        after = _summit(before.target, before.point, labels)
        if after.log_joint > best.log_joint + LEAST_GAIN:
            best = after
    return best


def _with_modes(
    summit: GroupedSummit, concentrations: GroupedConcentrations, n_steps: int
) -> tuple[GroupedSummit, bool]:
    """Maximise over the concentrations given the partition; say whether they changed.

    Each step takes the tables by their law given the present concentrations, so that the objective
    does not decrease.
    """
    has_moved = False
    for _ in range(n_steps if concentrations.are_moved else 0):
        target = summit.target
        point = concentrations.moved(summit.point, target.sizes, summit.seatings)
        alpha, gamma = concentrations.at(point)
        law = target.of_rows.law
        if max(abs(alpha / target.alpha - 1.0), abs(gamma / law.strength - 1.0)) <= _SETTLED:
            break
        has_moved = True
        of_rows = target.of_rows._replace(law=law._replace(strength=gamma))
        target = target._replace(of_rows=of_rows, alpha=alpha)
        seatings = seatings_of(summit.counts, alpha, gamma)
        change = seatings.log_probability - summit.seatings.log_probability
        summit = summit._replace(
            point=point, target=target, seatings=seatings, log_joint=summit.log_joint + change
        )
    return summit, has_moved
