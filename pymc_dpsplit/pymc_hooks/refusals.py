"""Errors for functions of PyMC that cannot handle a mixture, with advice.

Only `DPSplitMerge` can move the variables of a mixture, because the number of clusters changes.
Without these errors some functions of PyMC would return meaningless numbers.

`find_MAP`, `sample_smc` and all variational methods call the function `modelcontext` of their
module to get the model.  Wrapping `modelcontext` affects them regardless of how they were imported,
keeps their signatures, and adds no cost for other models.
"""

import functools
from collections.abc import Callable, Iterable
from typing import Any

from pymc.model import Model
from pymc.step_methods import (
    BinaryGibbsMetropolis,
    BinaryMetropolis,
    CategoricalGibbsMetropolis,
    Metropolis,
)
from pymc.step_methods.compound import CompoundStep
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_dpsplit.variables import DataRead, find_mixtures, is_owned, refuse_initial_values
from pymc_dpsplit.variables.lookup import rows_by_mixture

# Steps that compile the density with all variables as inputs.
_OF_ALL_INPUTS = (BinaryGibbsMetropolis, BinaryMetropolis, CategoricalGibbsMetropolis)
_SAMPLE = "draw from the posterior with pm.sample()"


def _refusing_mixtures(
    modelcontext: Callable[..., Any], caller: str, remedy: str
) -> Callable[..., Any]:
    def refusing(*args: Any, **kwargs: Any) -> Any:
        model = modelcontext(*args, **kwargs)
        if mixtures := _mixtures(model):
            raise ValueError(
                f"{mixtures}: {caller} cannot move a mixture, whose number of clusters changes; "
                f"{remedy}."
            )
        return model

    return refusing


refusing_find_map = functools.partial(
    _refusing_mixtures,
    caller="pm.find_MAP",
    remedy=f"{_SAMPLE}, or find a mode of the partition with dps.find_map()",
)
refusing_smc = functools.partial(_refusing_mixtures, caller="pm.sample_smc", remedy=_SAMPLE)
refusing_fit = functools.partial(
    _refusing_mixtures, caller="pm.fit, or any variational approximation,", remedy=_SAMPLE
)


def refusing_steps(assign: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse mixtures without rows, and step methods that cannot move one or read other data."""

    def refusing(model: Model, *args: Any, **kwargs: Any) -> Any:
        _refuse_without_rows(model)
        provided, selected = assign(model, *args, **kwargs)
        for step in provided:
            _refuse_step(step, model)
        return provided, _holding_others(selected, model)

    return refusing


def _holding_others(
    selected: dict[type[Any], list[Any]], model: Model
) -> dict[type[Any], list[Any]]:
    """Give variables on which a mixture depends to a step that holds the others fixed.

    Steps for binary and categorical variables compile the density with all variables as inputs, of
    which those of a mixture then sum the labels out; but its step has drawn parameters given them.
    """
    if selected.keys().isdisjoint(_OF_ALL_INPUTS):
        return selected
    above = _above_mixtures(model)
    kept: dict[type[Any], list[Any]] = {}
    for method, values in selected.items():
        for value in values:
            moves_alone = method in _OF_ALL_INPUTS and model.values_to_rvs[value] in above
            kept.setdefault(Metropolis if moves_alone else method, []).append(value)
    return kept


def _above_mixtures(model: Model) -> set[Variable]:
    """Return all variables on which a mixture and its rows depend."""
    mixtures = [*find_mixtures(model).values()]
    return set(ancestors([of for mixture in mixtures for of in (mixture.rv, *mixture.owned)]))


def _refuse_without_rows(model: Model) -> None:
    """Refuse mixtures whose rows are no variable of the model; else PyMC asks for a gradient."""
    with_rows = rows_by_mixture(model)
    left = [rv for rv in model.free_RVs if is_owned(rv) and rv.owner.op.target not in with_rows]
    if left:
        mixtures = _names(left)
        raise ValueError(
            f"{mixtures}: pm.do has replaced {mixtures}, given which "
            f"{', '.join(str(rv.name) for rv in left)} are sampled; sample the original model, or "
            "draw from this one with pm.sample_prior_predictive."
        )


def _refuse_step(step: Any, model: Model) -> None:
    """Refuse a step method that cannot move a mixture, or was made for other data."""
    if isinstance(step, CompoundStep):
        for part in step.methods:
            _refuse_step(part, model)
        return
    data_read = getattr(step, "data_read", None)
    if isinstance(data_read, DataRead):
        data_read.refuse_changed()
    if isinstance(step, _OF_ALL_INPUTS):
        above = _above_mixtures(model)
        if moved := [rv for rv in map(model.values_to_rvs.get, step.vars) if rv in above]:
            raise ValueError(
                f"the step {type(step).__name__} was given {moved[0].name}, on which a mixture "
                "depends, but it does not hold the clusters fixed; give pm.Metropolis, or leave "
                "step= out."
            )
    owned: list[Any] = [rv for rv in map(model.values_to_rvs.get, step.vars) if is_owned(rv)]
    owned = [rv for rv in owned if rv.owner.op.step_name != getattr(step, "name", None)]
    if owned:
        raise ValueError(
            f"{_names(owned)}: the step {type(step).__name__} was given "
            f"{', '.join(str(rv.name) for rv in owned)}, which only "
            f"{owned[0].owner.op.step_class} can move; "
            "give it other variables."
        )


def refusing_samplers(sample: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse samplers other than that of PyMC, and initial values, for models with a mixture."""

    def refusing(*args: Any, **kwargs: Any) -> Any:
        model = kwargs.get("model")
        model = Model.get_context(error_if_none=False) if model is None else model
        if isinstance(model, Model) and (mixtures := _mixtures(model)):
            sampler = kwargs.get("nuts_sampler")
            if sampler not in (None, "pymc"):
                (step, *_) = [rv.owner.op.step_class for rv in model.free_RVs if is_owned(rv)]
                raise ValueError(
                    f"{mixtures}: nuts_sampler={sampler!r} samples all variables of a model, but "
                    f"only {step} can move a mixture; leave nuts_sampler out."
                )
            refuse_initial_values(kwargs.get("initvals"), model)
        return sample(*args, **kwargs)

    return refusing


def _mixtures(model: Model | None) -> str:
    """Return the names of the mixtures that have free variables in a model."""
    return _names(model.free_RVs if model is not None else [])


def _names(variables: Iterable[Variable]) -> str:
    owned = [rv for rv in variables if is_owned(rv)]
    return ", ".join(dict.fromkeys(str(rv.owner.op.target) for rv in owned))
