"""Variables that a latent mixture can be shifted against without a change of the likelihood.

In ``logit_p = b0 + b[group]`` the likelihood does not change if b0 falls by a number and every row
of the mixture b rises by it, so both are determined only by their priors in this direction.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pymc.model import Model
from pymc.pytensorf import compile as compile_function
from pytensor.graph.basic import Variable

from pymc_dpsplit.components.nonconjugate.family import NonconjugateFamily
from pymc_dpsplit.variables.dependence import dependents_of, variables_above, variables_read
from pymc_dpsplit.variables.fixed_values import FixedValues
from pymc_dpsplit.variables.lookup import MixtureVariables, find_mixtures

# Shifts with which the likelihood is compared, and the largest difference in units of its size.
_SHIFTS = (0.5, -1.3)
_ROUNDING = 1e-9


class Intercept:
    """Log density of a variable and of all terms that depend on it or on the rows of a mixture.

    Parameters
    ----------
    mixture : MixtureVariables
        A latent mixture.
    model : pymc.Model
    variable : TensorVariable
        A free variable that is a scalar or has one entry for each feature.
    point : mapping
        Any point of the model.
    """

    def __init__(
        self,
        mixture: MixtureVariables,
        model: Model,
        variable: Variable,
        point: Mapping[str, np.ndarray],
    ) -> None:
        self.component = mixture.component
        own, rows = model.rvs_to_values[variable], model.rvs_to_values[mixture.rv]
        self.value_name, self.rows_name = str(own.name), str(rows.name)
        terms = [*dependents_of(variable, model), *dependents_of(mixture.rv, model)]
        likelihood: Any = model.logp(vars=list(dict.fromkeys(terms)))
        self._fixed = FixedValues(model, [own, rows], point)
        self._function = compile_function(
            [own, rows],
            self._fixed.replace([model.logp(vars=[variable]), likelihood]),
            on_unused_input="ignore",
        )

    def hold(self, point: Mapping[str, np.ndarray]) -> None:
        """Set the other variables to the values of a point."""
        self._fixed.set(point)

    def log_terms(self, value: np.ndarray, rows: np.ndarray) -> tuple[float, float]:
        """Return the log prior of the variable and the log likelihood.

        Parameters
        ----------
        value, rows : ndarray of float64
            Of the variable and of the latent variable, in the shapes that they have in the model.

        Returns
        -------
        log_prior, log_likelihood : float
        """
        log_prior, log_likelihood = self._function(value, rows)
        return float(log_prior), float(log_likelihood)


def intercepts_of(
    mixture: MixtureVariables, model: Model, point: Mapping[str, np.ndarray]
) -> list[Intercept]:
    """Return the intercepts that can be moved together with the rows of a latent mixture.

    Parameters
    ----------
    mixture : MixtureVariables
    model : pymc.Model
    point : mapping
        Any point of the model.

    Returns
    -------
    list of Intercept
        None if the component is not conjugate.  Without variables that are transformed, or on which
        the concentration, a hyperparameter or the data of a mixture depends.
    """
    if mixture.rv not in model.free_RVs or isinstance(mixture.component, NonconjugateFamily):
        return []
    mixtures = find_mixtures(model).values()
    inputs = [graph for one in mixtures for graph in (*one.law, *one.hyperparameters.values())]
    inputs += [one.data for one in mixtures if one.rv is not mixture.rv]
    above = variables_read(inputs, model)
    owned = {rv for one in mixtures for rv in (*one.owned, one.rv)}
    if mixture.rv in above:
        return []
    terms: Any = dependents_of(mixture.rv, model)
    beside = variables_above([var for term in terms for var in term.owner.inputs], model)
    n_features = mixture.n_features if point[mixture.name].ndim > 1 else None
    candidates = [
        rv
        for rv in model.free_RVs
        if rv in beside - above - owned
        and rv.dtype.startswith("float")
        and model.rvs_to_transforms[rv] is None
        and point[str(rv.name)].shape in {(), (n_features,)}
    ]
    return [
        Intercept(mixture, model, rv, point) for rv in _shiftable(mixture, model, candidates, point)
    ]


def _shiftable(
    mixture: MixtureVariables,
    model: Model,
    candidates: Sequence[Variable],
    point: Mapping[str, np.ndarray],
) -> list[Variable]:
    """Return the candidates that change the likelihood, but not if the rows are shifted too."""
    if not candidates:
        return []
    terms = [term for rv in (mixture.rv, *candidates) for term in dependents_of(rv, model)]
    values = [model.rvs_to_values[rv] for rv in (mixture.rv, *candidates)]
    fixed = FixedValues(model, values, point)
    (likelihood,) = fixed.replace([model.logp(vars=list(dict.fromkeys(terms)))])
    function = compile_function(values, likelihood, mode="FAST_COMPILE", on_unused_input="ignore")
    rows, *others = (point[str(value.name)] for value in values)
    # Rows that differ, so that what holds for them holds for others.
    rows = rows + np.linspace(-0.4, 0.7, rows.size).reshape(rows.shape)

    def log_likelihood(of_rows: float, i: int, of_own: float) -> float:
        """Log likelihood after a shift of the rows and one of candidate i."""
        there = [*others[:i], others[i] + of_own, *others[i + 1 :]]
        try:
            return float(function(rows + of_rows, *there))
        except ValueError:  # not a legal shift, for instance of a scale
            return np.nan

    found = []
    with np.errstate(all="ignore"):
        here = log_likelihood(0.0, 0, 0.0)
        most = _ROUNDING * (1.0 + abs(here))
        for i, rv in enumerate(candidates):
            both = np.array([log_likelihood(c, i, -c) for c in _SHIFTS])
            alone = np.array([log_likelihood(0.0, i, -c) for c in _SHIFTS])
            # NaN compares false.
            if (abs(both - here) <= most).all() and (abs(alone - here) > most).all():
                found.append(rv)
    return found
