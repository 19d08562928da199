"""The only place where numba options are chosen.

Kernels are compiled lazily, cached on disk and release the interpreter lock.  numba
invalidates a cached kernel only when the file of the *caller* changes, although the code of
every kernel it calls, in whatever file, is inlined in it.  So each cache entry is stamped with
a digest of all compiled sources of the package: an edit anywhere, or an upgrade, recompiles.
"""

import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numba.extending

# Contraction to fused multiply-adds and ignoring the sign of zero are safe.  Re-association
# would break the rounding trick of `exp2_plainly`; no-NaN and no-inf would break log(0) = -inf.
FASTMATH = {"contract", "nsz"}

_COMPILED = ("kernels/*.py", "components/*.py", "moves/*.py", "sampler.py")


@cache
def source_stamp() -> str:
    """Return a digest of every compiled source file of the package."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for pattern in _COMPILED:
        for path in sorted(root.glob(pattern)):
            digest.update(path.name.encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` with the options of the package.

    Parameters
    ----------
    function : callable
        Plain Python that numba can type: arrays, scalars, NamedTuples and a
        `numpy.random.Generator`; it raises nothing.

    Returns
    -------
    numba dispatcher
    """
    return _compile(function)


def inlined_kernel(function: Callable[..., Any]) -> Any:
    """Compile like `kernel`; the code is copied to where it is called.

    For what does little itself: a call that hands over arrays costs as much as thirty loads
    and stores, which is more than the work of a tile and cluster of few features.
    """
    return _compile(function, forceinline=True)


def c_function(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make a decorator that compiles a function which is called by its address.

    Compiled at once, and not cached: it belongs to a process.

    Parameters
    ----------
    signature : numba signature
    """
    made: Callable[[Callable[..., Any]], Any] = numba.cfunc(signature)
    return made


def intrinsic(function: Callable[..., Any]) -> Any:
    """Make a function of which `function` writes the code, see `numba.extending.intrinsic`."""
    return numba.extending.intrinsic(function)


def _compile(function: Callable[..., Any], **options: Any) -> Any:
    """Compile `function`; its cache entry is stale when any compiled source has changed."""
    compiled = numba.njit(cache=True, nogil=True, fastmath=FASTMATH, **options)(function)
    # With numba's jit switched off the function comes back as it is and has no cache.
    stamped = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if stamped is not None:
        own_file = os.stat(function.__code__.co_filename).st_mtime_ns
        stamped._source_stamp = f"{source_stamp()} {own_file}"
    return compiled
