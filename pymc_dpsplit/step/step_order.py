"""Steps of mixtures are made first and come last in a draw.

They are made first because they say whether they move alpha: then no other step is assigned to it.
They come last so that their statistics match the trace.

The log joint density of a partition depends on alpha, the hyperparameters and latent rows.  If
another step moved one of these after the step of the mixture, the recorded log joint would not be
that of the values recorded for the same draw.  Every order of the steps leaves the posterior
invariant.  Mixtures follow the order of their declaration.
"""

from collections.abc import Callable
from typing import Any

from pymc.model import Model

from pymc_dpsplit.step.dp_split_merge import DPSplitMerge
from pymc_dpsplit.step.options import refuse_options
from pymc_dpsplit.variables.step_registration import knowing_steps as knowing_steps
from pymc_dpsplit.variables.step_registration import steps_last


def ordering(instantiate: Callable[..., Any]) -> Callable[..., Any]:
    """Make `pm.sample` put the steps of mixtures last."""
    last = steps_last(DPSplitMerge)(instantiate)

    def ordered(model: Model, *args: Any, **kwargs: Any) -> Any:
        refuse_options((kwargs.get("step_kwargs") or {}).get(DPSplitMerge.name, {}))
        return last(model, *args, **kwargs)

    return ordered
