"""Many uniforms at once: those of consecutive indices."""

from pymc_dpsplit.kernels.jit import jitted_uncounted
from pymc_dpsplit.kernels.random import hash_uniform


@jitted_uncounted
def fill_uniforms(out, n, key, first):
    """Fill out[:n] with the uniforms that belong to first, .., first + n - 1 under `key`.

    The loop has nothing else in it, so that LLVM writes vector code.

    Parameters
    ----------
    out : ndarray of float64, shape (>= n,)
    n : int
    key : uint64
    first : int
    """
    for i in range(n):
        out[i] = hash_uniform(key, first + i)
