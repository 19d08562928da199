"""Rising factorials of large numbers, for arrays of NumPy and for graphs.

Two log gammas of large numbers have most digits in common, and from 1e16 on all of those that their
difference needs.  `kernels.special` has them for kernels.
"""

from typing import Any

# Above this number log gammas are not subtracted: they are then right to 1e-9.
LARGE = 1e6


def log_rising_of_large(x: Any, n: Any, functions: Any) -> Any:
    """Return the log of Gamma(x + n) / Gamma(x) by Stirling's formula.

    Parameters
    ----------
    x : ndarray or symbolic array
        Above `LARGE`, as is x + n.
    n : ndarray or symbolic array
    functions : module
        Has ``log`` and ``log1p``.

    Returns
    -------
    ndarray or symbolic array
    """
    end = x + n
    rest = (1.0 / end - 1.0 / x) / 12.0
    return n * functions.log(x) + ((end - 0.5) * functions.log1p(n / x) - n) + rest
