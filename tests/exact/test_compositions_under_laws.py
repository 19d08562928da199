"""Whole draws under Pitman-Yor processes and mixtures of finite mixtures, by one step.

As `test_compositions.py`, which has Dirichlet processes: strength, second number, partition and 40
rows are drawn from the model, and one draw of the sampler must leave their law as it was.  Level
1e-5 each.
"""

from typing import Any

import pytest

from pymc_dpsplit.step.concentration_move import move_concentrations
from tests.support.compositions import around_one_draw, begun
from tests.support.draws_under_laws import DrawsUnderLaw, FiniteMixturesDraws, PitmanYorDraws
from tests.support.statistics import LEVEL, two_sample_test
from tests.support.whole_draws import Mutant

pytestmark = pytest.mark.slow

LAWS: list[type[DrawsUnderLaw]] = [PitmanYorDraws, FiniteMixturesDraws]
_SEED = 20261124


def stale_law(draws: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Move both numbers, and draw the measure with those before."""
    del draws
    name = "pymc_dpsplit.step.dp_split_merge."

    def broken(concentrations: Any, point: Any, target: Any, *rest: Any) -> Any:
        return target, move_concentrations(concentrations, point, target, *rest)[1]

    monkeypatch.setattr(name + "move_concentrations", broken)
    monkeypatch.setattr(name + "with_present_law", lambda target, strength: target)


def p_value(
    law: type[DrawsUnderLaw], n_replicates: int, kernel: str = "exact", mutant: Mutant | None = None
) -> float:
    """P-value that one draw changes nothing."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        draws = begun(law(40, _SEED, kernel), mutant, monkeypatch)
        before, after = around_one_draw(draws, n_replicates)
    varies = before.std(0) > 0.0
    return two_sample_test(before[:, varies], after[:, varies])


@pytest.mark.parametrize("kernel", ["exact", "collapsed", "collapsed-split-merge", "neal2"])
@pytest.mark.parametrize("law", LAWS)
def test_a_draw_keeps_the_joint_law(law: type[DrawsUnderLaw], kernel: str) -> None:
    assert p_value(law, 1500, kernel) > LEVEL


@pytest.mark.control
def test_draws_with_a_stale_law_do_not_keep_it() -> None:
    assert p_value(PitmanYorDraws, 2500, mutant=stale_law) < LEVEL


class MoreComponents(FiniteMixturesDraws):
    """The joint law has more components than the prior that the sampler has."""

    def draw_other(self) -> float:
        return 1.0 + float(self.rng.poisson(4.0))


@pytest.mark.control
def test_draws_with_another_prior_of_components_do_not_keep_it() -> None:
    assert p_value(MoreComponents, 2500) < LEVEL
