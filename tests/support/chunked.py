"""An array that is read in chunks, with the interface that those of Zarr and HDF5 share."""

from typing import Any

import numpy as np


class Chunked:
    """Slices by rows of an array, with a record of what was read.

    Parameters
    ----------
    rows : ndarray
    chunks : tuple, optional
    fails_at : int, optional
        Row that cannot be read.
    """

    def __init__(self, rows: np.ndarray, chunks: Any, fails_at: int | None = None) -> None:
        self._rows = rows
        self._fails_at = fails_at
        self.shape = rows.shape
        self.dtype = rows.dtype
        self.chunks = chunks
        self.read: list[np.ndarray] = []

    def __getitem__(self, block: slice) -> np.ndarray:
        wanted = np.arange(len(self._rows))[block]
        if self._fails_at in wanted:
            raise OSError("chunk is damaged")
        self.read.append(wanted)
        return self._rows[block]
