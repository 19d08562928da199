"""`find_map` with a concentration that other mixtures have too, against all partitions enumerated.

The mode is that of the mixture by itself: nothing is known of the partitions of the others.
"""

from functools import cache, partial

import numpy as np
import pymc as pm
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import gamma

import pymc_dpsplit as dps
from pymc_dpsplit.estimates import grouped_concentrations, map_partition
from tests.estimates.test_grouped_map import log_law
from tests.support.families import component_of, twin_of
from tests.support.partition_laws import assigned, seated
from tests.support.partitions import enumerate_partitions, partition_index

N = 6
ROWS = np.array([0.1, -0.2, 4.2, 0.3, 4.0, 3.9])[:, None]
GROUPS = np.array([0, 0, 1, 1, 1, 0])
NORMAL = component_of("Normal", 1)
OTHERS = np.array([0.1, 0.3, 1.0, 1.2, 7.0])
COUNTS = np.array([[1, 2, 0], [0, 3, 1]])


def latent(alpha):
    b = dps.DPMixture("y", alpha, NORMAL, shape=5, discount=0.3)
    pm.Normal("values", b, 1.0, observed=OTHERS)


# Mixtures that have alpha too.
BESIDE = {
    "process": lambda alpha: dps.DPMixture("y", alpha, NORMAL, observed=OTHERS),
    "discount": lambda alpha: dps.DPMixture("y", alpha, NORMAL, discount=0.3, observed=OTHERS),
    "finite": lambda alpha: dps.FiniteMixture("y", alpha, NORMAL, n_components=3, observed=OTHERS),
    "unknown number": lambda alpha: dps.MFMixture(
        "y", alpha, NORMAL, n_components=pm.Geometric.dist(1.0 / (1.0 + alpha)), observed=OTHERS
    ),
    "groups": lambda alpha: dps.HDPMixture(
        "y", alpha, 1.0, NORMAL, groups=[0, 0, 1, 1, 1], observed=OTHERS
    ),
    "topics": lambda alpha: dps.HDPTopics("y", alpha, 1.0, 0.5, observed=COUNTS),
    "known labels": lambda alpha: dps.DPMixture(
        "y", alpha, NORMAL, observed=OTHERS, labels=[0, 0, -1, -1, 0], discount=0.2
    ),
    "latent": latent,
}
# Their terms are 0 at the initial point.
HARMLESS = {"process"}

OWN = {
    "process": (partial(dps.DPMixture, observed=ROWS[:, 0]), lambda alpha: seated(alpha, 0.0)),
    "discount": (
        partial(dps.DPMixture, discount=0.2, observed=ROWS[:, 0]),
        lambda alpha: seated(alpha, 0.2),
    ),
    "finite": (
        partial(dps.FiniteMixture, n_components=4, observed=ROWS[:, 0]),
        lambda alpha: assigned(alpha, 4),
    ),
}
CASES = [("process", beside) for beside in BESIDE] + [("discount", "finite"), ("finite", "groups")]


def model_of(declare, beside, is_first=True):
    """A mixture x beside another one, with the same alpha."""
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", 2, 2)
        if is_first:
            BESIDE[beside](alpha)
        declare("x", alpha, component=NORMAL)
        if not is_first:
            BESIDE[beside](alpha)
    return model


def highest(log_law_at):
    """Alpha at the mode of its logarithm, and the height there, given a log probability."""

    def negative(log_alpha):
        alpha = np.exp(log_alpha)
        return -(gamma.logpdf(alpha, 2, scale=0.5) + log_alpha + log_law_at(alpha))

    found = minimize_scalar(negative, bounds=(-5, 5), method="bounded", options={"xatol": 1e-7})
    return float(np.exp(found.x)), -float(found.fun)


@cache
def mode_of(own):
    """Partition and alpha at the mode of both, over all partitions."""
    log_prior_at, twin = OWN[own][1], twin_of("Normal", 1)
    best = -np.inf
    for i, labels in enumerate(enumerate_partitions(N).astype(int)):
        if np.isinf(log_prior_at(1.0)(labels)):
            continue  # more clusters than components
        alpha, height = highest(lambda alpha, z=labels: log_prior_at(alpha)(z))
        height += sum(twin.log_marginal(ROWS[labels == k]) for k in range(labels.max() + 1))
        if height > best:
            best, mode = height, (i, alpha)
    return mode


def misses(own, beside, is_first=True):
    """How far log alpha is from its mode, if the partition is the likeliest; otherwise infinity."""
    declare, _ = OWN[own]
    model = model_of(declare, beside, is_first)
    found = dps.find_map(model, var_name="x", random_seed=1, n_restarts=20)
    partition, alpha = mode_of(own)
    strength = 4 * alpha if own == "finite" else alpha
    if partition_index(found.labels) != partition:
        return np.inf
    return abs(np.log(found.alpha / strength))


@pytest.mark.parametrize(("own", "beside"), CASES)
def test_the_mode_is_that_of_the_mixture_by_itself(own, beside):
    assert misses(own, beside) < 1e-4


def test_the_order_of_declaration_does_not_matter():
    assert misses("process", "discount", is_first=False) < 1e-4


@pytest.mark.control
@pytest.mark.parametrize(("own", "beside"), [case for case in CASES if case[1] not in HARMLESS])
def test_other_mixtures_at_the_initial_point_are_caught(own, beside, monkeypatch):
    monkeypatch.setattr(map_partition, "of_other_mixtures", lambda model, name: set())
    assert misses(own, beside) > 0.05


# --- rows in groups -------------------------------------------------------------------------


def misses_in_groups(key, beside):
    """How far log alpha, or log gamma, is from its mode given the partition found."""
    numbers = {"alpha": 1.5, "gamma": 0.8}

    def declare(name, variable, component):
        given = {**numbers, key: variable}
        dps.HDPMixture(name, component=component, groups=GROUPS, observed=ROWS[:, 0], **given)

    model = model_of(declare, beside)
    found = dps.find_map(model, var_name="x", random_seed=1, n_restarts=3)
    mode, _ = highest(lambda number: log_law(found.labels, GROUPS, **{**numbers, key: number}))
    return abs(np.log(getattr(found, key) / mode))


@pytest.mark.parametrize("beside", ["process", "discount", "groups"])
@pytest.mark.parametrize("key", ["alpha", "gamma"])
def test_modes_in_groups_are_those_of_the_mixture_by_itself(key, beside):
    assert misses_in_groups(key, beside) < 1e-3


@pytest.mark.control
@pytest.mark.parametrize("beside", ["discount", "groups"])
def test_other_mixtures_beside_groups_are_caught(beside, monkeypatch):
    monkeypatch.setattr(grouped_concentrations, "of_other_mixtures", lambda model, name: set())
    assert misses_in_groups("alpha", beside) > 0.05
