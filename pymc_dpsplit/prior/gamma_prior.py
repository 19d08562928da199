"""A gamma prior on alpha."""

from typing import Any, NamedTuple

from scipy import stats


class GammaPrior(NamedTuple):
    """Parameters of a gamma prior, in the order and with the names of ``pm.Gamma``.

    Attributes
    ----------
    alpha : float
        Shape.
    beta : float
        Rate.
    """

    alpha: float
    beta: float

    def frozen(self) -> Any:
        """Return the same distribution as one of ``scipy.stats``."""
        return stats.gamma(self.alpha, scale=1.0 / self.beta)
