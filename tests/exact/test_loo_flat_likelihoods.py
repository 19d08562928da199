"""Leave-one-group-out where a likelihood is flat on one side and the base measure has heavy tails.

The integrals of the same draws are taken part by part, on a grid for each.
"""

from typing import Any

import arviz as az
import numpy as np
import pymc as pm
import pytest
from scipy import stats
from scipy.special import expit, logsumexp

import pymc_dpsplit as dps
from pymc_dpsplit.posterior.prediction import loo_groups
from pymc_dpsplit.variables import find_mixtures

pytestmark = pytest.mark.slow

Y, N_TRIALS = np.array([3, 4, 3, 16, 17, 20]), 20
N = len(Y)
KAPPA0, A0, B0 = 0.01, 1.0, 0.02
UNIFORMS = (np.arange(20_000) + 0.5) / 20_000
# A likelihood may favour values far out in the tail of a cluster.
DEVIATES = np.linspace(-20.0, 20.0, 8_001)
LOG_MASSES = stats.norm.logpdf(DEVIATES) + np.log(DEVIATES[1] - DEVIATES[0])
SHAPE = (1, 30)


def declared() -> pm.Model:
    with pm.Model() as model:
        b = dps.DPMixture("b", 1.0, dps.Normal(0.0, KAPPA0, A0, B0), shape=N)
        pm.Binomial("y", N_TRIALS, logit_p=b, observed=Y)
    return model


def narrow_trace(rng: np.random.Generator, width: float) -> Any:
    """Draws as of this model: narrow clusters, and a last group alone or far out in a tail."""
    labels = np.tile([0, 0, 0, 1, 1, 1], (*SHAPE, 1))
    labels[:, ::3, -1] = 2
    n_clusters = labels.max(-1) + 1
    mu, sigma = (np.full((*SHAPE, N), np.nan) for _ in range(2))
    weights, b, new_weight = np.zeros((*SHAPE, N)), np.empty((*SHAPE, N)), np.empty(SHAPE)
    for place in np.ndindex(SHAPE):
        k = n_clusters[place]
        *own, new_weight[place] = rng.dirichlet([*np.bincount(labels[place]), 1.0])
        centres = np.array([-1.6, rng.normal(1.9, 0.4), 3.0 + rng.gamma(1.0, 8.0)])[:k]
        weights[place][:k], mu[place][:k] = own, centres
        sigma[place][:k] = width * np.exp(rng.normal(size=k))
        b[place] = rng.normal(mu[place][labels[place]], sigma[place][labels[place]])
    drawn = {"b_n_clusters": n_clusters, "b_new_weight": new_weight, "b_weights": weights}
    drawn |= {"b_mu": mu, "b_sigma": sigma, "b_labels": labels, "b": b}
    dims = {f"b_{key}": ["b_cluster"] for key in ("weights", "mu", "sigma")}
    return az.from_dict({"posterior": drawn}, dims=dims)


def part_by_part(idata: Any) -> np.ndarray:
    """Log likelihoods (chain, draw, N) of the left-out groups, one part at a time."""
    posterior = idata["posterior"]
    of_new = stats.t.ppf(UNIFORMS, 2 * A0, 0.0, np.sqrt(B0 / A0 * (1.0 + 1.0 / KAPPA0)))
    out = np.empty((*SHAPE, N))

    def log_mean(b: np.ndarray, i: int, log_masses: Any) -> float:
        return float(logsumexp(stats.binom.logpmf(Y[i], N_TRIALS, expit(b)) + log_masses))

    alone_in_base = [log_mean(of_new, i, -np.log(len(of_new))) for i in range(N)]
    for place in np.ndindex(SHAPE):
        labels = posterior["b_labels"].to_numpy()[place]
        sizes = np.bincount(labels)
        kept = (posterior[f"b_{key}"].to_numpy()[place] for key in ("weights", "mu", "sigma"))
        weights, mu, sigma = (of[: len(sizes)] for of in kept)
        for i in range(N):
            others = sizes - (np.arange(len(sizes)) == labels[i]) > 0
            rest = 1.0 - weights[others].sum()
            parts = [
                log_mean(mu[k] + sigma[k] * DEVIATES, i, LOG_MASSES) for k in np.flatnonzero(others)
            ]
            parts.append(alone_in_base[i])
            out[place][i] = logsumexp(parts, b=[*weights[others], rest])
    return out


def error(rng: np.random.Generator, width: float) -> float:
    model, idata = declared(), narrow_trace(rng, width)
    found = loo_groups.integrated_likelihood(idata, model, find_mixtures(model)["b"])
    return float(np.abs(found.to_numpy() - part_by_part(idata)).max())


@pytest.mark.parametrize("width", [0.1, 1e-4])
def test_no_cluster_is_missed(width: float, rng: np.random.Generator) -> None:
    assert error(rng, width) < 1e-4


@pytest.mark.control
def test_missed_clusters_are_caught_and_reported(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loo_groups, "knots_of_parts", lambda *_: np.array([-40.0, 0.0, 40.0]))
    with pytest.warns(UserWarning, match="^in some draws the integral over the value of b did not"):
        assert error(rng, 1e-4) > 0.1
