"""NUTS forms of families of whole numbers with a beta probability and a known number."""

from typing import Any, ClassVar, override

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_dpsplit.finite.form import Clusters, Values
from pymc_dpsplit.finite.whole_numbers import Probabilities


class SuccessProbabilities(Probabilities):
    """Binomial: probabilities of a success, sampled on the scale of log odds."""

    signature: ClassVar[tuple[str, ...]] = ("d", "d")
    number: ClassVar[str] = "n"

    @override
    def start(self, rows: np.ndarray, groups: np.ndarray, values: Values) -> dict[str, np.ndarray]:
        a, b, n = values["a0"], values["b0"], values["n"]
        return {"p": (a + groups @ rows) / (a + b + groups.sum(1)[:, None] * n)}

    @override
    def declare(self, name: str, values: Values, start: Values, ordered: bool) -> Clusters:
        (p,), parameters = super().declare(name, values, start, ordered)
        return Clusters((p, values[self.number] * pt.ones_like(p)), parameters)

    @override
    def log_density(self, rows: Any, *inputs: Any) -> Any:
        p, n = inputs
        failures = n[0] - rows
        ways = pt.gammaln(n[0] + 1.0) - pt.gammaln(rows + 1.0) - pt.gammaln(failures + 1.0)
        return ways.sum(1)[:, None] + rows @ pt.log(p).T + failures @ pt.log1p(-p).T

    @override
    def draw(self, labels: Any, *inputs: Any) -> Any:
        p, n = inputs
        return pm.Binomial.dist(n[labels], p[labels])


class FailureCounts(SuccessProbabilities):
    """Negative binomial: like the binomial, with a known number of successes."""

    number: ClassVar[str] = "r"

    @override
    def start(self, rows: np.ndarray, groups: np.ndarray, values: Values) -> dict[str, np.ndarray]:
        a, b = values["a0"], values["b0"]
        successes = groups.sum(1)[:, None] * values["r"]
        return {"p": (a + successes) / (a + b + successes + groups @ rows)}

    @override
    def log_density(self, rows: Any, *inputs: Any) -> Any:
        p, r = inputs
        ways = pt.gammaln(rows + r[0]) - pt.gammaln(r[0]) - pt.gammaln(rows + 1.0)
        return ways.sum(1)[:, None] + (r * pt.log(p)).sum(1) + rows @ pt.log1p(-p).T

    @override
    def draw(self, labels: Any, *inputs: Any) -> Any:
        p, r = inputs
        return pm.NegativeBinomial.dist(n=r[labels], p=p[labels])
