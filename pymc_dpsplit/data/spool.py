"""Conversion of chunked arrays, such as those of Zarr, to a temporary file.

The sampler reads rows in arbitrary order, and would decompress chunks repeatedly;
docs/decisions/0014-spooled-arrays.md.

A killed process cannot remove its files.  So each folder has a file that is locked by the process
and by those forked from it, as long as one of them lives.  The next process that writes an array
removes the folders whose lock is free.
"""

import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import gethostname
from typing import Any

import numpy as np

from pymc_dpsplit.data.blocks import blocks_of

_PREFIX = "pymc_dpsplit-"
# The file that is locked; names the host.
_OWNER = "owner"

if sys.platform != "win32":
    import fcntl


def is_chunked(value: Any) -> bool:
    """Return whether a value is an array that is read by slices, such as one of Zarr or HDF5."""
    has_interface = all(hasattr(value, of) for of in ("shape", "dtype", "chunks", "__getitem__"))
    return has_interface and not isinstance(value, np.ndarray) and not hasattr(value, "to_numpy")


def spooled(source: Any, dtype: Any) -> np.ndarray:
    """Copy an array, chunk by chunk in order, to a file in a temporary folder.

    Parameters
    ----------
    source : array-like, shape (N, ...)
        An object with `shape` and slices of rows; its attribute `chunks` is used if present.
    dtype : dtype
        Type of the entries of the file.

    Returns
    -------
    memmap
        Read-only.  The folder is removed when the array is no longer used, that of a killed
        process when an array is next written.

    Raises
    ------
    OSError
        If the disk is full, or there is no folder for temporary files.
    """
    with _one_sentence():
        remove_stale()
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    path = folder / "rows"
    lock = None
    try:
        with _one_sentence():
            lock = _locked(folder)
            file = path.open("wb")
        # Written as a file, not as a memory map, so that a full disk raises an error, not a crash.
        with file:
            for block in blocks_of(source.shape, _rows_of_chunk(source)):
                rows = np.ascontiguousarray(source[block], dtype)
                with _one_sentence():
                    rows.tofile(file)
        rows = np.memmap(path, dtype, "r", shape=tuple(source.shape))
    except BaseException:
        _remove(folder, os.getpid(), lock)
        raise
    weakref.finalize(rows, _remove, folder, os.getpid(), lock)
    return rows


@contextmanager
def _one_sentence() -> Iterator[None]:
    """Say in errors of writing what is written, and what to do; errors of reading stay theirs."""
    try:
        yield
    except OSError as error:
        # NumPy gives no reason for a short write, only its numbers.
        reason = error.strerror or str(error)
        folder = tempfile.tempdir or "the folder of temporary files"
        raise OSError(
            f"observed cannot be copied to a temporary file ({reason}); make room in {folder}, or "
            "start Python with TMPDIR set to another folder."
        ) from error


def remove_stale() -> None:
    """Remove the folders of processes that are gone from the folder of temporary files.

    Left alone are those of other users, of other hosts that share the folder, and those in which
    nothing says whose they are.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        # Somebody else may remove it at this moment, or be its only reader.
        with suppress(OSError):
            if _is_ours(folder):
                _remove_if_free(folder)


def _rows_of_chunk(source: Any) -> int:
    """Return the number of rows of one chunk; 1 if there are no chunks of equal length."""
    chunks = getattr(source, "chunks", None)
    first = chunks[0] if chunks else 1
    return min(int(first), source.shape[0]) if isinstance(first, int | np.integer) else 1


def _locked(folder: Path) -> int:
    """Create the file that names the owner of a folder and lock it; return its descriptor."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
    if sys.platform == "win32":
        # An open file cannot be removed there, which is lock enough.
        descriptor = os.open(folder / _OWNER, flags)
    else:
        # Under another name until it is locked, for nobody to find it free before.
        unfinished = folder / f"{_OWNER}.tmp"
        descriptor = os.open(unfinished, flags, 0o600)
        # Nobody finds it free either on a file system without locks.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        unfinished.rename(folder / _OWNER)
    os.write(descriptor, gethostname().encode())
    return descriptor


def _is_ours(folder: Path) -> bool:
    """Whether a folder was made by this user on this host."""
    if folder.is_symlink():
        return False
    if sys.platform != "win32" and folder.stat().st_uid != os.getuid():
        return False
    return (folder / _OWNER).read_text(encoding="utf-8") == gethostname()


def _remove_if_free(folder: Path) -> None:
    """Remove a folder, or raise OSError if a process uses it."""
    if sys.platform == "win32":
        (folder / _OWNER).unlink()
        shutil.rmtree(folder)
        return
    descriptor = os.open(folder / _OWNER, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder)
    finally:
        os.close(descriptor)


def _remove(folder: Path, owner: int, lock: int | None) -> None:
    # A forked process inherits this finalizer but does not own the folder; it keeps the lock.
    if os.getpid() != owner:
        return
    if lock is not None:
        os.close(lock)
    shutil.rmtree(folder, ignore_errors=True)
