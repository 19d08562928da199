"""Covariates of a `Component`: arrays, or ``pm.Data`` whose value may be replaced."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pymc_dpsplit.components.arguments import as_floats


class CovariateVariable:
    """A covariate in a ``pm.Data``, whose value `pm.set_data` may replace.

    Parameters
    ----------
    name : str
        Name of the covariate, used in messages.
    variable : SharedVariable
    """

    def __init__(self, name: str, variable: Any) -> None:
        self.variable = variable
        self._name = name
        self._value = variable.get_value(borrow=True)
        self._array = _checked(name, self._value)

    def now(self) -> np.ndarray:
        """Return the present value, of shape (N, ...)."""
        value = self.variable.get_value(borrow=True)
        if value is not self._value:
            array, wanted = _checked(self._name, value), self._array.shape[1:]
            if array.shape[1:] != wanted:
                raise ValueError(
                    f"covariate {self._name} has shape {array.shape} in its pm.Data; give shape "
                    f"{shape_of_rows('M', wanted)}."
                )
            self._value, self._array = value, array
        return self._array


Held = np.ndarray | CovariateVariable


def hold(name: str, covariate: Any) -> Held:
    """Return a covariate as an array, or a ``pm.Data`` with its reader.

    Parameters
    ----------
    name : str
    covariate : array-like or SharedVariable, shape (N, ...)

    Returns
    -------
    ndarray of float64, or CovariateVariable

    Raises
    ------
    ValueError
        With one sentence that names the covariate.
    """
    # A frame may have a column of any name.
    is_frame = hasattr(covariate, "columns")
    if hasattr(covariate, "get_value") and not is_frame:
        return CovariateVariable(name, covariate)
    if hasattr(covariate, "owner") and not is_frame:
        raise ValueError(
            f"covariate {name} is an expression of variables; give an array or pm.Data, and "
            "compute with it in the function of the component."
        )
    return _checked(name, covariate)


def present(held: Mapping[str, Held]) -> dict[str, np.ndarray]:
    """Return the covariates that are held, by name."""
    return {
        name: of.now() if isinstance(of, CovariateVariable) else of for name, of in held.items()
    }


def shape_of_rows(n_rows: str, rest: tuple[int, ...]) -> str:
    """Return a shape in words, such as (M, 2)."""
    return f"({', '.join([n_rows, *map(str, rest)])}{',' * (not rest)})"


def _checked(name: str, value: Any) -> np.ndarray:
    array = as_floats(name, value)
    if not array.ndim:
        raise ValueError(
            f"covariate {name} is a single number; give an array, a row for each row of the data."
        )
    return array
