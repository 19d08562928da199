"""Read-only arrays of observations, which are shared instead of copied."""

from pathlib import Path
from typing import Any, override

import numpy as np


def read_only(rows: Any) -> np.ndarray:
    """Return rows in the only memory layout that kernels are compiled for.

    numba compiles a kernel separately for writeable and read-only arrays, for each memory order and
    for each dtype.

    Parameters
    ----------
    rows : ndarray of float64 or float32, shape (N, D)

    Returns
    -------
    ndarray
        A read-only view, or a copy if `rows` are not C-contiguous.
    """
    view = np.ascontiguousarray(rows).view(np.ndarray)
    view.flags.writeable = False
    return view


class FixedRows(np.ndarray):
    """A read-only array of checked observations that need not be copied.

    Its copy is the array itself, for instance when PyTensor copies data for safety.  A view of a
    memory map is pickled as the name of the file and an offset.

    Attributes
    ----------
    centres : ndarray of float64, shape (D,), or None
        See `data.blocks.column_centres`; None until it is first computed.
    """

    centres: np.ndarray | None = None

    @override
    def __copy__(self) -> "FixedRows":
        return _copied(self)

    @override
    def __deepcopy__(self, _memo: Any, /) -> "FixedRows":
        return _copied(self)

    @override
    def __reduce_ex__(self, protocol: Any) -> Any:
        if self.flags.writeable:
            return np.array(self).__reduce_ex__(protocol)
        place = _place_in_file(self)
        if place is None:
            return fixed, (self.view(np.ndarray),)
        return _reopened, (*place, self.dtype.str, self.shape)


def _copied(array: FixedRows) -> FixedRows:
    """Return the array itself, or a copy if it is the result of arithmetic."""
    return array.copy() if array.flags.writeable else array


def fixed(rows: np.ndarray) -> FixedRows:
    """Return a read-only view of an array."""
    view: FixedRows = rows.view(FixedRows)
    view.flags.writeable = False
    return view


def memory_map_of(array: Any) -> np.memmap | None:
    """Return the `numpy.memmap` that an array is a view of, or None.

    Parameters
    ----------
    array : array-like

    Returns
    -------
    memmap or None
    """
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and not isinstance(array.base, np.ndarray):
            return array
        array = array.base
    return None


def _place_in_file(array: np.ndarray) -> tuple[str, int] | None:
    """Return path and offset of the file that contains an array, or None."""
    root = memory_map_of(array)
    # Changes of a memory map in mode "c" are in memory only.
    if root is None or root.mode == "c" or root.filename is None:
        return None
    path = Path(root.filename)
    if not (path.is_file() and array.flags.c_contiguous):
        return None
    return str(path), root.offset + array.ctypes.data - root.ctypes.data


def _reopened(path: str, offset: int, dtype: str, shape: tuple[int, ...]) -> FixedRows:
    return fixed(np.memmap(path, dtype, "r", offset, shape))
