"""Visits do not finish densities of clusters that are too far away to be chosen, and are exact.

One-step invariance as in `test_one_step_invariance`, with nine features and some forty clusters, of
which a few are near each other, and some are so far away that their densities are left unfinished.
`test_scan_with_far_clusters_draws_what_the_naive_scan_draws` has many of both.  Level 1e-5 each.
"""

import numpy as np
import pytest

from pymc_dpsplit import MvNormal, sampler
from pymc_dpsplit.moves.collapsed import scan
from tests.exact.test_one_step_invariance import p_value_of
from tests.support.controls import scan_without_weights_below
from tests.support.moves import Move, sweep
from tests.support.statistics import LEVEL

N_FEATURES, N_OBS, ALPHA, N_REPLICATES = 9, 100, 20.0, 1000
COMPONENT = MvNormal(0.0, 0.08, 200.0, 190.0 * np.eye(N_FEATURES))


def _scan_with(log_weight: float) -> Move:
    """A scan of all observations that leaves out clusters whose weight is less by so much."""
    collapsed_scan = scan_without_weights_below(log_weight)

    def all_rows(
        target: sampler.Target,
        labels: np.ndarray,
        stats: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        rows = np.arange(len(labels))
        log_alone = scan.log_densities_alone(target.prior, target.data, rows)
        stats_after: np.ndarray = collapsed_scan(target, labels, stats, rng, rows, log_alone)
        return stats_after

    return sweep(all_rows)


def test_scan_is_invariant(rng: np.random.Generator) -> None:
    move = _scan_with(scan.WITHOUT_WEIGHT)
    assert p_value_of(move, COMPONENT, N_FEATURES, ALPHA, N_REPLICATES, rng, n_obs=N_OBS) > LEVEL


@pytest.mark.control
def test_scan_that_leaves_out_clusters_with_weight_is_caught(rng: np.random.Generator) -> None:
    move = _scan_with(-30.0)
    assert p_value_of(move, COMPONENT, N_FEATURES, ALPHA, N_REPLICATES, rng, n_obs=N_OBS) < LEVEL
