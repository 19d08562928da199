"""Random numbers for kernels.

Sequential kernels advance the `numpy.random.Generator` of the chain.  Kernels that run in parallel
over observations use `hash_uniform`: a uniform is a function of the key of the sweep and the
observation, so it does not depend on the order, the tiles or the number of threads.
"""

import math

import numpy as np

from pymc_dpsplit.kernels.jit import jitted

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_SHIFT30, _SHIFT27, _SHIFT31 = np.uint64(30), np.uint64(27), np.uint64(31)
_SHIFT12, _SHIFT32 = np.uint64(12), np.uint64(32)
_TWO32 = 4294967296.0
_UNIT = 2.0**-52


@jitted
def draw_key(rng):
    """Draw a 64-bit key for one sweep from the generator of the chain."""
    high = np.uint64(rng.random() * _TWO32)
    low = np.uint64(rng.random() * _TWO32)
    return (high << _SHIFT32) | low


@jitted
def hash_uniform(key, index):
    """Uniform on the open interval (0, 1) that belongs to `index` under `key`.

    The finaliser of SplitMix64 (Steele, Lea & Flood 2014) is applied twice, and the key enters
    before each, so that streams stay unrelated for keys that differ by a multiple of the increment.
    Fifty-two bits and a half-step offset, exact in float64, exclude 0 and 1.

    Parameters
    ----------
    key : uint64
    index : int

    Returns
    -------
    float
    """
    key = np.uint64(key)  # a signed one would be shifted arithmetically below
    x = key + np.uint64(index) * _GOLDEN
    x = (x ^ (x >> _SHIFT30)) * _MIX1
    x = (x ^ (x >> _SHIFT27)) * _MIX2
    x = (x ^ (x >> _SHIFT31)) + key
    x = (x ^ (x >> _SHIFT30)) * _MIX1
    x = (x ^ (x >> _SHIFT27)) * _MIX2
    x = x ^ (x >> _SHIFT31)
    return (np.float64(x >> _SHIFT12) + 0.5) * _UNIT


@jitted
def draw_log_gamma(rng, shape):
    """Logarithm of a standard gamma variable; finite for every positive `shape`.

    For shape < 1 the gamma variable itself underflows (47 % of draws at shape 0.001), so the
    identity G(a) = G(a + 1) U^(1/a) is used on the log scale.
    """
    if shape < 1.0:
        return math.log(rng.standard_gamma(shape + 1.0)) - rng.standard_exponential() / shape
    return math.log(rng.standard_gamma(shape))


@jitted
def categorical_at(u, weights):
    """Index that a uniform `u` selects, with probability proportional to `weights`.

    Parameters
    ----------
    u : float
    weights : ndarray of float64, shape (K,)
        Nonnegative, not all zero.

    Returns
    -------
    int
    """
    total = 0.0
    for k in range(weights.shape[0]):
        total += weights[k]
    target, running, last = u * total, 0.0, 0
    for k in range(weights.shape[0]):
        if weights[k] > 0.0:
            running += weights[k]
            last = k
            if target < running:
                return k
    return last
