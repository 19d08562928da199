"""Cache of kernels on disk, and the rule by which edits of source files invalidate its entries.

numba compares only the file of a kernel itself, although the code of the kernels that it calls,
from any file, is inlined in it.  That code is in the modules which the kernel's module imports,
directly or indirectly, and in those of the families whose priors are among its arguments.  So an
entry of the cache is valid while the sources of both are unchanged; editing one family leaves the
kernels of the others valid.

Sources are read when kernels are declared, not when they are compiled, as a file that is edited in
between is not what the process runs.
"""

import hashlib
import re
import sys
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
    kinds : str
        Types of the arguments.
    is_linked : bool
        Whether callers find the code by its symbol.
    callees : list of Callee
        Kernels that the code calls by their symbols.
    code : tuple
    """

    kinds: str
    is_linked: bool
    callees: list[Callee]
    code: Any


class _Files(IndexDataCacheFile):
    """Cache files of one function; those of an older version of the package count as empty."""

    def _load_index(self) -> dict[Any, Any]:
        """Load the index of entries."""
        try:
            return super()._load_index()
        # numba loads all keys before it checks the stamp; keys may name types that were removed.
        except (AttributeError, ImportError):
            return {}


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

    def __init__(self, function: Callable[..., Any], form: str) -> None:
        super().__init__(function)
        self._form = form
        self.is_linked: dict[tuple[Any, ...], bool] = {}
        # numba drops all entries if the stamp differs.
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
        entry = self._cache_file.load(self._index_key(sig, target_context.codegen()))
        # Two processes that compile at the same time may choose the same file name.
        if entry is None or entry.kinds != str(sig):
            return None
        for callee in entry.callees:
            callee.load()
        compiled = self._impl.rebuild(target_context, entry.code)
        self.is_linked[compiled.signature.args] = entry.is_linked
        return compiled

    def _save_overload(self, sig: Any, data: Any) -> None:
        """Store compiled code, with what is needed to load it."""
        if self._impl.check_cachable(data):
            self._impl.locator.ensure_cache_path()
            is_linked = self.is_linked.get(data.signature.args, False)
            entry = _Entry(str(sig), is_linked, callees_of(data), self._impl.reduce(data))
            self._cache_file.save(self._index_key(sig, data.codegen), entry)


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
