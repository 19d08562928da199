"""Ways to treat a model that do not suit a mixture: refused, with what to do instead.

Only `DPSplitMerge` can move the variables of a mixture, whose number of clusters changes.  Left
to themselves some of PyMC's functions would return numbers that mean nothing.

`find_MAP`, `sample_smc` and everything variational ask the function `modelcontext` of their module
for the model.  To wrap that one reaches them however they were imported, keeps
their signatures, and costs other models nothing.
"""

import functools
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import pymc as pm
from pymc.model import Model
from pymc.sampling import mcmc
from pymc.smc import sampling as smc
from pymc.step_methods.compound import CompoundStep
from pymc.tuning import starting
from pymc.variational import opvi
from pytensor.graph.basic import Variable

from pymc_dpsplit.variables import is_owned

_WRAPPED = "_dpsplit_wrapped"
_STEP = "dpsplit"

_SAMPLE = "draw from the posterior with pm.sample()"
# Modules, with what a user called to get there, and what to do instead.
_CANNOT: dict[ModuleType, tuple[str, str]] = {
    starting: ("pm.find_MAP", f"{_SAMPLE}, or find a mode of the partition with dps.find_map()"),
    smc: ("pm.sample_smc", _SAMPLE),
    opvi: ("pm.fit, or any variational approximation,", _SAMPLE),
}


def install() -> None:
    """Refuse models with a mixture where PyMC cannot treat them; again changes nothing."""
    for module, (caller, remedy) in _CANNOT.items():
        refusing = functools.partial(_refusing_mixtures, caller=caller, remedy=remedy)
        _wrap([module], "modelcontext", refusing)
    _wrap([mcmc], "assign_step_methods", _refusing_steps)
    _wrap([pm, pm.sampling, mcmc], "sample", _refusing_samplers)


def _wrap(holders: list[ModuleType], attribute: str, wrap: Callable[..., Any]) -> None:
    """Replace a function by its wrapped form, the same one in every module that holds it."""
    function = getattr(holders[0], attribute)
    if hasattr(function, _WRAPPED):
        return
    wrapped = functools.wraps(function)(wrap(function))
    setattr(wrapped, _WRAPPED, True)
    for holder in holders:
        setattr(holder, attribute, wrapped)


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


def _refusing_steps(assign: Callable[..., Any]) -> Callable[..., Any]:
    def refusing(model: Model, *args: Any, **kwargs: Any) -> Any:
        provided, selected = assign(model, *args, **kwargs)
        for step in provided:
            _refuse_step(step, model)
        return provided, selected

    return refusing


def _refuse_step(step: Any, model: Model) -> None:
    """Refuse a step that would move a mixture and is not made for it."""
    if isinstance(step, CompoundStep):
        for part in step.methods:
            _refuse_step(part, model)
        return
    owned = [rv for rv in map(model.values_to_rvs.get, step.vars) if is_owned(rv)]
    if owned and getattr(step, "name", None) != _STEP:
        raise ValueError(
            f"{_names(owned)}: the step {type(step).__name__} was given "
            f"{', '.join(str(rv.name) for rv in owned)}, which only DPSplitMerge can move; "
            "give it other variables."
        )


def _refusing_samplers(sample: Callable[..., Any]) -> Callable[..., Any]:
    def refusing(*args: Any, **kwargs: Any) -> Any:
        sampler = kwargs.get("nuts_sampler")
        if sampler not in (None, "pymc"):
            model = kwargs.get("model")
            mixtures = _mixtures(Model.get_context(error_if_none=False) if model is None else model)
            if mixtures:
                raise ValueError(
                    f"{mixtures}: nuts_sampler={sampler!r} samples all variables of a model, but "
                    "only DPSplitMerge can move a mixture; leave nuts_sampler out."
                )
        return sample(*args, **kwargs)

    return refusing


def _mixtures(model: Model | None) -> str:
    """Names of the mixtures that have free variables in a model."""
    return _names(model.free_RVs if model is not None else [])


def _names(variables: Iterable[Variable]) -> str:
    owned = [rv for rv in variables if is_owned(rv)]
    return ", ".join(dict.fromkeys(str(rv.owner.op.target) for rv in owned))
