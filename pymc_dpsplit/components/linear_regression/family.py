"""Clusters of linear regressions with Gaussian errors and a normal-inverse-gamma prior.

sigma^2 ~ InvGamma(a0, b0), beta | sigma^2 ~ N(mu0, sigma^2 lambda0^-1) and
y | x ~ N(x' beta, sigma^2); see Gelman et al. (2013), "Bayesian Data Analysis", 3rd edition,
section 14.8, and docs/method.md, eqs. (7.43)-(7.46).  The kernels are in `posterior` and
`predictive`.
"""

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from pymc_dpsplit.components.arguments import (
    as_floats,
    positive_definite,
    positive_scalar,
    positive_vector,
    real_vector,
    rows_of,
    shape_given,
    shown,
)
from pymc_dpsplit.components.component_family import ComponentFamily, Values
from pymc_dpsplit.components.data_reader import DataReader
from pymc_dpsplit.components.linear_regression.covariates import (
    held_covariates,
    names_of,
    not_by_column,
    present,
    read_other,
)
from pymc_dpsplit.components.linear_regression.default_prior import prior_from
from pymc_dpsplit.components.linear_regression.posterior import LinearRegressionPrior
from pymc_dpsplit.components.parameter_laws import draw_gamma
from pymc_dpsplit.data.blocks import column_centres, count_where
from pymc_dpsplit.data.sparse_rows import Rows

_LOG_2PI = math.log(2.0 * math.pi)


class LinearRegression(ComponentFamily):
    """Clusters of linear regressions, each with its own coefficients and error variance.

    ``sigma^2 ~ InvGamma(a0, b0)``, ``beta | sigma^2 ~ N(mu0, sigma^2 inv(lambda0))``, and the
    response of a row with covariates x is ``N(x' beta, sigma^2)`` [1]_.  The model conditions on
    the covariates.  C is the number of coefficients: one for each covariate, and the intercept.

    Parameters
    ----------
    covariates : array-like, frame or pm.Data, shape (N, P) or (N,), optional
        One row for each response in `observed`, copied; columns of a frame name the coefficients.
        Without `covariates`, a row of `observed`, shape (N, P + 1), holds them before the response,
        which is its last column.
    mu0 : float or array of shape (C,)
        Mean of the coefficients, the intercept first.
    lambda0 : float or array of shape (C,) or (C, C)
        Precision of the coefficients in units of ``1 / sigma^2``: a positive definite matrix, or
        its diagonal.
    a0 : float
        Shape of the inverse gamma; positive.
    b0 : float
        Scale of the inverse gamma, in squared units of the response; positive.
    intercept : bool
        Whether to add a constant covariate, whose coefficient is the first.

    Raises
    ------
    ValueError
        With one sentence that names the argument, the fault and the remedy.

    Notes
    -----
    In the trace of a mixture ``x`` are ``x_beta`` (K, C), the coefficients, and ``x_sigma`` (K,),
    the standard deviations of the errors.  `from_data` chooses all hyperparameters by least
    squares.  Covariates may be collinear or constant, as the prior is proper.  Missing entries,
    latent mixtures and data less a mean of other variables are refused.

    `predict` predicts the responses to new `covariates`, or takes responses together with them.
    For ``pm.sample_posterior_predictive`` give `covariates` as `pm.Data`: responses are drawn to
    those that it holds then, and ``pm.set_data`` may give others, of any number.  Rows of `pm.Data`
    that hold their covariates are drawn with them.  `describe_clusters` describes the coefficients;
    its ``covariance("beta")`` is theirs.

    References
    ----------
    .. [1] Gelman et al. (2013), Bayesian Data Analysis, 3rd edition, section 14.8.

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> dps.LinearRegression([0.0, 1.0, 2.0], mu0=0.0, lambda0=0.1, a0=2.0, b0=1.0)
    LinearRegression(covariates of shape (3, 1), mu0=0.0, lambda0=0.1, a0=2.0, b0=1.0)
    """

    row_ndim: ClassVar[int] = 1
    parameters: ClassVar[dict[str, int]] = {"beta": 0, "sigma": 0}
    graph_ndims: ClassVar[dict[str, int]] = parameters
    holds_covariates: ClassVar[bool] = True
    has_margins: ClassVar[bool] = False

    def __init__(
        self,
        covariates: Any = None,
        *,
        mu0: Any,
        lambda0: Any,
        a0: Any,
        b0: Any,
        intercept: bool = True,
    ) -> None:
        if not isinstance(intercept, bool | np.bool_):
            raise ValueError(f"intercept={shown(intercept)} is not True or False; give either.")
        self.hyperparameters = {"mu0": mu0, "lambda0": lambda0, "a0": a0, "b0": b0}
        self.intercept = bool(intercept)
        # Those of the observed rows; if the rows hold them, some are chosen for drawn rows.
        self._held: np.ndarray | DataReader | None = None
        self.covariate_data: Any = None
        self._n_coefficients: int | None = None
        self._names: list[str] | None = None
        if covariates is not None:
            self._held = held_covariates(covariates)
            self.covariate_data = getattr(self._held, "variable", None)
            x = self._known
            self._centre = column_centres(x)
            self._names = names_of(covariates, x.shape[1])
            self._n_coefficients = x.shape[1] + self.intercept
            self.row_ndim = 0  # type: ignore[misc]
            self.has_covariates = True

    @property
    def covariates(self) -> np.ndarray | None:
        """Return the covariates (N, P) that are not in the rows."""
        return self._known if self.has_covariates else None

    @property
    def _known(self) -> np.ndarray:
        return present(self._held)

    def __repr__(self) -> str:
        inside = super().__repr__().removeprefix("LinearRegression(")
        own = "" if self.intercept else "intercept=False, "
        if self.covariates is not None:
            own = f"covariates of shape {self.covariates.shape}, {own}"
        return f"LinearRegression({own}{inside}"

    @classmethod
    def from_data(
        cls, observed: Any, covariates: Any = None, *, intercept: bool = True
    ) -> "LinearRegression":
        """Return weakly informative hyperparameters on the scale of the data.

        ``mu0`` contains the coefficients of least squares, with a residual variance s^2.  Of the
        cross products of the covariates, divided by N, nine tenths are kept off the diagonal, and
        ``lambda0`` is a tenth of that: the information of a tenth of a row.  With an intercept,
        this holds for the covariates less their means.  ``a0 = 2`` and ``b0 = s^2 / 10``, so that
        the prior mean of ``sigma^2`` is a tenth of s^2, or of 1e-4 times the variance of the
        response if that is larger.

        Parameters
        ----------
        observed : array-like, shape (N,), or (N, P + 1) without `covariates`
            Responses, or rows with the response in the last column.
        covariates : array-like or frame, shape (N, P) or (N,), optional
        intercept : bool

        Returns
        -------
        LinearRegression

        Raises
        ------
        ValueError
            If the data are empty, not numeric or not finite, or differ in length.

        Examples
        --------
        >>> import numpy as np
        >>> import pymc_dpsplit as dps
        >>> x = np.array([-1.0, 0.0, 1.0])
        >>> np.round(dps.LinearRegression.from_data(1.0 + 2.0 * x, x).hyperparameters["mu0"], 6)
        array([1., 2.])
        """
        found = cls(covariates, mu0=0.0, lambda0=1.0, a0=1.0, b0=1.0, intercept=intercept)
        rows = rows_of(observed, found.row_ndim, may_miss=True)
        found = found.validate_rows(rows)
        joined = np.asarray(found.arranged(rows), np.float64)
        found.hyperparameters = prior_from(joined[:, :-1], joined[:, -1], found.intercept)
        return found

    def hyperparameter_ndims(self) -> dict[str, int]:
        return {"mu0": 1, "lambda0": 2, "a0": 0, "b0": 0}

    def _n_coefficients_of(self, n_features: int) -> int:
        """Return the number of coefficients C for rows of D = `n_features`."""
        if self.covariates is not None:
            return self.covariates.shape[1] + self.intercept
        return n_features - 1 + self.intercept

    def shape_of(self, name: str, ndim: int, n_features: int) -> tuple[int, ...]:
        n_axes = {"beta": 1, "mu0": 1, "lambda0": 2}.get(name, 0)
        # A caller that sees no parameter with an axis of length D does not know D.
        c = self._n_coefficients
        return (self._n_coefficients_of(n_features) if c is None else c,) * n_axes

    def own_dims(self, name: str) -> dict[str, int]:
        if name != "beta" or self._n_coefficients is None:
            return {}
        return {"coefficient": self._n_coefficients}

    def own_coords(
        self, name: str, feature_names: Sequence[Any] | None
    ) -> dict[str, Sequence[Any]]:
        names = self._names
        if names is None:
            own = feature_names[:-1] if feature_names is not None else []
            names = [of if isinstance(of, str) else f"x{of}" for of in own]
        return {"coefficient": ["intercept"] * self.intercept + names} if name == "beta" else {}

    def declared_features(self) -> int | None:
        if self.covariates is not None:
            return 1
        for name in ("mu0", "lambda0"):
            shape = shape_given(name, self.hyperparameters[name])
            if shape and shape[0] is not None:
                return int(shape[0]) + 1 - self.intercept
        return None

    def example_hyperparameters(self, n_features: int) -> dict[str, Any]:
        return {"mu0": 0.0, "lambda0": 1.0, "a0": 1.0, "b0": 1.0}

    def validate_rows(self, rows: Rows) -> "LinearRegression":
        assert isinstance(rows, np.ndarray)
        n_missing = count_where(np.isnan, rows)
        if n_missing:
            raise ValueError(
                f"observed has {n_missing} missing entr{'y' if n_missing == 1 else 'ies'}, which "
                "LinearRegression does not impute; drop those rows or fill them in first."
            )
        if self.covariates is not None:
            self._refuse_other_length(rows.shape[0], "observed has")
            return self
        n_coefficients = self._n_coefficients_of(rows.shape[1])
        if not n_coefficients:
            raise ValueError(
                "observed has a single column, the response, and there is no intercept; put the "
                "covariates before it, or give them as LinearRegression(covariates, ...)."
            )
        suited = self.with_known(rows[:, :-1])
        suited._n_coefficients = n_coefficients
        return suited

    def with_known(self, covariates: np.ndarray) -> "LinearRegression":
        """Return the family whose drawn rows hold some covariates (N, P)."""
        suited = copy.copy(self)
        suited._held = covariates
        return suited

    def _refuse_other_length(self, n_rows: int, what: str) -> None:
        if self.covariates is not None and len(self.covariates) != n_rows:
            raise ValueError(
                f"covariates have {len(self.covariates)} rows, but {what} {n_rows}; give one row "
                "of covariates for each response."
            )

    def arranged(self, rows: Rows) -> Any:
        """Return rows of covariates and response."""
        if self.covariates is None:
            return super().arranged(rows)
        self._refuse_other_length(rows.shape[0], "observed has")
        return super().arranged(np.column_stack([self.covariates, np.asarray(rows)]))

    def joined(self, covariates: Any, responses: np.ndarray) -> np.ndarray:
        """Return rows (M, P + 1) of other covariates and their responses (M, 1)."""
        other = self.with_covariates(covariates, None)
        other._refuse_other_length(len(responses), "new has")
        assert other.covariates is not None
        return np.column_stack([other.covariates, responses])

    def with_covariates(self, covariates: Any, names: Sequence[Any] | None) -> "LinearRegression":
        """Return the family of responses to other covariates (M, P), with the same clusters."""
        assert self._n_coefficients is not None
        other = copy.copy(self)
        x = read_other(covariates, names or self._names, self._n_coefficients - self.intercept)
        other._held, other.covariate_data = x, None
        other._centre = column_centres(x)
        other.row_ndim, other.has_covariates = 0, True  # type: ignore[misc]
        return other

    def fitted(self, beta: np.ndarray) -> np.ndarray:
        """Return the mean (K, N) of the response to each row under coefficients (K, C)."""
        mean: np.ndarray = beta[:, self.intercept :] @ self._known.T
        return mean + beta[:, :1] if self.intercept else mean

    def base_moments(self, values: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance (N,) of the responses under the base measure, eq. (7.46)."""
        x = np.column_stack([np.ones((len(self._known), int(self.intercept))), self._known])
        leverage = (x * np.linalg.solve(values["lambda0"], x.T).T).sum(1)
        variance = values["b0"] / (values["a0"] - 1.0) if values["a0"] > 1.0 else np.inf
        return self.fitted(values["mu0"][None])[0], variance * (1.0 + leverage)

    def with_covariates_in_rows(self) -> "LinearRegression":
        """Return the family of rows that hold their covariates, with the same clusters."""
        joined = copy.copy(self)
        joined.has_covariates, joined.covariate_data = False, None
        joined.row_ndim = 1  # type: ignore[misc]
        return joined

    def check(self, values: Values, n_features: int) -> dict[str, np.ndarray]:
        c = self._n_coefficients_of(n_features)
        return {
            "mu0": real_vector("mu0", self._of_length("mu0", values["mu0"], c, 1), c),
            "lambda0": self._precision(values["lambda0"], c),
            "a0": np.asarray(positive_scalar("a0", values["a0"])),
            "b0": np.asarray(positive_scalar("b0", values["b0"])),
        }

    def _of_length(self, name: str, value: Any, c: int, most_axes: int) -> np.ndarray:
        """Refuse a number of coefficients other than C."""
        array = as_floats(name, value)
        if array.ndim > most_axes or (array.size > 1 and set(array.shape) != {c}):
            wanted = f"shape ({c},)" + f" or ({c}, {c})" * (most_axes - 1)
            of = " with the intercept" * self.intercept
            raise ValueError(
                f"{name} has shape {array.shape}, but there are {c} coefficients{of}; give a "
                f"number or {wanted}."
            )
        return array

    def _precision(self, value: Any, c: int) -> np.ndarray:
        array = self._of_length("lambda0", value, c, 2)
        if array.ndim < 2 or array.size == 1:
            return np.diag(positive_vector("lambda0", array.reshape(-1), c))
        return positive_definite("lambda0", array, c)

    def _full_shift(self, shift: np.ndarray) -> np.ndarray:
        """Return the shift (P + 1,) of covariates and response; without an intercept it is 0."""
        whole = shift if self.covariates is None else np.append(self._centre, shift)
        return whole if self.intercept else np.zeros(len(whole))

    def prior(self, values: Mapping[str, np.ndarray], shift: np.ndarray) -> LinearRegressionPrior:
        shift = self._full_shift(shift)
        mu0, a0, b0 = values["mu0"], float(values["a0"]), float(values["b0"])
        # The prior as rows: R (beta - mu0) for lambda0 = R' R, and one of 2 b0.
        root = np.linalg.cholesky(values["lambda0"]).T
        rows = np.zeros((len(mu0) + 1, len(mu0) + 1))
        rows[:-1, :-1], rows[:-1, -1], rows[-1, -1] = root, root @ mu0, math.sqrt(2.0 * b0)
        log_norm = float(np.log(np.diag(root)).sum()) - math.lgamma(a0) + a0 * math.log(b0)
        centre, kappa0 = np.zeros(len(shift)), 1.0
        if self.intercept:
            # Only the first row contains the intercept.
            kappa0 = float(root[0, 0] ** 2)
            centre, rows = rows[0, 1:] / root[0, 0] - shift, rows[1:, 1:]
        psi0, floor = np.ascontiguousarray(rows.T @ rows), np.diag(rows) ** 2
        return LinearRegressionPrior(
            shift, centre, kappa0, 2.0 * a0, psi0, floor, log_norm, self.intercept
        )

    def unpack(self, params: np.ndarray, shift: np.ndarray) -> dict[str, np.ndarray]:
        sigma = 1.0 / params[:, -1]
        beta = -sigma[:, None] * params[:, 2:-1]
        if self.intercept:
            shift = self._full_shift(shift)
            constant = shift[-1] - sigma * params[:, 1] - (beta * shift[:-1]).sum(axis=1)
            beta = np.column_stack([constant, beta])
        return {"beta": beta, "sigma": sigma}

    def pack(self, parameters: Mapping[str, np.ndarray], shift: np.ndarray) -> np.ndarray:
        beta, sigma = parameters["beta"], parameters["sigma"]
        slopes, constant = beta, np.zeros(len(beta))
        if self.intercept:
            shift = self._full_shift(shift)
            slopes = beta[:, 1:]
            constant = (shift[-1] - beta[:, 0] - slopes @ shift[:-1]) / sigma
        log_norm = -np.log(sigma) - 0.5 * _LOG_2PI
        return np.column_stack([log_norm, constant, -slopes / sigma[:, None], 1.0 / sigma])

    def central(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {"beta": values["mu0"], "sigma": np.sqrt(values["b0"] / values["a0"])}

    def graph_parameters(self, parameters: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return dict(parameters)

    def log_base(self, graph_parameters: Values, values: Values, pt: Any) -> Any:
        """Return the log density of beta and sigma, eq. (7.43)."""
        beta, sigma = graph_parameters["beta"], graph_parameters["sigma"]
        mu0, lambda0, a0, b0 = (values[name] for name in ("mu0", "lambda0", "a0", "b0"))
        variance, gap = sigma**2, beta - mu0
        squared = ((gap @ lambda0) * gap).sum(axis=1)
        log_beta = 0.5 * pt.linalg.slogdet(lambda0)[1] - 0.5 * squared / variance
        log_beta = log_beta - 0.5 * beta.shape[1] * (_LOG_2PI + pt.log(variance))
        # The prior is on sigma^2, the density of sigma: the Jacobian is 2 sigma.
        log_sigma = a0 * pt.log(b0) - pt.gammaln(a0) - (a0 + 1.0) * pt.log(variance) - b0 / variance
        return log_beta + log_sigma + math.log(2.0) + pt.log(sigma)

    def log_density(self, rows: Any, graph_parameters: Values, pt: Any) -> Any:
        beta, sigma = graph_parameters["beta"], graph_parameters["sigma"]
        x, y = self.covariates, rows
        if x is None:
            x, y = rows[:, :-1], rows[:, -1]
        fitted = (x * beta[:, int(self.intercept) :]).sum(axis=1)
        fitted = fitted + beta[:, 0] if self.intercept else fitted
        return -0.5 * ((y - fitted) / sigma) ** 2 - pt.log(sigma) - 0.5 * _LOG_2PI

    def restrict(
        self, values: Mapping[str, np.ndarray], features: np.ndarray
    ) -> dict[str, np.ndarray]:
        raise not_by_column()

    def restrict_parameters(
        self, parameters: Mapping[str, np.ndarray], features: np.ndarray
    ) -> dict[str, np.ndarray]:
        raise not_by_column()

    def draw_base(
        self, rng: np.random.Generator, values: Mapping[str, np.ndarray], size: int
    ) -> dict[str, np.ndarray]:
        root = np.linalg.cholesky(values["lambda0"])
        sigma = np.sqrt(values["b0"] / draw_gamma(rng, values["a0"], size))
        noise = np.linalg.solve(root.T, rng.standard_normal((len(root), size))).T
        return {"beta": values["mu0"] + sigma[:, None] * noise, "sigma": sigma}

    def draw_rows(
        self,
        rng: np.random.Generator,
        parameters: Mapping[str, np.ndarray],
        labels: np.ndarray,
    ) -> np.ndarray:
        self._refuse_other_length(len(labels), "the number of responses to draw is")
        x = self._known
        if len(x) != len(labels):
            x = x[rng.integers(len(x), size=len(labels))]
        beta = parameters["beta"][labels]
        fitted = (x * beta[:, self.intercept :]).sum(1) + self.intercept * beta[:, 0]
        y = fitted + parameters["sigma"][labels] * rng.standard_normal(len(labels))
        return y if self.covariates is not None else np.column_stack([x, y])

    def draw_missing(
        self,
        rng: np.random.Generator,
        rows: np.ndarray,
        is_missing: np.ndarray,
        parameters: Mapping[str, np.ndarray],
        labels: np.ndarray,
    ) -> np.ndarray:
        raise not_by_column()
