"""Cache of kernels on disk, and the rule by which edits of source files invalidate its entries.

numba compares only the file of a kernel itself, although the code of the kernels that it calls,
from any file, is inlined in it.  That code is in the modules which the kernel's module imports,
directly or indirectly, and in those of the families whose priors are among its arguments.  So an
entry of the cache is valid while the sources of both are unchanged; editing one family leaves the
kernels of the others valid.

Sources are read when kernels are declared, not when they are compiled, as a file that is edited in
between is not what the process runs.

A process may end, or a disk be full, after numba has written that a file holds an entry and before
the file is written, and two processes may choose the same file.  So each entry says what it is for,
and each file has a checksum.  The cache saves time and nothing else: what cannot be read is
compiled, and what cannot be written is not kept.
"""

import hashlib
import pickle
import re
import sys
import warnings
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from numba.core import types
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.sigutils import normalize_signature

from pymc_dpsplit.kernels.linking import Callee, callees_of

_PACKAGE = __name__.split(".")[0]
_IMPORT = re.compile(r"^(?:from|import) ([\w.]+)(?: import (?:\(([^)]*)\)|(.*)))?", re.MULTILINE)

_TUPLES: Any = types.BaseTuple
_CHECKSUM, _DIGEST = 4, 32  # bytes

_modules_of: defaultdict[type | None, set[str]] = defaultdict(set)


def add_source(prior_class: type, module: str) -> None:
    """Register a module whose code kernels that take a prior of type `prior_class` may inline."""
    _modules_of[prior_class] |= {module, prior_class.__module__}
    _closure(module)


def source_digest(function: Callable[..., Any]) -> str:
    """Return a digest of the sources that the code of a kernel depends on.

    They are read in the first call, which is made when the kernel is declared.
    """
    return _digest(frozenset({function.__module__}))


class _Entry(NamedTuple):
    """Stored form of a kernel; numba alone stores the code only.

    Attributes
    ----------
    key : tuple
        That of the entry in the index.
    is_linked : bool
        Whether callers find the code by its symbol.
    callees : list of Callee
        Kernels that the code calls by their symbols.
    code : tuple
    """

    key: tuple[Any, ...]
    is_linked: bool
    callees: list[Callee]
    code: Any


class _UnusableError(Exception):
    """A file that is damaged, or was written for other sources or by another version of numba."""


class _Files(IndexDataCacheFile):
    """Cache files of one function.  Each begins with a checksum, and a digest of its stamp."""

    def _load_index(self) -> dict[Any, Any]:
        """Load the index of entries; what cannot be read counts as empty."""
        try:
            entries: dict[Any, Any] = self._read(Path(self._index_path))
        # Keys may name types that were removed.
        except (OSError, _UnusableError, AttributeError, ImportError):
            return {}
        return entries

    def _save_index(self, entries: dict[Any, Any]) -> None:
        """Write the index of entries."""
        self._write(self._index_path, entries)

    def _load_data(self, name: str) -> Any:
        """Load what one file holds, or None."""
        try:
            return self._read(Path(self._data_path(name)))
        except (_UnusableError, AttributeError, ImportError):
            return None

    def _save_data(self, name: str, data: Any) -> None:
        """Write what one file holds."""
        self._write(self._data_path(name), data)

    def _read(self, path: Path) -> Any:
        content = path.read_bytes()
        checksum, rest = content[:_CHECKSUM], content[_CHECKSUM:]
        if checksum != _checksum_of(rest) or rest[:_DIGEST] != self._stamp:
            raise _UnusableError(path)
        return pickle.loads(rest[_DIGEST:])

    def _write(self, path: str, data: Any) -> None:
        rest = self._stamp + self._dump(data)
        with self._open_for_write(path) as file:
            file.write(_checksum_of(rest))
            file.write(rest)

    @property
    def _stamp(self) -> bytes:
        return hashlib.sha256(repr((self._version, self._source_stamp)).encode()).digest()


def _checksum_of(content: bytes) -> bytes:
    return zlib.crc32(content).to_bytes(_CHECKSUM)


class SourceCache(FunctionCache):
    """numba's cache of one function, whose entries are invalid once code that they inline changes.

    Parameters
    ----------
    function : callable
    form : str
        Which form of a kernel this is, see `kernels.jit.Kernel`.

    Attributes
    ----------
    is_linked : dict of tuple of numba types to bool
        Whether callers find the code for some argument types by its symbol.
    """

    _cache_file: _Files

    def __init__(self, function: Callable[..., Any], form: str) -> None:
        self._form = form
        self.is_linked: dict[tuple[Any, ...], bool] = {}
        try:
            super().__init__(function)
        except RuntimeError:  # there is no folder that can be written to
            self.disable()
            _warn("there is no folder for them", "")
            return
        # Files of another stamp are not read.
        own_file = self._impl.locator.get_source_stamp()
        stamp = own_file, source_digest(function)
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, stamp)

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        """Return the key of one entry."""
        arguments, _ = normalize_signature(sig)
        modules = frozenset(_family_modules(arguments))
        return (*super()._index_key(sig, codegen), self._form, _digest(modules))

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the kernels that an entry calls by their symbols, then the entry."""
        if not self._enabled:
            return None
        key = self._index_key(sig, target_context.codegen())
        entry = self._cache_file.load(key)
        if entry is None or entry.key != key:
            return None
        for callee in entry.callees:
            callee.load()
        compiled = self._impl.rebuild(target_context, entry.code)
        self.is_linked[compiled.signature.args] = entry.is_linked
        return compiled

    def _save_overload(self, sig: Any, data: Any) -> None:
        """Store compiled code, with what is needed to load it."""
        if self._enabled and self._impl.check_cachable(data):
            is_linked = self.is_linked.get(data.signature.args, False)
            key = self._index_key(sig, data.codegen)
            code = self._impl.reduce(data)
            entry = _Entry(key, is_linked, callees_of(data), code)
            try:
                self._impl.locator.ensure_cache_path()
                self._cache_file.save(key, entry)
            except OSError as fault:
                _warn(str(fault), "make room there, or ")


# Whether a warning was given; there is one per process.
_warned: list[str] = []


def _warn(fault: str, remedy: str) -> None:
    if not _warned:
        _warned.append(fault)
        warnings.warn(
            f"Compiled kernels of pymc_dpsplit are not kept, so that each process compiles them "
            f"anew: {fault}; {remedy}set the environment variable NUMBA_CACHE_DIR to a folder that "
            "can be written to.",
            stacklevel=2,
        )


def _family_modules(kinds: Iterable[Any]) -> Iterator[str]:
    """Names of the modules that implement operations for types of arguments or their fields."""
    for kind in kinds:
        if isinstance(kind, _TUPLES):
            yield from _modules_of.get(getattr(kind, "instance_class", None), ())
            yield from _family_modules(kind)


@cache
def _digest(modules: frozenset[str]) -> str:
    """Return a digest of the sources of modules and of all modules that they import."""
    digest = hashlib.sha256()
    for name in sorted(frozenset().union(*map(_closure, modules))):
        digest.update(name.encode())
        digest.update(_source(name))
    return digest.hexdigest()


@cache
def _closure(module: str) -> frozenset[str]:
    """Names of a module and of all modules that it imports, directly or indirectly."""
    left, found = {module}, set()
    while left:
        name = left.pop()
        found.add(name)
        left |= _imports(name) - found
    return frozenset(found)


@cache
def _imports(module: str) -> set[str]:
    """Names of the modules that a module imports, from this package or from its own package."""
    packages = {_PACKAGE, module.split(".")[0]}
    found: set[str] = set()
    for name, in_brackets, in_line in _IMPORT.findall(_source(module).decode()):
        if name.split(".")[0] in packages:
            items = re.findall(r"\w+", in_brackets or in_line)
            found |= {name, *(f"{name}.{item}" for item in items)} & sys.modules.keys()
    return found


@cache
def _source(module: str) -> bytes:
    """Source text of an imported module."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return Path(file).read_bytes() if file else b""
