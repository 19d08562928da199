"""Arrays that are read piece by piece, such as those of Zarr, written once to a file of their own.

The sampler reads rows in any order, for which a compressed chunk would be unpacked over and
over; docs/decisions/0014-spooled-arrays.md.
"""

import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from pymc_dpsplit.data.blocks import blocks_of


def is_chunked(value: Any) -> bool:
    """Whether a value is an array elsewhere, of which slices are read: of Zarr, HDF5 and others."""
    has_interface = all(hasattr(value, of) for of in ("shape", "dtype", "chunks", "__getitem__"))
    return has_interface and not isinstance(value, np.ndarray) and not hasattr(value, "to_numpy")


def spooled(source: Any, dtype: Any) -> np.ndarray:
    """Copy an array, chunk by chunk in order, to a file in a temporary folder.

    Parameters
    ----------
    source : array-like, shape (N, ...)
        With `shape` and slices by rows; its attribute `chunks`, if it has one, is heeded.
    dtype : dtype
        Of the file.

    Returns
    -------
    memmap
        Read-only.  The folder is removed once nobody uses it.

    Raises
    ------
    OSError
        If the folder has no room for it.
    """
    folder = Path(tempfile.mkdtemp(prefix="pymc_dpsplit-"))
    path = folder / "rows"
    try:
        # Written as a file, not as a map: a full disk is then an error and no crash.
        with path.open("wb") as file:
            for block in blocks_of(source.shape, _rows_of_chunk(source)):
                np.ascontiguousarray(source[block], dtype).tofile(file)
        rows = np.memmap(path, dtype, "r", shape=tuple(source.shape))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(rows, _remove, folder, os.getpid())
    return rows


def _rows_of_chunk(source: Any) -> int:
    """Rows of one chunk, as Zarr and HDF5 say it; 1 where there are no chunks of equal length."""
    chunks = getattr(source, "chunks", None)
    first = chunks[0] if chunks else 1
    return min(int(first), source.shape[0]) if isinstance(first, int | np.integer) else 1


def _remove(folder: Path, owner: int) -> None:
    # A forked process inherits this, but not the folder.
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
