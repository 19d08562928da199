"""`elicit_alpha`: a prior on alpha from the expected number of clusters."""

from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

from pymc_dpsplit.prior.clusters_law import expected_n_clusters, laws_at
from pymc_dpsplit.prior.gamma_prior import GammaPrior
from pymc_dpsplit.prior.n_clusters import checked_discount, checked_n
from pymc_dpsplit.prior.quadrature import nodes_of

# Candidate shapes, from a nearly known alpha to a very vague prior.
_SHAPES = np.geomspace(1e4, 0.05, 41)
# Number of standard deviations from the mean beyond which a tail probability is zero or one.
_FAR = 12.0
_NOTHING, _ROUNDING = 1e-30, 1e-13
# Least ratio of the expected number of clusters to that of a concentration near 0.
_MARGIN = 1.001
_STEP = 0.05  # step of log alpha in the table of tail probabilities
_BINARY_STEPS = 60
_LEAST_SAID = 1e-3
_LARGEST = 1e300


def elicit_alpha(
    n: int, expected: float, upper: int, prob: float = 0.99, *, discount: float = 0.0
) -> GammaPrior:
    """Find the gamma prior on alpha that matches expectations about the number of clusters.

    "About 5 clusters among 300 rows, surely fewer than 20" is ``elicit_alpha(300, 5, 20)``: the
    prior mean of the number of clusters is `expected`, and it is below `upper` with probability
    `prob`.

    Parameters
    ----------
    n : int
        Number of observations.
    expected : float
        Mean of the number of clusters, above 1.
    upper : int
        Number of clusters that would be surprisingly large, above `expected`.
    prob : float
        Probability of fewer than `upper` clusters.
    discount : float
        Discount of a Pitman-Yor process, known; two numbers cannot determine it as well.

    Returns
    -------
    GammaPrior
        Named tuple of ``alpha`` and ``beta``, shape and rate, the arguments of ``pm.Gamma``;
        ``frozen()`` returns the distribution of ``scipy.stats``.  `prior_n_clusters` accepts the
        tuple.

    Raises
    ------
    ValueError
        If no gamma prior matches; the message names the nearest feasible values.

    Notes
    -----
    A larger `prob` gives a more concentrated prior.  If several gamma priors match, the most
    concentrated one is returned [1]_.  With a discount even a concentration near 0 gives several
    clusters, so `expected` must be above their number.

    See Also
    --------
    elicit_gamma : The same for finite mixtures.

    References
    ----------
    .. [1] docs/method.md, eq. (11.8).

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_dpsplit as dps
    >>> prior = dps.elicit_alpha(n=300, expected=5, upper=20)
    >>> [round(parameter, 2) for parameter in prior]
    [0.83, 1.05]
    >>> with pm.Model():
    ...     alpha = pm.Gamma("alpha", *dps.elicit_alpha(n=300, expected=5, upper=20))
    >>> law = dps.prior_n_clusters(prior, 300)
    >>> float((law * law["n_clusters"]).sum().round(6))
    5.0
    >>> float(law.sel(n_clusters=slice(None, 19)).sum().round(6))
    0.99
    """
    n = checked_n(n)
    _check(n, expected, upper, prob)
    share, upper = checked_discount(discount, n), int(upper)
    _refuse_few(n, expected, share)
    tail = _Tail.of(n, upper, share)
    wanted = 1.0 - prob

    def excess_of(shape: float) -> float:
        return tail.mean(_prior_of(shape, n, expected, share)) - wanted

    excess = np.array([excess_of(shape) for shape in _SHAPES])
    if excess[0] > 0:
        _refuse_certain(n, expected, upper, prob, share, excess[0] + wanted)
    crossing = np.flatnonzero(excess >= 0)
    if len(crossing) == 0:
        most = excess.max() + wanted
        raise ValueError(
            f"no gamma prior with {expected:g} clusters expected among {n} gives {upper} or more a "
            f"probability of {wanted:.3g}, at most {most:.3g}; give a smaller upper"
            f"{f', or prob={1 - most:.4g} or more' if most > _LEAST_SAID else ''}."
        )
    i = max(1, int(crossing[0]))
    log_shape = brentq(
        lambda log_shape: excess_of(float(np.exp(log_shape))), *np.log(_SHAPES[[i - 1, i]])
    )
    return _prior_of(float(np.exp(log_shape)), n, expected, share)


def _check(n: int, expected: float, upper: int, prob: float) -> None:
    numbers: dict[str, Any] = {"expected": expected, "upper": upper, "prob": prob}
    for name, value in numbers.items():
        is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        # Integers beyond what a float holds would fail later, each in its way.
        number = value.item() if isinstance(value, np.number) else value
        if not (is_number and abs(number) <= _LARGEST):
            raise ValueError(f"{name}={value!r} is no number; give {name} as a finite number.")
    if not 1 < expected < n:
        raise ValueError(
            f"expected={expected:g} clusters cannot be the mean among n={n} observations; give a "
            f"number between 1 and {n}."
        )
    if upper != int(upper) or not expected < upper <= n:
        raise ValueError(
            f"upper={upper:g} cannot be a surprise where {expected:g} of at most {n} clusters are "
            f"expected; give a whole number above expected, and at most n={n}."
        )
    if not 0 < prob < 1:
        raise ValueError(
            f"prob={prob:g} is no probability; give one between 0 and 1, such as 0.99."
        )


def _refuse_few(n: int, expected: float, discount: float) -> None:
    """Refuse a mean below that of a concentration near 0."""
    if discount == 0.0:
        return
    least = float(expected_n_clusters(np.zeros(1), n, discount)[0])
    if expected <= _MARGIN * least:
        raise ValueError(
            f"expected={expected:g} clusters are too few among {n} with discount={discount:g}, as "
            f"even alpha near 0 gives {least:.3g}; give a larger number, or a smaller discount."
        )


def _refuse_certain(
    n: int, expected: float, upper: int, prob: float, discount: float, least: float
) -> None:
    """Raise ValueError with feasible values if even a known alpha gives too much variation."""
    known = _known_alpha(n, expected, discount)
    ((_, first, (law,)),) = laws_at(np.array([known]), n, discount)
    # Tail probabilities P(at least k clusters).
    beyond = law[::-1].cumsum()[::-1]
    smallest = first + int(np.argmax(beyond <= 1 - prob))
    raise ValueError(
        f"even a known alpha of {known:.3g}, with {expected:g} clusters expected among {n}, gives "
        f"{upper} or more a probability of {least:.3g}; give upper={smallest} or more, or "
        f"prob={np.floor(1e3 * (1 - least)) / 1e3:g} or less."
    )


def _known_alpha(n: int, expected: float, discount: float) -> float:
    """Return the number alpha for which the mean number of clusters is as expected."""

    # The mean increases with alpha from 1 to n; at the ends it equals 1 or n up to rounding.
    def gap(log_alpha: float) -> float:
        return float(expected_n_clusters(np.exp(log_alpha), n, discount)) - expected

    return float(np.exp(brentq(gap, -40.0, 40.0 + 2 * np.log(n))))


def _prior_of(shape: float, n: int, expected: float, discount: float) -> GammaPrior:
    """Return the gamma prior of a given shape with the expected mean number of clusters."""
    unit, weights = nodes_of(stats.gamma(shape))
    log_unit = np.log(unit)

    def gap(log_scale: float) -> float:
        # For larger alpha all observations are singletons up to rounding.
        alphas = np.exp(np.minimum(log_unit + log_scale, 300.0))
        return float(weights @ expected_n_clusters(alphas, n, discount)) - expected

    low, high = -700.0, 700.0
    for _ in range(_BINARY_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if gap(middle) < 0 else (low, middle)
    return GammaPrior(float(shape), float(np.exp(-(low + high) / 2)))


class _Tail(NamedTuple):
    """Probability of at least `upper` clusters as a function of log alpha."""

    low: float
    high: float
    inside: Any

    @classmethod
    def of(cls, n: int, upper: int, discount: float) -> "_Tail":
        """Tabulate the probability where it is neither zero nor one.

        Parameters
        ----------
        n : int
            Number of observations.
        upper : int
            Number of clusters.
        discount : float

        Returns
        -------
        _Tail
        """
        log_alpha = np.arange(-45.0, 25.0 + np.log(n), _STEP)
        if discount:
            return cls._with_discount(log_alpha, n, upper, discount)
        mean = expected_n_clusters(np.exp(log_alpha), n)
        # The variance of a sum of indicators is less than its mean and that of its complement.
        spread = _FAR * np.sqrt(np.minimum(mean, n - mean + 1.0)) + _FAR**2 / 3
        log_alpha = log_alpha[(mean - spread < upper)]
        found = np.empty(len(log_alpha))
        for which, first, laws in laws_at(np.exp(log_alpha), n):
            start = max(0, upper - first)
            found[which] = laws[:, start:].sum(1)
        # The interpolation divides by differences, which must not be subnormal.
        found[found < _NOTHING] = 0.0
        return cls(log_alpha[0], log_alpha[-1], CubicSpline(log_alpha, found))

    @classmethod
    def _with_discount(cls, log_alpha: np.ndarray, n: int, upper: int, discount: float) -> "_Tail":
        """Tabulate the probability from the smallest alpha until it is one."""
        found, n_done = np.ones(len(log_alpha)), 0
        for which, first, laws in laws_at(np.exp(log_alpha), n, discount):
            found[which] = laws[:, max(0, upper - first) :].sum(1)
            n_done += len(which)
            if found[n_done - 1] > 1.0 - _ROUNDING:
                break
        # One more point, as the spline needs several.
        log_alpha, found = log_alpha[: n_done + 1], found[: n_done + 1]
        return cls(log_alpha[0], log_alpha[-1], CubicSpline(log_alpha, found))

    def mean(self, prior: GammaPrior) -> float:
        """Return the average of the probability over a prior on alpha."""
        nodes, weights = nodes_of(prior.frozen())
        log_alpha = np.log(nodes)
        inside = self.inside(np.clip(log_alpha, self.low, self.high))
        return float(weights @ inside)
