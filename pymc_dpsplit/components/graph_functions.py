"""Functions that accept both numbers and symbolic tensors."""

from typing import Any

import scipy


def log_gamma(x: Any, pt: Any) -> Any:
    """Return the log gamma function of x; `pt` is `pytensor.tensor`, or NumPy for numbers."""
    return getattr(pt, "gammaln", scipy.special.gammaln)(x)
