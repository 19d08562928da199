"""Components of any density: ranks of what data were drawn from, among draws given the data.

The ranks of the truth are uniform if and only if draws are from the posterior, on average over
the prior.  Chains start anew, from nothing of the truth.
"""

from typing import Any

import numpy as np
import pytest

from pymc_dpsplit import sampler
from pymc_dpsplit.components.arguments import rows_of
from pymc_dpsplit.moves.forward import draw_seating
from pymc_dpsplit.moves.partition_law import dirichlet_process
from tests.support.components import DECLARED
from tests.support.statistics import LEVEL, uniform_rank_test

pytestmark = pytest.mark.compiled  # densities are called by address

_NAMES = ["SkewNormal", "Weibull", "BetaBinomial"]
_N_OBS, _DRAWS, _THIN, _BURN_IN, _ALPHA = 15, 49, 20, 15, 1.0


def _quantities(component: Any, labels: np.ndarray, params: np.ndarray) -> list[float]:
    """Number of clusters, pairs together, and the parameters of the cluster of the first row."""
    named = component.unpack(params, np.zeros(1))
    own = [float(value[labels[0]]) for value in named.values()]
    return [len(params), float((np.bincount(labels) ** 2).sum()), *own]


def ranks_of(name: str, n_replicates: int, rng: np.random.Generator, bias: float) -> np.ndarray:
    """Ranks (replicates, quantities); `bias` multiplies the concentration of the truth."""
    component = DECLARED[name].make()
    values = component.check(component.hyperparameters, 1)
    found = []
    law = dirichlet_process(_ALPHA)
    schedule = sampler.Schedule(_THIN, 1.0, np.empty(0, np.int64))
    for _ in range(n_replicates):
        labels = draw_seating(rng, bias * _ALPHA, _N_OBS)
        parameters = component.draw_base(rng, values, int(labels.max()) + 1)
        rows = component.draw_rows(rng, parameters, labels)[:, None]
        target = sampler.Target(component.prior(values, np.zeros(1)), rows_of(rows, 1), law)
        truth = _quantities(component, labels, component.pack(parameters, np.zeros(1)))
        state, drawn = sampler.start(target, rng), []
        for draw in range(-_BURN_IN, _DRAWS):
            state, _ = sampler.advance("exact", target, state, rng, schedule)
            if draw >= 0:
                params = np.column_stack([np.zeros(len(state.stats)), state.stats[:, 2:]])
                drawn.append(_quantities(component, state.labels, params))
        below = (np.array(drawn) < truth).sum(axis=0)
        # Ties are broken at random, as ranks of discrete quantities must be.
        ties = (np.array(drawn) == truth).sum(axis=0)
        found.append(below + rng.integers(ties + 1))
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", _NAMES)
def test_calibration(name: str, rng: np.random.Generator) -> None:
    assert uniform_rank_test(ranks_of(name, 250, rng, 1.0), _DRAWS + 1) > LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_calibration_catches_a_wrong_prior(rng: np.random.Generator) -> None:
    assert uniform_rank_test(ranks_of("Weibull", 250, rng, 4.0), _DRAWS + 1) < LEVEL
