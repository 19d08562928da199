"""Small data sets, and hyperparameters for them, that make every partition test hard.

A data set is a function of the number of features D = 1, 2 or 3; it returns (n, D) with n from
6 to 8, few enough to enumerate all partitions.  Nothing is symmetric, so that a wrong sign or
a swapped pair of arguments shows.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import pymc_dpsplit as dps

_ROWS = {
    # Two groups, of unequal size and spread, that the first two features tell apart.
    "separated": [
        [-2.3, 0.9, 0.4],
        [-1.6, 1.6, -0.8],
        [-1.9, 0.2, 0.9],
        [1.4, -0.5, 0.6],
        [1.9, -1.3, -0.2],
        [2.2, 0.1, 1.1],
        [1.6, -0.9, -0.6],
        [2.9, -1.6, 0.3],
    ],
    # One cloud in which any number of clusters is plausible.
    "overlapping": [
        [-1.3, -0.4, 0.6],
        [-0.8, 0.7, -0.9],
        [-0.5, -1.1, 0.2],
        [0.0, 0.4, 1.2],
        [0.3, -0.6, -0.5],
        [0.9, 1.3, 0.1],
        [1.2, 0.2, -1.4],
        [1.9, 0.9, 0.8],
    ],
    # A group and one point far away.
    "outlier": [
        [-0.6, 0.3, 0.9],
        [-0.2, -0.7, 0.2],
        [0.1, 0.5, -0.4],
        [0.4, -0.1, 0.5],
        [0.7, 0.8, -0.8],
        [1.1, -0.5, 0.1],
        [6.5, 5.2, -4.7],
    ],
    # A triple, a pair and a single point: no scatter within, and ties in every ordering.
    "duplicates": [
        [0.5, -0.3, 1.1],
        [0.5, -0.3, 1.1],
        [0.5, -0.3, 1.1],
        [-1.0, 0.8, 0.2],
        [-1.0, 0.8, 0.2],
        [1.7, 0.4, -0.6],
    ],
}


def _first_features(name: str, n_features: int) -> np.ndarray:
    """Return the first features of one of the tables, as an array of its own."""
    return np.array(_ROWS[name])[:, :n_features].copy()


DATASETS: dict[str, Callable[[int], np.ndarray]] = {
    name: partial(_first_features, name) for name in _ROWS
}


def _normal(n_features: int) -> dict[str, Any]:
    if n_features != 1:
        raise ValueError(f"n_features must be 1 for Normal, got {n_features}.")
    return {"mu0": 0.2, "kappa0": 0.3, "a0": 2.0, "b0": 0.6}


def _normal_mean(n_features: int) -> dict[str, Any]:
    if n_features != 1:
        raise ValueError(f"n_features must be 1 for NormalMean, got {n_features}.")
    return {"mu0": 0.2, "sigma0": 1.6, "sigma": 0.8}


def _diag_normal(n_features: int) -> dict[str, Any]:
    return {
        "mu0": np.array([0.2, -0.1, 0.3])[:n_features],
        "kappa0": np.array([0.3, 0.5, 0.4])[:n_features],
        "a0": np.array([2.0, 2.5, 1.5])[:n_features],
        "b0": np.array([0.6, 0.9, 0.7])[:n_features],
    }


def _spherical_normal(n_features: int) -> dict[str, Any]:
    return {"mu0": _diag_normal(n_features)["mu0"], "kappa0": 0.3, "a0": 2.0, "b0": 0.9}


def _tied_normal(n_features: int) -> dict[str, Any]:
    cov = np.array([[0.7, 0.2, -0.1], [0.2, 0.9, 0.15], [-0.1, 0.15, 0.6]])
    return {
        "mu0": _diag_normal(n_features)["mu0"],
        "kappa0": 0.3,
        "cov": cov[:n_features, :n_features].copy(),
    }


def _mv_normal(n_features: int) -> dict[str, Any]:
    psi0 = np.array([[1.2, 0.4, -0.2], [0.4, 1.6, 0.3], [-0.2, 0.3, 1.0]])
    return {
        "mu0": np.array([0.2, -0.1, 0.3])[:n_features],
        "kappa0": 0.3,
        "nu0": n_features + 2.5,
        "psi0": psi0[:n_features, :n_features].copy(),
    }


def _poisson(n_features: int) -> dict[str, Any]:
    return {
        "a": np.array([1.3, 0.9, 2.0])[:n_features],
        "b": np.array([0.5, 0.4, 0.8])[:n_features],
    }


def _gamma(n_features: int) -> dict[str, Any]:
    return {
        "shape": np.array([2.5, 1.6, 4.0])[:n_features],
        "a": np.array([1.3, 0.9, 2.0])[:n_features],
        "b": np.array([0.8, 1.4, 0.6])[:n_features],
    }


def _exponential(n_features: int) -> dict[str, Any]:
    return {key: value for key, value in _gamma(n_features).items() if key != "shape"}


def _bernoulli(n_features: int) -> dict[str, Any]:
    return {
        "a": np.array([0.7, 1.1, 0.5])[:n_features],
        "b": np.array([0.9, 0.6, 1.2])[:n_features],
    }


def _categorical(n_features: int) -> dict[str, Any]:
    # The second column has two categories.
    beta = np.array([[0.6, 0.9, 0.5], [0.8, 0.5, 0.0], [0.4, 0.7, 1.1]])
    return {"beta": beta[:n_features]}


def _multinomial(n_features: int) -> dict[str, Any]:
    return {"beta": np.array([0.6, 0.9, 0.5])[:n_features]}


def _product(n_features: int) -> dict[str, Any]:
    """Parts of a product: families and their hyperparameters."""
    if n_features != 3:
        raise ValueError(f"n_features must be 3 for Product, got {n_features}.")
    return {
        "height": dps.Normal(**_normal(1)),
        "visits": dps.Poisson(**_poisson(1)),
        "colour": dps.Categorical(beta=np.array([[0.6, 0.9, 0.5]])),
    }


def as_mixed(rows: np.ndarray) -> np.ndarray:
    """Turn real rows into a number, a count and a code."""
    return np.column_stack([rows[:, 0], as_counts(rows[:, 1:2]), as_codes(rows[:, 2:])])


def as_positive(rows: np.ndarray) -> np.ndarray:
    """Turn real rows into positive numbers, in the same order."""
    return np.exp(0.9 * rows + 0.3)


def as_times(rows: np.ndarray) -> np.ndarray:
    """Turn real rows into positive numbers that are farther apart, in reverse order."""
    return np.exp(0.2 - rows)


def as_counts(rows: np.ndarray) -> np.ndarray:
    """Turn real rows into counts, in the same order."""
    return np.rint(np.exp(0.5 * rows + 0.6))


def as_zeros_and_ones(rows: np.ndarray) -> np.ndarray:
    """Turn real rows into zeros and ones."""
    return (rows > 0.15).astype(float)


def as_codes(rows: np.ndarray) -> np.ndarray:
    """Turn real rows into codes, of two categories in every third column, else of three."""
    codes = (rows > -0.55).astype(float) + (rows > 0.65)
    codes[:, 1::3] = rows[:, 1::3] > 0.15
    return codes


# By the name of the family, which is that of the public class and of its naive twin.
HYPERPARAMETERS: dict[str, Callable[[int], dict[str, Any]]] = {
    "Normal": _normal,
    "NormalMean": _normal_mean,
    "DiagNormal": _diag_normal,
    "SphericalNormal": _spherical_normal,
    "TiedNormal": _tied_normal,
    "MvNormal": _mv_normal,
    "Gamma": _gamma,
    "Exponential": _exponential,
    "Poisson": _poisson,
    "Bernoulli": _bernoulli,
    "Categorical": _categorical,
    "Product": _product,
    "Multinomial": _multinomial,
}
