"""Multinomial clusters of vectors of counts, with a Dirichlet prior.

p ~ Dirichlet(a0), and a row with total n is Multinomial(n, p), given n.  See Gelman et al.
(2013), "Bayesian Data Analysis", 3rd edition, section 3.4, and docs/method.md, eq. (7.22)-(7.26).
The kernels are in `components.multinomial_kernels`.
"""

import copy
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from pymc_dpsplit.components.arguments import positive_vector, refuse_where, rows_of
from pymc_dpsplit.components.by_column import DiscreteByColumn
from pymc_dpsplit.components.component_family import Values
from pymc_dpsplit.components.graph_functions import log_gamma
from pymc_dpsplit.components.multinomial_kernels import CountRows, MultinomialPrior
from pymc_dpsplit.components.parameter_laws import TINY, log_power
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
from pymc_dpsplit.kernels.special import LOG_ZERO

# Largest number of bytes of rows drawn in one call; more are refused.
_MOST_DRAWN = 2**31


class Multinomial(DiscreteByColumn):
    """Multinomial clusters of rows of counts, dense or sparse, with a Dirichlet prior.

    ``p ~ Dirichlet(a0)``, and a row of the cluster with total n is ``Multinomial(n, p)``, with
    density ``n! / (x_1! ... x_V!) p_1^x_1 ... p_V^x_V`` [1]_.  The model conditions on the total n
    of each row, which does not depend on the cluster.

    Parameters
    ----------
    a0 : float or array of shape (V,)
        Parameters of the Dirichlet, a pseudo-count for each column; positive.

    Notes
    -----
    In the trace of a mixture ``x`` are ``x_p`` (K, V), the probabilities of the
    columns.  `from_data` chooses ``a0`` by the shares of the columns and how much they differ
    between rows.

    Data are counts, whole numbers from 0, of shape (N, V): an array, or a SciPy sparse matrix or
    array of any format.  The time of a sweep is proportional to the number of non-zero entries, and
    sparse data are never converted to an array (N, V).  Rows of zeros are legal.  Missing entries
    and latent mixtures are refused.

    With many columns the parameter ``p`` takes most of the trace, K times V numbers per draw.
    ``pm.sample(var_names=["alpha", "x_n_clusters", "x_weights", "x_new_weight"],
    dpsplit={"keep_labels": True})`` omits it and records the partition instead.  Posterior and
    prior prediction draw dense rows with the totals of the observed rows; if their number differs
    from N, totals are drawn from the observed ones.

    References
    ----------
    .. [1] Gelman et al. (2013), Bayesian Data Analysis, 3rd edition, section 3.4.

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> dps.Multinomial(a0=[0.5, 0.5, 1.0])
    Multinomial(a0=[0.5, 0.5, 1.0])
    """

    reads_sparse: ClassVar[bool] = True
    has_margins: ClassVar[bool] = False
    parameters: ClassVar[dict[str, int]] = {"p": 1}
    graph_ndims: ClassVar[dict[str, int]] = parameters

    def __init__(self, a0: Any) -> None:
        self.hyperparameters = {"a0": a0}
        self.totals = np.ones(1, np.int64)

    @classmethod
    def from_data(cls, observed: Any) -> "Multinomial":
        """Return hyperparameters under which clusters consist of many rows with common features.

        ``a0`` is the relative frequency of each column in all counts, times a total.  The total is
        the smaller of four counts per column and the average number of counts per cluster, if the
        number of clusters is its prior mean for ``alpha = 1``, ``1 + 1/2 + ... + 1/N``.  The total
        is halved until the log density of a row under the prior exceeds that under the prior mean
        by ``log N`` on average, the cost of a singleton cluster, or until halving no longer
        increases it [1]_.  A column of zeros is given half a count.

        The total determines the number of clusters.  In texts, where words are repeated within a
        row, a smaller total gives more and smaller clusters, and eventually singletons.  For finer
        clusters use ``Multinomial`` with, for example, a fifth of this ``a0``.

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
        .. [1] docs/method.md, eqs. (7.27) and (7.28).

        Examples
        --------
        >>> import pymc_dpsplit as dps
        >>> dps.Multinomial.from_data([[0, 3, 1], [2, 1, 1]]).hyperparameters["a0"]
        array([1.33333333, 2.66666667, 1.33333333])
        """
        rows: Rows = (
            rows_of_sparse(observed)
            if is_sparse(observed)
            else rows_of(observed, cls.row_ndim, may_miss=True)
        )
        fitted = cls(1.0).validate_rows(rows)
        sparse, _ = compressed(rows)
        shares = np.maximum(column_totals(sparse), 0.5)
        shares /= shares.sum()
        fitted.hyperparameters["a0"] = prior_counts(sparse, shares) * shares
        return fitted

    def validate_rows(self, rows: Rows) -> "Multinomial":
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
        coefficients = np.where(is_wrong, LOG_ZERO, log_coefficients(sparse))
        return CountRows(sparse.indptr, sparse.indices, sparse.values, coefficients, sparse.shape)

    def check(self, values: Values, n_features: int) -> dict[str, np.ndarray]:
        return {"a0": positive_vector("a0", values["a0"], n_features)}

    def prior(self, values: Mapping[str, np.ndarray], shift: np.ndarray) -> MultinomialPrior:
        a0 = values["a0"]
        return MultinomialPrior(shift, a0, float(a0.sum()))

    def unpack(self, params: np.ndarray, shift: np.ndarray) -> dict[str, np.ndarray]:
        # If a probability underflowed to 0, `pack` would compute log 0.
        return {"p": np.maximum(np.exp(params[:, 1:]), TINY)}

    def pack(self, parameters: Mapping[str, np.ndarray], shift: np.ndarray) -> np.ndarray:
        p = parameters["p"]
        return np.column_stack([np.zeros(len(p)), np.log(p)])

    def central(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {"p": values["a0"] / values["a0"].sum()}

    def log_base(self, graph_parameters: Values, values: Values, pt: Any) -> Any:
        """Return the log density of all probabilities but the last, eq. (7.22)."""
        p, a0 = graph_parameters["p"], values["a0"]
        normaliser = pt.gammaln(a0.sum()) - pt.gammaln(a0).sum()
        return normaliser + log_power(p, a0, pt).sum(axis=1)

    def log_density(self, rows: Any, graph_parameters: Values, pt: Any) -> Any:
        coefficient = log_gamma(rows.sum(axis=1) + 1.0, pt) - log_gamma(rows + 1.0, pt).sum(axis=1)
        return coefficient + (rows * pt.log(graph_parameters["p"])).sum(axis=1)

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
        a0 = values["a0"]
        # Log gammas by G(a) = G(a + 1) U^(1/a), since all gammas may underflow to 0.
        shape = (size, len(a0))
        scaled = rng.standard_exponential(shape) / a0
        log_drawn = np.log(rng.standard_gamma(a0 + 1.0, shape)) - scaled
        p = np.exp(log_drawn - log_drawn.max(1, initial=-np.inf, keepdims=True))
        return {"p": np.maximum(p / p.sum(1, keepdims=True), TINY)}

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
