"""Densities of rows averaged over the base measure, eq. (9.6), remembered from draw to draw."""

import hashlib
from collections.abc import Callable

import numpy as np

from pymc_dpsplit.components.nonconjugate.compiled_prior import CompiledPrior
from pymc_dpsplit.data.fixed_rows import read_only
from pymc_dpsplit.moves.nonconjugate.base_marginal import fill_base_marginal

# Arbitrary random key, fixed so that all processes use the same draws.
NODE_KEY = 0xBA5E
# Number of draws from the base measure over which row densities are averaged; fewer for many rows.
_MOST_NODES, _LEAST_NODES, _MOST_EVALUATIONS = 4096, 512, 2e7
# As many densities as this, or as two of the largest sets of rows, are remembered.
_MOST_KEPT = 1 << 16


def digest_of(rows: np.ndarray) -> bytes:
    """Return a digest of the elements of an array."""
    return hashlib.blake2b(np.ascontiguousarray(rows).data).digest()


class BaseAverages:
    """Averages of one component, and the draws from the base measure that they are made of.

    Readers of a trace ask for the same rows in every draw: all of them, or one set for each pattern
    of missing entries.
    """

    def __init__(self) -> None:
        self._nodes: tuple[bytes, np.ndarray] | None = None
        self._found: dict[tuple[bytes, bytes, bytes], np.ndarray] = {}
        self._largest = 0

    def at(
        self,
        rows: np.ndarray,
        shared: np.ndarray,
        digest_of_covariates: bytes,
        draw_nodes: Callable[[int], np.ndarray],
        prior: Callable[[], CompiledPrior],
    ) -> np.ndarray:
        """Return the log of the average density of each row.

        Parameters
        ----------
        rows : ndarray of float64 or float32, shape (N, D)
        shared : ndarray of float64, shape (S,)
            On which the base measure and the density depend.
        digest_of_covariates : bytes
        draw_nodes : callable
            From a number to as many draws (n, P) from the base measure, the first ones being the
            same whatever the number.
        prior : callable
            Returns what kernels read.

        Returns
        -------
        ndarray of float64, shape (N,)
            Must not be modified.
        """
        key = digest_of(rows), shared.tobytes(), digest_of_covariates
        if key not in self._found:
            out = np.empty(len(rows))
            n_nodes = min(_MOST_NODES, max(_LEAST_NODES, int(_MOST_EVALUATIONS / len(rows))))
            nodes = self._first_nodes(n_nodes, shared.tobytes(), draw_nodes)
            fill_base_marginal(prior(), read_only(rows), nodes, out)
            self._keep(key, out)
        return self._found[key]

    def _first_nodes(
        self, size: int, of: bytes, draw_nodes: Callable[[int], np.ndarray]
    ) -> np.ndarray:
        if self._nodes is None or self._nodes[0] != of or len(self._nodes[1]) < size:
            self._nodes = of, draw_nodes(size)
        return self._nodes[1][:size]

    def _keep(self, key: tuple[bytes, bytes, bytes], found: np.ndarray) -> None:
        """Remember averages, and forget the oldest ones if they are too many."""
        self._largest = max(self._largest, len(found))
        most = max(_MOST_KEPT, 2 * self._largest)
        n_kept = sum(len(of) for of in self._found.values()) + len(found)
        for oldest in list(self._found):
            if n_kept <= most:
                break
            n_kept -= len(self._found.pop(oldest))
        self._found[key] = found
