"""Visits do not finish densities of clusters that are too far away to be chosen, and are exact.

One-step invariance as in `test_one_step_invariance`, with nine features and some forty clusters, of
which a few are near each other, and some are so far away that their densities are left unfinished.
`test_scan_with_far_clusters_draws_what_the_naive_scan_draws` has many of both.  Level 1e-5 each.
"""

import numpy as np
import pytest

from pymc_dpsplit import MvNormal
from pymc_dpsplit.moves.collapsed.scan import collapsed_sweep
from tests.exact.test_one_step_invariance import p_value_of
from tests.support.controls import scan_without_weights_below
from tests.support.moves import Move, sweep
from tests.support.statistics import LEVEL

N_FEATURES, N_OBS, ALPHA, N_REPLICATES = 9, 100, 20.0, 1000
COMPONENT = MvNormal(0.0, 0.08, 200.0, 190.0 * np.eye(N_FEATURES))


def _p_value(move: Move, rng: np.random.Generator) -> float:
    return p_value_of(move, COMPONENT, N_FEATURES, ALPHA, N_REPLICATES, rng, n_obs=N_OBS)


def test_sweep_is_invariant(rng: np.random.Generator) -> None:
    assert _p_value(sweep(collapsed_sweep), rng) > LEVEL


@pytest.mark.control
def test_sweep_that_leaves_out_clusters_with_weight_is_caught(rng: np.random.Generator) -> None:
    broken = scan_without_weights_below(-30.0, collapsed_sweep)
    assert _p_value(sweep(broken), rng) < LEVEL
