"""What the rest of the model says of the concentration of a mixture."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from pymc.model import Model
from pymc.pytensorf import compile as compile_function
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_dpsplit.variables.held import HeldValues
from pymc_dpsplit.variables.lookup import MixtureVariables
from pymc_dpsplit.variables.ownership import dependents_of


class ConcentrationPrior:
    """Log density of the variable behind alpha given all others but the mixture itself.

    Parameters
    ----------
    mixture : MixtureVariables
    model : pymc.Model
    root : TensorVariable
        The scalar variable on which alpha depends.
    point : mapping
        Any point of the model.
    """

    def __init__(
        self,
        mixture: MixtureVariables,
        model: Model,
        root: Variable,
        point: Mapping[str, np.ndarray],
    ) -> None:
        value = model.rvs_to_values[root]
        own = {*mixture.owned, mixture.rows}
        others = [rv for rv in dependents_of(root, model) if rv not in own]
        (alpha,) = model.replace_rvs_by_values([mixture.alpha])
        outputs = [model.logp(vars=[root, *others]), alpha]
        self.value_name, self._dtype = str(value.name), value.type.dtype
        self._held = HeldValues(model, value, point)
        self._function = compile_function(
            [value], self._held.replace(outputs), on_unused_input="ignore"
        )

    def given(self, point: Mapping[str, np.ndarray]) -> Callable[[float], tuple[float, float]]:
        """Return the function from the value to log density and alpha, the others as in `point`."""
        self._held.set(point)

        def evaluate(value: float) -> tuple[float, float]:
            log_density, alpha = self._function(np.asarray(value, self._dtype))
            return float(log_density), float(alpha)

        return evaluate


def concentration_prior(
    mixture: MixtureVariables, model: Model, point: Mapping[str, np.ndarray]
) -> ConcentrationPrior | None:
    """Return the prior of alpha, if alpha depends on a single scalar variable.

    Parameters
    ----------
    mixture : MixtureVariables
    model : pymc.Model
    point : mapping
        Any point of the model.

    Returns
    -------
    ConcentrationPrior or None
        None if alpha is a number, or depends on several variables or on a discrete one, or the
        variable has another part in the mixture: then its own step alone moves it.
    """
    variables: Any = model.basic_RVs
    above = set(ancestors([mixture.alpha], blockers=variables))
    roots = [rv for rv in model.free_RVs if rv in above]
    if len(roots) != 1 or roots[0].ndim or not roots[0].dtype.startswith("float"):
        return None
    elsewhere = [*mixture.hyperparameters.values(), mixture.data]
    if roots[0] in ancestors(elsewhere, blockers=variables):
        return None
    return ConcentrationPrior(mixture, model, roots[0], point)
