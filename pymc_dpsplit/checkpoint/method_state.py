"""The state of a step method as a plain value, and back into the method."""

from dataclasses import fields, replace
from typing import Any

from pymc.step_methods.compound import BlockedStep
from pymc.step_methods.state import DataClassState
from pymc.util import RandomGeneratorState

# Attributes that change while sampling and that PyMC's own states leave out: NUTS counts them.
_LEFT_OUT = ("divergences",)


def capture(method: BlockedStep, fresh: DataClassState) -> dict[str, Any]:
    """State of a method as a plain value.

    Parameters
    ----------
    method : BlockedStep
    fresh : DataClassState
        Its `sampling_state` before the first draw.

    Raises
    ------
    TypeError
        If the method cannot tell its state, or a part of it has no place in a fresh method.
    """
    besides = {name: getattr(method, name) for name in _LEFT_OUT if hasattr(method, name)}
    name = str(getattr(method, "name", type(method).__name__))
    try:
        state = method.sampling_state
    except AttributeError as error:
        # So it is with NUTS initialised by gradients: a part of it lacks what its state names.
        raise TypeError(
            f"{name} cannot tell its state ({error}); choose another initialisation for that step."
        ) from error
    return {"state": _plain(state, fresh, name), "besides": besides}


def restore(method: BlockedStep, captured: dict[str, Any]) -> None:
    """Put back what `capture` gave into a method made in the same way."""
    method.sampling_state = _filled(method.sampling_state, captured["state"])
    for name, value in captured["besides"].items():
        setattr(method, name, value)


def _changing(state: DataClassState) -> list[str]:
    """Fields that are not settled when the method is made."""
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
