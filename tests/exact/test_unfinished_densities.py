"""Visits leave densities of far clusters unfinished, and are exact.

One-step invariance as in `test_one_step_invariance`, with nine features and some forty clusters, of
which a few are near each other, and some are so far away that their densities are left unfinished;
then with nearly all densities unfinished before the choice.  One label drawn many times:
`test_bounds_do_not_change_the_law_of_a_visit`.  Level 1e-5 each.
"""

import numpy as np
import pytest

from pymc_dpsplit import MvNormal
from pymc_dpsplit.moves.collapsed.scan import collapsed_sweep
from tests.exact.test_one_step_invariance import p_value_of
from tests.support.controls import scan_of_bounds
from tests.support.moves import Move, sweep
from tests.support.statistics import LEVEL

N_FEATURES, N_OBS, ALPHA, N_REPLICATES = 9, 100, 20.0, 1000
COMPONENT = MvNormal(0.0, 0.08, 200.0, 190.0 * np.eye(N_FEATURES))


def _p_value(move: Move, rng: np.random.Generator) -> float:
    return p_value_of(move, COMPONENT, N_FEATURES, ALPHA, N_REPLICATES, rng, n_obs=N_OBS)


def test_sweep_is_invariant(rng: np.random.Generator) -> None:
    assert _p_value(sweep(collapsed_sweep), rng) > LEVEL


def test_sweep_that_finishes_densities_after_the_choice_is_invariant(
    rng: np.random.Generator,
) -> None:
    assert _p_value(sweep(scan_of_bounds(-30.0, kernel=collapsed_sweep)), rng) > LEVEL


@pytest.mark.control
def test_sweep_by_bounds_is_caught(rng: np.random.Generator) -> None:
    broken = scan_of_bounds(-30.0, finishes=False, kernel=collapsed_sweep)
    assert _p_value(sweep(broken), rng) < LEVEL
