"""Univariate Gaussian clusters with a normal-inverse-gamma prior.

The case D = 1 of `diag_normal`, with the same kernels; an observation is a scalar.
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from pymc_dpsplit.components.diag_normal import DiagNormal, DiagNormalPrior
from pymc_dpsplit.components.hyperparameters import POSITIVE_NUMBER, REAL_NUMBER, Requirements


class Normal(DiagNormal):
    """Normal-inverse-gamma clusters of scalars.

    ``sigma^2 ~ InvGamma(a0, b0)``, ``mu | sigma^2 ~ N(mu0, sigma^2 / kappa0)`` and observations
    of the cluster are ``N(mu, sigma^2)`` [1]_.

    Parameters
    ----------
    mu0 : float
        Mean of the cluster means, in the units of the data.
    kappa0 : float
        Prior precision of the mean, in units of observations; positive.
    a0 : float
        Shape of the inverse gamma; positive.
    b0 : float
        Scale of the inverse gamma, in squared units of the data; positive.

    Notes
    -----
    In the trace of a mixture ``x`` are ``x_mu`` (K,), the means, and ``x_sigma`` (K,), the
    standard deviations.  `from_data` chooses ``mu0``, ``kappa0``, ``a0`` and ``b0`` by the data.

    References
    ----------
    .. [1] Gelman et al. (2013), Bayesian Data Analysis, 3rd edition, section 3.3, with
       a0 = nu0 / 2 and b0 = nu0 sigma0^2 / 2.

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> dps.Normal(mu0=20.0, kappa0=0.1, a0=2.0, b0=1.0)
    Normal(mu0=20.0, kappa0=0.1, a0=2.0, b0=1.0)
    """

    requirements: ClassVar[Requirements] = {
        "mu0": REAL_NUMBER,
        "kappa0": POSITIVE_NUMBER,
        "a0": POSITIVE_NUMBER,
        "b0": POSITIVE_NUMBER,
    }
    row_ndim: ClassVar[int] = 0
    parameters: ClassVar[dict[str, int]] = {"mu": 0, "sigma": 0}
    graph_ndims: ClassVar[dict[str, int]] = parameters

    def prior(self, values: Mapping[str, np.ndarray], shift: np.ndarray) -> DiagNormalPrior:
        return super().prior({name: np.atleast_1d(v) for name, v in values.items()}, shift)

    def unpack(self, params: np.ndarray, shift: np.ndarray) -> dict[str, np.ndarray]:
        # As the base class does for each column, in a third of the time.
        return {"mu": params[:, 1] + shift[0], "sigma": 1.0 / params[:, 2]}
