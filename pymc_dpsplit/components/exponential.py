"""Exponential clusters with gamma priors on the rates: the case of shape one of `gamma`."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from pymc_dpsplit.components.arguments import refuse_where, rows_of
from pymc_dpsplit.components.declaration import Component, Values
from pymc_dpsplit.components.gamma import Gamma, GammaPrior
from pymc_dpsplit.data.blocks import moments_of


class Exponential(Gamma):
    """Exponential clusters of vectors, with a gamma prior on the rate of each column.

    Per column, ``rate ~ Gamma(a, b)`` with shape a and rate b, and observations of the cluster are
    ``Exponential(rate)``, with density ``rate exp(-rate x)`` [1]_.  Given the cluster the columns
    are independent.

    Parameters
    ----------
    a : float or array of shape (D,)
        Shape of the prior of a rate; positive.
    b : float or array of shape (D,)
        Rate of the prior of a rate, in the units of the data; positive.

    Notes
    -----
    Data are numbers from 0, of shape (N, D), a single column as ``observed[:, None]``.  A latent
    mixture, or data less a mean, is refused: other steps would leave these numbers.

    References
    ----------
    .. [1] Gelman et al. (2013), Bayesian Data Analysis, 3rd edition, section 2.6.

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> dps.Exponential(a=1.0, b=[0.5, 2.0])
    Exponential(a=1.0, b=[0.5, 2.0])
    """

    examples: ClassVar[tuple[float, float]] = (0.0, 1.0)
    likelihood_arguments: tuple[str, ...] = ()

    def __init__(self, a: Any, b: Any) -> None:
        Component.__init__(self, {"a": a, "b": b})

    @classmethod
    def from_data(cls, observed: Any) -> "Exponential":
        """Weakly informative hyperparameters on the scale of the data.

        ``a = 2`` and ``b`` twice the mean of each column, so that clusters of the mean rate have
        the mean of the data; that of a column of zeros is taken for 1.

        Parameters
        ----------
        observed : array-like of shape (N, D)
            Numbers from 0; entries that are NaN or masked are left out.

        Returns
        -------
        Exponential

        Raises
        ------
        ValueError
            If the data are empty or negative, or all entries of a column are missing.

        Examples
        --------
        >>> import pymc_dpsplit as dps
        >>> dps.Exponential.from_data([[0.0, 3.0], [4.0, 7.0]]).hyperparameters["b"]
        array([ 4., 10.])
        """
        rows = rows_of(observed, cls.row_ndim, may_miss=True)
        cls(1.0, 1.0).suited_to(rows)
        mean, _ = moments_of(rows)
        return cls(a=2.0, b=2.0 * np.where(mean > 0, mean, 1.0))

    def suited_to(self, rows: np.ndarray) -> "Exponential":
        refuse_where(lambda x: x < 0, rows, "give numbers from 0, or another component")
        return self

    def prior(self, values: Mapping[str, np.ndarray], shift: np.ndarray) -> GammaPrior:
        return GammaPrior(shift, np.ones_like(values["a"]), values["a"], values["b"])

    def _shape(self) -> float:
        return 1.0

    def log_density(self, rows: Any, natural: Values, pt: Any) -> Any:
        # Not that of shape one, in which the logarithm of a zero is multiplied by zero.
        rate = natural["rate"]
        return (pt.log(rate) - rate * rows).sum(axis=1)
