"""Concentrations of a hierarchical mixture at the mode of their density given a partition."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from pymc.model import Model
from pymc.pytensorf import compile as compile_function

from pymc_dpsplit.estimates.climbing import mode_on_grid
from pymc_dpsplit.estimates.fixed_mixture import of_other_mixtures
from pymc_dpsplit.hierarchical.seatings import Seatings
from pymc_dpsplit.hierarchical_model.lookup import HierarchicalVariables
from pymc_dpsplit.moves.franchise import factor_of_alpha, log_rising
from pymc_dpsplit.variables.dependence import dependents_of
from pymc_dpsplit.variables.scalar_priors import priors_to_move

Point = Mapping[str, np.ndarray]

# Beyond this, differences of log gamma functions are dominated by rounding.
_LARGEST = 1e12


class GroupedConcentrations:
    """Alpha and gamma of a hierarchical mixture, as functions of a point of the model.

    Terms of other mixtures with the same concentration are left out.

    Parameters
    ----------
    mixture : HierarchicalVariables
    model : pymc.Model
    point : mapping
        Any point of the model.
    """

    def __init__(self, mixture: HierarchicalVariables, model: Model, point: Point) -> None:
        own = {*mixture.owned, mixture.rv} | of_other_mixtures(model, mixture.name)
        elsewhere = mixture.hyperparameters.values()
        start = dict(point)
        self._priors = priors_to_move(mixture.concentrations, own, model, start, elsewhere)
        self._inputs = [str(value.name) for value in model.value_vars]
        graphs = model.replace_rvs_by_values([*mixture.concentrations.values()])
        names = {prior.value_name for prior in self._priors.values()}
        roots = [rv for rv in model.free_RVs if model.rvs_to_values[rv].name in names]
        terms = {*roots}.union(*(dependents_of(root, model) for root in roots)) - own
        if terms:
            graphs.append(model.logp(vars=[rv for rv in model.basic_RVs if rv in terms]))
        self._evaluate = compile_function(model.value_vars, graphs, on_unused_input="ignore")

    @property
    def are_moved(self) -> bool:
        """Whether one of them depends on a scalar variable of its own."""
        return bool(self._priors)

    def at(self, point: Point) -> tuple[float, float]:
        """Return alpha and gamma at a point."""
        alpha, gamma, *_ = self._evaluate(*(point[name] for name in self._inputs))
        return float(alpha), float(gamma)

    def log_prior(self, point: Point) -> float:
        """Return the log prior density of the variables that are moved, 0 if there are none."""
        of_variables = self._evaluate(*(point[name] for name in self._inputs))[2:]
        return float(sum(of_variables))

    def moved(self, point: Point, sizes: np.ndarray, seatings: Seatings) -> Point:
        """Return a point at which the expected log density of tables is highest.

        Parameters
        ----------
        point : mapping
        sizes : ndarray of int64, shape (J,)
            Number of rows of each group.
        seatings : Seatings
            At this point.

        Returns
        -------
        mapping
        """
        law = seatings.n_tables
        tables = np.flatnonzero(law)
        of_alpha = factor_of_alpha(sizes, float(law[tables] @ tables))

        def of_gamma(gamma: float) -> float:
            opened = len(seatings.weights) * np.log(gamma)
            return float(opened - law[tables] @ log_rising(gamma, tables))

        for key, of_number in {"alpha": of_alpha, "gamma": of_gamma}.items():
            if key not in self._priors:
                continue
            prior = self._priors[key]
            evaluate = prior.given(point)

            def height(value: float, evaluate: Any = evaluate, of_number: Any = of_number) -> float:
                log_prior, of = evaluate(value)
                if not (np.isfinite(log_prior) and 0.0 < of.strength < _LARGEST):
                    return -np.inf
                return float(log_prior + of_number(of.strength))

            value = mode_on_grid(height, float(point[prior.value_name]))
            held = np.asarray(value, point[prior.value_name].dtype)
            point = {**point, prior.value_name: held}
        return point
