"""Order of step methods: steps of mixtures are last, so that their statistics match the trace.

The log joint density of a partition depends on alpha, the hyperparameters and latent rows.  If
another step moved one of these after the step of the mixture, the recorded log joint would not be
that of the values recorded for the same draw.  Every order of the steps leaves the posterior
invariant.  Mixtures follow the order of their declaration.
"""

from collections.abc import Callable
from typing import Any

from pymc.model import Model
from pymc.sampling import mcmc
from pymc.step_methods.compound import flatten_steps

from pymc_dpsplit.pymc_hooks.wrap import wrap
from pymc_dpsplit.step.dp_split_merge import DPSplitMerge
from pymc_dpsplit.step.options import refuse_options
from pymc_dpsplit.variables import find_mixtures


def install() -> None:
    """Make `pm.sample` put the steps of mixtures last; a second call has no effect."""
    wrap("instantiate_steppers", _ordering, mcmc)


def _ordering(instantiate: Callable[..., Any]) -> Callable[..., Any]:
    def ordered(model: Model, *args: Any, **kwargs: Any) -> Any:
        options = (kwargs.get("step_kwargs") or {}).get(DPSplitMerge.name, {})
        refuse_options(options)
        steps = instantiate(model, *args, **kwargs)
        if not isinstance(steps, list):
            return steps
        names = list(find_mixtures(model))
        # Sorting is stable, so all other steps keep their order.
        return sorted(steps, key=lambda step: _position(step, names))

    return ordered


def _position(step: Any, names: list[str]) -> int:
    """Sort key of a step: 0 unless it updates mixtures and nothing else."""
    parts = flatten_steps(step)
    if all(isinstance(part, DPSplitMerge) for part in parts):
        return 1 + min(names.index(part.mixture.name) for part in parts)
    return 0
