"""Observations that nobody changes: views that cannot be written to, shared instead of copied."""

from pathlib import Path
from typing import Any, override

import numpy as np


def read_only(rows: Any) -> np.ndarray:
    """Return rows in the one form in which kernels take them.

    numba compiles a kernel anew for arrays that may be written to and for those that may not,
    for each order of their axes and for each type.

    Parameters
    ----------
    rows : ndarray of float64 or float32, shape (N, D)

    Returns
    -------
    ndarray
        A view, or a copy if `rows` are not contiguous by rows; cannot be written to.
    """
    view = np.ascontiguousarray(rows).view(np.ndarray)
    view.flags.writeable = False
    return view


class FixedRows(np.ndarray):
    """An array that cannot be written to, so that nobody needs a copy of it.

    What copies arrays to be safe, as PyTensor does with data, gets the array itself.  One that
    lies in a memory map is pickled as the name of the file and a place in it.
    """

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
    """Return the array itself, or a copy of what came of arithmetic with one."""
    return array.copy() if array.flags.writeable else array


def fixed(rows: np.ndarray) -> FixedRows:
    """View of an array that cannot be written to, of the same shape."""
    view: FixedRows = rows.view(FixedRows)
    view.flags.writeable = False
    return view


def memory_map_of(array: Any) -> np.memmap | None:
    """Return the map that an array is a view of, as `numpy.memmap` made it, or None."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and not isinstance(array.base, np.ndarray):
            return array
        array = array.base
    return None


def _place_in_file(array: np.ndarray) -> tuple[str, int] | None:
    """Path of the file that holds an array, and where it begins there; None if there is none."""
    root = memory_map_of(array)
    # What was written to a map in mode "c" is in memory alone.
    if root is None or root.mode == "c" or root.filename is None:
        return None
    path = Path(root.filename)
    if not (path.is_file() and array.flags.c_contiguous):
        return None
    return str(path), root.offset + array.ctypes.data - root.ctypes.data


def _reopened(path: str, offset: int, dtype: str, shape: tuple[int, ...]) -> FixedRows:
    return fixed(np.memmap(path, dtype, "r", offset, shape))
