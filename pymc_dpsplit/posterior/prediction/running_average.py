"""Running averages over draws for `predict`; docs/method.md, eqs. (11.1) to (11.4)."""

import numpy as np


class RunningAverage:
    """Running sums over draws of the masses of M new rows, scaled by the largest mass so far.

    Parameters
    ----------
    n_rows : int
        Number of new rows M.
    n_reference : int
        Number of reference clusters R; 0 if there is no reference.
    """

    def __init__(self, n_rows: int, n_reference: int) -> None:
        self._highest = np.full(n_rows, -np.inf)
        self._n_draws = np.zeros(n_rows)
        self._total = np.zeros(n_rows)
        self._squares = np.zeros(n_rows)
        self._new = np.zeros(n_rows)
        self._shared = np.zeros((n_rows, n_reference))

    def add(
        self, where: np.ndarray, log_mass: np.ndarray, n_recorded: int, shares: np.ndarray
    ) -> None:
        """Add one draw for a subset of the rows.

        Parameters
        ----------
        where : ndarray of int, shape (m,)
            Indices of the rows.
        log_mass : ndarray of float64, shape (A + 1, m)
            Log mass of each atom, then of the remainder.  Atoms from `n_recorded` on are part of
            the remainder, and are used for the reference clusters only.
        n_recorded : int
            Number of atoms that the trace records.
        shares : ndarray of float64, shape (A, R)
            Share of each reference cluster among the members of each atom.
        """
        highest = np.maximum(self._highest[where], log_mass.max(0))
        # If all masses are zero so far, the scale is arbitrary.
        scale = np.where(np.isfinite(highest), highest, 0.0)
        mass = np.exp(log_mass - scale)
        kept = np.exp(self._highest[where] - scale)
        density = mass[:n_recorded].sum(0) + mass[-1]
        self._highest[where] = highest
        self._n_draws[where] += 1
        self._total[where] = kept * self._total[where] + density
        self._squares[where] = kept**2 * self._squares[where] + density**2
        self._new[where] = kept * self._new[where] + mass[-1]
        self._shared[where] = kept[:, None] * self._shared[where] + mass[:-1].T @ shares

    @property
    def log_density(self) -> np.ndarray:
        """Return the logarithm of the average density (M,), eq. (11.1)."""
        with np.errstate(divide="ignore"):
            return self._highest + np.log(self._total / self._n_draws)

    @property
    def new_probability(self) -> np.ndarray:
        """Return the probability (M,) of a new cluster, eq. (11.2); NaN if the density is zero."""
        with np.errstate(invalid="ignore"):
            return self._new / self._total

    @property
    def membership(self) -> np.ndarray:
        """Return the probability (M, R) of each reference cluster, eq. (11.3)."""
        total = self._shared.sum(1)
        each = self._shared / np.where(total > 0, total, 1.0)[:, None]
        return each * (1.0 - self.new_probability)[:, None]

    @property
    def effective_draws(self) -> np.ndarray:
        """Return the effective number of draws (M,), eq. (11.4)."""
        with np.errstate(invalid="ignore"):
            return self._total**2 / self._squares
