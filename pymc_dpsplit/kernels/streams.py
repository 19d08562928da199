"""Streams of random numbers from a key, for work that is not done in a fixed order.

A stream is an array (2,) of uint64: its key, and the count of numbers drawn.  Two tasks with
separate streams draw the same numbers in whatever order they run.
"""

import numpy as np

from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import hash_uniform

_TWO32 = 4294967296.0
_SHIFT32, _ONE = np.uint64(32), np.uint64(1)


@jitted
def new_stream(key):
    """Start the stream of a key."""
    stream = np.zeros(2, np.uint64)
    stream[0] = np.uint64(key)
    return stream


@jitted
def next_uniform(stream):
    """Next number of the stream, uniform on the open interval (0, 1)."""
    u = hash_uniform(stream[0], stream[1])
    stream[1] += _ONE
    return u


@jitted
def next_index(stream, n):
    """Next number of the stream as an index, uniform on 0 .. n - 1."""
    return np.int64(next_uniform(stream) * n)


@jitted
def next_key(stream):
    """Key of 64 bits, from the next two numbers of the stream."""
    high = np.uint64(next_uniform(stream) * _TWO32)
    low = np.uint64(next_uniform(stream) * _TWO32)
    return (high << _SHIFT32) | low
