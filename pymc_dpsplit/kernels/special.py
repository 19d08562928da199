"""Special functions."""

import math

import numpy as np

from pymc_dpsplit.kernels.jit import jitted

# Logarithm of a precision, the inverse of a standard deviation of 1e130.
LEAST_LOG = -300.0
# Used as log(0) where -inf could lead to NaN; its exponential is 0.
LOG_ZERO = -1e300

_LOG_PI = math.log(math.pi)
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_TABULATED = 256
# A product of up to FEW factors of at most about _LARGE is finite.
FEW, _LARGE = 16.0, 1e15
# From here on five terms of Stirling's series give all digits of log gamma.
_STIRLING_FROM = 16.0
# From here on seven terms of the series in `log_half_step` give all digits.
_SERIES_FROM = 10.0
# A quotient between them is not rounded to 0 or infinity.
_LEAST, _MOST = 1e-100, 1e100
# Above it the logarithm of a product of rounded factors loses digits.
_NEARLY_ONE = 0.99999
_LOG_FACTORIALS = np.array([math.lgamma(n + 1.0) for n in range(_TABULATED)])


@jitted
def positive_exp(x):
    """Exponential of `x`, or of `LEAST_LOG` where `x` is less: positive, and so is its square.

    For the precision of an atom that is drawn from a base measure with a tiny shape: its logarithm
    may be -1e5.  The mean of the atom is then so far away, in data that are never as large, that
    its density is that of the mean alone.
    """
    return math.exp(max(x, LEAST_LOG))


@jitted
def log_multigamma(a, n_features):
    """Logarithm of the multivariate gamma function of dimension `n_features` at `a`."""
    total = 0.25 * n_features * (n_features - 1) * _LOG_PI
    for j in range(n_features):
        total += math.lgamma(a - 0.5 * j)
    return total


@jitted
def log_factorial(n):
    """Logarithm of n!, for a nonnegative float64 that is an integer."""
    if n < _TABULATED:
        return _LOG_FACTORIALS[np.int64(n)]
    return math.lgamma(n + 1.0)


@jitted
def log_sum_of_two(a, b):
    """Logarithm of exp(a) + exp(b), without overflow."""
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


@jitted
def log_rising(a, n):
    """Logarithm of a (a + 1) ... (a + n - 1), for a > 0 and a nonnegative integer n.

    Parameters
    ----------
    a, n : float

    Returns
    -------
    float
    """
    if a > _LARGE or n > FEW:
        return log_rising_over(a, n, 1.0)
    product = 1.0
    for j in range(np.int64(n)):
        product *= a + j
    return math.log(product)


@jitted
def log_rising_over(a, n, c):
    """Logarithm of gamma(a + n) / (gamma(a) c^n), rounded as if it were of size n.

    Differences of log gammas lose what they have in common, a factor of log a of all digits or
    more.  Stirling's formula has it in two terms, which are combined here with that of c.

    Parameters
    ----------
    a : float
        Positive.
    n : float
        Greater than -a.
    c : float
        Positive.  If it is of the size of a + n, so is the result of that of n.

    Returns
    -------
    float
    """
    if n == 0.0:
        return 0.0
    if 0.0 < n <= FEW and n == math.floor(n):
        ratio = _rising_ratio(a, n, c)
        if _LEAST < ratio < _NEARLY_ONE or 1.0 / _NEARLY_ONE < ratio < _MOST:
            return math.log(ratio)
    if a + n < _STIRLING_FROM:
        return math.lgamma(a + n) - math.lgamma(a) - n * math.log(c)
    return n * log_of_ratio(a + n, c) + _log_rising_over_end(a, n)


@jitted
def log_gamma_ratio(a, n):
    """Logarithm of gamma(a + n) / gamma(a), for a > 0 and n > -a.

    Parameters
    ----------
    a, n : float

    Returns
    -------
    float
    """
    unit = max(a, 1.0)
    return n * math.log(unit) + log_rising_over(a, n, unit)


@jitted
def _rising_ratio(a, n, c):
    """Return gamma(a + n) / (gamma(a) c^n), for whole n: a product of n factors."""
    ratio, unit = 1.0, 1.0 / c
    for j in range(int(n)):
        ratio *= (a + j) * unit
    return ratio


@jitted
def _log_rising_over_end(a, n):
    """As `log_rising_over` with c = a + n, which is at least `_STIRLING_FROM`."""
    if a < _STIRLING_FROM:
        at_start = (a - 0.5) * math.log(a + n) - (a + n) + _HALF_LOG_2PI - math.lgamma(a)
    else:
        at_start = (a - 0.5) * math.log1p(n / a) - n - _stirling_rest(a)
    return at_start + _stirling_rest(a + n)


@jitted
def _stirling_rest(x):
    """Log gamma(x) less (x - 1/2) log x - x + log(2 pi) / 2, for x >= `_STIRLING_FROM`."""
    z = 1.0 / x
    y = z * z
    return (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y * (1 / 1188))))) * z


@jitted
def log_half_step(a):
    """Logarithm of gamma(a + 1/2) / gamma(a), for a > 0, without a log gamma.

    Its series in a - 1/4 has even powers only (Tricomi & Erdelyi 1951); below `_SERIES_FROM` the
    argument is shifted by gamma(a + 1) = a gamma(a).
    """
    above, below = 1.0, 1.0
    while a < _SERIES_FROM:
        above *= a
        a += 0.5
        below *= a
        a += 0.5
    z = a - 0.25
    y = 1.0 / (z * z)
    rest = 50521 / 20971520 - y * (2702765 / 402653184)
    rest = y * (1 / 64 - y * (5 / 2048 - y * (61 / 49152 - y * (1385 / 1048576 - y * rest))))
    if below == 1.0:
        return 0.5 * math.log(z) + rest
    return math.log(math.sqrt(z) * above / below) + rest


@jitted
def log_rising_by_halves(a, n):
    """Logarithm of gamma(a + n / 2) / gamma(a), for a > 0 and a nonnegative integer n.

    Parameters
    ----------
    a : float
    n : int

    Returns
    -------
    float
    """
    n_whole = n // 2
    total = log_rising(a, float(n_whole)) if n_whole > 0 else 0.0
    return total + log_half_step(a + n_whole) if n % 2 else total


@jitted
def log_of_ratio(a, b):
    """Logarithm of a / b, of positive numbers whose quotient may overflow."""
    ratio = a / b
    return math.log(ratio) if _LEAST < ratio < _MOST else math.log(a) - math.log(b)


@jitted
def log_growth(b, t):
    """Logarithm of (b + t) / b, for b > 0 and t >= 0: precise also where it is tiny."""
    return math.log1p(t / b) if t < b else log_of_ratio(b + t, b)


@jitted
def log_beta_rising(a, b, s, f):
    """Logarithm of beta(a + s, b + f) / beta(a, b), for positive a, b and nonnegative s, f."""
    if s + f <= FEW and s == math.floor(s) and f == math.floor(f):
        ratio = _beta_ratio(a, b, s, f)
        if _LEAST < ratio < _NEARLY_ONE:
            return math.log(ratio)
    # Where one side is large, its log gammas have all but a few digits in common.
    if b + f < s:
        return _log_beta_rising_far(a, b, s, f)
    if a + s < f:
        return _log_beta_rising_far(b, a, f, s)
    c = (a + s) + (b + f)
    if c < _STIRLING_FROM:
        of_sum = math.lgamma(c) - math.lgamma(a + b) - (s + f) * math.log(c)
    else:
        of_sum = _log_rising_over_end(a + b, s + f)
    return log_rising_over(a, s, c) + log_rising_over(b, f, c) - of_sum


@jitted
def _log_beta_rising_far(a, b, s, f):
    """As `log_beta_rising`, rounded as if it were of the size of b + f, for s > b + f."""
    c = (a + s) + (b + f)
    of_first = log_rising_over(a, b, c) - log_rising_over(a + s, b + f, c)
    return of_first + log_rising_over(b, f, c)


@jitted
def _beta_ratio(a, b, s, f):
    """Return beta(a + s, b + f) / beta(a, b), for whole s and f: a product of s + f factors."""
    ratio, c = 1.0, a + b
    for j in range(int(s)):
        ratio *= (a + j) / (c + j)
    c += s
    for j in range(int(f)):
        ratio *= (b + j) / (c + j)
    return ratio


@jitted
def log_choose(n, x):
    """Logarithm of the binomial coefficient, for float64 that are integers, 0 <= x <= n."""
    if n < _TABULATED:
        return log_factorial(n) - log_factorial(x) - log_factorial(n - x)
    x = min(x, n - x)
    return log_rising_over(n - x + 1.0, x, x + 1.0) - log_rising_over(1.0, x, x + 1.0)


@jitted
def log_choose_failures(r, x):
    """Logarithm of gamma(x + r) / (gamma(r) x!), for r > 0 and a nonnegative integer x."""
    # Not for x = 0, where 1 + (r - 1) would differ from r.
    if x > r:
        return log_rising_over(x + 1.0, r - 1.0, 1.0) - math.lgamma(r)
    return log_rising_over(r, x, x + 1.0) - log_rising_over(1.0, x, x + 1.0)
