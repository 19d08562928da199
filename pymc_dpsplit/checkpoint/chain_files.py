"""The files of one chain: a manifest, draws in chunks, and the state after the last chunk.

Every file appears whole or not at all: it is written under another name, synced and renamed.  The
state is written after its chunk and says how many draws count, so that a process may die between
any two instructions.
"""

import json
import os
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile

import numpy as np

from pymc_dpsplit.checkpoint.codec import from_arrays, to_arrays

_MANIFEST = "manifest.json"
_STATE = "state.npz"
_CHUNK = re.compile(r"draws-(\d+)-(\d+)\.npz")
_UNFINISHED = ".tmp"
# What reading a file with bytes missing or changed may raise.
_DAMAGE = (
    AttributeError,
    BadZipFile,
    EOFError,
    FileNotFoundError,
    IndexError,
    KeyError,
    TypeError,
    ValueError,
    zlib.error,
)


class ChainFiles:
    """Reads and writes the files of one chain.

    Parameters
    ----------
    folder : pathlib.Path
        That of the chain; need not exist.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def manifest(self) -> dict[str, Any] | None:
        """What the chain is, or None if there is none."""
        path = self.folder / _MANIFEST
        if not path.exists():
            if (self.folder / _STATE).exists():
                raise self._damaged(path.name)
            return None

        def read() -> dict[str, Any]:
            return dict(json.loads(path.read_bytes()))

        return self._undamaged(path, read)

    def begin(self, manifest: dict[str, Any]) -> None:
        """Make the folder and write what the chain is."""
        self.folder.mkdir(parents=True, exist_ok=True)
        content = json.dumps(manifest, indent=1).encode()
        _write(self.folder / _MANIFEST, lambda file: file.write(content))

    def state(self) -> dict[str, Any] | None:
        """State after the last chunk that counts, or None before the first."""
        path = self.folder / _STATE
        return self._read(path) if path.exists() else None

    def clean(self, n_draws: int) -> None:
        """Remove what a killed process left beyond the draws that count."""
        for path in self.folder.iterdir():
            named = _CHUNK.fullmatch(path.name)
            if path.suffix == _UNFINISHED or (named and int(named[1]) >= n_draws):
                path.unlink()

    def chunk(self, first: int) -> tuple[int, Any]:
        """Number of draws in the chunk that starts at a draw, and its content."""
        for path in self.folder.glob(f"draws-{first:09d}-*.npz"):
            if named := _CHUNK.fullmatch(path.name):
                return int(named[2]) - first, self._read(path)
        raise self._damaged(f"the chunk from draw {first} on")

    def commit(self, first: int, last: int, chunk: Any, state: dict[str, Any]) -> None:
        """Write a chunk, then the state after it in place of the one before."""
        _write_arrays(self.folder / f"draws-{first:09d}-{last:09d}.npz", to_arrays(chunk, "draws"))
        _write_arrays(self.folder / _STATE, to_arrays(state, "state"))

    def _read(self, path: Path) -> Any:
        def read() -> Any:
            # Opened here, as np.load leaves a damaged file open.
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                return from_arrays(dict(arrays))

        return self._undamaged(path, read)

    def _undamaged[T](self, path: Path, read: Callable[[], T]) -> T:
        try:
            return read()
        except _DAMAGE as error:
            raise self._damaged(path.name) from error

    def _damaged(self, what: str) -> ValueError:
        return ValueError(
            f"{what} of the checkpoint is damaged or missing; delete the folder {self.folder} to "
            "draw that chain anew."
        )


def _write_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    _write(path, lambda file: np.savez(file, allow_pickle=False, **arrays))


def _write(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file that is there whole or not at all, even if power fails."""
    unfinished = path.with_name(path.name + _UNFINISHED)
    with unfinished.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    if os.name == "posix":  # elsewhere a folder cannot be synced
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
