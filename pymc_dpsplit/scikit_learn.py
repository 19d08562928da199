"""Estimator with the interface of scikit-learn."""

import inspect
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import pymc as pm
import xarray as xr

from pymc_dpsplit.components.arguments import check_integer, real_scalar, shown
from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.components.mv_normal.family import MvNormal
from pymc_dpsplit.mixture.dp_mixture import DPMixture
from pymc_dpsplit.moves.forward import draw_labelled_rows
from pymc_dpsplit.posterior.partitions.point_partition import point_partition
from pymc_dpsplit.posterior.prediction.predict import predict
from pymc_dpsplit.posterior.trace.draws import draws_of, recorded_posterior
from pymc_dpsplit.posterior.trace.labels import mixture_in
from pymc_dpsplit.posterior.trace.places import all_places

try:
    from sklearn.base import BaseEstimator, ClusterMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ImportError(
        "DirichletProcessMixture needs scikit-learn 1.6 or newer; install it, or "
        "pymc-dpsplit[scikit-learn]."
    ) from error

_NAME = "x"
_LARGEST_SEED = 2**31 - 1


class DirichletProcessMixture(ClusterMixin, BaseEstimator):
    """Dirichlet-process mixture with the interface of scikit-learn.

    `fit` declares `DPMixture` for the rows of a table and samples it by `pm.sample`.  The clusters
    of the estimator are those of the partition with the least expected variation of information,
    see `point_partition`; probabilities and densities are averages over all draws, which include
    the uncertainty of the partition and of the number of clusters.

    Parameters
    ----------
    component : ComponentFamily, class of one, or None
        Family of the clusters with its hyperparameters, for instance ``DiagNormal(0, 0.1, 2, 1)``.
        A class, such as ``DiagNormal``, stands for the hyperparameters that its ``from_data``
        chooses for the rows of `fit`; None for `MvNormal`.  Families with covariates, such as
        `LinearRegression`, are for `DPMixture` alone.
    alpha : float or None
        Concentration.  None for the prior Gamma(2, 4), with which the concentration is sampled.
    draws, tune, chains : int
        Draws kept of each chain, draws before them, and chains, as in `pm.sample`.
    random_state : int, RandomState instance or None
        Source of randomness; an integer makes results reproducible.
    sample_options : dict or None
        Further arguments of `pm.sample`, for instance ``{"progressbar": True, "cores": 1}`` or
        ``{"dpsplit": {"kernel": "collapsed"}}``.  By default no progress is shown.

    Attributes
    ----------
    idata_ : DataTree
        What `pm.sample` returned, for ArviZ and for the functions of this package.
    model_ : pymc.Model
        The model of the rows, made anew each time it is read.
    labels_ : ndarray of int64, shape (n_samples,)
        Clusters of the rows, numbered by decreasing size.
    n_clusters_ : int
        Number of these clusters.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the columns; only if they all have one.

    See Also
    --------
    DPMixture : Declaration inside any PyMC model.
    diagnose : Judges whether the chains have converged; this class does not do so by itself.

    Notes
    -----
    Missing entries (NaN) are imputed by `fit` and integrated out elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc_dpsplit as dps
    >>> X = np.array([[1.0, 2.0], [1.1, 2.1], [0.9, 1.8], [9.0, 8.0], [9.1, 8.2], [8.9, 8.1]])
    >>> mixture = dps.DirichletProcessMixture(
    ...     dps.DiagNormal([5, 5], 0.05, 2, 0.1), alpha=1.0, draws=50, tune=50, random_state=1,
    ...     sample_options={"compute_convergence_checks": False},
    ... )
    >>> mixture.fit_predict(X)
    array([0, 0, 0, 1, 1, 1])
    >>> mixture.predict([[1.0, 1.9], [500.0, -500.0]])
    array([ 0, -1])
    """

    def __init__(
        self,
        component: ComponentFamily | type[ComponentFamily] | None = None,
        alpha: float | None = None,
        *,
        draws: int = 1000,
        tune: int = 1000,
        chains: int = 4,
        random_state: Any = None,
        sample_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.component = component
        self.alpha = alpha
        self.draws = draws
        self.tune = tune
        self.chains = chains
        self.random_state = random_state
        self.sample_options = sample_options

    # sklearn.utils.validation reads it.
    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Sample the mixture of the rows.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
        y : object
            Not used.

        Returns
        -------
        DirichletProcessMixture
            The estimator itself.

        Raises
        ------
        ValueError
            If the rows or an argument of the constructor do not suit.
        """
        self._rows = self._validated(X, reset=True)
        self._family = _family_of(self.component, self._rows)
        self._alpha = None if self.alpha is None else _positive(self.alpha)
        self._seed = int(check_random_state(self.random_state).randint(_LARGEST_SEED))
        model = self._declared()
        options = self._sampling()
        with _quiet(options["progressbar"]):
            self.idata_: xr.DataTree = pm.sample(model=model, random_seed=self._seed, **options)
        found = point_partition(self.idata_, model=model, random_seed=self._seed)
        self.labels_ = found.labels.to_numpy().astype(np.int64)
        self.n_clusters_ = int(self.labels_.max()) + 1
        return self

    @property
    def model_(self) -> pm.Model:
        """Declare the model of the rows of `fit`."""
        check_is_fitted(self)
        return self._declared()

    def _declared(self) -> pm.Model:
        rows = self._rows
        dims = ("row", "feature") if self._family.row_ndim else ("row",)
        names = getattr(self, "feature_names_in_", np.arange(rows.shape[1]))
        coords = {"row": np.arange(len(rows)), "feature": names}
        with pm.Model(coords={dim: coords[dim] for dim in dims}) as model:
            alpha = pm.Gamma("alpha", 2.0, 4.0) if self._alpha is None else self._alpha
            DPMixture(_NAME, alpha, self._family, observed=_observed(self._family, rows), dims=dims)
        return model

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable cluster of each row.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)

        Returns
        -------
        ndarray of int64, shape (n_samples,)
            Numbers of clusters as in `labels_`, or -1 where a cluster without any of the
            observations is more probable than each of these.
        """
        likeliest = self.predict_proba(X).argmax(1)
        return np.where(likeliest == self.n_clusters_, -1, likeliest)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each cluster for each row.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)

        Returns
        -------
        ndarray of float64, shape (n_samples, n_clusters_ + 1)
            The last column is the probability of a cluster that has none of the observations.
            Each row sums to one.
        """
        check_is_fitted(self)
        found = self._predicted(X, partition=self.labels_)
        new = found["new_cluster_probability"].to_numpy()
        return np.column_stack([found["membership_probability"].to_numpy(), new])

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the log predictive density of each row.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)

        Returns
        -------
        ndarray of float64, shape (n_samples,)
        """
        return self._predicted(X)["log_predictive_density"].to_numpy()

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log predictive density of the rows.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
        y : object
            Not used.

        Returns
        -------
        float
        """
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1) -> np.ndarray:
        """Draw new rows from the posterior predictive distribution.

        Parameters
        ----------
        n_samples : int
            Number of rows; each is drawn given a draw of the trace that is chosen at random.

        Returns
        -------
        ndarray of float64, shape (n_samples, n_features)
        """
        check_is_fitted(self)
        check_integer("n_samples", n_samples, 1)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(_LARGEST_SEED))
        model = self.model_
        mixture = mixture_in(model, _NAME)
        posterior = recorded_posterior(self.idata_, mixture)
        places = all_places(posterior)
        chosen = np.sort(rng.integers(len(places), size=n_samples))
        which, counts = np.unique(chosen, return_counts=True)
        draws = draws_of(posterior, mixture, model, [places[i] for i in which])
        rows = []
        for draw, count in zip(draws, counts, strict=True):
            labels = np.searchsorted(np.cumsum(draw.weights), rng.random(count), side="right")
            is_new = labels == len(draw.weights)
            labels[is_new] += np.arange(is_new.sum())
            found = draw_labelled_rows(rng, self._family, labels, draw.parameters, draw.values)
            rows.append(found.reshape(count, -1))
        return rng.permutation(np.concatenate(rows))

    def _predicted(self, X: Any, partition: np.ndarray | None = None) -> xr.Dataset:
        check_is_fitted(self)
        new = _observed(self._family, self._validated(X, reset=False))
        return predict(
            self.idata_, new, model=self.model_, partition=partition, random_seed=self._seed
        )

    def _validated(self, X: Any, reset: bool) -> np.ndarray:
        """Check rows as scikit-learn does, and return them."""
        kinds = [np.float64, np.float32]
        # The rows of `fit` are read again later, when the array of the user may have changed.
        options = {"reset": reset, "copy": reset, "dtype": kinds}
        try:
            return validate_data(self, X, ensure_all_finite="allow-nan", **options)
        except (ValueError, TypeError) as error:
            is_mixed = isinstance(error, np.exceptions.DTypePromotionError)
            if not is_mixed and "could not convert string" not in str(error):
                raise
            raise ValueError(
                "X has columns that are not of numbers, as which the estimator reads them all; "
                "encode categories first, for instance by .cat.codes of pandas, and dates as days, "
                "or declare a DPMixture of a Product, which reads a frame with strings."
            ) from None

    def _sampling(self) -> dict[str, Any]:
        """Return the arguments of `pm.sample` but the model and the seed."""
        given = {} if self.sample_options is None else self.sample_options
        if not isinstance(given, Mapping):
            raise ValueError(
                f"sample_options={shown(given)} is not a dict; give arguments of pm.sample, such "
                'as {"cores": 1}.'
            )
        if own := sorted({"model", "random_seed", *self.get_params(deep=False)} & given.keys()):
            raise ValueError(
                f"sample_options has {own[0]!r}, which the estimator sets; give the argument of "
                "DirichletProcessMixture, or leave it out."
            )
        if not given.get("return_inferencedata", True):
            raise ValueError(
                "sample_options has return_inferencedata=False, but the estimator reads the trace "
                "as InferenceData; leave it out."
            )
        for name, least in {"draws": 1, "tune": 0, "chains": 1}.items():
            check_integer(name, getattr(self, name), least)
        own_options = {"draws": self.draws, "tune": self.tune, "chains": self.chains}
        return {"progressbar": False, **own_options, **given}


def _positive(alpha: Any) -> float:
    value = real_scalar("alpha", alpha)
    if not value > 0.0:
        raise ValueError(f"alpha={value:g} is not positive; give a number above 0, or None.")
    return value


def _family_of(component: Any, rows: np.ndarray) -> ComponentFamily:
    """Return the family that the argument `component` stands for."""
    family: Any = MvNormal if component is None else component
    is_class = inspect.isclass(family) and issubclass(family, ComponentFamily)
    if not is_class and not isinstance(family, ComponentFamily):
        raise ValueError(
            f"component={shown(component)} is no family of clusters; give one such as "
            "pymc_dpsplit.DiagNormal, with or without hyperparameters."
        )
    if family.has_covariates or family.holds_covariates:
        name = family.__name__ if is_class else type(family).__name__
        raise ValueError(
            f"component={name} has covariates, which have no place in X; give it to a DPMixture "
            "in a PyMC model."
        )
    if not is_class:
        return family
    if not hasattr(family, "row_ndim"):
        raise ValueError(
            f"component={family.__name__} is a class that takes no hyperparameters from X; give "
            f"an instance, {family.__name__}(...) with its arguments."
        )
    return family.from_data(rows[:, 0] if family.row_ndim == 0 else rows)


def _observed(family: ComponentFamily, rows: np.ndarray) -> np.ndarray:
    """Return rows (N, D) as the family reads them."""
    if family.row_ndim:
        return rows
    if rows.shape[1] > 1:
        raise ValueError(
            f"X has {rows.shape[1]} columns, but observations of {type(family).__name__} are "
            "numbers; give one column or another component."
        )
    return rows[:, 0]


@contextmanager
def _quiet(is_shown: bool) -> Iterator[None]:
    """Hold back what PyMC logs about a run that goes well."""
    log = logging.getLogger("pymc")
    level = log.level
    if not is_shown:
        log.setLevel(logging.WARNING)
    try:
        yield
    finally:
        log.setLevel(level)
