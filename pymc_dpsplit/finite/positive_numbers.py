"""NUTS form of the families of positive numbers that have a gamma rate."""

from typing import Any, ClassVar, override

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_dpsplit.finite.form import Clusters, NutsForm, Values


class PositiveRates(NutsForm):
    """Gamma of known shape, and exponential: gamma rates, moved on the log scale."""

    signature: ClassVar[tuple[str, ...]] = ("d", "d")

    @override
    def start(self, rows: np.ndarray, groups: np.ndarray, values: Values) -> dict[str, np.ndarray]:
        size, shape = groups.sum(1)[:, None], values.get("shape", 1.0)
        return {"rate": (values["a"] + shape * size) / (values["b"] + groups @ rows)}

    @override
    def declare(self, name: str, values: Values, start: Values, ordered: bool) -> Clusters:
        initial = start["rate"]
        rate = pm.Gamma(
            f"{name}_rate", values["a"], values["b"], initval=initial, shape=initial.shape
        )
        return Clusters((rate, values.get("shape", 1.0) * pt.ones_like(rate)), {"rate": rate})

    @override
    def log_density(self, rows: Any, *inputs: Any) -> Any:
        rate, shape = inputs
        power = shape[0] - 1.0
        # Exponential rows may be zero: their logarithm counts for nothing.
        log_rows = pt.where(pt.neq(power, 0.0), power * pt.log(rows), 0.0)
        constant = (shape * pt.log(rate) - pt.gammaln(shape)).sum(1)
        return log_rows.sum(1)[:, None] + constant - rows @ rate.T

    @override
    def draw(self, labels: Any, *inputs: Any) -> Any:
        rate, shape = inputs
        return pm.Gamma.dist(shape[labels], rate[labels])
