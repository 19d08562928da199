"""Number of components of a mixture of finite mixtures, a random variable of the model."""

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.custom import CustomSymbolicDistRV
from pymc.pytensorf import collect_default_updates
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import walk
from pytensor.tensor.random.type import RandomType

from pymc_dpsplit.variables.measure import OwnedByStep


class NumberOfComponents(OwnedByStep, CustomSymbolicDistRV):
    """Random variable with the distribution that a user gave for the number of components.

    Its graph is that of the distribution, from which PyMC derives the log-probability.  Inputs are
    the variables that the distribution depends on, then generators.

    Parameters
    ----------
    inputs, outputs : sequence of variables
        Those of the graph: variables, then generators; the number, then updates of generators.
    target : str
        Name of the mixture.
    extended_signature : str
        Of inputs and outputs, as PyMC writes it.
    """

    inline_logprob = True
    _print_name = ("MFMComponents", r"\operatorname{MFMComponents}")

    def __init__(self, inputs: Any, outputs: Any, target: str, extended_signature: str) -> None:
        self.target = target
        super().__init__(inputs, outputs, extended_signature=extended_signature)


def number_of_components(prior: Any, target: str, variables: Collection[Any]) -> Variable:
    """Return a random variable with a given distribution, which the step of a mixture moves.

    Parameters
    ----------
    prior : TensorVariable
        Scalar: a distribution that is not registered in a model, or an expression of one, such as
        ``1 + pm.Poisson.dist(3)``.
    target : str
        Name of the mixture.
    variables : collection of TensorVariable
        Variables of the model, on which the distribution may depend.

    Returns
    -------
    TensorVariable
    """
    given: dict[Any, Any] = {}

    def expand(variable: Any) -> Any:
        is_rng = isinstance(variable.type, RandomType)
        if variable in variables or (isinstance(variable, SharedVariable) and not is_rng):
            given[variable] = variable.type()
            return None
        return variable.owner.inputs if variable.owner else None

    list(walk([prior], expand))
    inner: Any = clone_replace(prior, given)
    updates = collect_default_updates(outputs=(inner,), inputs=list(given.values()))
    rngs = ["[rng]"] * len(updates)
    slots = [
        f"({','.join(f'd{at}{axis}' for axis in range(variable.ndim))})"
        for at, variable in enumerate(given)
    ]
    op = NumberOfComponents(
        [*given.values(), *updates],
        [inner, *updates.values()],
        target,
        f"{','.join([*slots, *rngs])}->{','.join(['()', *rngs])}",
    )
    number: Variable = op(*given, *updates)
    return number


# Larger numbers are not whole in double precision.
MOST_COMPONENTS = 2**53


def on_log_scale(value: Any, outputs: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Return functions of a number of components M as functions of log(M + U), 0 <= U < 1.

    Parameters
    ----------
    value : TensorVariable
        Scalar of an integer type: M.
    outputs : sequence of TensorVariable
        Scalars; the first one is a log density, which is -inf beyond the largest M.

    Returns
    -------
    number : TensorVariable
        Scalar of float64.
    outputs : list of TensorVariable
    """
    number: Any = pt.scalar("log_components", dtype="float64")
    size = pt.exp(number)
    is_possible = pt.lt(size, float(MOST_COMPONENTS))
    whole = pt.floor(pt.switch(is_possible, size, 1.0)).astype(value.type.dtype)
    log_density, *rest = clone_replace(list(outputs), {value: whole})
    return number, [pt.switch(is_possible, log_density, -np.inf), *rest]


def whole_part(number: float) -> int:
    """Return M, given log(M + U)."""
    return math.floor(math.exp(number))
