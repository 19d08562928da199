"""Whole draws under laws of the partition with two numbers, both of them sampled.

Alpha (or gamma) is the first number; the second is a discount, or the number of components.
"""

from typing import Any

import numpy as np
import pymc as pm
from scipy.special import betainc

import pymc_dpsplit as dps
from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.moves.forward import draw_partition
from pymc_dpsplit.moves.partition_law import PartitionLaw, finite_mixture, opening_mass
from tests.support.whole_draws import Truth, WholeDraws

_NORMAL = ("Normal", 1)
# Of the discount, and of the number of components less one.
_BETA, _RATE = (2.0, 8.0), 3.0


class DrawsUnderLaw(WholeDraws):
    """Whole draws of normal clusters under a law that subclasses name."""

    def __init__(self, n_obs: int, seed: int, kernel: str = "exact") -> None:
        super().__init__(*_NORMAL, n_obs, seed, kernel, has_factor=False)

    @property
    def law(self) -> PartitionLaw:
        """Present law of the partition."""
        return self.law_at(self.alpha, self.other)

    @property
    def other(self) -> float:
        """Present second number."""
        raise NotImplementedError

    def law_at(self, alpha: float, other: float) -> PartitionLaw:
        """Law of the partition with given numbers."""
        raise NotImplementedError

    def draw_other(self) -> float:
        """Draw the second number from its prior."""
        raise NotImplementedError

    def place(self, other: float) -> None:
        """Put the second number in the point."""
        raise NotImplementedError

    def _labels(self, alpha: float) -> tuple[np.ndarray, float]:
        other = self.draw_other()
        return draw_partition(self.rng, self.law_at(alpha, other), self.n_obs), other

    def restart(self, truth: Truth) -> None:
        """Go on from an exact draw."""
        self.place(truth.other)
        super().restart(truth)

    def _quantile_of_rest(self) -> float:
        """Quantile of the weight of what is not yet seen, Beta(tau + K sigma, N - K sigma)."""
        n_clusters = len(self.step.cluster_stats)
        mass = opening_mass(self.law, n_clusters)
        if mass == 0.0:
            return float(self.rng.random())
        (name,) = (name for name in self.point if name.startswith("x_new_weight"))
        rest = np.exp(self.point[name])
        return float(betainc(mass, self.n_obs - n_clusters * self.law.discount, rest))

    def statistics(self) -> list[float]:
        """Those of a Dirichlet process, and the second number."""
        return [*super().statistics(), self.other]


class PitmanYorDraws(DrawsUnderLaw):
    """Pitman-Yor process, strength and discount sampled."""

    def _declare(self, alpha: Any, component: ComponentFamily, observed: Any) -> list[Any]:
        discount = pm.Beta("discount", *_BETA)
        dps.DPMixture("x", alpha, component, discount=discount, observed=observed)
        return [discount]

    def law_at(self, alpha: float, other: float) -> PartitionLaw:
        return PartitionLaw(other, alpha)

    @property
    def other(self) -> float:
        return float(1.0 / (1.0 + np.exp(-self.point["discount_logodds__"])))

    def draw_other(self) -> float:
        return float(self.rng.beta(*_BETA))

    def place(self, other: float) -> None:
        odds = np.log(other) - np.log1p(-other)
        self.point = {**self.point, "discount_logodds__": np.asarray(odds)}


class FiniteMixturesDraws(DrawsUnderLaw):
    """Mixture of finite mixtures, gamma and the number of components sampled."""

    def _declare(self, alpha: Any, component: ComponentFamily, observed: Any) -> list[Any]:
        prior = 1 + pm.Poisson.dist(_RATE)
        dps.MFMixture("x", alpha, component, n_components=prior, observed=observed)
        return []

    def law_at(self, alpha: float, other: float) -> PartitionLaw:
        return finite_mixture(alpha, int(other))

    @property
    def other(self) -> float:
        return float(self.point["x_n_components"])

    def draw_other(self) -> float:
        return 1.0 + float(self.rng.poisson(_RATE))

    def place(self, other: float) -> None:
        n_components = np.asarray(other, self.point["x_n_components"].dtype)
        self.point = {**self.point, "x_n_components": n_components}
