"""Split/merge attempts by several threads, with the result of one thread making them in turn.

Each attempt has a key of its own, drawn beforehand, so what it decides is a function of the
partition it finds.  All decide side by side from the partition at hand.  In turn, a decision is
carried out unless one before it has changed what it read: the clusters of an anchored pair,
eq. (140), or anything at all if the choice was informed by the partition.  It and those after
it are then made anew, from the partition that has come of it.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.moves.anchored import decide_anchored
from pymc_dpsplit.moves.decision import Decision, carry_out
from pymc_dpsplit.moves.greedy import decide_greedily
from pymc_dpsplit.moves.informed import decide_informed


class Attempt(NamedTuple):
    """What decides, and from which key; a key is a uint64, or numba would take it for signed."""

    decide: Callable[..., Decision]
    key: np.uint64

    def is_upset_by(self, changed: set[int], decision: Decision) -> bool:
        """Whether a decision would be another now that these clusters have changed."""
        if self.decide is decide_anchored:
            return not changed.isdisjoint((decision.a, decision.b))
        return bool(changed)


def draw_attempts(n_attempts: int, rng: np.random.Generator) -> list[Attempt]:
    """Draw exact attempts: a coin for the kind and a key for each, as where one makes them."""
    drawn = []
    for _ in range(n_attempts):
        decide = decide_anchored if rng.random() < 0.5 else decide_informed
        drawn.append(Attempt(decide, np.uint64(draw_key(rng))))
    return drawn


def draw_greedy_attempts(n_attempts: int, rng: np.random.Generator) -> list[Attempt]:
    """Draw attempts of early tuning: a key for each."""
    return [Attempt(decide_greedily, np.uint64(draw_key(rng))) for _ in range(n_attempts)]


def attempt_side_by_side(
    prior: Any,
    data: Any,
    labels: np.ndarray,
    stats: np.ndarray,
    alpha: float,
    attempts: list[Attempt],
    tally: np.ndarray,
    pool: ThreadPoolExecutor,
    width: int,
) -> np.ndarray:
    """Make attempts in turn, as many at a time as come out alike.

    Parameters
    ----------
    labels : ndarray of int32, shape (N,)
        Changed.
    stats : ndarray of float64, shape (K, S)
    attempts : list of Attempt
    tally : ndarray of int64, shape (4,)
        Added to.
    pool : ThreadPoolExecutor
    width : int
        Most attempts that are made at a time, from one partition.

    Returns
    -------
    ndarray of float64, shape (K', S)
    """
    made = 0
    while made < len(attempts):
        found = stats

        def decide(attempt: Attempt, found: np.ndarray = found) -> Decision:
            return attempt.decide(prior, data, labels, found, alpha, attempt.key)

        some = attempts[made : made + width]
        stats, n_valid = _carry_out_valid(labels, stats, some, list(pool.map(decide, some)), tally)
        made += n_valid
    return stats


def _carry_out_valid(
    labels: np.ndarray,
    stats: np.ndarray,
    attempts: list[Attempt],
    decisions: list[Decision],
    tally: np.ndarray,
) -> tuple[np.ndarray, int]:
    """Carry out decisions up to the first that is upset; return statistics, and how many."""
    changed: set[int] = set()
    # The number that each cluster has by now: a merge gives the last cluster a number set free.
    number = np.arange(len(stats))
    for n_valid, (attempt, decision) in enumerate(zip(attempts, decisions, strict=True)):
        if attempt.is_upset_by(changed, decision):
            return stats, n_valid
        a, b = int(number[decision.a]), int(number[decision.b])
        n_before = len(stats)
        stats = carry_out(labels, stats, decision._replace(a=a, b=b), tally)
        if decision.accepted:
            changed |= {decision.a, decision.b}
            if a != b:
                number[number == n_before - 1] = max(a, b)
    return stats, len(attempts)
