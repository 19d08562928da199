"""Dispatch of the kernel operations of families on the type of the prior.

In compiled kernels numba selects the implementation, by one overload per family.  In plain Python,
for instance if NUMBA_DISABLE_JIT is set, the operation looks it up in a registry.  `implements`
adds an implementation to both.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from numba.core import types
from numba.extending import overload

from pymc_dpsplit.kernels.cache import add_source
from pymc_dpsplit.kernels.jit import COUNTED, OPTIONS, UNCOUNTED, WITHOUT_WRAPPERS

_Function = Callable[..., Any]

_implementations: dict[tuple[_Function, type], _Function] = {}


# Operations whose implementations are all inlined.
_inlined: set[_Function] = set()


def operation(declaration: _Function, inline: bool = False) -> _Function:
    """Declare an operation that has no default.

    Parameters
    ----------
    declaration : callable
        A function with the name, docstring and arguments of the operation, the prior first; its
        body is not run.
    inline : bool
        Whether every implementation is inlined, see `kernels.jit.jitted_inlined`.

    Returns
    -------
    callable
        The operation, which raises NotImplementedError for families without an implementation.
    """

    def refuse(prior: Any, *_: Any) -> Any:
        family = type(prior).__name__
        raise NotImplementedError(f"{family} does not implement {declaration.__name__}")

    return _dispatched(declaration, refuse, inline)


def optional_operation(default: _Function, inline: bool = False) -> _Function:
    """Declare an operation with a default for families that do not implement it.

    Parameters
    ----------
    default : callable
        A Python function that numba can compile; its first argument is the prior.
    inline : bool
        Whether every implementation and the default are inlined.

    Returns
    -------
    callable
    """
    dispatched = _dispatched(default, default, inline)

    def choose(prior: Any, *_: Any) -> _Function | None:
        return None if implemented(dispatched, prior.instance_class) else default

    overload(dispatched, jit_options=_options(dispatched), strict=False)(choose)
    return dispatched


def _dispatched(declaration: _Function, default: _Function, inline: bool) -> _Function:
    @wraps(declaration)
    def call(prior: Any, *arguments: Any) -> Any:
        return _implementations.get((call, type(prior)), default)(prior, *arguments)

    if inline:
        _inlined.add(call)
    return call


def _options(operation: _Function, inline: bool = False, uncounted: bool = False) -> Any:
    """Return the options of numba for implementations of an operation."""
    counts = UNCOUNTED if uncounted else COUNTED
    inlines = {"forceinline": inline or operation in _inlined}
    return {**OPTIONS, **WITHOUT_WRAPPERS, **counts, **inlines}


def implements(
    operation: _Function, prior_class: type, inline: bool = False, uncounted: bool = False
) -> Callable[[_Function], _Function]:
    """Register the decorated function as `operation` for priors of type `prior_class`.

    Parameters
    ----------
    operation : callable
        One of the operations of `components.base` or `components.optional`.
    prior_class : type
        The NamedTuple class of the family's prior.
    inline : bool
        Whether this implementation is inlined, even if the operation is not.
    uncounted : bool
        Whether it counts no references, see `kernels.jit.jitted_uncounted`.

    Returns
    -------
    callable
        A decorator that returns its function unchanged.
    """

    def register(implementation: _Function) -> _Function:
        _implementations[operation, prior_class] = implementation
        add_source(prior_class, implementation.__module__)

        def choose(prior: Any, *_: Any) -> _Function | None:
            is_ours = isinstance(prior, types.BaseNamedTuple)
            return implementation if is_ours and prior.instance_class is prior_class else None

        # Not strict, because argument names differ between operations.
        options = _options(operation, inline, uncounted)
        overload(operation, jit_options=options, strict=False)(choose)
        return implementation

    return register


def implemented(operation: _Function, prior_class: type) -> bool:
    """Return whether an operation has an implementation, other than the default, for a prior."""
    return (operation, prior_class) in _implementations


def whether_implemented(operation: _Function) -> _Function:
    """Return a function that tells whether the family of a prior implements an operation.

    Parameters
    ----------
    operation : callable

    Returns
    -------
    callable
        From a prior to bool, a constant in compiled kernels.
    """

    def say(prior: Any) -> bool:
        return implemented(operation, type(prior))

    def choose(prior: Any) -> _Function:
        answer = implemented(operation, prior.instance_class)
        return lambda prior: answer

    overload(say, jit_options=OPTIONS, strict=False)(choose)
    return say
