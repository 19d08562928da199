"""NUTS forms of Gaussian families with a shared covariance, or with one scale per cluster.

Densities are those of `finite.gaussian`; docs/method.md, section 13.
"""

from typing import Any, ClassVar, override

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.transforms import ordered as in_order

from pymc_dpsplit.finite.form import Clusters, Values
from pymc_dpsplit.finite.gaussian import (
    LOG_2PI,
    FullNormal,
    IndependentNormal,
    ScalarNormal,
    group_means,
    in_steps,
    root_and_inverse,
)
from pymc_dpsplit.finite.started import declare_started


class ScalarMeans(ScalarNormal):
    """Normal clusters with known spread: means, in units of their prior standard deviation."""

    @override
    def start(self, rows: np.ndarray, groups: np.ndarray, values: Values) -> dict[str, np.ndarray]:
        mu0, sigma0, sigma = (values[key] for key in ("mu0", "sigma0", "sigma"))
        size, mean = group_means(rows, groups, np.atleast_1d(mu0))
        pull = size / ((sigma / sigma0) ** 2 + size)
        return {"location": in_steps((pull * (mean - mu0) / sigma0)[:, 0])}

    @override
    def declare(self, name: str, values: Values, start: Values, ordered: bool) -> Clusters:
        location = declare_started(
            f"{name}_location",
            pm.Normal,
            0.0,
            1.0,
            start=start["location"],
            transform=in_order if ordered else None,
        )
        mu = values["mu0"] + values["sigma0"] * location
        return Clusters((mu, values["sigma"] * pt.ones_like(mu)), {"mu": mu})


class Balls(IndependentNormal):
    """Mean vector and one scale per cluster."""

    signature: ClassVar[tuple[str, ...]] = ("d", "")

    @override
    def start(self, rows: np.ndarray, groups: np.ndarray, values: Values) -> dict[str, np.ndarray]:
        mu0, kappa0, a0, b0 = (values[key] for key in ("mu0", "kappa0", "a0", "b0"))
        size, mean = group_means(rows, groups, mu0)
        scatter = np.array(
            [((rows[own] - m) ** 2).sum() for own, m in zip(groups, mean, strict=True)]
        )
        pull = size / (kappa0 + size)
        gap = (pull * (mean - mu0) ** 2).sum(1)
        a, b = a0 + 0.5 * rows.shape[1] * size[:, 0], b0 + 0.5 * (scatter + kappa0 * gap)
        return {"location": pull * (mean - mu0) / np.sqrt(b0 / a0), "spread": b0 * a / b}

    @override
    def log_density(self, rows: Any, *inputs: Any) -> Any:
        mu, sigma = inputs
        scaled = (rows[:, None] - mu) / sigma[:, None]
        return -0.5 * (scaled**2 + LOG_2PI).sum(-1) - mu.shape[1] * pt.log(sigma)

    @override
    def draw(self, labels: Any, *inputs: Any) -> Any:
        mu, sigma = inputs
        return pm.Normal.dist(mu[labels], sigma[labels][..., None])


class TiedMeans(FullNormal):
    """Mean vectors, in units of their prior; one covariance for all clusters."""

    @override
    def start(self, rows: np.ndarray, groups: np.ndarray, values: Values) -> dict[str, np.ndarray]:
        mu0, kappa0, cov = (np.asarray(values[key]) for key in ("mu0", "kappa0", "cov"))
        size, mean = group_means(rows, groups, mu0)
        gap = size / (kappa0 + size) * (mean - mu0)
        return {"location": np.linalg.solve(np.linalg.cholesky(cov), gap.T).T * np.sqrt(kappa0)}

    @override
    def declare(self, name: str, values: Values, start: Values, ordered: bool) -> Clusters:
        at = start["location"]
        location = declare_started(f"{name}_location", pm.Normal, 0.0, 1.0, start=at)
        root, unit = root_and_inverse(values["cov"])
        mu = values["mu0"] + location @ root.T / pt.sqrt(values["kappa0"])
        whitening = unit * pt.ones((*at.shape, 1))
        return Clusters((mu, whitening), {"mu": mu})
