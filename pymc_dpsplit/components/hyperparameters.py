"""Requirements on hyperparameters, which a family declares in a table.

`ComponentFamily` derives the constructor, the dimensions and the checks of a family from the table.
"""

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from typing import Any, NamedTuple

import numpy as np

from pymc_dpsplit.components.arguments import (
    positive_definite,
    positive_scalar,
    positive_vector,
    real_scalar,
    real_vector,
    shown,
)


class Requirement(NamedTuple):
    """Requirement on one hyperparameter.

    Attributes
    ----------
    ndim : int
        Number of its axes of length D.
    check : callable
        From name, value and number of features to ndarray of float64; raises ValueError.
    is_number : bool
        Whether it must be a number or an array and not a PyMC variable, because the sufficient
        statistics depend on it.
    """

    ndim: int
    check: Callable[[str, Any, int], np.ndarray]
    is_number: bool = False


def _real_number(name: str, value: Any, _: int) -> np.ndarray:
    return np.asarray(real_scalar(name, value))


def _positive_number(name: str, value: Any, _: int) -> np.ndarray:
    return np.asarray(positive_scalar(name, value))


# A single number is broadcast to all columns.
REAL_PER_COLUMN = Requirement(1, real_vector)
POSITIVE_PER_COLUMN = Requirement(1, positive_vector)
REAL_NUMBER = Requirement(0, _real_number)
POSITIVE_NUMBER = Requirement(0, _positive_number)
COVARIANCE = Requirement(2, positive_definite)
# Parameters of a gamma or beta prior for each column.
A0_B0 = {"a0": POSITIVE_PER_COLUMN, "b0": POSITIVE_PER_COLUMN}

Requirements = Mapping[str, Requirement]


def constructor_of(requirements: Requirements) -> Callable[..., None]:
    """Return the `__init__` of a family, whose arguments are its hyperparameters.

    Parameters
    ----------
    requirements : mapping
        Name of each hyperparameter to its `Requirement`, in the order of the arguments.

    Returns
    -------
    callable
    """
    kind = Parameter.POSITIONAL_OR_KEYWORD
    names = Signature([Parameter(name, kind) for name in requirements])

    def __init__(self: Any, *values: Any, **named: Any) -> None:  # noqa: N807
        self.hyperparameters = _bound(type(self).__name__, requirements, names, values, named)

    # `help` and editors show this signature.
    myself = Parameter("self", kind)
    __init__.__signature__ = Signature([myself, *names.parameters.values()])  # type: ignore[attr-defined]
    return __init__


def _bound(
    family: str,
    requirements: Requirements,
    names: Signature,
    values: tuple[Any, ...],
    named: Mapping[str, Any],
) -> dict[str, Any]:
    """Bind arguments to names in order; refuse missing or unknown names, and variables."""
    try:
        bound = names.bind(*values, **named).arguments
    except TypeError as fault:
        remedy = f"give {family}({', '.join(requirements)}), or {family}.from_data(observed)"
        raise TypeError(f"{family}: {fault}; {remedy}.") from None
    for name, value in bound.items():
        if requirements[name].is_number and hasattr(value, "owner"):
            raise ValueError(
                f"{name}={shown(value)} is a variable, but {family} takes {name} as known; give "
                "numbers, or declare the distribution by Component, where any argument may vary."
            )
    return dict(bound)
