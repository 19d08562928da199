"""Conversion of plain values to JSON and arrays, the content of checkpoint files, without pickle.

Plain values are None, bool, int of any size, float, str, NumPy arrays and scalars without Python
objects, and lists, tuples and dicts (with str keys) of plain values.  Types are restored exactly,
so that a continued chain is bit-identical.
"""

import json
from typing import Any

import numpy as np

_TREE = "tree"


def to_arrays(value: Any, name: str) -> dict[str, np.ndarray]:
    """Convert a plain value to arrays.

    Parameters
    ----------
    value : plain value
    name : str
        Name of the value in messages.

    Returns
    -------
    dict of array
        For `numpy.savez`, without object dtype.

    Raises
    ------
    TypeError
        If a part is not plain; the message names it.
    """
    arrays: dict[str, np.ndarray] = {}
    tree = _encode(value, arrays, name)
    return {_TREE: np.frombuffer(json.dumps(tree).encode(), dtype=np.uint8), **arrays}


def from_arrays(arrays: dict[str, np.ndarray]) -> Any:
    """Return the value that `to_arrays` converted to these arrays."""
    return _decode(json.loads(arrays[_TREE].tobytes()), arrays)


def _encode(value: Any, arrays: dict[str, np.ndarray], name: str) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.hasobject:
            raise TypeError(f"{name} has dtype {value.dtype}, which a checkpoint cannot store.")
        return {"array" if kind is np.ndarray else "scalar": _put(np.asarray(value), arrays)}
    if kind is list and (packed := _pack(value)):
        return {packed[0]: _put(packed[1], arrays)}
    if kind in (list, tuple):
        items = [_encode(item, arrays, f"{name}[{i}]") for i, item in enumerate(value)]
        return {kind.__name__: items}
    if kind is dict and all(type(key) is str for key in value):
        return {
            "dict": {key: _encode(item, arrays, f"{name}.{key}") for key, item in value.items()}
        }
    raise TypeError(f"{name} is a {kind.__qualname__}, which a checkpoint cannot store.")


def _put(array: np.ndarray, arrays: dict[str, np.ndarray]) -> str:
    key = f"array_{len(arrays)}"
    arrays[key] = array
    return key


def _pack(values: list[Any]) -> tuple[str, np.ndarray] | None:
    """Stack a list of floats or equal arrays, as steps keep lists with one element per draw."""
    if not values:
        return None
    if all(type(value) is float for value in values):
        return "floats", np.array(values)
    first = values[0]
    # A 0-dimensional array would be restored as a scalar.
    if not isinstance(first, np.generic) and not (type(first) is np.ndarray and first.ndim):
        return None
    if any(type(value) is not type(first) for value in values) or first.dtype.hasobject:
        return None
    alike = {(value.dtype, value.shape) for value in values} == {(first.dtype, first.shape)}
    return ("stack", np.stack(values)) if alike else None


def _decode(tree: Any, arrays: dict[str, np.ndarray]) -> Any:
    if not isinstance(tree, dict):
        return tree
    ((kind, content),) = tree.items()
    match kind:
        case "array":
            return arrays[content]
        case "scalar":
            return arrays[content][()]
        case "floats":
            return arrays[content].tolist()
        case "stack":
            return list(arrays[content])
        case "list":
            return [_decode(item, arrays) for item in content]
        case "tuple":
            return tuple(_decode(item, arrays) for item in content)
        case "dict":
            return {key: _decode(item, arrays) for key, item in content.items()}
    raise ValueError(f"{kind!r} is no kind of value.")
