"""Conditional priors of strength and discount of a mixture given the rest of the model."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from pymc.model import Model
from pymc.pytensorf import compile as compile_function
from pytensor.graph.basic import Variable

from pymc_dpsplit.moves.partition_law import PartitionLaw
from pymc_dpsplit.moves.strength import StrengthPrior, fixed_strength
from pymc_dpsplit.variables.density_by_address import DensityByAddress, density_by_address
from pymc_dpsplit.variables.dependence import dependents_of, variables_above, variables_read
from pymc_dpsplit.variables.fixed_values import FixedValues
from pymc_dpsplit.variables.lookup import MixtureVariables, find_mixtures, is_owned
from pymc_dpsplit.variables.measure import RandomMeasure
from pymc_dpsplit.variables.n_components import on_log_scale, whole_part

# As many clusters as any start has, see `moves.start`.
_MOST_STARTED = 50


class ConcentrationPrior:
    """Log density of a variable behind a law of partitions, given all others outside a mixture.

    Parameters
    ----------
    law : sequence of TensorVariable
        Discount and strength.
    own : set of TensorVariable
        Variables of the mixture, and its observations.
    model : pymc.Model
    root : TensorVariable
        A scalar variable on which discount or strength depends.
    point : mapping
        Any point of the model.
    for_kernels : bool
        Whether kernels may move the variable, for which its density is compiled at once.

    Attributes
    ----------
    value_name : str
        Name of its value in a point.
    moves_discount : bool
        Whether the discount depends on the variable.
    is_count : bool
        Whether the variable is a number of components.
    has_dependents : bool
        Whether other variables than the mixture's own depend on the variable.
    """

    def __init__(
        self,
        law: Sequence[Variable],
        own: set[Variable],
        model: Model,
        root: Variable,
        point: Mapping[str, np.ndarray],
        for_kernels: bool = False,
    ) -> None:
        value = model.rvs_to_values[root]
        others = [rv for rv in dependents_of(root, model) if rv not in own]
        discount, strength = model.replace_rvs_by_values([*law])
        log_prior = model.logp(vars=[root, *others])
        self.has_dependents = bool(others)
        self.is_count = not value.type.dtype.startswith("float")
        self.moves_discount = root in variables_read([law[0]], model)
        self.value_name, self._in_point, self._dtype = str(value.name), value, value.type.dtype
        self._fixed = FixedValues(model, [value], point)
        self._outputs: list[Any] = [log_prior, discount, strength]
        self._moved: Any = value
        if self.is_count:
            self._moved, self._outputs = on_log_scale(value, self._outputs)
        self._for_kernels: DensityByAddress | None = None
        if for_kernels and not others and not self.moves_discount:
            log_density = self._outputs[0] + self._moved if self.is_count else self._outputs[0]
            outputs = [log_density, self._outputs[2]]
            self._for_kernels = density_by_address(outputs, self._moved, model, point)

    def number_of(self, point: Mapping[str, np.ndarray], rng: np.random.Generator) -> float:
        """Return the number that is moved, at a point.

        It is the value of the variable, except that a number of components M is moved as log(M + U)
        with U uniform.
        """
        value = float(point[self.value_name])
        return math.log(value + rng.random()) if self.is_count else value

    def value_of(self, number: float) -> np.ndarray:
        """Return the value in a point, given the number that is moved."""
        return np.asarray(whole_part(number) if self.is_count else number, self._dtype)

    def log_volume(self, number: float) -> float:
        """Return the log density of the number that is moved if all values are equally likely."""
        return number if self.is_count else 0.0

    def with_many(self, point: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return a point with as many components as any start has clusters, if possible.

        Beside as many clusters as there are components no cluster can be opened, and the likeliest
        number of components is that of the clusters if there are many observations.  So a search
        that began with few would keep few.
        """
        raised = dict(point)
        if self.is_count:
            prior = self.given(point)
            for number in range(_MOST_STARTED, int(point[self.value_name]), -1):
                if np.isfinite(prior(math.log(number + 0.5))[0]):
                    raised[self.value_name] = np.asarray(number, self._dtype)
                    break
        return raised

    @property
    def moved_by_kernels(self) -> list[Variable]:
        """Value variables that kernels move, and that are not the mixture's own: one or none."""
        return [] if self._for_kernels is None or self.is_count else [self._in_point]

    @property
    def moved_alone(self) -> list[Variable]:
        """Value variables that no other step has to move: one, or none if others depend on it."""
        return [] if self.has_dependents else [self._in_point]

    @cached_property
    def _function(self) -> Any:
        outputs = self._fixed.replace(self._outputs)
        return compile_function([self._moved], outputs, on_unused_input="ignore")

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the function, which is compiled again when it is needed."""
        return {name: value for name, value in self.__dict__.items() if name != "_function"}

    def strength_prior(
        self, point: Mapping[str, np.ndarray], strength: float, rng: np.random.Generator
    ) -> StrengthPrior:
        """Return what kernels need to move the strength themselves, others fixed at `point`.

        Parameters
        ----------
        point : mapping
            Point of the model.
        strength : float
            That at this point.
        rng : numpy.random.Generator

        Returns
        -------
        StrengthPrior
            That of `fixed_strength` if the density has no compiled form, or if the discount depends
            on the variable too.
        """
        if self._for_kernels is None:
            return fixed_strength()
        present = np.array([self.number_of(point, rng), strength])
        return StrengthPrior(self._for_kernels.address, self._for_kernels.others_at(point), present)

    def given(
        self, point: Mapping[str, np.ndarray]
    ) -> Callable[[float], tuple[float, PartitionLaw]]:
        """Return a function from the number that is moved to prior and law, others as in `point`.

        Parameters
        ----------
        point : mapping
            Point of the model.

        Returns
        -------
        callable
            From float to a tuple (log density of the value, law); the law may be impossible.
        """
        self._fixed.set(point)
        dtype = self._moved.type.dtype

        def evaluate(number: float) -> tuple[float, PartitionLaw]:
            log_density, discount, strength = self._function(np.asarray(number, dtype))
            return float(log_density), PartitionLaw(float(discount), float(strength))

        return evaluate


def concentration_prior(
    mixture: MixtureVariables,
    model: Model,
    point: Mapping[str, np.ndarray],
    left_out: Iterable[Variable] = (),
) -> ConcentrationPrior | None:
    """Return the prior of the law, if it depends on a single scalar variable or is that of an MFM.

    Parameters
    ----------
    mixture : MixtureVariables
    model : pymc.Model
    point : mapping
        Any point of the model.
    left_out : iterable of TensorVariable
        Variables of which the terms are left out.

    Returns
    -------
    ConcentrationPrior or None
        That of the number of components, if this is a variable.  None if strength and discount are
        numbers, if they depend on several variables or on a discrete one, or if the mixture depends
        on the variable in another way.
    """
    if mixture.n_components is not None:
        return _prior(mixture, model, mixture.n_components, point, left_out)
    roots = _roots(mixture, model)
    every = variables_above(mixture.law, model).intersection(model.free_RVs)
    if len(roots) != 1 or every != {*roots}:
        return None
    return _prior(mixture, model, roots[0], point, left_out)


def concentrations_to_move(
    mixture: MixtureVariables, model: Model, point: Mapping[str, np.ndarray]
) -> list[ConcentrationPrior]:
    """Return the priors of the variables behind the law that the step of this mixture moves.

    If several mixtures depend on one variable, the step of the first one moves it, and one that
    other steps own comes before.  If a later step moved it, the statistics of earlier mixtures
    would be out of date, see `step_order`.

    Parameters
    ----------
    mixture : MixtureVariables
    model : pymc.Model
    point : mapping
        Any point of the model.

    Returns
    -------
    list of ConcentrationPrior
        For each of strength and discount the single scalar variable on which it depends; without
        variables that other step methods alone can move, because the mixture depends on them in
        another way, or an earlier mixture depends on them.
    """
    own_step = RandomMeasure.step_name
    others = [rv for rv in model.free_RVs if is_owned(rv) and not is_owned(rv, own_step)]
    taken = variables_read([graph for rv in others for graph in rv.owner.inputs], model)
    for name, before in find_mixtures(model).items():
        if name == mixture.name:
            break
        graphs = *before.law, *before.hyperparameters.values(), before.data
        taken |= variables_read(graphs, model)
    roots = [root for root in _roots(mixture, model) if root not in taken]
    return [_prior(mixture, model, root, point) for root in roots]


def _prior(
    mixture: MixtureVariables,
    model: Model,
    root: Variable,
    point: Mapping[str, np.ndarray],
    left_out: Iterable[Variable] = (),
) -> ConcentrationPrior:
    # The step knows the density of what it owns, but the number of components has a prior of its
    # own, which may depend on the root.
    own = {*mixture.owned, mixture.rv, *left_out} - {mixture.n_components}
    return ConcentrationPrior(mixture.law, own, model, root, point, for_kernels=True)


def _roots(mixture: MixtureVariables, model: Model) -> list[Variable]:
    """Return the scalar variables that determine strength and discount, one each at most.

    The first one is the number of components, if that is a variable.
    """
    elsewhere = variables_read([*mixture.hyperparameters.values(), mixture.data], model)
    found: list[Variable] = [of for of in (mixture.n_components,) if of is not None]
    for number in (mixture.strength, mixture.discount):
        above = variables_above([number], model) - set(mixture.owned)
        roots = [rv for rv in model.free_RVs if rv in above]
        if len(roots) != 1 or roots[0].ndim or not roots[0].dtype.startswith("float"):
            continue
        if roots[0] not in elsewhere and roots[0] not in found:
            found.append(roots[0])
    return found


def roots_of(graph: Variable, model: Model) -> set[Any]:
    """Return the free variables of a model on which a graph depends directly."""
    return variables_above([graph], model).intersection(model.free_RVs)
