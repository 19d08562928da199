"""How PyMC finds the steps of this package, and where it puts them."""

from collections.abc import Callable
from inspect import signature
from typing import Any

from pymc.model import Model
from pymc.sampling import mcmc
from pymc.step_methods.compound import flatten_steps

_registered: list[type] = []


def register_step(step_class: type) -> None:
    """List a class of steps among those of which PyMC assigns to a variable what claims it.

    Parameters
    ----------
    step_class : type
    """
    if step_class not in mcmc.STEP_METHODS:
        mcmc.STEP_METHODS.append(step_class)
        _registered.append(step_class)


def knowing_steps(assign: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of PyMC, which finds a step once the module of the step is imported."""
    return assign


def _place_of(step: Any, model: Model) -> int:
    """Return a sort key: 0, or for steps of this package their place in the order of declaration.

    Parameters
    ----------
    step : BlockedStep or CompoundStep
    model : pymc.Model

    Returns
    -------
    int
    """
    parts, values = flatten_steps(step), list(model.value_vars)
    if all(isinstance(part, tuple(_registered)) for part in parts):
        return 1 + min(values.index(part.vars[0]) for part in parts)
    return 0


def _with_own_steps(
    instantiate: Callable[..., Any], arguments: dict[str, Any], step_class: type
) -> dict[str, Any]:
    """Make the steps of a class, and take the variables that they move from other steps.

    Parameters
    ----------
    instantiate : callable
        `pymc.sampling.mcmc.instantiate_steppers`.
    arguments : dict
        Its arguments.
    step_class : type
        Has a `name`, and makes its steps of the variables that PyMC has assigned to it.

    Returns
    -------
    dict
        Its arguments with the steps made, and without options of steps that have no variable left.
    """
    selected, name = dict(arguments["selected_steps"]), vars(step_class)["name"]
    owned = selected.pop(step_class, None)
    if not owned:
        return arguments
    options = dict(arguments.get("step_kwargs") or {})
    given = {key: options.pop(key) for key in (name,) if key in options}
    alone = {"steps": [], "selected_steps": {step_class: owned}, "step_kwargs": given}
    ours = instantiate(**{**arguments, **alone})
    moved = {variable for step in flatten_steps(ours) for variable in step.vars}
    left = {
        method: [variable for variable in variables if variable not in moved]
        for method, variables in selected.items()
    }
    left = {method: variables for method, variables in left.items() if variables}
    for method in selected.keys() - left.keys():
        options.pop(method.name, None)
    steps = [*arguments["steps"], ours]
    return {**arguments, "steps": steps, "selected_steps": left, "step_kwargs": options}


def steps_last(step_class: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a wrapper of `instantiate_steppers` that makes the steps of a class first.

    So no other step is assigned to the concentrations that they move.  They come last, as their
    statistics describe what is recorded.

    Parameters
    ----------
    step_class : type

    Returns
    -------
    callable
    """

    def ordering(instantiate: Callable[..., Any]) -> Callable[..., Any]:
        def ordered(model: Model, *args: Any, **kwargs: Any) -> Any:
            arguments = signature(instantiate).bind(model, *args, **kwargs).arguments
            steps = instantiate(**_with_own_steps(instantiate, arguments, step_class))
            if not isinstance(steps, list):
                return steps
            # Sorting is stable, so that all other steps keep their order.
            return sorted(steps, key=lambda step: _place_of(step, model))

        return ordered

    return ordering
