"""The statistical tests of the suite: each returns a p-value, to be compared with `LEVEL`.

Draws of a chain are correlated, so nothing here counts them as independent.  Chains are cut
into pieces, at least `N_PIECES` in all where they are long enough, and the scatter of the
pieces measures the noise; it is never taken below that of independent draws, which no chain
with positive autocorrelation beats.  The tests are valid if a piece is much longer (ten times
or more) than the autocorrelation time.  Best are many chains with exact starts: with `N_PIECES`
or more, each chain is one piece, and any autocorrelation is allowed for.
"""

import numpy as np
from scipy import stats

LEVEL = 1e-5  # probability that a correct sampler fails one test
N_PIECES = 64
SHORTEST_PIECE = 100  # draws, unless the chain itself is shorter
FEWEST_PIECES = 8
RARE = 5.0  # cells of the chi-square test expect at least so many draws in a piece
N_THRESHOLDS = 15  # of the comparison of distribution functions


def combine(*p_values: float | np.ndarray) -> float:
    """Bonferroni's p-value of any number of p-values, whatever their dependence."""
    every = np.concatenate([np.ravel(p) for p in p_values])
    return float(min(1.0, every.min() * every.size))


# --- draws of a chain against an exact law ------------------------------------------------


def pieces_of(draws: np.ndarray) -> np.ndarray:
    """Cut draws (chains, S, ...) into pieces (R, length, ...), the earlier ones of a chain first.

    What does not fill a piece is left out at the start of each chain.
    """
    n_chains, n_draws = draws.shape[:2]
    per_chain = max(1, min(-(-N_PIECES // n_chains), n_draws // SHORTEST_PIECE))
    if n_chains * per_chain < FEWEST_PIECES:
        raise ValueError(
            f"draws of shape {draws.shape} make {n_chains * per_chain} pieces, fewer than "
            f"{FEWEST_PIECES}: run more or longer chains."
        )
    length = n_draws // per_chain
    kept = draws[:, n_draws - length * per_chain :]
    return kept.reshape(n_chains * per_chain, length, *draws.shape[2:])


def frequencies_of(pieces: np.ndarray, n_cells: int) -> np.ndarray:
    """Relative frequency (R, n_cells) of every cell in each of the pieces (R, length)."""
    if pieces.min() < 0 or pieces.max() >= n_cells:
        raise ValueError(f"draws must be cells from 0 to {n_cells - 1}.")
    n_pieces, length = pieces.shape
    cells = pieces + n_cells * np.arange(n_pieces)[:, None]
    counts = np.bincount(cells.ravel(), minlength=n_pieces * n_cells)
    return counts.reshape(n_pieces, n_cells) / length


def _pool_rare(probabilities: np.ndarray, least: float) -> np.ndarray:
    """Group (n_cells,) of every cell, each group with probability `least` or more.

    Rare cells join their neighbours in the order of the cells, which keeps like with like.
    """
    group = np.empty(len(probabilities), np.int64)
    common = probabilities >= least
    group[common] = np.arange(common.sum())
    n_groups, mass = int(common.sum()), 0.0
    for cell in np.flatnonzero(~common):
        group[cell] = n_groups
        mass += probabilities[cell]
        if mass >= least:
            n_groups, mass = n_groups + 1, 0.0
    if n_groups and np.any(group == n_groups):  # what is left over is not enough for a group
        group[group == n_groups] = n_groups - 1
    return group


def _null_variance(
    own: float | np.ndarray, observed: float | np.ndarray, exact: float | np.ndarray
) -> float | np.ndarray:
    """Variance under the exact law: `own` from pieces, unless that is luckily small.

    Where few rare events were met, pieces scatter less than they do on average, and a mean
    that is low by chance would look significant.  Inflation by autocorrelation is therefore
    the scatter of pieces over what independent draws would have with the `observed` law, and
    multiplies what they would have with the `exact` one.
    """
    inflation = np.maximum(1.0, np.sum(own) / max(np.sum(observed), np.finfo(float).tiny))
    return np.maximum(own, inflation * exact)


def _cell_p_values(frequencies: np.ndarray, probabilities: np.ndarray, length: int) -> np.ndarray:
    """P-value (C,) of each cell: Student's t over pieces."""
    n_pieces, mean = len(frequencies), frequencies.mean(axis=0)
    own = frequencies.var(axis=0, ddof=1)
    observed, exact = (p * (1.0 - p) / length for p in (mean, probabilities))
    variance = _null_variance(own, observed, exact) / n_pieces
    return 2.0 * stats.t.sf(np.abs(mean - probabilities) / np.sqrt(variance), n_pieces - 1)


def _chi_square_p_value(frequencies: np.ndarray, probabilities: np.ndarray, length: int) -> float:
    """Pearson's statistic, with the law it has when its covariance is estimated from pieces.

    Box (1954) for the first moments: the statistic over its estimated mean is about
    F(f, f (R - 1)), f = tr(S)^2 / tr(S^2), S the covariance of the scaled deviations.
    """
    n_pieces, n_cells = frequencies.shape
    mean = frequencies.mean(axis=0)
    centred = (frequencies - mean) / np.sqrt(probabilities)
    gram = centred @ centred.T / (n_pieces - 1)  # has the traces of the covariance
    trace, square = np.trace(gram), np.sum(gram**2)
    # Unbiased for tr(S^2) if the pieces are normal; never more degrees of freedom than cells.
    square = (
        (n_pieces - 1) ** 2
        / ((n_pieces - 2) * (n_pieces + 1))
        * (square - trace**2 / (n_pieces - 1))
    )
    f = trace**2 / max(square, trace**2 / (n_cells - 1)) if trace > 0.0 else n_cells - 1.0
    observed = np.sum(mean * (1.0 - mean) / probabilities) / length
    trace = _null_variance(trace, observed, (n_cells - 1) / length)
    statistic = n_pieces * np.sum((mean - probabilities) ** 2 / probabilities) / trace
    return float(stats.f.sf(statistic, f, f * (n_pieces - 1)))


def _total_variation_p_value(
    frequencies: np.ndarray, probabilities: np.ndarray, length: int
) -> float:
    """Is the total variation more than noise?  One half of the pieces says where to look.

    The signs of the deviations in one half define an event; its frequency in the other half
    exceeds its probability by the total variation if the deviations are bias, and on average
    by nothing if they are noise.
    """
    half = len(frequencies) // 2
    p_values = []
    for learn, look in ((slice(half), slice(half, None)), (slice(half, None), slice(half))):
        event = frequencies[learn].mean(axis=0) > probabilities
        exact = min(probabilities[event].sum(), 1.0)  # rounding may exceed 1
        inside = frequencies[look][:, event].sum(axis=1)
        p_values.append(_excess_p_value(inside, exact, length))
    return combine(*p_values)


def _excess_p_value(inside: np.ndarray, exact: float, length: int) -> float:
    """P-value of an event whose frequencies (R,) in pieces are above its exact probability."""
    n_pieces, mean = len(inside), inside.mean()
    observed, null = (p * (1.0 - p) / length for p in (mean, exact))
    variance = _null_variance(inside.var(ddof=1), observed, null) / n_pieces
    if variance == 0.0:
        return 1.0  # the event is certain or empty
    return float(stats.t.sf((mean - exact) / np.sqrt(variance), n_pieces - 1))


def partition_test(draws: np.ndarray, probabilities: np.ndarray) -> float:
    """P-value of correlated draws of a discrete law: chi-square, every cell, total variation.

    Parameters
    ----------
    draws : ndarray of int, shape (chains, S)
        Cells, such as indices of partitions.
    probabilities : ndarray of float64, shape (n_cells,)
        The exact law.
    """
    pieces = pieces_of(draws)
    length = pieces.shape[1]
    frequencies = frequencies_of(pieces, len(probabilities))
    if np.any(frequencies[:, probabilities == 0.0]):
        return 0.0  # an impossible cell was visited
    groups = _pool_rare(probabilities, RARE / length)
    if groups.max() == 0:
        raise ValueError("probabilities leave one cell that is not rare: use more draws.")
    membership = np.eye(groups.max() + 1)[groups]
    pooled = frequencies @ membership, probabilities @ membership
    return combine(
        _chi_square_p_value(*pooled, length),
        combine(_cell_p_values(*pooled, length)),
        _total_variation_p_value(frequencies, probabilities, length),
    )


def mean_test(
    draws: np.ndarray, mean: float | np.ndarray, variance: float | np.ndarray | None = None
) -> float:
    """P-value of the mean of a statistic of correlated draws: Student's t over pieces.

    Parameters
    ----------
    draws : ndarray, shape (chains, S) or (chains, S, p)
        Without `variance`, the p-value is not to be trusted for a statistic that is constant
        but for rare draws.
    mean : float or ndarray of float64, shape (p,)
        Exact mean.
    variance : float or ndarray of float64, shape (p,), optional
        Exact variance of one draw, if known.
    """
    pieces = pieces_of(draws)
    n_pieces, length = pieces.shape[:2]
    means = pieces.mean(axis=1, dtype=float).reshape(n_pieces, -1)
    observed = pieces.var(axis=(0, 1)).ravel()
    exact = observed if variance is None else np.ravel(variance)
    p_values = [
        _mean_p_value(*column)
        for column in zip(means.T, np.ravel(mean), observed / length, exact / length, strict=True)
    ]
    return combine(*p_values)


def _mean_p_value(means: np.ndarray, mean: float, observed: float, exact: float) -> float:
    """P-value of the means (R,) of pieces; the variances are those of independent draws."""
    variance = _null_variance(means.var(ddof=1), observed, exact) / len(means)
    return float(_two_sided_t(means.mean() - mean, variance, len(means) - 1)[0])


def _two_sided_t(
    deviation: float | np.ndarray, variance: float | np.ndarray, df: int
) -> np.ndarray:
    """P-values of deviations with their variances; where nothing varies, 1 if all agrees."""
    deviation, error = np.abs(np.atleast_1d(deviation)), np.sqrt(np.atleast_1d(variance))
    t = np.divide(deviation, error, out=np.full_like(deviation, np.inf), where=error > 0.0)
    t[(error == 0.0) & (deviation < 1e-12)] = 0.0
    return 2.0 * stats.t.sf(t, df)


def count_test(draws: np.ndarray, probabilities: np.ndarray) -> float:
    """P-value of correlated draws of a count: its whole law, and its mean.

    Parameters
    ----------
    draws : ndarray of int, shape (chains, S)
        Such as numbers of clusters.
    probabilities : ndarray of float64, shape (n_values,)
        P(count = k) at position k.
    """
    values = np.arange(len(probabilities))
    mean = probabilities @ values
    variance = probabilities @ (values - mean) ** 2
    return combine(partition_test(draws, probabilities), mean_test(draws, mean, variance))


def coclustering_test(labels: np.ndarray, coclustering: np.ndarray) -> float:
    """P-value of how often each pair of points shares a cluster.

    Pairs that are nearly always together, or nearly always apart, are passed over.

    Parameters
    ----------
    labels : ndarray of int, shape (chains, S, n)
        Labels of the points.
    coclustering : ndarray of float64, shape (n, n)
        Exact probabilities.
    """
    i, j = np.triu_indices(len(coclustering), 1)
    exact = coclustering[i, j]
    pieces = pieces_of(labels)
    length = pieces.shape[1]
    varies = np.minimum(exact, 1.0 - exact) * length >= RARE
    if not varies.any():
        return 1.0  # every pair is nearly certain: the test of partitions has to tell
    together = np.stack(
        [np.mean(pieces[..., a] == pieces[..., b], axis=1) for a, b in zip(i, j, strict=True)], 1
    )
    return combine(_cell_p_values(together[:, varies], exact[varies], length))


def total_variation(draws: np.ndarray, probabilities: np.ndarray) -> float:
    """Total variation between all draws (chains, S) of cells and the exact law; for print."""
    frequencies = frequencies_of(draws.reshape(1, -1), len(probabilities))[0]
    return float(0.5 * np.abs(frequencies - probabilities).sum())


def total_variation_noise(draws: np.ndarray, probabilities: np.ndarray) -> float:
    """Total variation that noise alone would make; for print.

    Half of the distance between two halves of the draws, averaged over ways to halve the
    pieces: the difference of the halves has twice the standard deviation of the mean of all.
    """
    frequencies = frequencies_of(pieces_of(draws), len(probabilities))
    frequencies = frequencies[: len(frequencies) // 2 * 2]
    half = len(frequencies) // 2
    sign = np.repeat([1.0, -1.0], half)
    signs = np.stack([np.roll(sign, shift) for shift in range(half)])
    difference = signs @ frequencies / half
    return float(0.25 * np.abs(difference).sum(axis=1).mean())


# --- independent replicates ---------------------------------------------------------------


def two_sample_test(before: np.ndarray, after: np.ndarray) -> float:
    """P-value that one step from an exact start leaves the law of statistics as it was.

    Row r of `before` and of `after` belong to one replicate and depend on each other; rows are
    independent.  Differences within a replicate are tested for the mean, the second moment and
    the distribution function at some thresholds, which serves integers as well as reals; the
    whole distribution by Kolmogorov and Smirnov between halves that share no replicate.

    Parameters
    ----------
    before, after : ndarray, shape (R, p)
        Statistics before and after the step.
    """
    if before.shape != after.shape or before.ndim != 2:
        raise ValueError(f"before {before.shape} and after {after.shape} must be (R, p), alike.")
    if not (np.isfinite(before).all() and np.isfinite(after).all()):
        raise ValueError("before and after must be finite.")
    columns = zip(before.T.astype(float), after.T.astype(float), strict=True)
    return combine(*(_column_p_value(x, y) for x, y in columns))


def _column_p_value(x: np.ndarray, y: np.ndarray) -> float:
    """P-value for one statistic, before (R,) and after (R,)."""
    return combine(
        _paired_p_values(_features(x, x, y), _features(y, x, y)),
        stats.ks_2samp(x[::2], y[1::2], method="asymp").pvalue,
        stats.ks_2samp(x[1::2], y[::2], method="asymp").pvalue,
    )


def _features(values: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Functions (R, m) of a statistic whose means the step must preserve."""
    pooled = np.concatenate([x, y])
    levels = np.arange(1, N_THRESHOLDS + 1) / (N_THRESHOLDS + 1)
    # Values that occur: of integers, neighbouring thresholds may then coincide.
    thresholds = np.unique(np.quantile(pooled, levels, method="lower"))
    centred = values - np.median(pooled)
    return np.column_stack([centred, centred**2, values[:, None] <= thresholds])


def _paired_p_values(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """P-value of equal means for each column of two dependent samples (R, m)."""
    difference = y - x
    n = len(difference)
    return _two_sided_t(difference.mean(axis=0), difference.var(axis=0, ddof=1) / n, n - 1)


def uniform_rank_test(ranks: np.ndarray, n_bins: int) -> float:
    """P-value of uniform ranks: chi-square, mean, and distance from the middle.

    The last two are what a wrong posterior does to ranks: a shift, a bowl or a hump.

    Parameters
    ----------
    ranks : ndarray of int, shape (R,) or (R, p)
        Independent down the rows, each from 0 to n_bins - 1.
    n_bins : int
        Number of values a rank can take.
    """
    if n_bins < 2:
        raise ValueError(f"n_bins must be 2 or more, got {n_bins}.")
    if ranks.min() < 0 or ranks.max() >= n_bins:
        raise ValueError(f"ranks must lie between 0 and n_bins - 1 = {n_bins - 1}.")
    columns = ranks.reshape(len(ranks), -1).T
    return combine(*(_rank_p_value(column, n_bins) for column in columns))


def _rank_p_value(ranks: np.ndarray, n_bins: int) -> float:
    """P-value for one column of ranks (R,)."""
    uniform = np.full(n_bins, 1.0 / n_bins)
    groups = _pool_rare(uniform, max(RARE / len(ranks), 1.0 / 20.0))
    expected = np.bincount(groups) / n_bins * len(ranks)
    values = np.arange(n_bins) - 0.5 * (n_bins - 1)
    p_values = [
        stats.chisquare(np.bincount(groups[ranks], minlength=len(expected)), expected).pvalue
    ]
    for score in (values, values**2)[: n_bins - 1]:  # of two ranks, the square is constant
        z = (score[ranks].mean() - score.mean()) / (score.std() / np.sqrt(len(ranks)))
        p_values.append(2.0 * stats.norm.sf(abs(z)))
    return combine(*p_values)
