"""Gamma variables of one word in all atoms, in vector code.

A variable of shape eta + n is the sum of one whose shape is the fraction of eta and one of whole
shape, which most words do not need in most topics.  Each variable has random numbers of its own, so
that rows may be drawn in any order.
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_dpsplit.kernels.jit import jitted, jitted_copied, jitted_uncounted
from pymc_dpsplit.kernels.logarithm import log_plainly
from pymc_dpsplit.kernels.powers import raise_to
from pymc_dpsplit.kernels.random import hash_uniform
from pymc_dpsplit.kernels.uniforms import fill_uniforms

# Up to this whole shape a variable is a sum of exponential ones.
_FEW = 6
# Numbers that `raise_to` takes at a time.
_AT_A_TIME = 8


class GammaRow(NamedTuple):
    """A row of P variables, and what is needed to draw them.

    Attributes
    ----------
    drawn : ndarray of float64, shape (P,)
        The variables.
    powers, tests, products : ndarray of float64, shape (P,)
        Proposals, uniforms by which they are accepted, and products of uniforms.
    places : ndarray of int64, shape (P + 1,)
        Elements that are still to be drawn.
    """

    drawn: np.ndarray
    powers: np.ndarray
    tests: np.ndarray
    products: np.ndarray
    places: np.ndarray


@jitted
def new_gamma_row(width):
    """Return a row of `width` variables, a multiple of 8, which are 0."""
    ones = np.ones(width), np.ones(width), np.ones(width)
    return GammaRow(np.zeros(width), *ones, np.zeros(width + 1, np.int64))


@jitted_copied
def is_accepted(drawn, shape, u):
    """Whether a proposal for a gamma variable is accepted, given a uniform."""
    if drawn < 1.0:
        # Bounds of the exponential; few proposals are between them.
        above = 1.0 - drawn + 0.5 * drawn * drawn
        return u < above and (u < above - drawn**3 / 6.0 or u < math.exp(-drawn))
    return u * drawn < 1.0 or u < drawn ** (shape - 1.0)


@jitted_uncounted
def _scale(values, n, factor):
    for i in range(n):
        values[i] *= factor


@jitted_uncounted
def _open_places(row, n):
    """Take the proposals that are surely accepted; list the others, and return their number."""
    n_open = 0
    for i in range(n):
        x = row.powers[i]
        row.drawn[i] = x
        is_sure = (x < 1.0) & (row.tests[i] < 1.0 - x + x * x * (0.5 - x / 6.0))
        # No branch depends on it.
        row.places[n_open] = i
        n_open += not is_sure
    return n_open


@jitted_uncounted
def _settle(row, shape, mass, keys, at, n_open):
    """Accept or reject open proposals; return how many are rejected."""
    n_rejected = 0
    for i in range(n_open):
        x, place = row.powers[i], row.places[i]
        if x >= 1.0:
            x = -math.log(mass * (1.0 - hash_uniform(keys[0], at + place)) / shape)
        if is_accepted(x, shape, row.tests[i]):
            row.drawn[place] = x
        else:
            row.places[n_rejected] = place
            n_rejected += 1
    return n_rejected


@jitted_uncounted
def fill_fractional(row, n, shape, keys, at, step):
    """Draw the first `n` variables of a row, of a shape below 1.

    A proposal has the density of x^(shape - 1) below 1 and exp(-x) above, up to constants; it is
    accepted with probability exp(-x) below 1 and x^(shape - 1) above.

    Parameters
    ----------
    row : GammaRow
    n : int
    shape : float
        Less than 1.
    keys : tuple of uint64
        For proposals, and for their acceptance.
    at, step : int
        Variable i has the random numbers at + i, at + i + step, ..

    References
    ----------
    .. [1] Ahrens and Dieter (1974), Computer methods for sampling from gamma, beta, Poisson and
       binomial distributions, Computing 12, algorithm GS.
    """
    width, mass = row.drawn.shape[0], 1.0 + shape / math.e
    fill_uniforms(row.powers, width, keys[0], at)
    fill_uniforms(row.tests, width, keys[1], at)
    _scale(row.powers, width, mass)
    raise_to(row.powers, width, 1.0 / shape)
    n_open = _open_places(row, n)
    for i in range(n_open):
        row.powers[i] = row.powers[row.places[i]]
        row.tests[i] = row.tests[row.places[i]]
    n_open = _settle(row, shape, mass, keys, at, n_open)
    while n_open > 0:
        at += step
        for i in range(n_open):
            row.powers[i] = mass * hash_uniform(keys[0], at + row.places[i])
            row.tests[i] = hash_uniform(keys[1], at + row.places[i])
        n_raised = -(-n_open // _AT_A_TIME) * _AT_A_TIME
        row.powers[n_open:n_raised] = 1.0
        raise_to(row.powers, n_raised, 1.0 / shape)
        n_open = _settle(row, shape, mass, keys, at, n_open)


@jitted
def draw_large(shape, key, at, step):
    """Draw a gamma variable of shape 1 or more.

    Parameters
    ----------
    shape : float
    key : uint64
    at, step : int
        Its random numbers are at, at + step, ..

    Returns
    -------
    float

    References
    ----------
    .. [1] Marsaglia and Tsang (2000), A simple method for generating gamma variables, ACM
       Transactions on Mathematical Software 26.
    """
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        angle = 2.0 * math.pi * hash_uniform(key, at + step)
        x = math.sqrt(-2.0 * math.log(hash_uniform(key, at))) * math.cos(angle)
        u = hash_uniform(key, at + 2 * step)
        at += 3 * step
        v = (1.0 + c * x) ** 3
        if v > 0.0 and (
            u < 1.0 - 0.0331 * x**4 or math.log(u) < 0.5 * x * x + d * (1.0 - v + math.log(v))
        ):
            return d * v


@jitted_uncounted
def add_whole(row, counts, word, n, whole, key, at, step):
    """Add variables of shape whole + counts[word, i] to the first `n` of a row.

    Parameters
    ----------
    row : GammaRow
    counts : ndarray of int32, shape (V, K)
        Counts from the K-th on are 0.
    word, n : int
    whole : float
        A whole number.
    key : uint64
    at, step : int
        Variable i has the random numbers at + i, at + i + step, ..
    """
    n_counted, n_open = counts.shape[1], 0
    for i in range(n):
        row.products[i] = 1.0
        row.places[n_open] = i
        n_open += whole > 0.0 or (i < n_counted and counts[word, i] > 0)
    for p in range(n_open):
        i = row.places[p]
        shape = whole + counts[word, i] if i < n_counted else whole
        if shape > _FEW:
            row.drawn[i] += draw_large(shape, key, at + i, step)
        else:
            product = hash_uniform(key, at + i)
            for c in range(1, int(shape)):
                product *= hash_uniform(key, at + i + c * step)
            row.products[i] = product
    for i in range(n):
        row.drawn[i] -= log_plainly(row.products[i])
