"""Steps of mixtures are made first and come last in a draw.

They are made first because they say whether they move alpha: then no other step is assigned to it.
They come last so that their statistics match the trace.

The log joint density of a partition depends on alpha, the hyperparameters and latent rows.  If
another step moved one of these after the step of the mixture, the recorded log joint would not be
that of the values recorded for the same draw.  Every order of the steps leaves the posterior
invariant.  Mixtures follow the order of their declaration.
"""

from collections.abc import Callable
from inspect import signature
from typing import Any

from pymc.model import Model
from pymc.step_methods.compound import flatten_steps

from pymc_dpsplit.step.dp_split_merge import DPSplitMerge
from pymc_dpsplit.step.options import refuse_options
from pymc_dpsplit.variables import find_mixtures
from pymc_dpsplit.variables.step_registration import knowing_steps as knowing_steps


def ordering(instantiate: Callable[..., Any]) -> Callable[..., Any]:
    """Make `pm.sample` put the steps of mixtures last."""

    def ordered(model: Model, *args: Any, **kwargs: Any) -> Any:
        options = (kwargs.get("step_kwargs") or {}).get(DPSplitMerge.name, {})
        refuse_options(options)
        arguments = signature(instantiate).bind(model, *args, **kwargs).arguments
        steps = instantiate(**_with_ours(instantiate, arguments))
        if not isinstance(steps, list):
            return steps
        names = list(find_mixtures(model))
        # Sorting is stable, so all other steps keep their order.
        return sorted(steps, key=lambda step: _position(step, names))

    return ordered


def _with_ours(instantiate: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Make the steps of mixtures, and take the variables that they move from other steps.

    Parameters
    ----------
    instantiate : callable
        `pymc.sampling.mcmc.instantiate_steppers`.
    arguments : dict
        Its arguments.

    Returns
    -------
    dict
        Its arguments with the steps made, and without options of steps that have no variable left.
    """
    selected = dict(arguments["selected_steps"])
    owned = selected.pop(DPSplitMerge, None)
    if not owned:
        return arguments
    options = dict(arguments.get("step_kwargs") or {})
    given = {key: options.pop(key) for key in (DPSplitMerge.name,) if key in options}
    alone = {"steps": [], "selected_steps": {DPSplitMerge: owned}, "step_kwargs": given}
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


def _position(step: Any, names: list[str]) -> int:
    """Sort key of a step: 0 unless it updates mixtures and nothing else."""
    parts = flatten_steps(step)
    if all(isinstance(part, DPSplitMerge) for part in parts):
        return 1 + min(names.index(part.mixture.name) for part in parts)
    return 0
