"""NUTS forms of the families of positive numbers with a gamma prior on a rate or scale."""

from typing import Any, ClassVar, override

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_dpsplit.finite.form import Clusters, NutsForm, Values
from pymc_dpsplit.finite.started import declare_started


class PositiveRates(NutsForm):
    """Gamma with known shape, and exponential: gamma rates, sampled on the log scale."""

    signature: ClassVar[tuple[str, ...]] = ("d", "d")

    @override
    def start(self, rows: np.ndarray, groups: np.ndarray, values: Values) -> dict[str, np.ndarray]:
        size, shape = groups.sum(1)[:, None], values.get("shape", 1.0)
        return {"rate": (values["a0"] + shape * size) / (values["b0"] + groups @ rows)}

    @override
    def declare(self, name: str, values: Values, start: Values, ordered: bool) -> Clusters:
        ((parameter, initial),) = start.items()
        rate = declare_started(
            f"{name}_{parameter}", pm.Gamma, values["a0"], values["b0"], start=initial
        )
        return Clusters((rate, values.get("shape", 1.0) * pt.ones_like(rate)), {parameter: rate})

    @override
    def log_density(self, rows: Any, *inputs: Any) -> Any:
        rate, shape = inputs
        power = shape[0] - 1.0
        # Exponential rows may be zero; the factor of their logarithm is then zero.
        log_rows = pt.where(pt.neq(power, 0.0), power * pt.log(rows), 0.0)
        constant = (shape * pt.log(rate) - pt.gammaln(shape)).sum(1)
        return log_rows.sum(1)[:, None] + constant - rows @ rate.T

    @override
    def draw(self, labels: Any, *inputs: Any) -> Any:
        rate, shape = inputs
        return pm.Gamma.dist(shape[labels], rate[labels])


class Scales(PositiveRates):
    """Inverse gamma with known shape: gamma scales, sampled on the log scale."""

    @override
    def start(self, rows: np.ndarray, groups: np.ndarray, values: Values) -> dict[str, np.ndarray]:
        size = groups.sum(1)[:, None]
        total = groups @ (1.0 / rows)
        return {"scale": (values["a0"] + values["shape"] * size) / (values["b0"] + total)}

    @override
    def log_density(self, rows: Any, *inputs: Any) -> Any:
        scale, shape = inputs
        log_rows = (-(shape[0] + 1.0) * pt.log(rows)).sum(1)
        constant = (shape * pt.log(scale) - pt.gammaln(shape)).sum(1)
        return log_rows[:, None] + constant - (1.0 / rows) @ scale.T

    @override
    def draw(self, labels: Any, *inputs: Any) -> Any:
        scale, shape = inputs
        return pm.InverseGamma.dist(shape[labels], scale[labels])
