"""Multinomial clusters of vectors of counts, with a Dirichlet prior.

p ~ Dirichlet(beta), and a row of n counts is Multinomial(n, p); n is given.  See Gelman et al.
(2013), "Bayesian Data Analysis", 3rd edition, section 3.4, and docs/method.md, eq. (60)-(64).
The kernels are in `components.multinomial_kernels`.
"""

import copy
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from scipy import special

from pymc_dpsplit.components.arguments import positive_vector, refuse_where, rows_of
from pymc_dpsplit.components.by_column import DiscreteByColumn
from pymc_dpsplit.components.declaration import Values
from pymc_dpsplit.components.multinomial_kernels import CountRows, MultinomialPrior
from pymc_dpsplit.components.prior_counts import prior_counts
from pymc_dpsplit.components.sparse_counts import (
    MOST,
    compressed,
    is_no_count,
    is_sparse,
    log_coefficients,
    rows_of_sparse,
)
from pymc_dpsplit.data.blocks import blocks_as_floats, count_where
from pymc_dpsplit.data.sparse_rows import Rows, SparseRows, column_totals, row_totals
from pymc_dpsplit.kernels.special import LOG_NOTHING

_TINY = np.finfo(np.float64).tiny
# Bytes of rows that are drawn at a time; more are refused.
_MOST_DRAWN = 2**31


class Multinomial(DiscreteByColumn):
    """Multinomial clusters of rows of counts, dense or sparse, with a Dirichlet prior.

    ``p ~ Dirichlet(beta)``, and a row of the cluster that has n counts in all is
    ``Multinomial(n, p)``, of density ``n! / (x_1! ... x_V!) p_1^x_1 ... p_V^x_V`` [1]_.  The total
    n of each row is taken as given: it says nothing about the cluster.

    Parameters
    ----------
    beta : float or array of shape (V,)
        Parameters of the Dirichlet, in counts of each column; positive.

    Notes
    -----
    Data are counts, whole numbers from 0, of shape (N, V): an array, or a SciPy sparse matrix or
    array of any format.  A sweep takes time in proportion to the entries that are not zero, and no
    array (N, V) is made of sparse data.  A row without any count is legal; missing entries are
    refused, as is a latent mixture.

    With many columns the parameter ``p`` fills the trace, K times V numbers a draw:
    ``pm.sample(var_names=["alpha", "x_n_clusters", "x_weights", "x_new_weight"],
    dpsplit={"keep_labels": True})`` leaves it out and keeps the partition instead.  Rows are drawn
    (posterior and prior prediction) dense, with the totals of the observed rows; where there are
    more or fewer rows than observed, with totals drawn from these.

    References
    ----------
    .. [1] Gelman et al. (2013), Bayesian Data Analysis, 3rd edition, section 3.4.

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> dps.Multinomial(beta=[0.5, 0.5, 1.0])
    Multinomial(beta=[0.5, 0.5, 1.0])
    """

    reads_sparse: ClassVar[bool] = True
    parameters: ClassVar[dict[str, int]] = {"p": 1}
    natural_ndims: ClassVar[dict[str, int]] = parameters

    def __init__(self, beta: Any) -> None:
        super().__init__({"beta": beta})
        self.totals = np.ones(1, np.int64)

    @classmethod
    def from_data(cls, observed: Any) -> "Multinomial":
        """Hyperparameters under which clusters are of many rows that have something in common.

        ``beta`` is the share of each column in all counts, times a total: four counts for each
        column, or, if that is less, what a cluster has on average if there are as many as ``alpha
        = 1`` lets one expect, ``1 + 1/2 + ... + 1/N``.  It is halved until a row by itself gains
        ``log N`` on average, which is what a cluster of its own costs, or as long as that helps
        [1]_.  A column of zeros is given the share of half a count.

        The total decides how many clusters there are.  In texts, where a word that is in a row
        once is soon there again, a smaller one makes more and smaller clusters, in the end of
        single rows: for finer clusters give ``Multinomial`` a fifth of this ``beta``, say.

        Parameters
        ----------
        observed : array-like or SciPy sparse matrix, shape (N, V)
            Counts.

        Returns
        -------
        Multinomial

        Raises
        ------
        ValueError
            If the data are empty, have missing entries or are not counts.

        References
        ----------
        .. [1] docs/method.md, eqs. (150) and (151).

        Examples
        --------
        >>> import pymc_dpsplit as dps
        >>> dps.Multinomial.from_data([[0, 3, 1], [2, 1, 1]]).hyperparameters["beta"]
        array([1.33333333, 2.66666667, 1.33333333])
        """
        rows: Rows = (
            rows_of_sparse(observed)
            if is_sparse(observed)
            else rows_of(observed, cls.row_ndim, may_miss=True)
        )
        fitted = cls(1.0).suited_to(rows)
        sparse, _ = compressed(rows)
        shares = np.maximum(column_totals(sparse), 0.5)
        shares /= shares.sum()
        fitted.hyperparameters["beta"] = prior_counts(sparse, shares) * shares
        return fitted

    def suited_to(self, rows: Rows) -> "Multinomial":
        suited = copy.copy(self)
        if isinstance(rows, SparseRows):
            suited.totals = row_totals(rows)
            return suited
        n_missing = count_where(np.isnan, rows)
        if n_missing:
            raise ValueError(
                f"observed has {n_missing} missing entr{'y' if n_missing == 1 else 'ies'}, which "
                "Multinomial does not impute; drop those rows or fill them in first."
            )
        refuse_where(is_no_count, rows, f"give counts, whole numbers from 0 to {MOST}")
        totals = [block.sum(1) for block in blocks_as_floats(rows)]
        suited.totals = np.concatenate(totals).astype(np.int64)
        return suited

    def arranged(self, rows: Rows) -> CountRows:
        sparse, is_wrong = compressed(rows)
        coefficients = np.where(is_wrong, LOG_NOTHING, log_coefficients(sparse))
        return CountRows(sparse.indptr, sparse.indices, sparse.values, coefficients, sparse.shape)

    def check(self, values: Values, n_features: int) -> dict[str, np.ndarray]:
        return {"beta": positive_vector("beta", values["beta"], n_features)}

    def prior(self, values: Mapping[str, np.ndarray], shift: np.ndarray) -> MultinomialPrior:
        beta = values["beta"]
        return MultinomialPrior(shift, beta, float(beta.sum()))

    def unpack(self, params: np.ndarray, shift: np.ndarray) -> dict[str, np.ndarray]:
        # One that underflows would have the logarithm -inf when it is packed again.
        return {"p": np.maximum(np.exp(params[:, 1:]), _TINY)}

    def pack(self, parameters: Mapping[str, np.ndarray], shift: np.ndarray) -> np.ndarray:
        p = parameters["p"]
        return np.column_stack([np.zeros(len(p)), np.log(p)])

    def central(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {"p": values["beta"] / values["beta"].sum()}

    def log_base(self, natural: Values, values: Values, pt: Any) -> Any:
        """Log density of the probabilities but the last, eq. (60)."""
        p, beta = natural["p"], values["beta"]
        normaliser = pt.gammaln(beta.sum()) - pt.gammaln(beta).sum()
        return normaliser + ((beta - 1.0) * pt.log(p)).sum(axis=1)

    def log_density(self, rows: Any, natural: Values, pt: Any) -> Any:
        log_gamma = getattr(pt, "gammaln", special.gammaln)  # NumPy itself has none
        coefficient = log_gamma(rows.sum(axis=1) + 1.0) - log_gamma(rows + 1.0).sum(axis=1)
        return coefficient + (rows * pt.log(natural["p"])).sum(axis=1)

    def restrict(
        self, values: Mapping[str, np.ndarray], features: np.ndarray
    ) -> dict[str, np.ndarray]:
        raise _not_by_column()

    def restrict_parameters(
        self, parameters: Mapping[str, np.ndarray], features: np.ndarray
    ) -> dict[str, np.ndarray]:
        raise _not_by_column()

    def draw_base(
        self, rng: np.random.Generator, values: Mapping[str, np.ndarray], size: int
    ) -> dict[str, np.ndarray]:
        beta = values["beta"]
        # Logarithms of gammas, by G(a) = G(a + 1) U^(1/a): the gammas themselves may all be 0.
        shape = (size, len(beta))
        scaled = rng.standard_exponential(shape) / beta
        log_gamma = np.log(rng.standard_gamma(beta + 1.0, shape)) - scaled
        p = np.exp(log_gamma - log_gamma.max(1, initial=-np.inf, keepdims=True))
        return {"p": np.maximum(p / p.sum(1, keepdims=True), _TINY)}

    def draw_rows(
        self,
        rng: np.random.Generator,
        parameters: Mapping[str, np.ndarray],
        labels: np.ndarray,
    ) -> np.ndarray:
        p, n_rows = parameters["p"], len(labels)
        if 8 * n_rows * p.shape[1] > _MOST_DRAWN:
            raise ValueError(
                f"{n_rows} rows of {p.shape[1]} columns are too many to draw, as drawn rows are "
                "dense; leave this variable out, or declare a model of fewer rows."
            )
        totals = self.totals
        if len(totals) != n_rows:
            totals = rng.choice(totals, n_rows)
        rows = np.empty((n_rows, p.shape[1]))
        for k in np.unique(labels):
            own = labels == k
            rows[own] = rng.multinomial(totals[own], p[k] / p[k].sum())
        return rows

    def draw_missing(
        self,
        rng: np.random.Generator,
        rows: np.ndarray,
        is_missing: np.ndarray,
        parameters: Mapping[str, np.ndarray],
        labels: np.ndarray,
    ) -> np.ndarray:
        raise _not_by_column()


def _not_by_column() -> ValueError:
    return ValueError(
        "rows of Multinomial have missing entries, and what is known of a row says nothing without "
        "its total; drop those rows or fill them in first."
    )
