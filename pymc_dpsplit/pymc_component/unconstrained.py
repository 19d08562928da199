"""Scales on which parameters of conjugate families are real numbers, with their Jacobians.

docs/method.md, eq. (9.7).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import pytensor.tensor as pt
from scipy.special import expit, logit

from pymc_dpsplit.components.parameter_laws import TINY, inside

Shape = tuple[int, ...]


class Scale(Protocol):
    """Interface of a scale: a bijection from legal values to vectors of real numbers."""

    def n_free(self, shape: Shape) -> int:
        """Return the number of real numbers for a value of some shape."""

    def free(self, values: np.ndarray) -> np.ndarray:
        """Return the real numbers (K, P) of values (K, ...)."""

    def values(self, free: np.ndarray, shape: Shape) -> np.ndarray:
        """Return the values (K, *shape) of real numbers (K, P)."""

    def graph(self, free: Any, shape: Shape) -> Any:
        """Return the value (1, *shape) of a symbolic vector (P,)."""

    def log_jacobian(self, free: Any, shape: Shape) -> Any:
        """Return the log of the absolute Jacobian of the value at a symbolic vector (P,)."""

    def graph_parameters(self, name: str, free: Any, shape: Shape) -> dict[str, Any]:
        """Return what families read of the value (1, ...) named `name` at a symbolic vector."""


class Elementwise(NamedTuple):
    """A scale of each number by itself.

    Attributes
    ----------
    forward, backward : callable
        From values to real numbers and back, in NumPy.
    symbolic, log_derivative : callable
        From symbolic real numbers to values, and to the logs of their derivatives.
    """

    forward: Callable[[Any], Any]
    backward: Callable[[Any], Any]
    symbolic: Callable[[Any], Any]
    log_derivative: Callable[[Any], Any]

    def n_free(self, shape: Shape) -> int:
        return _size(shape)

    def free(self, values: np.ndarray) -> np.ndarray:
        found: np.ndarray = self.forward(values.reshape(len(values), _size(values.shape[1:])))
        return found

    def values(self, free: np.ndarray, shape: Shape) -> np.ndarray:
        found: np.ndarray = self.backward(free).reshape(len(free), *shape)
        return found

    def graph(self, free: Any, shape: Shape) -> Any:
        return self.symbolic(free.reshape((1, *shape)))

    def log_jacobian(self, free: Any, shape: Shape) -> Any:
        return self.log_derivative(free).sum()

    def graph_parameters(self, name: str, free: Any, shape: Shape) -> dict[str, Any]:
        return {name: self.graph(free, shape)}


def _size(shape: Shape) -> int:
    return int(np.prod(shape))


def _same(value: Any) -> Any:
    return value


def _positive(free: np.ndarray) -> np.ndarray:
    # The logarithm of a number that underflowed to 0 would be infinite.
    with np.errstate(over="ignore"):
        return np.maximum(np.exp(free), TINY)


REAL = Elementwise(_same, _same, _same, pt.zeros_like)
POSITIVE = Elementwise(np.log, _positive, pt.exp, _same)
PROBABILITY = Elementwise(
    logit,
    lambda free: inside(expit(free)),
    pt.sigmoid,
    lambda free: -pt.softplus(free) - pt.softplus(-free),
)


@dataclass(frozen=True)
class Simplexes:
    """Scale of columns of probabilities: all log probabilities but the last, less their mean.

    Attributes
    ----------
    counts : tuple of int
        Number of categories of each column; probabilities of others are 0.
    """

    counts: Sequence[int]

    @cached_property
    def _starts(self) -> np.ndarray:
        """Index of the first real number of each column, and their number."""
        return np.concatenate([[0], np.cumsum(np.maximum(np.array(self.counts) - 1, 0))])

    def n_free(self, shape: Shape) -> int:
        return int(self._starts[-1])

    def _places(self, n_categories: int) -> tuple[np.ndarray, np.ndarray]:
        """Return indices that lay real numbers out as a table (D, C), and which are present.

        Indices are into the real numbers, then the last logit of each column, then a 0.
        """
        n_columns, n_free = len(self.counts), self._starts[-1]
        places = np.full((n_columns, n_categories), n_free + n_columns)
        for d, count in enumerate(self.counts):
            places[d, : count - 1] = np.arange(self._starts[d], self._starts[d + 1])
            places[d, count - 1] = n_free + d
        return places, np.arange(n_categories) < np.array(self.counts)[:, None]

    def free(self, values: np.ndarray) -> np.ndarray:
        values = values.reshape(len(values), len(self.counts), values.shape[-1])
        columns = []
        for d, count in enumerate(self.counts):
            logs = np.log(values[:, d, :count])
            columns.append(logs[:, :-1] - logs.mean(axis=1, keepdims=True))
        return np.concatenate(columns, axis=1)

    def values(self, free: np.ndarray, shape: Shape) -> np.ndarray:
        places, is_there = self._places(shape[-1])
        last = [-of.sum(axis=1) for of in np.split(free, self._starts[1:-1], axis=1)]
        logits = np.column_stack([free, *last, np.zeros(len(free))])[:, places]
        logits = np.where(is_there, logits, -np.inf)
        p = np.exp(logits - logits.max(axis=2, keepdims=True))
        # An underflow to 0 would mark the category as absent.
        p = np.where(is_there, np.maximum(p / p.sum(axis=2, keepdims=True), TINY), 0.0)
        return p.reshape(len(free), *shape)

    def _log_p(self, free: Any, n_categories: int) -> tuple[Any, np.ndarray]:
        """Return symbolic log probabilities (D, C), and which are present."""
        places, is_there = self._places(n_categories)
        column = np.repeat(np.arange(len(self.counts)), np.diff(self._starts))
        is_of = (column == np.arange(len(self.counts))[:, None]).astype(np.float64)
        last = -(pt.constant(is_of) * free[None]).sum(axis=1)
        laid = pt.concatenate([free, last, pt.zeros(1)])[places.ravel()]
        logits = pt.where(is_there, laid.reshape(places.shape), -np.inf)
        highest = logits.max(axis=1, keepdims=True)
        total = pt.log(pt.exp(logits - highest).sum(axis=1, keepdims=True))
        return logits - highest - total, is_there

    def graph(self, free: Any, shape: Shape) -> Any:
        log_p, is_there = self._log_p(free, shape[-1])
        p = pt.where(is_there, pt.maximum(pt.exp(log_p), TINY), 0.0)
        return p.reshape((1, *shape))

    def log_jacobian(self, free: Any, shape: Shape) -> Any:
        log_p, is_there = self._log_p(free, shape[-1])
        return np.log(self.counts).sum() + pt.where(is_there, log_p, 0.0).sum()

    def graph_parameters(self, name: str, free: Any, shape: Shape) -> dict[str, Any]:
        return {name: self.graph(free, shape)}


class Covariances:
    """Scale of covariance matrices: the inverse of the lower Cholesky factor, row by row.

    Its diagonal elements are on the log scale.
    """

    def n_free(self, shape: Shape) -> int:
        return shape[0] * (shape[0] + 1) // 2

    def free(self, values: np.ndarray) -> np.ndarray:
        d = values.shape[-1]
        whitening = np.linalg.inv(np.linalg.cholesky(values))
        diagonal = np.arange(d)
        whitening[:, diagonal, diagonal] = np.log(whitening[:, diagonal, diagonal])
        found: np.ndarray = whitening[:, *np.tril_indices(d)]
        return found

    def values(self, free: np.ndarray, shape: Shape) -> np.ndarray:
        d, diagonal = shape[0], np.arange(shape[0])
        whitening = np.zeros((len(free), d, d))
        whitening[:, *np.tril_indices(d)] = free
        whitening[:, diagonal, diagonal] = _positive(whitening[:, diagonal, diagonal])
        root = np.linalg.inv(whitening)
        found: np.ndarray = root @ root.transpose(0, 2, 1)
        return found

    def _whitening(self, free: Any, d: int) -> tuple[Any, Any]:
        """Return the symbolic factor (D, D), and the logs (D,) of its diagonal."""
        rows, columns = np.tril_indices(d)
        places = np.full((d, d), len(rows))
        places[rows, columns] = np.arange(len(rows))
        laid = pt.concatenate([free, pt.zeros(1)])[places.ravel()].reshape((d, d))
        logs = free[places.diagonal().copy()]
        is_diagonal = np.eye(d, dtype=bool)
        return pt.where(is_diagonal, pt.exp(logs)[None], laid), logs

    def graph(self, free: Any, shape: Shape) -> Any:
        root: Any = pt.linalg.inv(self._whitening(free, shape[0])[0])
        return (root @ root.T)[None]

    def log_jacobian(self, free: Any, shape: Shape) -> Any:
        d = shape[0]
        logs = self._whitening(free, d)[1]
        # Of W'W in terms of log W: 2^D prod W_ii^(i + 1); of its inverse: its determinant^-(D + 1).
        powers = np.arange(2.0, d + 2.0) - 2.0 * (d + 1.0)
        return d * np.log(2.0) + (powers * logs).sum()

    def graph_parameters(self, name: str, free: Any, shape: Shape) -> dict[str, Any]:
        # Those of `MvNormal`.
        whitening, logs = self._whitening(free, shape[0])
        return {"precision": (whitening.T @ whitening)[None], "log_det": -2.0 * logs.sum()[None]}
