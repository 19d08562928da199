"""Simulation-based calibration of a generalised linear mixed model with a latent mixture.

Counts of groups with random effects from a Dirichlet process, hyperparameters of its base measure,
a slope and the concentration unknown: NUTS and the step of the mixture take turns at everything.
"""

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dpsplit as dps
from pymc_dpsplit.moves.forward import draw_labelled_rows, draw_seating
from tests.support.statistics import LEVEL, uniform_rank_test

# NUTS multiplies infinities at the end of a divergent trajectory, of which tuning has some.
pytestmark = pytest.mark.filterwarnings("ignore:(invalid value|overflow):RuntimeWarning")

N_GROUPS, N_EACH = 12, 3
GROUP = np.repeat(np.arange(N_GROUPS), N_EACH)
X = np.tile([-0.7, 0.1, 0.8], N_GROUPS) + np.linspace(-0.3, 0.3, N_GROUPS)[GROUP]
N_RANKS, THIN = 26, 20
_QUANTITIES = ("alpha", "slope", "mu0", "b0", "b_n_clusters")


def draw_truth(rng: np.random.Generator, bias: float) -> tuple[dict[str, float], np.ndarray]:
    """Draw what is unknown from its prior, and counts; a `bias` other than 1 spoils the latter."""
    truth = {
        "alpha": rng.gamma(2.0, 0.5),
        "slope": rng.normal(0.0, 0.5),
        "mu0": rng.normal(1.0, 0.5),
        "b0": rng.gamma(4.0, 0.1),
    }
    labels = draw_seating(rng, bias * truth["alpha"], N_GROUPS)
    component = dps.Normal(truth["mu0"], 0.5, 3.0, truth["b0"])
    values = component.check(component.hyperparameters, 1)
    parameters = component.draw_base(rng, values, int(labels.max()) + 1)
    b = draw_labelled_rows(rng, component, labels, parameters, values)
    counts = rng.poisson(np.exp(b[GROUP] + truth["slope"] * X))
    return {**truth, "b_n_clusters": labels.max() + 1}, counts


def declare() -> pm.Model:
    """Model of the counts, which are its data "counts"."""
    with pm.Model() as model:
        counts = pm.Data("counts", np.zeros(len(GROUP), np.int64))
        alpha = pm.Gamma("alpha", 2.0, 2.0)
        slope = pm.Normal("slope", 0.0, 0.5)
        component = dps.Normal(pm.Normal("mu0", 1.0, 0.5), 0.5, 3.0, pm.Gamma("b0", 4.0, 10.0))
        b = dps.DPMixture("b", alpha, component, shape=N_GROUPS)
        pm.Poisson("y", pt.exp(b[GROUP] + slope * X), observed=counts)
    return model


def ranks_of(idata: Any, truth: dict[str, float], rng: np.random.Generator) -> list[int]:
    """Rank of each quantity among thinned draws, ties broken at random."""
    ranks = []
    for name in _QUANTITIES:
        values = idata["posterior"][name].to_numpy()[:, ::THIN].ravel()
        ties = int((values == truth[name]).sum())
        ranks.append(int((values < truth[name]).sum() + rng.integers(ties + 1)))
    return ranks


def p_value(rng: np.random.Generator, n_replicates: int, bias: float = 1.0) -> float:
    """P-value of uniform ranks."""
    ranks = []
    with declare():
        for _ in range(n_replicates):
            truth, counts = draw_truth(rng, bias)
            pm.set_data({"counts": counts})
            idata = pm.sample(
                draws=(N_RANKS - 1) * THIN, tune=400, chains=1, cores=1, progressbar=False,
                compute_convergence_checks=False, random_seed=int(rng.integers(2**31)),
            )  # fmt: skip
            ranks.append(ranks_of(idata, truth, rng))
    return uniform_rank_test(np.array(ranks), N_RANKS)


@pytest.mark.slow
def test_calibration(rng: np.random.Generator) -> None:
    assert p_value(rng, 100) > LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_calibration_catches_a_wrong_prior(rng: np.random.Generator) -> None:
    assert p_value(rng, 40, bias=6.0) < LEVEL
