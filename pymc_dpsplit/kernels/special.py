"""Special functions."""

import math

from pymc_dpsplit.kernels.jit import kernel

_LOG_PI = math.log(math.pi)


@kernel
def log_multigamma(a, n_features):
    """Logarithm of the multivariate gamma function of dimension `n_features` at `a`."""
    total = 0.25 * n_features * (n_features - 1) * _LOG_PI
    for j in range(n_features):
        total += math.lgamma(a - 0.5 * j)
    return total
