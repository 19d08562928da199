"""NUTS on a finite mixture draws from its posterior, enumerated over all labellings."""

from itertools import product

import numpy as np
import pymc as pm
import pytest
from scipy.special import betaln, gammaln, logsumexp

import pymc_dpsplit as dps
from pymc_dpsplit.posterior.comparison.compared_quantities import log_densities, numbers_occupied
from tests.support.families import GAUSSIAN, component_of, dataset_of, twin_of
from tests.support.statistics import LEVEL, combine, count_test, mean_test

pytestmark = pytest.mark.slow

N_COMPONENTS = 3
ALPHA = 1.5
PROBES = np.array([[-1.5, 0.4], [0.2, -0.3], [2.4, 1.1]])


def log_law_of_labels(sizes, kind, alpha):
    """Log probability of labels with such sizes (L, K), weights integrated out."""
    n_components = sizes.shape[1]
    if kind == "dirichlet":
        share = alpha / n_components
        return (gammaln(share + sizes) - gammaln(share)).sum(1)
    later = sizes[:, ::-1].cumsum(1)[:, ::-1]
    return (betaln(1 + sizes[:, :-1], alpha + later[:, 1:]) - betaln(1, alpha)).sum(1)


def mean_weights(sizes, kind, alpha):
    n_components = sizes.shape[1]
    if kind == "dirichlet":
        return (alpha / n_components + sizes) / (alpha + sizes.sum(1, keepdims=True))
    later = sizes[:, ::-1].cumsum(1)[:, ::-1]
    stick = (1 + sizes[:, :-1]) / (1 + alpha + sizes[:, :-1] + later[:, 1:])
    ones = np.ones((len(sizes), 1))
    return np.hstack([stick, ones]) * np.hstack([ones, np.cumprod(1 - stick, axis=1)])


def enumerated(twin, rows, probes, kind, alpha):
    """Predictive density at the probes, and the law of the number of occupied components."""
    n = len(rows)
    labels = np.array(list(product(range(N_COMPONENTS), repeat=n)))
    hits = labels[:, :, None] == np.arange(N_COMPONENTS)
    sizes, masks = hits.sum(1), np.einsum("lnk,n->lk", hits, 2 ** np.arange(n))
    subsets = [rows[[i for i in range(n) if mask >> i & 1]] for mask in range(2**n)]
    marginal = np.array([twin.log_marginal(own) if len(own) else 0.0 for own in subsets])
    log_p = log_law_of_labels(sizes, kind, alpha) + marginal[masks].sum(1)
    p = np.exp(log_p - logsumexp(log_p))
    weights = mean_weights(sizes, kind, alpha)
    density = []
    for probe in probes:
        joint = [twin.log_marginal(np.vstack([own, probe[None]])) for own in subsets]
        density.append(p @ (weights * np.exp(np.array(joint) - marginal)[masks]).sum(1))
    law = np.bincount((sizes > 0).sum(1), weights=p, minlength=N_COMPONENTS + 1)
    return np.array(density), law


def sampled(family, n_features, kind, n_draws):
    """Predictive density of the draws at the probes, and numbers of occupied components."""
    rows = dataset_of(family, "overlapping", n_features)[:6]
    component = component_of(family, n_features)
    component = component.validate_rows(rows)
    probes = PROBES[:, :n_features] if family in GAUSSIAN else rows[:3]
    with pm.Model():
        observed = rows if component.row_ndim else rows[:, 0]
        dps.finite_mixture(
            "x", ALPHA, component, n_components=N_COMPONENTS, observed=observed, weights=kind
        )
        trace = pm.sample(
            draws=n_draws,
            tune=500,
            chains=8,
            cores=1,
            random_seed=11,
            nuts_sampler="pymc",
            target_accept=0.9,
            progressbar=False,
            quiet=True,
            compute_convergence_checks=False,
        )
    posterior = trace["posterior"].to_dataset()
    density = np.exp(log_densities(posterior, "x", component, probes))
    numbers = numbers_occupied(posterior, "x", component, rows, np.random.default_rng(2))
    return rows, probes, density, numbers


def p_value(density, numbers, exact_density, law):
    return combine(mean_test(density, exact_density), count_test(numbers, law))


CASES = [
    ("Normal", 1, "dirichlet", 1000),
    pytest.param("Normal", 1, "stick", 4000, marks=pytest.mark.slow),
    pytest.param("MvNormal", 2, "dirichlet", 4000, marks=pytest.mark.slow),
    pytest.param("MvNormal", 2, "stick", 4000, marks=pytest.mark.slow),
    pytest.param("NormalKnownSigma", 1, "dirichlet", 4000, marks=pytest.mark.slow),
    pytest.param("SphericalNormal", 2, "dirichlet", 4000, marks=pytest.mark.slow),
    pytest.param("MvNormalKnownCov", 2, "stick", 4000, marks=pytest.mark.slow),
    pytest.param("Gamma", 2, "dirichlet", 4000, marks=pytest.mark.slow),
    pytest.param("Exponential", 2, "stick", 4000, marks=pytest.mark.slow),
    pytest.param("InverseGamma", 2, "stick", 12_000, marks=pytest.mark.slow),
    pytest.param("Poisson", 2, "dirichlet", 4000, marks=pytest.mark.slow),
    pytest.param("NegativeBinomial", 2, "dirichlet", 4000, marks=pytest.mark.slow),
    pytest.param("Binomial", 2, "stick", 4000, marks=pytest.mark.slow),
    pytest.param("Bernoulli", 3, "dirichlet", 4000, marks=pytest.mark.slow),
    pytest.param("Categorical", 3, "stick", 4000, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("family", "n_features", "kind", "n_draws"), CASES)
def test_nuts_agrees_with_enumeration(family, n_features, kind, n_draws):
    rows, probes, density, numbers = sampled(family, n_features, kind, n_draws)
    twin = twin_of(family, n_features)
    assert p_value(density, numbers, *enumerated(twin, rows, probes, kind, ALPHA)) > LEVEL
    # The control: the law of weights that are twice as even.
    wrong = enumerated(twin, rows, probes, kind, 2 * ALPHA)
    assert p_value(density, numbers, *wrong) < LEVEL
