"""Split/merge attempts on several threads, with the result of sequential execution.

Each attempt has its own random key, drawn in advance, so its decision is a function of the
partition.  All attempts decide in parallel from the current partition.  Decisions are then carried
out in order, unless an earlier one has changed what the attempt read: the clusters of an anchored
pair, eq. (3.6), and their number if the law of the partition has a discount; or any cluster, for
an informed attempt.  From the first such attempt on, attempts are repeated from the new partition.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.moves.partition_law import PartitionLaw
from pymc_dpsplit.moves.split_merge.anchored import decide_anchored
from pymc_dpsplit.moves.split_merge.decision import Decision, carry_out
from pymc_dpsplit.moves.split_merge.greedy import decide_greedily
from pymc_dpsplit.moves.split_merge.informed import decide_informed
from pymc_dpsplit.moves.target import Target


class Attempt(NamedTuple):
    """Decision function of an attempt and its key, a uint64; numba would type an int as signed."""

    decide: Callable[..., Decision]
    key: np.uint64

    def is_upset_by(self, changed: set[int], decision: Decision, law: PartitionLaw) -> bool:
        """Whether changes of the clusters `changed` may alter a decision.

        Parameters
        ----------
        changed : set of int
        decision : Decision
        law : PartitionLaw

        Returns
        -------
        bool
        """
        # Every split and merge changes the number of clusters, on which the prior mass of a new
        # cluster depends under a law with a discount.
        if self.decide is decide_anchored and law.discount == 0.0:
            return not changed.isdisjoint((decision.a, decision.b))
        return bool(changed)


def draw_attempts(n_attempts: int, rng: np.random.Generator) -> list[Attempt]:
    """Draw the kinds and keys of exact attempts, in the order in which one thread draws them.

    Parameters
    ----------
    n_attempts : int
    rng : numpy.random.Generator

    Returns
    -------
    list of Attempt
    """
    drawn = []
    for _ in range(n_attempts):
        decide = decide_anchored if rng.random() < 0.5 else decide_informed
        drawn.append(Attempt(decide, np.uint64(draw_key(rng))))
    return drawn


def draw_greedy_attempts(n_attempts: int, rng: np.random.Generator) -> list[Attempt]:
    """Draw the keys of the attempts of early tuning."""
    return [Attempt(decide_greedily, np.uint64(draw_key(rng))) for _ in range(n_attempts)]


def attempt_side_by_side(
    target: Target,
    labels: np.ndarray,
    stats: np.ndarray,
    attempts: list[Attempt],
    acceptance_counts: np.ndarray,
    pool: ThreadPoolExecutor,
    width: int,
) -> np.ndarray:
    """Make attempts in order, `width` of them at a time.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
        Changed.
    stats : ndarray of float64, shape (K, S)
    attempts : list of Attempt
    acceptance_counts : ndarray of int64, shape (4,)
        Added to.
    pool : ThreadPoolExecutor
    width : int
        Maximum number of attempts that decide in parallel from one partition.

    Returns
    -------
    ndarray of float64, shape (K', S)
    """
    made = 0
    while made < len(attempts):
        found = stats

        def decide(attempt: Attempt, found: np.ndarray = found) -> Decision:
            return attempt.decide(target, labels, found, attempt.key)

        some = attempts[made : made + width]
        decisions = list(pool.map(decide, some))
        stats, n_valid = _carry_out_valid(
            target.law, labels, stats, some, decisions, acceptance_counts
        )
        made += n_valid
    return stats


def _carry_out_valid(
    law: PartitionLaw,
    labels: np.ndarray,
    stats: np.ndarray,
    attempts: list[Attempt],
    decisions: list[Decision],
    acceptance_counts: np.ndarray,
) -> tuple[np.ndarray, int]:
    """Carry out decisions up to the first invalid one; return the statistics and their number."""
    changed: set[int] = set()
    # Current number of each cluster: a merge renumbers the last cluster.
    number = np.arange(len(stats))
    for n_valid, (attempt, decision) in enumerate(zip(attempts, decisions, strict=True)):
        if attempt.is_upset_by(changed, decision, law):
            return stats, n_valid
        a, b = int(number[decision.a]), int(number[decision.b])
        n_before = len(stats)
        stats = carry_out(labels, stats, decision._replace(a=a, b=b), acceptance_counts)
        if decision.accepted:
            changed |= {decision.a, decision.b}
            if a != b:
                number[number == n_before - 1] = max(a, b)
    return stats, len(attempts)
