"""The files of one chain: a manifest, draws in chunks, and the state after the last chunk.

Every file is written atomically: under a temporary name, synced and renamed.  The state is written
after its chunk and contains the number of valid draws, so that the process may be killed at any
time.  A state of no draws is written before the first chunk: chunks without a state are damage.

Every file ends with a checksum, which is verified before anything else is read.  It covers the name
of the file and the manifest too, so that a file of another draw or chain in its place is damage.
"""

import hashlib
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile

import numpy as np

from pymc_dpsplit.checkpoint.codec import from_arrays, to_arrays

_MANIFEST = "manifest.json"
_STATE = "state.npz"
_CHUNK = re.compile(r"draws-(\d+)-(\d+)\.npz")
_UNFINISHED = ".tmp"
# Key of the checksum of the manifest, in every format, and the length of those of other files.
_CHECKSUM = "checksum"
_N_BYTES = hashlib.sha256().digest_size
_BLOCK_SIZE = 2**20
# Exceptions that reading a truncated or corrupted file may raise.
_DAMAGE = (
    AttributeError,
    BadZipFile,
    EOFError,
    FileNotFoundError,
    IndexError,
    KeyError,
    NotImplementedError,
    OSError,
    TypeError,
    ValueError,
    zlib.error,
)


class ChainFiles:
    """Reader and writer of the files of one chain.

    Parameters
    ----------
    folder : pathlib.Path
        Folder of the chain; need not exist.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._checksum = ""

    def manifest(self) -> dict[str, Any] | None:
        """Return the description of the chain, or None if there is no chain."""
        path = self.folder / _MANIFEST
        if not path.exists():
            if (self.folder / _STATE).exists() or any(self._chunks()):
                raise self._damaged(path.name)
            return None

        def read() -> dict[str, Any]:
            manifest = dict(json.loads(path.read_bytes()))
            # Files of format 1 have no checksum and cannot be verified.  They are handed on unread:
            # `origin.refuse_other_run` says that they are of an older version.
            if manifest.get("format") != 1 or _CHECKSUM in manifest:
                self._checksum = manifest.pop(_CHECKSUM)
                if self._checksum != self._checksum_of(manifest):
                    raise ValueError("checksum")
            return manifest

        return self._undamaged(path, read)

    def begin(self, manifest: dict[str, Any]) -> None:
        """Create the folder and write the description of the chain."""
        with self.writing():
            self.folder.mkdir(parents=True, exist_ok=True)
            self._checksum = self._checksum_of(manifest)
            content = json.dumps({**manifest, _CHECKSUM: self._checksum}, indent=1).encode()
            _write(self.folder / _MANIFEST, lambda file: file.write(content))

    def try_to_write(self) -> None:
        """Raise OSError if nothing can be written; before draws are computed in vain."""
        with self.writing():
            trial = self.folder / f"trial{_UNFINISHED}"
            trial.touch()
            trial.unlink()

    def state(self) -> dict[str, Any] | None:
        """Return the state after the last valid chunk, or None before the first."""
        path = self.folder / _STATE
        if path.exists():
            return self._read(path)
        if any(self._chunks()):
            raise self._damaged(path.name)
        return None

    def clean(self, n_draws: int) -> None:
        """Remove files that a killed process left after the valid draws."""
        with self.writing():
            for path in self.folder.iterdir():
                named = _CHUNK.fullmatch(path.name)
                if path.suffix == _UNFINISHED or (named and int(named[1]) >= n_draws):
                    path.unlink()

    def chunk(self, first: int) -> tuple[int, Any]:
        """Return the number of draws and the content of the chunk that starts at draw `first`."""
        for path in self.folder.glob(f"draws-{first:09d}-*.npz"):
            if named := _CHUNK.fullmatch(path.name):
                return int(named[2]) - first, self._read(path)
        raise self._damaged(f"the chunk from draw {first} on")

    def commit(self, first: int, last: int, chunk: Any, state: dict[str, Any]) -> None:
        """Write a chunk, then replace the state.

        Parameters
        ----------
        first, last : int
            The chunk contains the draws first .. last - 1.
        chunk : plain value
            See `checkpoint.codec`.
        state : dict
            State after the chunk.
        """
        with self.writing():
            if first == 0 and not (self.folder / _STATE).exists():
                self._write_arrays(_STATE, to_arrays({"n_draws": 0, "methods": []}, "state"))
            self._write_arrays(f"draws-{first:09d}-{last:09d}.npz", to_arrays(chunk, "draws"))
            self._write_arrays(_STATE, to_arrays(state, "state"))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Name the checkpoint in errors of the operating system."""
        try:
            yield
        except OSError as error:
            # Of the same type, so that callers can still catch a PermissionError.
            raise type(error)(
                f"the checkpoint in {self.folder} cannot be written ({error.strerror or error}); "
                "make room or allow writing there, or give another folder."
            ) from error

    def _chunks(self) -> Iterator[Path]:
        paths = self.folder.iterdir() if self.folder.exists() else ()
        return (path for path in paths if _CHUNK.fullmatch(path.name))

    def _write_arrays(self, name: str, arrays: dict[str, np.ndarray]) -> None:
        def write(file: IO[bytes]) -> None:
            np.savez(file, allow_pickle=False, **arrays)
            # Read again, as an archive is not written from its beginning to its end.
            digest = self._digest_of(name, file, file.tell())
            file.seek(0, os.SEEK_END)
            file.write(digest)

        _write(self.folder / name, write)

    def _read(self, path: Path) -> Any:
        def read() -> Any:
            # Opened here, because np.load does not close a damaged file.
            with path.open("rb") as file:
                size = file.seek(-_N_BYTES, os.SEEK_END)
                if file.read() != self._digest_of(path.name, file, size):
                    raise ValueError("checksum")
                file.seek(0)
                with np.load(file, allow_pickle=False) as arrays:
                    return from_arrays(dict(arrays))

        return self._undamaged(path, read)

    def _checksum_of(self, manifest: dict[str, Any]) -> str:
        content = json.dumps([self.folder.name, manifest], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    def _digest_of(self, name: str, file: IO[bytes], size: int) -> bytes:
        """Digest of so many bytes of a file of this chain, from its beginning."""
        if not self._checksum:
            self.manifest()
        digest = hashlib.sha256(f"{self._checksum} {name} ".encode())
        file.seek(0)
        while size and (block := file.read(min(size, _BLOCK_SIZE))):
            digest.update(block)
            size -= len(block)
        return digest.digest()

    def _undamaged[T](self, path: Path, read: Callable[[], T]) -> T:
        try:
            return read()
        except PermissionError as error:
            raise PermissionError(
                f"{path} cannot be read ({error.strerror}); allow reading it, or give another "
                "folder."
            ) from error
        except _DAMAGE as error:
            raise self._damaged(path.name) from error

    def _damaged(self, what: str) -> ValueError:
        return ValueError(
            f"{what} of the checkpoint is damaged or missing; delete the folder {self.folder} to "
            "draw that chain anew."
        )


def _write(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file atomically, even if power fails."""
    unfinished = path.with_name(path.name + _UNFINISHED)
    try:
        with unfinished.open("w+b") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        # On a disk that is full, so that there is room for what is there again.
        unfinished.unlink(missing_ok=True)
        raise
    unfinished.replace(path)
    if os.name == "posix":  # elsewhere a folder cannot be synced
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
