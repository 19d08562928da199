"""Conditional prior of the concentration of a mixture given the rest of the model."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from pymc.model import Model
from pymc.pytensorf import compile as compile_function
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_dpsplit.moves.strength import StrengthPrior, fixed_strength
from pymc_dpsplit.variables.density_by_address import DensityByAddress, density_by_address
from pymc_dpsplit.variables.fixed_values import FixedValues
from pymc_dpsplit.variables.lookup import MixtureVariables, find_mixtures
from pymc_dpsplit.variables.ownership import dependents_of


class ConcentrationPrior:
    """Log density of the variable behind alpha, given all variables outside the mixture.

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
        own = {*mixture.owned, mixture.rv}
        others = [rv for rv in dependents_of(root, model) if rv not in own]
        (alpha,) = model.replace_rvs_by_values([mixture.alpha])
        self._outputs = [model.logp(vars=[root, *others]), alpha]
        self.value_name, self._value, self._dtype = str(value.name), value, value.type.dtype
        self._fixed = FixedValues(model, [value], point)
        self._for_kernels: DensityByAddress | None = None
        if not others:
            self._for_kernels = density_by_address(self._outputs, value, model, point)

    @cached_property
    def _function(self) -> Any:
        outputs = self._fixed.replace(self._outputs)
        return compile_function([self._value], outputs, on_unused_input="ignore")

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the function, which is compiled again when it is needed."""
        return {name: value for name, value in self.__dict__.items() if name != "_function"}

    def strength_prior(self, point: Mapping[str, np.ndarray], alpha: float) -> StrengthPrior:
        """Return what kernels need to move alpha themselves, others fixed at `point`.

        Parameters
        ----------
        point : mapping
            Point of the model.
        alpha : float
            Alpha at this point.

        Returns
        -------
        StrengthPrior
            That of `fixed_strength` if the density has no compiled form.
        """
        if self._for_kernels is None:
            return fixed_strength()
        present = np.array([point[self.value_name], alpha], dtype=np.float64)
        return StrengthPrior(self._for_kernels.address, self._for_kernels.others_at(point), present)

    def given(self, point: Mapping[str, np.ndarray]) -> Callable[[float], tuple[float, float]]:
        """Return a function from the value to log density and alpha, others fixed at `point`.

        Parameters
        ----------
        point : mapping
            Point of the model.

        Returns
        -------
        callable
            From float to a tuple (log density, alpha) of floats.
        """
        self._fixed.set(point)

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
        None if alpha is a number, if it depends on several variables or on a discrete one, or if
        the mixture depends on the variable in another way.  Then only another step method moves
        it.
    """
    roots = [rv for rv in model.free_RVs if rv in _above([mixture.alpha], model)]
    if len(roots) != 1 or roots[0].ndim or not roots[0].dtype.startswith("float"):
        return None
    if roots[0] in _above([*mixture.hyperparameters.values(), mixture.data], model):
        return None
    return ConcentrationPrior(mixture, model, roots[0], point)


def concentration_to_move(
    mixture: MixtureVariables, model: Model, point: Mapping[str, np.ndarray]
) -> ConcentrationPrior | None:
    """Return the prior of alpha if the step of this mixture moves alpha.

    If several mixtures depend on one variable, the step of the first one moves it.  If a later step
    moved it, the statistics of earlier mixtures would be out of date, see `step_order`.

    Parameters
    ----------
    mixture : MixtureVariables
    model : pymc.Model
    point : mapping
        Any point of the model.

    Returns
    -------
    ConcentrationPrior or None
        None if `concentration_prior` is None, or if an earlier mixture depends on the variable.
    """
    roots = _above([mixture.alpha], model).intersection(model.free_RVs)
    for name, before in find_mixtures(model).items():
        if name == mixture.name:
            break
        if roots & _above([before.alpha, *before.hyperparameters.values(), before.data], model):
            return None
    return concentration_prior(mixture, model, point)


def _above(outputs: Sequence[Variable], model: Model) -> set[Variable]:
    """Return the random variables on which graphs depend directly."""
    variables: Any = model.basic_RVs
    return set(ancestors(outputs, blockers=variables))
