"""`finite_mixture`: a finite counterpart of `DPMixture` that NUTS can sample."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.model import Model
from pymc.pytensorf import rvs_in_graph
from pytensor.graph.basic import Constant, Variable

from pymc_dpsplit.components.arguments import is_integer, positive_scalar, rows_of
from pymc_dpsplit.components.bernoulli import Bernoulli
from pymc_dpsplit.components.binomial import Binomial
from pymc_dpsplit.components.categorical import Categorical
from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.components.diag_normal import DiagNormal
from pymc_dpsplit.components.exponential import Exponential
from pymc_dpsplit.components.gamma import Gamma
from pymc_dpsplit.components.inverse_gamma import InverseGamma
from pymc_dpsplit.components.mv_normal.family import MvNormal
from pymc_dpsplit.components.mv_normal_known_cov import MvNormalKnownCov
from pymc_dpsplit.components.negative_binomial import NegativeBinomial
from pymc_dpsplit.components.normal import Normal
from pymc_dpsplit.components.normal_known_sigma import NormalKnownSigma
from pymc_dpsplit.components.poisson import Poisson
from pymc_dpsplit.components.spherical_normal import SphericalNormal
from pymc_dpsplit.finite.form import NutsForm
from pymc_dpsplit.finite.gaussian import FullNormal, IndependentNormal, ScalarNormal
from pymc_dpsplit.finite.gaussian_means import Balls, ScalarMeans, TiedMeans
from pymc_dpsplit.finite.known_numbers import FailureCounts, SuccessProbabilities
from pymc_dpsplit.finite.positive_numbers import PositiveRates, Scales
from pymc_dpsplit.finite.start import initial_groups
from pymc_dpsplit.finite.weights import KINDS, declare_log_weights, initial_log_odds
from pymc_dpsplit.finite.whole_numbers import CategoryWeights, Probabilities, Rates
from pymc_dpsplit.variables.hyperparameters import checked_hyperparameters, refuse_foreign_rvs

# Looked up by the exact class, because a subclass may have another density.
FORMS: dict[type[ComponentFamily], type[NutsForm]] = {
    Normal: ScalarNormal,
    DiagNormal: IndependentNormal,
    MvNormal: FullNormal,
    NormalKnownSigma: ScalarMeans,
    SphericalNormal: Balls,
    MvNormalKnownCov: TiedMeans,
    Gamma: PositiveRates,
    Exponential: PositiveRates,
    InverseGamma: Scales,
    Poisson: Rates,
    NegativeBinomial: FailureCounts,
    Bernoulli: Probabilities,
    Binomial: SuccessProbabilities,
    Categorical: CategoryWeights,
}


def finite_mixture(
    name: str,
    alpha: Any,
    component: ComponentFamily,
    *,
    n_components: int,
    observed: Any,
    weights: str = "dirichlet",
    dims: str | Sequence[str] | None = None,
) -> Variable:
    """Declare a mixture of a fixed number of components in the current model, for NUTS.

    This is the counterpart of `DPMixture` in plain PyMC, with the same order of arguments, the same
    family and base measure, and the labels summed out.  The free variables are parametrised for
    NUTS; weights and cluster parameters are recorded under their names in `DPMixture`,
    ``{name}_weights``, ``{name}_mu`` and so on.

    Parameters
    ----------
    name : str
        Name of the mixture in the model.
    alpha : float or PyMC variable
        Concentration, positive.
    component : ComponentFamily
        Any conjugate family except `LinearRegression`, `Multinomial` and `Product`, with
        hyperparameters that are numbers or PyMC variables.
    n_components : int
        Number of components K, occupied or not.
    observed : array-like
        Observations without missing entries, shape (N,) for `Normal` and `NormalKnownSigma`,
        otherwise (N, D).
    weights : {"dirichlet", "stick"}
        Prior of the weights: Dirichlet(alpha / K, ..., alpha / K), or the stick-breaking weights
        of the Dirichlet process truncated at K, where the last weight is the remainder.  Both
        converge to the Dirichlet process as K grows.
    dims : str or sequence of str, optional
        Names of the dimensions of `observed`.

    Returns
    -------
    TensorVariable
        The observed variable.

    Raises
    ------
    ValueError
        With one sentence that names the argument, the fault and the remedy.

    Notes
    -----
    For scalars with Dirichlet weights the components are ordered by their means.  This does not
    change the distribution of the mixture, and removes the K! equivalent modes.  Other mixtures may
    switch labels, which affects only parameters of single components.  Initial values are posterior
    means given groups found by k-means.  If chains mix badly, increase ``target_accept``.  See
    docs/method.md, eq. (13.1)-(13.3).

    The model is one of plain PyMC: after ``pm.compute_log_likelihood(idata)``, `arviz.loo` scores
    it, and `arviz.compare` takes that beside the `loo` of a `DPMixture` of the same data.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_dpsplit as dps
    >>> with pm.Model() as model:
    ...     x = dps.finite_mixture(
    ...         "x", 1.0, dps.Normal(0, 0.1, 2, 1), n_components=3, observed=[0.0, 0.1, 5.0]
    ...     )
    >>> [rv.name for rv in model.free_RVs], [rv.name for rv in model.deterministics]
    (['x_log_odds', 'x_spread', 'x_location'], ['x_weights', 'x_mu', 'x_sigma'])
    """
    model = _current_model(name)
    try:
        form, rows = _checked_form(component, observed)
        component = form.component
        n_components = _checked_number(n_components)
        if weights not in KINDS:
            raise ValueError(f"weights={weights!r} is not known; give one of {KINDS}.")
        concentration = _checked_alpha(alpha, model)
        keys = component.hyperparameter_ndims()
        hyperparameters = checked_hyperparameters(component, rows.shape[1], model)
        data_dims = _checked_dims(dims, rows.shape, component, model)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    graphs = dict(zip(keys, hyperparameters, strict=True))
    *numbers, current = _at_initial_point([*hyperparameters, concentration], model)
    groups = initial_groups(rows, n_components)
    is_ordered = form.is_ordered and weights == "dirichlet"
    if not is_ordered:
        groups = groups[np.argsort(-groups.sum(1), kind="stable")]
    log_odds = initial_log_odds(weights, float(current), groups.sum(1))
    log_weights = declare_log_weights(name, weights, concentration, log_odds)
    start = form.start(rows, groups, dict(zip(keys, numbers, strict=True)))
    clusters = form.declare(name, graphs, start, is_ordered)
    measured = {"weights": pt.exp(log_weights), **clusters.parameters}
    shape = n_components, rows.shape[1]
    _add_deterministics(name, component, measured, shape, data_dims, model)
    return pm.CustomDist(
        name,
        log_weights,
        *clusters.inputs,
        dist=partial(_draw, form),
        logp=partial(_log_density, form),
        signature=_signature(form),
        observed=rows if component.row_ndim else rows[:, 0],
        dims=data_dims,
    )


def _current_model(name: Any) -> Model:
    model = Model.get_context(error_if_none=False)
    if model is None:
        raise ValueError(
            f"finite_mixture {name!r} is declared outside a model; put it inside "
            "`with pm.Model():`."
        )
    if not isinstance(name, str) or not name:
        raise ValueError(f"name={name!r} is not a name; give a non-empty string.")
    return model


def _checked_form(component: Any, observed: Any) -> tuple[NutsForm, np.ndarray]:
    """Return the NUTS form of the family, adapted to the rows, and the rows (N, D)."""
    if type(component) not in FORMS:
        known = ", ".join(family.__name__ for family in FORMS)
        raise ValueError(
            f"component={component!r} has no form for NUTS; give an instance of one of {known}."
        )
    if isinstance(observed, Variable):
        raise ValueError("observed is a PyMC variable; give the numbers themselves.")
    rows = np.asarray(rows_of(observed, component.row_ndim), np.float64)
    return FORMS[type(component)](component.validate_rows(rows)), rows


def _checked_number(n_components: Any) -> int:
    if not is_integer(n_components) or n_components < 1:
        raise ValueError(
            f"n_components={n_components!r} is not a positive integer; give 1 or more."
        )
    return int(n_components)


def _checked_alpha(alpha: Any, model: Model) -> Variable:
    if not isinstance(alpha, Variable):
        return pt.constant(positive_scalar("alpha", alpha))
    refuse_foreign_rvs("alpha", alpha, model)
    return pt.as_tensor(alpha).reshape(())


def _checked_dims(
    dims: Any, shape: tuple[int, ...], component: ComponentFamily, model: Model
) -> tuple[str, ...] | None:
    if dims is None:
        return None
    names = (dims,) if isinstance(dims, str) else tuple(dims)
    lengths = shape[: component.row_ndim + 1]
    if len(names) != len(lengths):
        wanted = "two names" if component.row_ndim else "one name"
        raise ValueError(
            f"dims={dims!r} must name each dimension of observed (shape {lengths}); give {wanted}."
        )
    for dim, length in zip(names, lengths, strict=True):
        known = model.dim_lengths.get(dim)
        if known is not None and int(known.eval()) != length:
            raise ValueError(
                f"dims: dimension {dim!r} has length {int(known.eval())} in the model, but "
                f"observed has {length} there; make the coords and the data agree."
            )
    return names


def _at_initial_point(graphs: Sequence[Any], model: Model) -> list[np.ndarray]:
    """Evaluate graphs at the initial point of the model."""
    if not rvs_in_graph(graphs):
        return [of.data if isinstance(of, Constant) else of.eval() for of in graphs]
    replaced = model.replace_rvs_by_values(graphs)
    evaluate = model.compile_fn(replaced, inputs=model.value_vars, on_unused_input="ignore")
    return evaluate(model.initial_point())


def _add_deterministics(
    name: str,
    component: ComponentFamily,
    given: Mapping[str, Any],
    shape: tuple[int, int],
    data_dims: tuple[str, ...] | None,
    model: Model,
) -> None:
    """Register weights and parameters that are not free variables, with their dimensions."""
    n_components, n_features = shape
    cluster, feature = f"{name}_cluster", f"{name}_feature"
    model.add_coord(cluster, range(n_components))
    if component.row_ndim:
        feature = data_dims[1] if data_dims else feature
        for dim in (feature, f"{feature}_bis"):
            if dim not in model.coords:
                labels = model.coords.get(feature)
                model.add_coord(dim, range(n_features) if labels is None else labels)
    for key, value in given.items():
        ndim = component.parameters.get(key, 0)
        lengths = component.own_dims(key) if key in component.parameters else {}
        own = {f"{name}_{dim}": length for dim, length in lengths.items()}
        for dim, length in own.items():
            model.add_coord(dim, range(length))
        dims = (cluster, *(feature, f"{feature}_bis")[:ndim], *own)
        if value in model.free_RVs:
            model.named_vars_to_dims[value.name] = dims
        else:
            pm.Deterministic(f"{name}_{key}", value, dims=dims)


def _signature(form: NutsForm) -> str:
    inside = ",".join(f"({','.join('k' + dims)})" for dims in form.signature)
    return f"(k),{inside}->({'d' * form.component.row_ndim})"


def _log_density(form: NutsForm, value: Any, log_weights: Any, *inputs: Any) -> Any:
    """Return the log density (N,) of rows with the labels summed out."""
    return pm.math.logsumexp(log_weights + form.log_density(value, *inputs), axis=1)


def _draw(form: NutsForm, log_weights: Any, *inputs_and_size: Any) -> Any:
    """Draw rows from the mixture."""
    *inputs, size = inputs_and_size
    labels = pm.Categorical.dist(logit_p=log_weights, size=size)
    return form.draw(labels, *inputs).astype("float64")
