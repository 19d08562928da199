"""What a test needs to know of a family, beside its twin: one entry makes it part of all tables.

Rows come from small real data sets, see `tests.support.datasets`; those of a family that takes
others are made of them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

Draws = dict[str, np.ndarray]
Law = Callable[[Any, np.ndarray, Draws], np.ndarray]


def as_they_are(rows: np.ndarray) -> np.ndarray:
    """Real rows, for a family that has a density."""
    return rows


class Example(NamedTuple):
    """A family under test, by the name of its public class.

    Attributes
    ----------
    twin : callable
        Makes the naive twin of hyperparameters.
    hyperparameters : callable
        From the number of features, 1 to 3, to hyperparameters; nothing in them is symmetric.
    law : callable, optional
        From the twin, rows and draws of its parameters given these to uniforms (draws, any): the
        posterior law by SciPy.  A composed family has none.
    n_features : tuple of int
        Numbers of features for the tests of moves.
    rows_from : callable
        From real rows to rows of the family.
    support : tuple of int
        Values an entry can have, with nearly all of the mass; none if there is a density.
    is_endless : bool
        Whether larger entries than those are in the support.
    by_column : bool
        Whether columns are independent given the cluster, or in one normal law; if not, neither
        missing entries nor some columns alone have laws, and a single column says nothing.
    is_conditional : bool
        Whether rows hold covariates, which have no law; then `by_column` is false.
    is_composed : bool
        Whether it is made of other families, so that all but moves is tested elsewhere.
    has_kernels_of : str
        Name of the family whose kernels it runs, if it has none of its own.
    factor : str
        Hyperparameter that has a prior where whole draws are tested; none if empty.
    component : type
        The public class, which the tables add.
    """

    twin: Callable[..., Any]
    hyperparameters: Callable[[int], dict[str, Any]]
    law: Law | None = None
    n_features: tuple[int, ...] = (2,)
    rows_from: Callable[[np.ndarray], np.ndarray] = as_they_are
    support: tuple[int, ...] = ()
    is_endless: bool = False
    by_column: bool = True
    is_conditional: bool = False
    is_composed: bool = False
    has_kernels_of: str = ""
    factor: str = ""
    component: Any = None


def per_column(**values: Any) -> Callable[[int], dict[str, Any]]:
    """Hyperparameters that have a number for each of the first features."""
    return lambda n_features: {key: np.array(of)[:n_features] for key, of in values.items()}


def scalar(**values: float) -> Callable[[int], dict[str, Any]]:
    """Hyperparameters of a family of scalars."""

    def of(n_features: int) -> dict[str, Any]:
        if n_features != 1:
            raise ValueError(f"n_features must be 1 for scalars, got {n_features}.")
        return dict(values)

    return of


# --- rows ---------------------------------------------------------------------------------


def as_positive(rows: np.ndarray) -> np.ndarray:
    """Turn real rows into positive numbers, in the same order."""
    return np.exp(0.9 * rows + 0.3)


def as_times(rows: np.ndarray) -> np.ndarray:
    """Turn real rows into positive numbers that are farther apart, in reverse order."""
    return np.exp(0.2 - rows)


def as_counts(rows: np.ndarray) -> np.ndarray:
    """Turn real rows into counts, in the same order."""
    return np.rint(np.exp(0.5 * rows + 0.6))


def as_successes(rows: np.ndarray) -> np.ndarray:
    """Turn real rows into counts up to 5."""
    return np.clip(np.rint(2.5 + 1.2 * rows), 0.0, 5.0)


def as_zeros_and_ones(rows: np.ndarray) -> np.ndarray:
    """Turn real rows into zeros and ones."""
    return (rows > 0.15).astype(float)


def as_codes(rows: np.ndarray) -> np.ndarray:
    """Turn real rows into codes, of two categories in every third column, else of three."""
    codes = (rows > -0.55).astype(float) + (rows > 0.65)
    codes[:, 1::3] = rows[:, 1::3] > 0.15
    return codes


def as_mixed(rows: np.ndarray) -> np.ndarray:
    """Turn real rows into a number, a count and a code."""
    return np.column_stack([rows[:, 0], as_counts(rows[:, 1:2]), as_codes(rows[:, 2:])])


def as_words_and_numbers(rows: np.ndarray) -> np.ndarray:
    """Turn up to three real columns into a number, counts of two words, and a count."""
    counts = as_counts(rows)
    return np.column_stack([rows[:, 0], counts[:, 1], counts[:, 2], counts[:, 0]])


def as_profiles(rows: np.ndarray) -> np.ndarray:
    """Turn real rows into a covariate, its response, and the covariate again."""
    return rows[:, [0, 1, 0]]


# --- laws ---------------------------------------------------------------------------------


def uniforms_of(*columns: np.ndarray) -> np.ndarray:
    """Transforms of every column, and of their sum of squared normal scores, which ties them."""
    squares = sum(stats.norm.ppf(np.clip(column, 1e-300, 1 - 1e-16)) ** 2 for column in columns)
    return np.column_stack([*columns, stats.chi2.cdf(squares, len(columns))])


def gamma_law(twin: Any, rows: np.ndarray, draws: Draws) -> np.ndarray:
    """Of families with one parameter: the last two numbers of the posterior are shape and rate."""
    *_, a, b = twin.posterior(rows)
    (parameter,) = draws.values()
    return uniforms_of(*stats.gamma.cdf(parameter, a, scale=1.0 / b).T)


def beta_law(twin: Any, rows: np.ndarray, draws: Draws) -> np.ndarray:
    """Of families of one probability: the last two numbers of the posterior are those of a beta."""
    *_, a, b = twin.posterior(rows)
    return uniforms_of(*stats.beta.cdf(draws["p"], a, b).T)
