"""Exponential clusters with gamma priors on the rates: the `gamma` family with shape one."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from pymc_dpsplit.components.component_family import Values
from pymc_dpsplit.components.gamma import Gamma, GammaPrior
from pymc_dpsplit.components.hyperparameters import A0_B0, Requirements
from pymc_dpsplit.components.support import NOT_NEGATIVE
from pymc_dpsplit.data.blocks import moments_of


class Exponential(Gamma):
    """Exponential clusters of vectors, with a gamma prior on the rate of each column.

    Per column, ``rate ~ Gamma(a0, b0)`` with shape a0 and rate b0, and observations of the cluster
    are ``Exponential(rate)``, with density ``rate exp(-rate x)`` [1]_.  The columns are independent
    given the cluster.

    Parameters
    ----------
    a0 : float or array of shape (D,)
        Shape of the prior of a rate; positive.
    b0 : float or array of shape (D,)
        Rate of the prior of a rate, in the units of the data; positive.

    Notes
    -----
    In the trace of a mixture ``x`` are ``x_rate`` (K, D), the rates.

    Data are non-negative numbers of shape (N, D); give a single column as ``observed[:, None]``.
    A latent mixture, or data less a mean, is refused, because other step methods would move rows
    out of the support.

    `from_data` uses ``a0 = 2``, and ``b0`` twice the mean of each column, so that a cluster with
    the prior mean rate has the mean of the data; the mean of a column of zeros is replaced by 1.

    References
    ----------
    .. [1] Gelman et al. (2013), Bayesian Data Analysis, 3rd edition, section 2.6.

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> dps.Exponential(a0=1.0, b0=[0.5, 2.0])
    Exponential(a0=1.0, b0=[0.5, 2.0])
    """

    requirements: ClassVar[Requirements] = A0_B0
    examples: ClassVar[tuple[float, float]] = (0.0, 1.0)
    likelihood_arguments: tuple[str, ...] = ()
    support = NOT_NEGATIVE

    @classmethod
    def defaults(cls, rows: np.ndarray) -> dict[str, Any]:
        mean, _ = moments_of(rows)
        return {"a0": 2.0, "b0": 2.0 * np.where(mean > 0, mean, 1.0)}

    def prior(self, values: Mapping[str, np.ndarray], shift: np.ndarray) -> GammaPrior:
        return super().prior({"shape": np.ones_like(values["a0"]), **values}, shift)

    def _shape(self) -> float:
        return 1.0

    def log_density(self, rows: Any, graph_parameters: Values, pt: Any) -> Any:
        # The gamma density with shape one would multiply log 0 by zero.
        rate = graph_parameters["rate"]
        return (pt.log(rate) - rate * rows).sum(axis=1)
