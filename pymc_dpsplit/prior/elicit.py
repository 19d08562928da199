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
_LARGEST = 1e300
# A remedy is said if it does by a relative margin, beyond the errors of the interpolation.
_SLACK = 1e-6
_DIGITS = range(3, 13)  # of a remedy, the fewer the better
_MOST_TRIED = 64  # numbers of clusters
# Said where no other upper or prob would do, as for n = 2, where the mean determines the law.
_OWN_CHOICE = (
    "other values of several arguments, or a prior of your own, such as pm.Gamma('alpha', 1, 1)"
)
# By how much the most concentrated prior may need more clusters than a known alpha.
_FEW, _NEARLY_KNOWN = 2, 0.1


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
        If no gamma prior matches; the message names an `upper` and a `prob` that would do, where
        there are any.

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
    priors = [_prior_of(shape, n, expected, share) for shape in _SHAPES]
    tail = _Tail.of(n, np.array([upper]), share)
    wanted = 1.0 - prob
    found = np.array([tail.mean(prior)[0] for prior in priors])
    if found[0] > wanted or found.max() < wanted:
        asked = _Asked(n, expected, upper, wanted, share)
        raise ValueError(f"{_fault(asked, found)}; give {_remedy(asked, found, priors)}.")
    i = max(1, int(np.flatnonzero(found >= wanted)[0]))

    def excess_of(log_shape: float) -> float:
        prior = _prior_of(float(np.exp(log_shape)), n, expected, share)
        return float(tail.mean(prior)[0]) - wanted

    log_shape = brentq(excess_of, *np.log(_SHAPES[[i - 1, i]]))
    return _prior_of(float(np.exp(log_shape)), n, expected, share)


class _Asked(NamedTuple):
    """What the user asks for; `wanted` is the probability of `upper` or more clusters."""

    n: int
    expected: float
    upper: int
    wanted: float
    discount: float


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


def _fault(asked: _Asked, found: np.ndarray) -> str:
    """Say which probabilities (S,) of `upper` or more the priors of all shapes give."""
    n, expected, upper, wanted, discount = asked
    if found[0] > wanted:
        known = _known_alpha(n, expected, discount)
        return (
            f"even a known alpha of {known:.3g}, with {expected:g} clusters expected among {n}, "
            f"gives {upper} or more a probability of {found[0]:.3g}"
        )
    return (
        f"no gamma prior with {expected:g} clusters expected among {n} gives {upper} or more a "
        f"probability of {wanted:.3g}, at most {found.max():.3g}"
    )


def _remedy(asked: _Asked, found: np.ndarray, priors: list[GammaPrior]) -> str:
    """Return which upper or prob would do, each left out if none is found."""
    is_certain = found[0] > asked.wanted
    kinds = ("larger", "smaller") if is_certain else ("smaller", "larger")
    upper = _other_upper(asked, priors, is_certain)
    prob = _other_prob(found[0], found.max(), is_certain)
    remedies = [
        f"a {kind} {name}, such as {value}"
        for kind, name, value in zip(kinds, ("upper", "prob"), (upper, prob), strict=True)
        if value is not None
    ]
    return ", or ".join(remedies) or _OWN_CHOICE


def _other_upper(asked: _Asked, priors: list[GammaPrior], is_certain: bool) -> int | None:
    """Return the nearest of some numbers beyond `upper` for which there is a prior, if any."""
    n, expected, upper, wanted, discount = asked
    if is_certain:
        alpha = np.array([_known_alpha(n, expected, discount)])
        ((_, start, (law,)),) = laws_at(alpha, n, discount)
        beyond = np.append(law[::-1].cumsum()[::-1], 0.0)
        # The most concentrated prior is nearly a known alpha.
        low = max(upper + 1, start + int(np.argmax(beyond <= wanted)) - _FEW)
        high = min(n, low + 2 * _FEW + int(expected * _NEARLY_KNOWN))
    else:
        low, high = int(expected) + 1, upper - 1
    if low > high:
        return None
    steps = np.geomspace(1, high - low + 1, _MOST_TRIED).round().astype(int)
    tried = low - 1 + np.unique(steps)
    tail = _Tail.of(n, tried, discount)
    found = np.array([tail.mean(prior) for prior in priors])
    least, most = found[0] * (1 + _SLACK), found.max(0) * (1 - _SLACK)
    suitable = tried[(least <= wanted) & (wanted <= most)]
    return None if len(suitable) == 0 else int(suitable[0 if is_certain else -1])


def _other_prob(least: float, most: float, is_largest: bool) -> str | None:
    """Return the largest or smallest prob of few digits for which there is a prior, if any."""
    low, high = 1 - most * (1 - _SLACK), 1 - least * (1 + _SLACK)
    for digits in _DIGITS:
        scale = 10.0**digits
        prob = float(np.floor(high * scale) if is_largest else np.ceil(low * scale)) / scale
        if low <= prob <= high and 0 < prob < 1:
            return f"{prob:.{digits}f}".rstrip("0")
    return None


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
    """Probabilities of at least each of some numbers of clusters as functions of log alpha."""

    low: float
    high: float
    inside: Any

    @classmethod
    def of(cls, n: int, uppers: np.ndarray, discount: float) -> "_Tail":
        """Tabulate the probabilities where they are neither zero nor one.

        Parameters
        ----------
        n : int
            Number of observations.
        uppers : ndarray of int, shape (U,)
            Numbers of clusters, ascending.
        discount : float

        Returns
        -------
        _Tail
        """
        log_alpha = np.arange(-45.0, 25.0 + np.log(n), _STEP)
        if discount:
            return cls._with_discount(log_alpha, n, uppers, discount)
        mean = expected_n_clusters(np.exp(log_alpha), n)
        # The variance of a sum of indicators is less than its mean and that of its complement.
        spread = _FAR * np.sqrt(np.minimum(mean, n - mean + 1.0)) + _FAR**2 / 3
        log_alpha = log_alpha[(mean - spread < uppers[-1])]
        found = np.empty((len(log_alpha), len(uppers)))
        for which, first, laws in laws_at(np.exp(log_alpha), n):
            found[which] = _beyond(laws, uppers - first)
        # The interpolation divides by differences, which must not be subnormal.
        found[found < _NOTHING] = 0.0
        return cls(log_alpha[0], log_alpha[-1], CubicSpline(log_alpha, found))

    @classmethod
    def _with_discount(
        cls, log_alpha: np.ndarray, n: int, uppers: np.ndarray, discount: float
    ) -> "_Tail":
        """Tabulate the probabilities from the smallest alpha until they are one."""
        found, n_done = np.ones((len(log_alpha), len(uppers))), 0
        for which, first, laws in laws_at(np.exp(log_alpha), n, discount):
            found[which] = _beyond(laws, uppers - first)
            n_done += len(which)
            if found[n_done - 1, -1] > 1.0 - _ROUNDING:
                break
        # One more point, as the spline needs several.
        log_alpha, found = log_alpha[: n_done + 1], found[: n_done + 1]
        return cls(log_alpha[0], log_alpha[-1], CubicSpline(log_alpha, found))

    def mean(self, prior: GammaPrior) -> np.ndarray:
        """Return the averages (U,) of the probabilities over a prior on alpha."""
        nodes, weights = nodes_of(prior.frozen())
        log_alpha = np.log(nodes)
        averages: np.ndarray = weights @ self.inside(np.clip(log_alpha, self.low, self.high))
        return averages


def _beyond(laws: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the sums (A, U) of laws (A, K) from each start on."""
    return np.stack([laws[:, max(0, start) :].sum(1) for start in starts], axis=1)
