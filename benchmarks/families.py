"""Time of a sweep of every family, per row: what its densities and its statistics take."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import pymc_dpsplit as dps
from benchmarks.row import Row
from benchmarks.subject import Chain, make_target
from benchmarks.timing import median_seconds

_N_OBS, _N_CLUSTERS, _ITERATIONS = 100_000, 5, 20


def _around(n_features: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Normal rows around five centres, and their labels."""
    labels = rng.integers(_N_CLUSTERS, size=_N_OBS)
    centres = 3.0 * rng.standard_normal((_N_CLUSTERS, n_features))
    return centres[labels] + rng.standard_normal((_N_OBS, n_features)), labels


def _cases() -> dict[str, tuple[Any, np.ndarray, np.ndarray]]:
    """Component, rows and labels by name."""
    rng = np.random.default_rng(1)
    one, of_one = _around(1, rng)
    two, of_two = _around(2, rng)
    eight, of_eight = _around(8, rng)
    many, of_many = _around(32, rng)
    labels = rng.integers(_N_CLUSTERS, size=_N_OBS)
    rates = rng.gamma(2.0, 3.0, (_N_CLUSTERS, 2))
    counts = rng.poisson(rates[labels]).astype(float)
    ones = (rng.random((_N_OBS, 4)) < rng.random((_N_CLUSTERS, 4))[labels]).astype(float)
    codes = rng.integers(4, size=(_N_OBS, 3)) * (labels[:, None] % 2).astype(float)
    mixed = np.column_stack([two, rng.poisson(rates[of_two])[:, :1], codes[:, :1]])
    product = dps.Product(
        {"size": [0, 1], "visits": [2], "kind": [3]},
        size=dps.DiagNormal(0.0, 0.01, 2.0, 2.0),
        visits=dps.Poisson(1.0, 0.2),
        kind=dps.Categorical(np.ones(4)),
    )
    known = dps.MvNormalKnownCov(np.zeros(2), 0.01, np.eye(2))
    full = dps.MvNormal(np.zeros(2), 0.01, 4.0, np.eye(2))
    return {
        "Normal": (dps.Normal(0.0, 0.01, 2.0, 2.0), one, of_one),
        "DiagNormal, D = 2": (dps.DiagNormal(0.0, 0.01, 2.0, 2.0), two, of_two),
        "DiagNormal, D = 8": (dps.DiagNormal(0.0, 0.01, 2.0, 2.0), eight, of_eight),
        "DiagNormal, D = 32": (dps.DiagNormal(0.0, 0.01, 2.0, 2.0), many, of_many),
        "SphericalNormal, D = 8": (
            dps.SphericalNormal(np.zeros(8), 0.01, 2.0, 2.0),
            eight,
            of_eight,
        ),
        "MvNormalKnownCov, D = 2": (known, two, of_two),
        "MvNormal, D = 2": (full, two, of_two),
        "Poisson, D = 2": (dps.Poisson(1.0, 0.2), counts, labels),
        "NegativeBinomial, D = 2": (dps.NegativeBinomial(5.0, 1.0, 1.0), counts, labels),
        "Gamma, D = 2": (dps.Gamma(2.0, 1.0, 1.0), 1.0 + counts, labels),
        "Exponential, D = 2": (dps.Exponential(1.0, 1.0), 1.0 + counts, labels),
        "Bernoulli, D = 4": (dps.Bernoulli(1.0, 1.0), ones, labels),
        "Categorical, D = 3": (dps.Categorical(np.ones(4)), codes, labels),
        "Product of three, D = 4": (product, mixed, of_two),
    }


def run() -> Iterator[Row]:
    """One row for each family."""
    for name, (component, rows, labels) in _cases().items():
        chain = Chain(make_target(rows, component), labels)
        chain.iterate(_ITERATIONS)
        seconds = median_seconds(chain.sweep)
        yield Row(
            name=name,
            measured=1e9 * seconds / _N_OBS,
            unit="ns per row",
            larger_is_better=False,
            note=f"{chain.n_clusters} clusters at the end",
        )
