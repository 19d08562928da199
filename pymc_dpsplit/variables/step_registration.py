"""How PyMC finds the steps of this package, and where it puts them."""

from collections.abc import Callable
from typing import Any

from pymc.sampling import mcmc
from pymc.step_methods.compound import flatten_steps


def register_step(step_class: type) -> None:
    """List a class of steps among those of which PyMC assigns to a variable what claims it.

    Parameters
    ----------
    step_class : type
    """
    if step_class not in mcmc.STEP_METHODS:
        mcmc.STEP_METHODS.append(step_class)


def knowing_steps(assign: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of PyMC, which finds a step once the module of the step is imported."""
    return assign


def steps_last(step_class: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a wrapper of `instantiate_steppers` that puts the steps of a class last.

    Their statistics then describe what is recorded.

    Parameters
    ----------
    step_class : type

    Returns
    -------
    callable
    """

    def is_ours(step: Any) -> bool:
        return all(isinstance(part, step_class) for part in flatten_steps(step))

    def ordering(instantiate: Callable[..., Any]) -> Callable[..., Any]:
        def ordered(*args: Any, **kwargs: Any) -> Any:
            steps = instantiate(*args, **kwargs)
            if not isinstance(steps, list):
                return steps
            # Sorting is stable, so that all other steps keep their order.
            return sorted(steps, key=is_ours)

        return ordered

    return ordering
