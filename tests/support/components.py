"""Declarations of `Component` for each kind of distribution, with rows that suit them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import pymc_dpsplit as dps

N_ROWS = 30
_rng = np.random.default_rng(20261121)
_REAL = np.concatenate([_rng.normal(-1.5, 0.5, 15), _rng.normal(1.0, 0.7, 15)])
_POSITIVE = _rng.gamma(2.0, 1.0, N_ROWS)
_COUNTS = _rng.poisson(4.0, N_ROWS).astype(float)
_COVARIATES = np.column_stack([np.ones(N_ROWS), np.linspace(-1.0, 1.0, N_ROWS)])


class Declared(NamedTuple):
    """A component as a user writes it, and rows (N,) or (N, D)."""

    make: Callable[[], Any]
    rows: np.ndarray


def log_laplace(value: Any, mu: Any) -> Any:
    """Log density of a Laplace distribution of scale 1."""
    return -pt.abs(value - mu) - np.log(2.0)


def draw_laplace(mu: Any, rng: Any = None, size: Any = None) -> Any:
    """Draws of it."""
    return rng.laplace(mu, 1.0, size=size)


def truncated(mu: Any, sigma: Any) -> Any:
    """Student's t, positive."""
    return pm.Truncated.dist(pm.StudentT.dist(4, mu=mu, sigma=sigma), lower=0.0)


def censored(mu: Any, sigma: Any) -> Any:
    """A normal of which nothing above 2 is seen."""
    return pm.Censored.dist(pm.Normal.dist(mu, sigma), lower=None, upper=2.0)


def custom(mu: Any) -> Any:
    """A distribution of the user's own."""
    return pm.CustomDist.dist(mu, logp=log_laplace, random=draw_laplace)


def regression(beta: Any, sigma: Any, x: Any) -> Any:
    """A linear regression."""
    return pm.Normal.dist(x @ beta, sigma)


def _of(dist: Any, rows: np.ndarray, **arguments: Callable[[], Any] | Any) -> Declared:
    """Declare a component; arguments that are functions make a distribution."""

    def make() -> Any:
        made = {name: of() if callable(of) else of for name, of in arguments.items()}
        return dps.Component(dist, **made)

    return Declared(make, rows)


def _normal() -> Any:
    return pm.Normal.dist(0.0, 3.0)


def _half() -> Any:
    return pm.HalfNormal.dist(2.0)


def _gamma() -> Any:
    return pm.Gamma.dist(2.0, 1.0)


DECLARED: dict[str, Declared] = {
    "StudentT": _of(pm.StudentT, _REAL, nu=4, mu=_normal, sigma=_half),
    "Laplace": _of(pm.Laplace, _REAL, mu=_normal, b=_half),
    "SkewNormal": _of(pm.SkewNormal, _REAL, mu=_normal, sigma=_half, alpha=_normal),
    "VonMises": _of(
        pm.VonMises, _REAL, mu=lambda: pm.VonMises.dist(0.0, 0.1), kappa=_gamma
    ),
    "NegativeBinomial": _of(pm.NegativeBinomial, _COUNTS, mu=_gamma, alpha=_gamma),
    "BetaBinomial": _of(pm.BetaBinomial, _COUNTS, n=20, alpha=_gamma, beta=_gamma),
    "ZeroInflatedPoisson": _of(
        pm.ZeroInflatedPoisson, _COUNTS, psi=lambda: pm.Beta.dist(2.0, 2.0), mu=_gamma
    ),
    "Weibull": _of(pm.Weibull, _POSITIVE, alpha=_gamma, beta=_half),
    "Gamma": _of(pm.Gamma, _POSITIVE, alpha=_gamma, beta=_half),
    "Beta": _of(pm.Beta, _POSITIVE / (1.0 + _POSITIVE), alpha=_gamma, beta=_gamma),
    "LogNormal": _of(pm.LogNormal, _POSITIVE, mu=_normal, sigma=_half),
    "Truncated": _of(truncated, _POSITIVE, mu=_normal, sigma=_half),
    "Censored": _of(censored, np.minimum(_POSITIVE, 2.0), mu=_normal, sigma=_half),
    "MvStudentT": _of(
        pm.MvStudentT, np.column_stack([_REAL, _REAL[::-1]]), nu=5, scale=np.eye(2),
        mu=lambda: pm.Normal.dist(0.0, 3.0, shape=2),
    ),
    "CustomDist": _of(custom, _REAL, mu=_normal),
    "CustomDist by arguments": Declared(
        lambda: dps.Component(
            pm.CustomDist, mu=_normal(), logp=log_laplace, random=draw_laplace
        ),
        _REAL,
    ),
    "regression": _of(
        regression, _COVARIATES @ [1.0, 2.0] + 0.3 * _REAL, sigma=_half,
        beta=lambda: pm.Normal.dist(0.0, 5.0, shape=2), covariates={"x": _COVARIATES},
    ),
    "simplex": _of(
        pm.Multinomial, _rng.multinomial(6, [0.2, 0.3, 0.5], N_ROWS).astype(float), n=6,
        p=lambda: pm.Dirichlet.dist(np.ones(3)),
    ),
}  # fmt: skip
