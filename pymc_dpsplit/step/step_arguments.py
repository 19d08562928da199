"""Arguments that PyMC passes to every step method, and their checks."""

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
from pymc.model import Model
from pymc.util import get_random_generator
from pytensor.compile.maker import function
from pytensor.compile.mode import Mode, get_mode

from pymc_dpsplit.components.arguments import array_of, generator_of, shown

_OF_COMPILATION = {"random_seed", *inspect.signature(function).parameters}
_OF_COMPILATION -= {"inputs", "outputs"}


def own_generator(rng: Any) -> np.random.Generator:
    """Return a generator that no other step uses; ValueError if `rng` is no seed."""
    return get_random_generator(generator_of("rng", rng))


def compile_options(given: Any) -> dict[str, Any]:
    """Return options for the compilation of functions of a point, by default none.

    Parameters
    ----------
    given : dict, optional
        The argument `compile_kwargs`: name of option to value.

    Returns
    -------
    dict

    Raises
    ------
    ValueError
        If it is no dict, or a key or the mode is not known to PyTensor.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ValueError(
            f"compile_kwargs={shown(given)} is not a dict of options; give one such as "
            'compile_kwargs={"mode": "NUMBA"}, or leave it out.'
        )
    for name in given:
        if name not in _OF_COMPILATION:
            raise ValueError(
                f"compile_kwargs has {shown(name)}, which is no option of pytensor.function; leave "
                "it out."
            )
    mode = given.get("mode")
    if not _is_mode(mode):
        raise ValueError(
            f"compile_kwargs has mode={shown(mode)}, which PyTensor does not know; give the name "
            'of one, such as "NUMBA", or leave it out.'
        )
    return dict(given)


def _is_mode(mode: Any) -> bool:
    if not isinstance(mode, str):
        return mode is None or isinstance(mode, Mode)
    try:
        get_mode(mode)
    except ValueError:
        return False
    return True


def checked_point(given: Any, model: Model) -> dict[str, np.ndarray]:
    """Return the initial point of a step, by default that of the model.

    Parameters
    ----------
    given : dict, optional
        The argument `initial_point`: name of a value variable to its value.
    model : pymc.Model

    Returns
    -------
    dict
        Name to ndarray, of the type of the variable.

    Raises
    ------
    ValueError
        If it is no dict, or a variable of the model has no value in it or one of another shape.
    """
    if given is None:
        return model.initial_point()
    if not isinstance(given, Mapping):
        raise ValueError(
            f"initial_point={shown(given)} is not a dict of values; give model.initial_point(), or "
            "leave it out."
        )
    point = dict(given)
    for variable in model.value_vars:
        name, kind = str(variable.name), variable.type
        if name not in point:
            raise ValueError(
                f"initial_point has no value of {name}; give model.initial_point(), or leave it "
                "out."
            )
        value, fault = array_of(point[name])
        if fault or value.dtype.kind not in "biuf" or not _fits(value.shape, kind.shape):
            raise ValueError(
                f"initial_point has {name}={shown(point[name])}, but the variable holds "
                f"{kind.dtype} of shape {kind.shape}; give model.initial_point(), or leave it out."
            )
        point[name] = np.asarray(value, kind.dtype)
    return point


def _fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    """Whether a shape is one that a variable may have, None where any length is legal."""
    if len(shape) != len(wanted):
        return False
    return all(of in (None, length) for length, of in zip(shape, wanted, strict=True))
