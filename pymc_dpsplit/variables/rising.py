"""Rising factorials in the graphs of the laws of partitions."""

from typing import Any

import pytensor.tensor as pt

from pymc_dpsplit.kernels.rising import LARGE, log_rising_of_large


def log_rising(x: Any, n: Any) -> Any:
    """Return the log of Gamma(x + n) / Gamma(x), also where both are large.

    Parameters
    ----------
    x : symbolic array
        Positive, as is x + n.
    n : symbolic array

    Returns
    -------
    symbolic array
    """
    is_large = pt.minimum(x, x + n) > LARGE
    # The branch that is not chosen is made finite, as its gradient is multiplied by zero.
    large = pt.switch(is_large, x, 2.0 * LARGE)
    return pt.switch(is_large, log_rising_of_large(large, n, pt), pt.gammaln(x + n) - pt.gammaln(x))
