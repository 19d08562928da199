"""Chains that go on from exact draws in a trace, against all partitions enumerated.

Every chain of the trace has one draw, of the exact posterior, and is continued by a few steps of
the weakest kernel: one sweep each, without splits and merges.
"""

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr
from scipy import stats
from scipy.special import gammaln

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.posterior.extension.last_draws import last_draws
from pymc_dpsplit.step import chain_start
from pymc_dpsplit.variables import find_mixtures
from tests.support.datasets import DATASETS
from tests.support.exact_traces import exact_trace
from tests.support.families import component_of, twin_of
from tests.support.partitions import (
    enumerate_partitions,
    exact_posterior,
    n_clusters_of,
    partition_index,
)
from tests.support.statistics import LEVEL, combine

ROWS = DATASETS["duplicates"](1)
N_CHAINS, N_DRAWS = 20_000, 2
# Alpha is one of two values, with equal prior probabilities.
ALPHAS = np.array([0.4, 4.0])


def model_of() -> pm.Model:
    with pm.Model() as model:
        which = pm.DiscreteUniform("which", 0, 1)
        alpha = pt.switch(pt.eq(which, 1), ALPHAS[1], ALPHAS[0])
        dps.DPMixture("x", alpha, component_of("Normal", 1), observed=ROWS[:, 0])
    return model


def exact_joint() -> np.ndarray:
    """Posterior of the index of alpha and the partition, (2, Bell(N))."""
    n_obs = len(ROWS)
    at_one = np.log(exact_posterior(twin_of("Normal", 1), ROWS, 1.0))
    log_p = np.log(ALPHAS)[:, None] * n_clusters_of(n_obs) + at_one
    log_p += (gammaln(ALPHAS) - gammaln(ALPHAS + n_obs))[:, None]
    p = np.exp(log_p)
    return p / p.sum()


def exact_draws(rng: np.random.Generator) -> xr.DataTree:
    """A trace of `N_CHAINS` chains, each with one draw of the exact posterior."""
    n_second = rng.binomial(N_CHAINS, exact_joint()[1].sum())
    parts = []
    for which, n_chains in enumerate((N_CHAINS - n_second, n_second)):
        trace = exact_trace("Normal", ROWS, ALPHAS[which], (1, n_chains), seed=which)
        part = trace["posterior"].to_dataset().rename(chain="draw", draw="chain")
        parts.append(part.assign(which=(("chain", "draw"), np.full((n_chains, 1), which))))
    posterior = xr.concat(parts, dim="chain", data_vars="all", join="outer")
    return xr.DataTree.from_dict({"posterior": posterior.assign_coords(chain=np.arange(N_CHAINS))})


def with_new_alpha(point: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Draw alpha given the measure in a point, as a step that precedes that of the mixture."""
    n_clusters, log_rest = point["x_n_clusters"], point["x_new_weight_log__"]
    log_p = n_clusters * np.log(ALPHAS) + (ALPHAS - 1.0) * log_rest
    p = np.exp(log_p - log_p.max())
    return {**point, "which": np.asarray(rng.choice(2, p=p / p.sum()))}


def continued(rng: np.random.Generator) -> np.ndarray:
    """Cell of alpha and the partition in the draws of all chains, (chains, draws)."""
    model = model_of()
    (mixture,) = find_mixtures(model).values()
    points = []
    for values in last_draws(exact_draws(rng), model):
        log_rest = np.asarray(np.log(values.pop("x_new_weight")))
        points.append({**values, "x_new_weight_log__": log_rest})
    options = {"continues": True, "iterations": 1, "attempts": 0}
    step: Any = dps.DPSplitMerge(
        mixture.owned, model=model, rng=rng, initial_point=points[0], **options
    )
    n_partitions = len(enumerate_partitions(len(ROWS)))
    cells = np.empty((N_CHAINS, N_DRAWS), np.int64)
    for chain, point in enumerate(points):
        step.setup_chain(rng, 0, N_DRAWS)
        for draw in range(N_DRAWS):
            point, _ = step.step(with_new_alpha(point, rng))
            cells[chain, draw] = int(point["which"]) * n_partitions
            cells[chain, draw] += partition_index(step.labels[None])[0]
    return cells


def p_value(cells: np.ndarray) -> float:
    """P-value of the draws (chains, draws) of independent chains, for each draw by chi-square."""
    law = exact_joint().ravel()
    is_common = law * N_CHAINS >= 5.0
    group = np.where(is_common, np.cumsum(is_common), 0)
    expected = N_CHAINS * np.bincount(group, weights=law)
    counts = [np.bincount(group[of], minlength=len(expected)) for of in cells.T]
    return combine(*(stats.chisquare(of, expected).pvalue for of in counts))


@pytest.mark.slow
def test_continued_chains_keep_the_posterior(rng: np.random.Generator) -> None:
    assert p_value(continued(rng)) > LEVEL


def one_cluster(
    target: sampler.Target, rng: np.random.Generator, *measure: Any
) -> sampler.ChainState:
    return sampler.resume(target, np.zeros(len(ROWS), np.int32))


def without_remainder(
    target: sampler.Target, rng: np.random.Generator, *measure: Any
) -> sampler.ChainState:
    return honest(target, rng, *measure[:2], -np.inf, measure[3])


honest = sampler.start_from_measure


@pytest.mark.slow
@pytest.mark.control
@pytest.mark.parametrize("broken", [one_cluster, without_remainder])
def test_other_start_is_caught(
    broken: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain_start.sampler, "start_from_measure", broken)
    assert p_value(continued(rng)) < LEVEL
