"""Clusters that are so far apart that sums of squares lose digits are reported once."""

import logging
from typing import Any

import numpy as np
import pymc as pm
import pytest

import pymc_dpsplit as dps

pytestmark = pytest.mark.compiled

NEAR, FAR = 1e4, 1e8
NOISE = np.random.default_rng(1).normal(size=(80, 2))


def rows_at(distance: float, n_features: int) -> np.ndarray:
    rows = NOISE[:, :n_features].copy()
    rows[:40, 0] += distance
    return rows if n_features > 1 else rows[:, 0]


COMPONENTS: dict[str, tuple[Any, int]] = {
    "Normal": (lambda r: dps.Normal(r / 2, r**-2.0, 2.0, 1.0), 1),
    "NormalKnownSigma": (lambda r: dps.NormalKnownSigma(r / 2, r, 1.0), 1),
    "MvNormal": (lambda r: dps.MvNormal([r / 2, 0.0], r**-2.0, 4.0, np.eye(2)), 2),
    "MvNormalKnownCov": (
        lambda r: dps.MvNormalKnownCov([r / 2, 0.0], r**-2.0, np.eye(2)),
        2,
    ),
}


def reported(name: str, distance: float, caplog: pytest.LogCaptureFixture) -> list[str]:
    make, n_features = COMPONENTS[name]
    with pm.Model(), caplog.at_level(logging.WARNING):
        dps.DPMixture("x", 1.0, make(distance), observed=rows_at(distance, n_features))
        pm.sample(draws=20, tune=20, chains=2, cores=1, random_seed=1, progressbar=False)
    return [r.getMessage() for r in caplog.records if "standard deviations" in r.getMessage()]


@pytest.mark.parametrize("name", COMPONENTS)
def test_far_clusters_are_reported(name: str, caplog: pytest.LogCaptureFixture) -> None:
    (message,) = reported(name, FAR, caplog)
    assert message.startswith("clusters of x lie up to ")
    assert message.endswith("in separate models.")


@pytest.mark.parametrize("name", COMPONENTS)
def test_others_are_not(name: str, caplog: pytest.LogCaptureFixture) -> None:
    assert not reported(name, NEAR, caplog)
