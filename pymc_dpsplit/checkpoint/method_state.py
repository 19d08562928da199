"""Conversion of the state of a step method to a plain value and back."""

from dataclasses import fields, replace
from typing import Any

from pymc.step_methods.compound import BlockedStep
from pymc.step_methods.state import DataClassState
from pymc.util import RandomGeneratorState

# Attributes that change while sampling but are missing in the states of PyMC (counters of NUTS).
_LEFT_OUT = ("divergences",)


def capture(method: BlockedStep, fresh: DataClassState) -> dict[str, Any]:
    """Return the state of a method as a plain value.

    Parameters
    ----------
    method : BlockedStep
    fresh : DataClassState
        The `sampling_state` of the method before the first draw.

    Returns
    -------
    dict

    Raises
    ------
    TypeError
        If the method does not provide its state, or a part of it cannot be restored.
    """
    besides = {name: getattr(method, name) for name in _LEFT_OUT if hasattr(method, name)}
    name = str(getattr(method, "name", type(method).__name__))
    try:
        state = method.sampling_state
    except AttributeError as error:
        # For instance NUTS initialised by gradients, whose state names a missing attribute.
        raise TypeError(
            f"{name} cannot tell its state ({error}); choose another initialisation for that step."
        ) from error
    return {"state": _plain(state, fresh, name), "besides": besides}


def restore(method: BlockedStep, captured: dict[str, Any]) -> None:
    """Restore a captured state in a method that was created in the same way."""
    method.sampling_state = _filled(method.sampling_state, captured["state"])
    for name, value in captured["besides"].items():
        setattr(method, name, value)


def _changing(state: DataClassState) -> list[str]:
    """Return the fields that may change after the method was created."""
    return [field.name for field in fields(state) if not field.metadata.get("frozen", False)]


def _plain(value: Any, fresh: Any, name: str) -> Any:
    if isinstance(value, RandomGeneratorState):
        return tuple(value)
    if not isinstance(value, DataClassState):
        return value
    if type(value) is not type(fresh):
        raise TypeError(
            f"{name} comes into being while sampling, so that it cannot be restored; choose "
            "another initialisation for that step."
        )
    return {
        field: _plain(getattr(value, field), getattr(fresh, field), f"{name}.{field}")
        for field in _changing(value)
    }


def _filled(template: Any, value: Any) -> Any:
    if isinstance(template, RandomGeneratorState):
        return RandomGeneratorState(*value)
    if not isinstance(template, DataClassState):
        return value
    changes = {name: _filled(getattr(template, name), value[name]) for name in _changing(template)}
    return replace(template, **changes)
