"""`Component`: any distribution of PyMC as a component of a mixture."""

import copy
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dpsplit.components.arguments import as_floats, refuse_where
from pymc_dpsplit.components.component_family import Values
from pymc_dpsplit.components.nonconjugate.compiled_prior import CompiledPrior
from pymc_dpsplit.components.nonconjugate.family import NonconjugateFamily
from pymc_dpsplit.pymc_component.base_averages import NODE_KEY, BaseAverages, digest_of
from pymc_dpsplit.pymc_component.compiled import N_PILOTS, PILOT_KEY, POOL, Compiled, flat
from pymc_dpsplit.pymc_component.declaration import (
    Declaration,
    declare,
    refuse_impossible_laws,
    refuse_other_covariates,
)
from pymc_dpsplit.pymc_component.graphs import Graphs
from pymc_dpsplit.pymc_component.missing_rows import complete_rows, first_of, refuse_no_draws
from pymc_dpsplit.pymc_component.nonconjugate_product import NonconjugateProduct
from pymc_dpsplit.pymc_component.recognition import conjugate_family
from pymc_dpsplit.pymc_component.ties import fault_of_ties

# Largest number of row arrays that are checked, as latent rows differ in every draw.
_MOST_TRIED = 8
# Keys of what is remembered about rows.
_OF_ROWS = ("averages", "tried")


class Component(NonconjugateFamily):
    """Clusters of any PyMC distribution, each with its own parameters.

    An argument given as an unnamed ``.dist()`` is drawn for each cluster from that distribution,
    the base measure; an argument that is a number or an array is shared by all clusters.

    Parameters
    ----------
    dist : class of PyMC or callable
        Distribution of a row, such as ``pm.StudentT``; or a function that takes the arguments and
        covariates by name and returns an unnamed ``.dist()`` of the rows.
    covariates : dict, optional
        Name to array-like or ``pm.Data`` (N, ...), one row per row of the data, passed to the
        function `dist`; `predict` takes those of new rows, and `pm.set_data` replaces ``pm.Data``.
    **arguments
        Arguments of the distribution, of which at least one is an unnamed ``.dist()``.

    Raises
    ------
    ValueError
        With one sentence that names the argument, the fault and the remedy.

    Notes
    -----
    In the trace of a mixture ``x`` are the arguments that are drawn for each cluster, such as
    ``x_mu`` (K,), with one more axis if an argument is a vector.  There is no `from_data`.

    A conjugate pair (Poisson or exponential with gamma, Bernoulli with beta, categorical with
    Dirichlet, normal of known `sigma` with normal, normal with normal-inverse-gamma) is replaced by
    the family of this package that integrates the parameters out, with a message in the log.  The
    last pair is written with ``v = pm.Gamma.dist(a0, b0)`` as
    ``tau=v, mu=pm.Normal.dist(mu0, tau=kappa0 * v)``, or similarly with an inverse gamma; its
    parameters are then `mu` and `sigma`.

    Other components are not conjugate: the parameters of the clusters are part of the state of the
    chain, updated by slice sampling given the members, and by joint splits and merges [1]_.  The
    density is compiled once by PyTensor's numba backend.  ``{name}_log_joint`` in ``sample_stats``
    is the joint log density of data, partition and parameters.  The density of a new row under the
    remainder is averaged over a fixed set of draws from the base measure.

    It can be pickled if `dist` can; a lambda takes cloudpickle.

    A component may be a part of a `Product`, unless it has covariates.  A row may be missing: all
    of it, if rows are vectors, and without covariates.  It is then drawn from the distribution.

    A shared argument may be a variable of the model; the posterior then contains the labels.  An
    argument of a base measure may be a variable too, as in ``mu=pm.Normal.dist(centre, 3)``, unless
    the support of the base measure depends on it.

    If continuous data have ties, for instance after rounding, the base density of a scale must
    vanish at zero faster than any power, like that of `pm.LogNormal` and `pm.InverseGamma`.
    Otherwise, for instance with `pm.HalfNormal`, the posterior of clusters of equal rows may be
    improper.  `DPMixture` warns if it recognises this from the names of the distributions.

    References
    ----------
    .. [1] docs/method.md, section 9.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> import pymc_dpsplit as dps
    >>> dps.Component(pm.StudentT, nu=4, mu=pm.Normal.dist(0, 10), sigma=pm.HalfNormal.dist(2))
    Component(pm.StudentT, mu, sigma per cluster, nu=array(4.))

    Fit a regression in each cluster:

    >>> X = np.column_stack([np.ones(50), np.linspace(-1, 1, 50)])
    >>> dps.Component(
    ...     lambda beta, sigma, X: pm.Normal.dist(X @ beta, sigma),
    ...     beta=pm.Normal.dist(0, 5, shape=2),
    ...     sigma=pm.HalfNormal.dist(1),
    ...     covariates={"X": X},
    ... ).parameters
    {'beta': 0, 'sigma': 0}
    """

    _listed: ClassVar[tuple[str, ...]] = ("hyperparameters", "parameters")  # no from_data
    # One of the rows of the data.
    _legal_row: np.ndarray | None = None
    product_class: ClassVar[type] = NonconjugateProduct

    def __new__(cls, dist: Any = None, /, *, covariates: Any = None, **arguments: Any) -> Any:
        """Return a component or the equivalent conjugate family; unpickling passes no arguments."""
        refuse_other_covariates(covariates)
        refuse_impossible_laws(arguments)
        found = None if covariates else conjugate_family(dist, arguments)
        return super().__new__(cls) if found is None else found

    def __init__(
        self,
        dist: Callable[..., Any],
        /,
        *,
        covariates: Mapping[str, Any] | None = None,
        **arguments: Any,
    ) -> None:
        declaration, hyperparameters = declare(dist, arguments, covariates)
        self.hyperparameters = hyperparameters
        self._declaration = declaration
        self.graphs = Graphs(declaration)
        # Built now, so that a distribution without a density is refused here.
        self.graphs.log_density()
        parts = self.graphs.parts
        # Class attributes of other families are instance attributes here.
        self.row_ndim = self.graphs.row_ndim  # type: ignore[misc]
        self.is_discrete = self.graphs.is_discrete  # type: ignore[misc]
        # No column of a vector has a density that could be told from that of the vector.
        self.has_margins = self.row_ndim == 0  # type: ignore[misc]
        self.parameters = dict.fromkeys(parts, 0)  # type: ignore[misc]
        self.graph_ndims = self.parameters  # type: ignore[misc]
        self.has_covariates = declaration.covariate_columns is not None
        of_data = (getattr(of, "variable", None) for of in declaration.held.values())
        self.covariate_data = next((of for of in of_data if of is not None), None)
        self._shapes = {name: part.shape for name, part in parts.items()}
        self._shapes |= {name: of.type.shape for name, of in declaration.shared.items()}
        self.likelihood_arguments = tuple(
            name
            for name, value in hyperparameters.items()
            if name in declaration.arguments and isinstance(value, Variable)
        )
        _refuse_moving_supports(self.graphs, declaration, hyperparameters)
        self._made: dict[Any, Any] = {}

    @property
    def _numbers(self) -> np.ndarray:
        """Return all shared values in one vector, with NaN for variables of a model."""
        return flat([
            np.full(self._shapes[name], np.nan) if isinstance(value, Variable | str) else value
            for name, value in self.hyperparameters.items()
        ])  # fmt: skip

    def __repr__(self) -> str:
        own = ", ".join(self._declaration.own)
        shared = [f"{name}={value!r}" for name, value in self.hyperparameters.items()]
        return f"Component({', '.join([self._declaration.label, own + ' per cluster', *shared])})"

    def __copy__(self) -> "Component":
        """Return a copy that shares the compiled functions, as copies are made for each draw."""
        twin: Component = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def with_covariates(self, covariates: Any, names: Any = None) -> "Component":
        """Return the component of rows with other covariates, and the same clusters."""
        other = copy.copy(self)
        other._declaration = self._declaration.with_covariates(covariates)
        other.covariate_data = None
        other.graphs = copy.copy(self.graphs)
        other.graphs.declaration = other._declaration
        # Compiled functions read covariates with the rows; what was computed of rows is not kept.
        other._made = {key: of for key, of in self._made.items() if key not in _OF_ROWS}
        return other

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without compiled functions, which belong to one process."""
        return {**self.__dict__, "_made": {}}

    @classmethod
    def from_data(cls, observed: Any) -> "Component":
        """Raise ValueError, because default arguments depend on the distribution.

        Parameters
        ----------
        observed : array-like

        Raises
        ------
        ValueError
            Always.
        """
        raise ValueError(
            "Component has no hyperparameters of its own to take from observed; give the "
            "distribution and its arguments, as in Component(pm.Poisson, mu=pm.Gamma.dist(1, 1))."
        )

    def validate_rows(self, rows: np.ndarray) -> "Component":
        present = complete_rows(rows, self.has_covariates)
        if self.is_discrete:
            refuse_where(lambda x: x != np.floor(x), present, "give whole numbers")
        self._refuse_other_length(len(rows), "observed has")
        suited = self
        if self._legal_row is None:
            suited = copy.copy(self)
            suited._legal_row = first_of(present)
        tried = self._made.get("tried", 0)
        if len(present) and not tried:
            self._refuse_other_shapes(present)
        if len(present) < len(rows):
            refuse_no_draws(self._declaration.label, self._drawn_once)
        self._made["tried"] = tried + 1
        if len(present) and np.isfinite(self._numbers).all() and tried < _MOST_TRIED:
            self._refuse_impossible(present)
        return suited

    def _drawn_once(self) -> None:
        """Draw one row, which a distribution of the user may not be able to."""
        numbers = np.nan_to_num(self._numbers, nan=1.0)
        (theta,) = self.base_draws(PILOT_KEY, 1, numbers)
        self._any.draw_rows(PILOT_KEY, np.empty((0, 1)), theta, numbers)

    def support_point(self, means: np.ndarray) -> np.ndarray:
        # The mean of rows need not be one: counts of a known total, for instance.
        legal = self._legal_row
        return super().support_point(means) if legal is None else legal

    def arranged(self, rows: Any) -> Any:
        """Return rows as kernels read them, if there are covariates for each."""
        # Kernels would read beyond the end of covariates that pm.set_data made shorter.
        self._refuse_other_length(rows.shape[0], "observed has")
        return super().arranged(rows)

    def _refuse_other_length(self, n_rows: int, what: str) -> None:
        columns = self._declaration.covariate_columns
        if columns is not None and len(columns) != n_rows:
            raise ValueError(
                f"covariates have {len(columns)} rows, but {what} {n_rows}; give one row of "
                "covariates for each."
            )

    def warning_for(self, rows: np.ndarray) -> str | None:
        present = rows[~np.isnan(rows).any(1)]
        return fault_of_ties(self._declaration.label, self._declaration.own, present)

    def _refuse_other_shapes(self, rows: np.ndarray) -> None:
        """Refuse rows for which the density cannot be evaluated."""
        columns = self._declaration.covariate_columns
        few = rows[:2] if columns is None else np.column_stack([rows[:2], columns[:2]])
        numbers = np.nan_to_num(self._numbers, nan=1.0)
        try:
            self._compiled(rows.shape[1]).try_density(np.ascontiguousarray(few.T, float), numbers)
        except (ValueError, TypeError, IndexError) as error:
            (first, *_) = str(error).splitlines() or [""]
            raise ValueError(
                f"observed has {rows.shape[1]} columns, for which {self._declaration.label} cannot "
                f"be evaluated ({first.rstrip('.')}); give arguments of the length of a row."
            ) from None

    def _refuse_impossible(self, rows: np.ndarray) -> None:
        """Refuse rows that have density 0 under all of many draws from the base measure."""
        density = self.log_prior_predictive(rows, self._named(self._numbers))
        wrong = np.flatnonzero(~(density > -np.inf))
        if len(wrong):
            i = wrong[0]
            raise ValueError(
                f"observed has {rows[i] if self.row_ndim else rows[i, 0]} in row {i}, where "
                f"{self._declaration.label} has density 0 whatever the parameters of its cluster; "
                "give data in its support, or a base measure that reaches them."
            )

    def own_dims(self, name: str) -> dict[str, int]:
        return {f"{name}_dim_{axis}": of for axis, of in enumerate(self._shapes[name])}

    def hyperparameter_ndims(self) -> dict[str, int]:
        return dict.fromkeys(self.hyperparameters, 0)

    def example_hyperparameters(self, n_features: int) -> dict[str, Any]:
        return {name: np.zeros(self._shapes[name]) for name in self.hyperparameters}

    def check(self, values: Values, n_features: int) -> dict[str, np.ndarray]:
        checked = {}
        for name in self.hyperparameters:
            array = as_floats(name, values[name])
            if array.shape != self._shapes[name]:
                raise ValueError(
                    f"{name} has shape {array.shape}, but was declared with shape "
                    f"{self._shapes[name]}; give that shape."
                )
            checked[name] = array
        return checked

    def _named(self, shared: np.ndarray) -> dict[str, np.ndarray]:
        """Split the vector of shared values by name."""
        sizes = [int(np.prod(self._shapes[name])) for name in self.hyperparameters]
        parts = np.split(shared, np.cumsum(sizes)[:-1]) if sizes else []
        return {
            name: part.reshape(self._shapes[name])
            for name, part in zip(self.hyperparameters, parts, strict=True)
        }

    def _compiled(self, n_features: int) -> Compiled:
        if n_features not in self._made:
            n_shared = sum(int(np.prod(self._shapes[name])) for name in self.hyperparameters)
            self._made[n_features] = Compiled(self.graphs, n_features, n_shared)
        made: Compiled = self._made[n_features]
        return made

    @property
    def _any(self) -> Compiled:
        """Return compiled functions for calls that do not read rows."""
        return self._compiled(0)

    def base_draws(self, key: int, size: int, shared: np.ndarray) -> np.ndarray:
        """Draw unconstrained parameters (size, P) from the base measure with a random key."""
        batches = [self._any.draw_base(key + batch, shared) for batch in range(-(-size // POOL))]
        return np.concatenate([np.empty((0, self.graphs.n_parameters)), *batches])[:size]

    def prior(self, values: Mapping[str, np.ndarray], shift: np.ndarray) -> CompiledPrior:
        shared = flat(list(values.values()))
        key = shared.tobytes()
        if self._made.get("prior", (None,))[0] != key:
            self._made["prior"] = key, self.base_draws(PILOT_KEY, N_PILOTS, shared)
        pilots = self._made["prior"][1]
        columns = self._declaration.covariate_columns
        return self._compiled(len(shift)).prior(shift, shared, pilots, columns)

    def unpack(self, params: np.ndarray, shift: np.ndarray) -> dict[str, np.ndarray]:
        return self._any.unpack(np.ascontiguousarray(params[:, 1:]), self._numbers)

    def pack(self, parameters: Mapping[str, np.ndarray], shift: np.ndarray) -> np.ndarray:
        thetas = self._any.pack(parameters, self._numbers)
        return np.column_stack([np.zeros(len(thetas)), thetas])

    def central(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        pilots = self.base_draws(PILOT_KEY, N_PILOTS, flat(list(values.values())))
        centre = np.median(pilots, axis=0, keepdims=True)
        unpacked = self._any.unpack(centre, self._numbers)
        return {name: value[0] for name, value in unpacked.items()}

    def graph_parameters(self, parameters: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return dict(parameters)

    def log_base(self, graph_parameters: Values, values: Values, pt: Any) -> Any:
        return self.graphs.log_base_at(graph_parameters, values)

    def log_density(self, rows: Any, graph_parameters: Values, pt: Any) -> Any:
        if pt is np:
            found = self._compiled(rows.shape[1] if self.row_ndim else 1)
            return found.density_at(np.asarray(rows, float), graph_parameters, self._numbers)
        # Variables of the base measure do not enter this density, so their values are arbitrary.
        fixed = {
            name: np.zeros(self._shapes[name]) if isinstance(value, str) else value
            for name, value in self.hyperparameters.items()
        }
        return self.graphs.log_density_at(rows, graph_parameters, fixed)

    def log_prior_predictive(
        self, rows: np.ndarray, values: Mapping[str, np.ndarray]
    ) -> np.ndarray:
        """Return the log of the density of each row averaged over base measure draws, eq. (9.6).

        Parameters
        ----------
        rows : ndarray of float64 or float32, shape (N, D)
        values : mapping
            Hyperparameters as `check` returned them.

        Returns
        -------
        ndarray of float64, shape (N,)
            All calls and processes use the same draws: 4096, fewer for more than some 5000 rows,
            and at least 512.
        """
        shared = flat(list(values.values()))
        columns = self._declaration.covariate_columns
        digest = b"" if columns is None else digest_of(columns)
        known: BaseAverages = self._made.setdefault("averages", BaseAverages())
        draw = partial(self.base_draws, NODE_KEY, shared=shared)
        prior = partial(self.prior, values, np.zeros(rows.shape[1]))
        return known.at(rows, shared, digest, draw, prior)

    def draw_base(
        self, rng: np.random.Generator, values: Mapping[str, np.ndarray], size: int
    ) -> dict[str, np.ndarray]:
        shared = flat(list(values.values()))
        drawn = self.base_draws(int(rng.integers(2**62)), size, shared)
        return self._any.unpack(drawn, self._numbers)

    def draw_rows(
        self,
        rng: np.random.Generator,
        parameters: Mapping[str, np.ndarray],
        labels: np.ndarray,
    ) -> np.ndarray:
        self._refuse_other_length(len(labels), "the rows to be drawn are")
        columns = self._declaration.covariate_columns
        thetas = self._any.pack(parameters, self._numbers)
        drawn: Any = None
        for k in np.unique(labels):
            where = np.flatnonzero(labels == k)
            given = np.empty((0, len(where))) if columns is None else columns[where].T
            key = int(rng.integers(2**62))
            rows = self._any.draw_rows(key, np.ascontiguousarray(given), thetas[k], self._numbers)
            if drawn is None:
                drawn = np.empty((len(labels), *rows.shape[1:]))
            drawn[where] = rows
        return np.empty(0) if drawn is None else drawn

    def draw_missing(
        self,
        rng: np.random.Generator,
        rows: np.ndarray,
        is_missing: np.ndarray,
        parameters: Mapping[str, np.ndarray],
        labels: np.ndarray,
    ) -> np.ndarray:
        # A row is missing as a whole or not at all.
        drawn, where = np.array(rows, float), is_missing.any(1)
        if where.any():
            drawn[where] = self.draw_rows(rng, parameters, labels[where]).reshape(-1, rows.shape[1])
        return drawn


def _refuse_moving_supports(
    graphs: Graphs, declaration: Declaration, hyperparameters: Mapping[str, Any]
) -> None:
    """Refuse base measures whose support, and so unconstrained scale, depends on a variable."""
    for name, inputs in graphs.scale_inputs().items():
        for key, value in hyperparameters.items():
            if isinstance(value, Variable) and declaration.shared[key] in inputs:
                raise ValueError(
                    f"the support of {name} depends on {value.name}, a variable of the model; give "
                    "it fixed bounds, or a distribution on all real or positive numbers."
                )
