"""Arguments that determine the law of the partition: checked, and as graphs."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytensor.tensor as pt
from pymc.logprob.basic import logp
from pymc.model import Model
from pymc.pytensorf import rvs_in_graph
from pymc.sampling.forward import draw
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors

from pymc_dpsplit.components.arguments import is_integer, positive_scalar, real_scalar, shown
from pymc_dpsplit.moves.partition_law import finite_mixture
from pymc_dpsplit.variables import number_of_components
from pymc_dpsplit.variables.hyperparameters import checked_scalar

# Labels are numbered in int32.
_MOST_COMPONENTS = 2**31 - 1


class DeclaredLaw(NamedTuple):
    """Law of the partition of a mixture in a model.

    Attributes
    ----------
    discount, strength : TensorVariable
        Of float64.
    n_components : int, optional
        None if there are infinitely many, or if their number is a variable.
    component_count : TensorVariable, optional
        That variable, which is not yet registered in the model.
    """

    discount: Any
    strength: Any
    n_components: int | None = None
    component_count: Any = None

    @property
    def numbers(self) -> tuple[Variable, Variable]:
        """Return discount and strength, inputs of the ops of the mixture."""
        return self.discount, self.strength

    @property
    def is_finite(self) -> bool:
        """Return whether the number of components is finite."""
        return self.n_components is not None or self.component_count is not None

    @property
    def discount_varies(self) -> bool:
        """Return whether the discount is other than a number."""
        return not isinstance(self.discount, Constant)


def process_law(alpha: Any, discount: Any, model: Model) -> DeclaredLaw:
    """Return the law of a Dirichlet or Pitman-Yor process.

    Parameters
    ----------
    alpha, discount
        As in `DPMixture`.
    model : pymc.Model

    Returns
    -------
    DeclaredLaw

    Raises
    ------
    ValueError
        If one of them is no number or variable, or out of range.
    """
    share = _scalar("discount", discount, model, _discount_below_one)
    if rvs_in_graph(share):
        return DeclaredLaw(share, _scalar("alpha", alpha, model, positive_scalar))
    least = -float(share.eval())

    def above_discount(key: str, value: Any) -> float:
        number = real_scalar(key, value)
        if not number > least:
            raise ValueError(
                f"{key}={shown(value)} is not above -discount = {least:g}; give a larger number, "
                "or a smaller discount."
            )
        return number

    check = positive_scalar if least == 0.0 else above_discount
    return DeclaredLaw(share, _scalar("alpha", alpha, model, check))


def _discount_below_one(key: str, value: Any) -> float:
    number = real_scalar(key, value)
    if not 0.0 <= number < 1.0:
        raise ValueError(
            f"{key}={shown(value)} is not from 0 to below 1; give 0 for a Dirichlet process, or a "
            "number such as 0.25."
        )
    return number


# What a number is, and examples of it.
_MEANINGS = {
    "alpha": 'concentration; give a positive number, or a variable such as pm.Gamma("alpha", 2, 4)',
    "gamma": "parameter of a Dirichlet distribution; give a positive number, such as 1.0",
    "discount": 'discount; give 0, or a variable such as pm.Beta("discount", 1, 4)',
}


def _scalar(key: str, value: Any, model: Model, check: Callable[[str, Any], float]) -> Any:
    return checked_scalar(key, value, model, _MEANINGS[key], check)


def finite_law(gamma: Any, n_components: Any, model: Model) -> DeclaredLaw:
    """Return the law of a mixture with symmetric Dirichlet weights.

    Parameters
    ----------
    gamma, n_components
        As in `FiniteMixture`.
    model : pymc.Model

    Returns
    -------
    DeclaredLaw

    Raises
    ------
    ValueError
        If one of them is out of range.
    """
    parameter = _scalar("gamma", gamma, model, positive_scalar)
    if not is_integer(n_components) or not 1 <= n_components <= _MOST_COMPONENTS:
        raise ValueError(
            f"n_components={shown(n_components)} is not a whole number from 1 to "
            f"{_MOST_COMPONENTS}; give the number of components."
        )
    if isinstance(parameter, Constant):
        law = finite_mixture(float(parameter.data), int(n_components))
        discount, strength = (pt.constant(number, dtype="float64") for number in law)
        return DeclaredLaw(discount, strength, int(n_components))
    return DeclaredLaw(-parameter, parameter * int(n_components), int(n_components))


def varying_finite_law(gamma: Any, n_components: Any, name: str, model: Model) -> DeclaredLaw:
    """Return the law of a mixture whose number of components is random.

    Parameters
    ----------
    gamma, n_components
        As in `MFMixture`.
    name : str
        Name of the mixture.
    model : pymc.Model

    Returns
    -------
    DeclaredLaw

    Raises
    ------
    ValueError
        If `gamma` is out of range, or `n_components` is no distribution on the numbers from 1.
    """
    parameter = _scalar("gamma", gamma, model, positive_scalar)
    _check_prior_of_components(n_components, model)
    count: Any = number_of_components(n_components, model.name_for(name), model.basic_RVs)
    is_number = isinstance(parameter, Constant)
    discount = pt.constant(-float(parameter.data)) if is_number else -parameter
    return DeclaredLaw(discount, parameter * count.astype("float64"), component_count=count)


_PRIORS = "pm.Geometric.dist(0.3) or 1 + pm.Poisson.dist(3)"
# Evaluated once, for which compiling takes longer.
_IN_PYTHON = Mode(linker="py", optimizer="fast_compile")
# Numbers at which a prior on the numbers of components must be zero.
_TOO_FEW = np.arange(-20, 1)


def _check_prior_of_components(prior: Any, model: Model) -> None:
    """Raise ValueError unless `prior` is an unregistered distribution on the numbers from 1."""
    if not isinstance(prior, Variable):
        known = ", or use FiniteMixture for a known number" * is_integer(prior)
        raise ValueError(
            f"n_components={shown(prior)} is no distribution; give one on the numbers from 1, such "
            f"as {_PRIORS}{known}."
        )
    if prior in model.basic_RVs:
        raise ValueError(
            f"n_components is the variable {prior.name} of the model; give its distribution, such "
            f"as {_PRIORS}, as the mixture declares the variable itself."
        )
    of: Any = prior.type
    if of.ndim != 0 or not of.dtype.startswith(("int", "uint")):
        raise ValueError(
            f"n_components is not a single whole number; give a distribution such as {_PRIORS}."
        )
    variables: Any = model.basic_RVs
    given = {rv: rv.type() for rv in ancestors([prior], blockers=variables) if rv in variables}
    try:
        log_prior = logp(clone_replace(prior, given), pt.constant(_TOO_FEW), warn_rvs=False)
    except (AttributeError, NotImplementedError, RuntimeError, ValueError):
        raise ValueError(
            f"n_components has no log-probability; give a distribution of PyMC such as {_PRIORS}, "
            "or one made by pm.CustomDist.dist."
        ) from None
    if rvs_in_graph([log_prior]):
        raise ValueError(
            "n_components depends on a distribution that is not in this model; declare it by name, "
            'as in p = pm.Beta("p", 4, 3), inside the model.'
        )
    at_draws: Any = clone_replace(log_prior, {value: rv for rv, value in given.items()})
    found = draw(at_draws, random_seed=0, mode=_IN_PYTHON)
    if np.isfinite(found).any():
        possible = _TOO_FEW[np.isfinite(found)].max()
        raise ValueError(
            f"n_components may be {possible} under its prior; give a distribution on the numbers "
            f"from 1, such as {_PRIORS}."
        )
