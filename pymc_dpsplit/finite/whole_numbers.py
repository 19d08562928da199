"""NUTS forms of families of whole numbers, whose priors are distributions of PyMC."""

from typing import Any, ClassVar, override

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_dpsplit.finite.form import Clusters, NutsForm, Values
from pymc_dpsplit.finite.started import declare_started


class Rates(NutsForm):
    """Poisson: gamma rates, sampled on the log scale."""

    signature: ClassVar[tuple[str, ...]] = ("d",)

    @override
    def start(self, rows: np.ndarray, groups: np.ndarray, values: Values) -> dict[str, np.ndarray]:
        size = groups.sum(1)[:, None]
        return {"rate": (values["a0"] + groups @ rows) / (values["b0"] + size)}

    @override
    def declare(self, name: str, values: Values, start: Values, ordered: bool) -> Clusters:
        a0, b0 = values["a0"], values["b0"]
        rate = declare_started(f"{name}_rate", pm.Gamma, a0, b0, start=start["rate"])
        return Clusters((rate,), {"rate": rate})

    @override
    def log_density(self, rows: Any, *inputs: Any) -> Any:
        (rate,) = inputs
        constant = pt.gammaln(rows + 1.0).sum(1)[:, None]
        return rows @ pt.log(rate).T - rate.sum(1) - constant

    @override
    def draw(self, labels: Any, *inputs: Any) -> Any:
        return pm.Poisson.dist(inputs[0][labels])


class Probabilities(NutsForm):
    """Bernoulli: beta probabilities, sampled on the scale of log odds."""

    signature: ClassVar[tuple[str, ...]] = ("d",)

    @override
    def start(self, rows: np.ndarray, groups: np.ndarray, values: Values) -> dict[str, np.ndarray]:
        a, b = values["a0"], values["b0"]
        size = groups.sum(1)[:, None]
        return {"p": (a + groups @ rows) / (a + b + size)}

    @override
    def declare(self, name: str, values: Values, start: Values, ordered: bool) -> Clusters:
        a0, b0 = values["a0"], values["b0"]
        p = declare_started(f"{name}_p", pm.Beta, a0, b0, start=start["p"])
        return Clusters((p,), {"p": p})

    @override
    def log_density(self, rows: Any, *inputs: Any) -> Any:
        (p,) = inputs
        return rows @ pt.log(p).T + (1.0 - rows) @ pt.log1p(-p).T

    @override
    def draw(self, labels: Any, *inputs: Any) -> Any:
        return pm.Bernoulli.dist(inputs[0][labels])


class CategoryWeights(NutsForm):
    """Categorical: one Dirichlet variable for all columns with the same number of categories."""

    signature: ClassVar[tuple[str, ...]] = ("dc",)

    def _columns_by_number(self) -> dict[int, np.ndarray]:
        """Return the columns of each number of categories."""
        numbers = self.component.n_categories
        return {int(c): np.flatnonzero(numbers == c) for c in np.unique(numbers)}

    @override
    def start(self, rows: np.ndarray, groups: np.ndarray, values: Values) -> dict[str, np.ndarray]:
        a0 = np.asarray(values["a0"])
        hits = rows[:, :, None] == np.arange(a0.shape[1])
        weight = a0 + np.einsum("kn,ndc->kdc", groups.astype(float), hits.astype(float))
        p = weight / weight.sum(2, keepdims=True)
        return {f"p_of_{c}": p[:, columns, :c] for c, columns in self._columns_by_number().items()}

    @override
    def declare(self, name: str, values: Values, start: Values, ordered: bool) -> Clusters:
        numbers = self.component.n_categories
        n_clusters = len(next(iter(start.values())))
        p: Any = pt.zeros((n_clusters, len(numbers), int(numbers.max())))
        for c, columns in self._columns_by_number().items():
            part: Any = 1.0  # the probability of a single category is constant
            if c > 1:
                own = f"p_of_{c}"
                a0 = values["a0"][columns, :c]
                part = declare_started(f"{name}_{own}", pm.Dirichlet, a0, start=start[own])
            p = p[:, columns, :c].set(part)
        return Clusters((p,), {"p": p})

    @override
    def log_density(self, rows: Any, *inputs: Any) -> Any:
        (p,) = inputs
        n_clusters, d, c = p.shape[0], p.shape[1], p.shape[2]
        hits = pt.eq(rows[:, :, None], pt.arange(c)).astype("float64")
        # The logarithm for an absent category is never used.
        log_p = pt.log(pt.where(pt.gt(p, 0.0), p, 1.0))
        return hits.reshape((rows.shape[0], d * c)) @ log_p.reshape((n_clusters, d * c)).T

    @override
    def draw(self, labels: Any, *inputs: Any) -> Any:
        return pm.Categorical.dist(inputs[0][labels])
