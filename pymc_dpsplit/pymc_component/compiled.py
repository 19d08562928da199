"""Compiled functions of a component: addresses for kernels, and functions for Python.

Addresses are valid in one process only.  A pickled component therefore omits the functions, and
they are compiled again on first use.
"""

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pytensor.tensor as pt
from numba import carray  # type: ignore[attr-defined]
from numba.core import types
from pymc.pytensorf import compile as compile_function
from pymc.pytensorf import reseed_rngs
from pytensor.compile.mode import Mode
from pytensor.graph.traversal import graph_inputs
from pytensor.tensor.random.variable import RandomGeneratorSharedVariable

from pymc_dpsplit.components.nonconjugate.compiled_prior import CompiledPrior
from pymc_dpsplit.kernels.jit import c_function, require_compiler
from pymc_dpsplit.pymc_component.graphs import Graphs
from pymc_dpsplit.pymc_component.vector_functions import vectorising_mode

# Number of draws from the base measure per call, and of draws used as starting points of fits.
POOL, N_PILOTS = 128, 64
# Arbitrary random key of these draws, fixed so that all processes start alike.
PILOT_KEY = 0x5EED
# For functions called a few times per draw, which are not worth compiling to machine code.
_IN_PYTHON = Mode(linker="py", optimizer="fast_compile")
_F64P = types.CPointer(types.float64)
_REFILL = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p)


# A prior contains only the addresses of functions and may outlive its component, so references to
# the functions are kept here for the lifetime of the process.
_KEPT: list[Any] = []


class KernelGraphs(Protocol):
    """Graphs that kernels call: as in `graphs.Graphs`, whatever they are made of."""

    block: Any
    theta: Any
    shared: Any
    n_parameters: int

    @property
    def n_covariates(self) -> int:
        """Return the number of columns of ``block`` after those of the data."""

    def log_prior(self) -> Any:
        """Return the base log density of ``theta``, with the Jacobian."""

    def log_density(self) -> Any:
        """Return the log density (n,) of the rows of ``block`` under ``theta``."""


class CompiledKernels(ABC):
    """Compiled densities and draws from the base measure, for rows of D = `n_features`.

    Parameters
    ----------
    graphs : KernelGraphs
    n_features : int
        Number of columns of the data.
    n_shared : int
        Length of ``shared``.
    """

    def __init__(self, graphs: KernelGraphs, n_features: int, n_shared: int) -> None:
        self._kernel_graphs = graphs
        self._n_columns = n_features + graphs.n_covariates
        self._n_shared = n_shared
        _KEPT.append(self)

    @abstractmethod
    def draw_base(self, key: int, shared: np.ndarray) -> np.ndarray:
        """Draw parameters (POOL, P) from the base measure with the random key `key`."""

    @cached_property
    def _plain_density(self) -> Any:
        graphs = self._kernel_graphs
        return kernel_of([graphs.block, graphs.theta, graphs.shared], graphs.log_density())

    def try_density(self, block: np.ndarray, shared: np.ndarray) -> None:
        """Evaluate the density in Python, where errors can be raised, unlike in kernels."""
        (found,) = self._plain_density(block, np.zeros(self._kernel_graphs.n_parameters), shared)
        if found.shape not in ((1,), block.shape[1:]):
            raise ValueError(f"{block.shape[1]} rows have densities of shape {found.shape}")

    @cached_property
    def _density(self) -> Any:
        graphs, density = self._kernel_graphs, self._plain_density
        n_columns, n_parameters, n_shared = (
            self._n_columns, graphs.n_parameters, self._n_shared,
        )  # fmt: skip

        @c_function(types.void(_F64P, types.int64, _F64P, _F64P, _F64P))
        def fill(block, n_rows, theta, shared, out):  # type: ignore[no-untyped-def]
            (found,) = density(
                carray(block, (n_columns, n_rows)),
                carray(theta, (n_parameters,)),
                carray(shared, (n_shared,)),
            )
            # A density that does not depend on the row has a single element.
            for i in range(n_rows):
                out[i] = found[i if found.shape[0] > 1 else 0]

        return fill

    @cached_property
    def _log_prior(self) -> Any:
        graphs = self._kernel_graphs
        density = kernel_of([graphs.theta, graphs.shared], graphs.log_prior())
        n_parameters, n_shared = graphs.n_parameters, self._n_shared

        @c_function(types.void(_F64P, _F64P, _F64P))
        def fill(theta, shared, out):  # type: ignore[no-untyped-def]
            (found,) = density(carray(theta, (n_parameters,)), carray(shared, (n_shared,)))
            out[0] = found.item()

        return fill

    @cached_property
    def _refill(self) -> Any:
        def refill(key: int, pool: int, shared: int) -> None:
            values = _array_at(shared, (self._n_shared,))
            _array_at(pool, (POOL, self._kernel_graphs.n_parameters))[:] = self.draw_base(
                key, values
            )

        return _REFILL(refill)

    @property
    def addresses(self) -> tuple[int, int, int]:
        """Return the addresses of density, log density of the base measure, and refill."""
        refill = ctypes.cast(self._refill, ctypes.c_void_p).value
        return self._density.address, self._log_prior.address, int(refill or 0)

    def prior(
        self,
        shift: np.ndarray,
        shared: np.ndarray,
        pilots: np.ndarray,
        covariates: np.ndarray | None = None,
    ) -> CompiledPrior:
        """Return the prior that kernels read, with an empty pool.

        Parameters
        ----------
        shift : ndarray of float64, shape (D,)
        shared : ndarray of float64, shape (S,)
        pilots : ndarray of float64, shape (M, P)
            Draws from the base measure.
        covariates : ndarray of float64, shape (N, C), optional

        Returns
        -------
        CompiledPrior
        """
        spread = np.quantile(pilots, 0.84, axis=0) - np.quantile(pilots, 0.16, axis=0)
        return CompiledPrior(
            shift,
            *self.addresses,
            shared,
            np.empty((1, 0)) if covariates is None else covariates,
            np.maximum(spread, 1e-10),
            pilots,
            np.empty((POOL, pilots.shape[1])),
            np.array([POOL]),
        )


class Compiled(CompiledKernels):
    """Compiled functions of a component for rows of D = `n_features`.

    Parameters
    ----------
    graphs : Graphs
    n_features : int
        Number of columns of the data.
    n_shared : int
        Length of ``shared``.
    """

    def __init__(self, graphs: Graphs, n_features: int, n_shared: int) -> None:
        super().__init__(graphs, n_features, n_shared)
        self._graphs = graphs

    @cached_property
    def _base_draws(self) -> Any:
        return _Drawn([self._graphs.shared], self._graphs.base_draws(POOL))

    def draw_base(self, key: int, shared: np.ndarray) -> np.ndarray:
        drawn: np.ndarray = self._base_draws(key, shared)
        return drawn

    @cached_property
    def _rows(self) -> Any:
        graphs = self._graphs
        return _Drawn([graphs.block, graphs.theta, graphs.shared], graphs.rows())

    def draw_rows(
        self, key: int, covariates: np.ndarray, theta: np.ndarray, shared: np.ndarray
    ) -> np.ndarray:
        """Draw rows of one cluster, one for each column of `covariates`.

        Parameters
        ----------
        key : int
            Random key.
        covariates : ndarray of float64, shape (C, n)
        theta : ndarray of float64, shape (P,)
        shared : ndarray of float64, shape (S,)

        Returns
        -------
        ndarray of float64, shape (n,) or (n, D)
        """
        drawn: np.ndarray = self._rows(key, covariates, theta, shared)
        return drawn

    @cached_property
    def _densities(self) -> Any:
        graphs, shape = self._graphs, (None, self._n_columns)[: 1 + self._graphs.row_ndim]
        rows, named = pt.tensor("rows", dtype="float64", shape=shape), self._named()
        density = graphs.log_density_at(rows, named, graphs.shared_values())
        return _in_python([rows, *named.values(), graphs.shared], [density])

    def density_at(
        self, rows: np.ndarray, named: Mapping[str, np.ndarray], shared: np.ndarray
    ) -> np.ndarray:
        """Return the log density (n,) of rows without covariates, each at its own arguments.

        Parameters
        ----------
        rows : ndarray of float64, shape (n,) or (n, D)
        named : mapping
            Name of each cluster parameter to ndarray (n, ...).
        shared : ndarray of float64, shape (S,)

        Returns
        -------
        ndarray of float64, shape (n,)
        """
        found = self._densities(rows, *(named[name] for name in self._graphs.parts), shared)[0]
        density: np.ndarray = np.broadcast_to(found, len(rows))
        return density

    def _named(self) -> dict[str, Any]:
        """Return inputs for the arguments of clusters, each (K, ...)."""
        return {
            name: pt.tensor(name, dtype="float64", shape=(None, *part.shape))
            for name, part in self._graphs.parts.items()
        }

    @cached_property
    def _unpack(self) -> Any:
        thetas = pt.matrix("thetas", dtype="float64")
        return _in_python([thetas, self._graphs.shared], self._graphs.unpacked(thetas))

    def unpack(self, thetas: np.ndarray, shared: np.ndarray) -> dict[str, np.ndarray]:
        """Convert parameters (K, P) of clusters to named arguments (K, ...)."""
        return dict(zip(self._graphs.parts, self._unpack(thetas, shared), strict=True))

    @cached_property
    def _pack(self) -> Any:
        named = self._named()
        return _in_python([*named.values(), self._graphs.shared], [self._graphs.packed(named)])

    def pack(self, named: Mapping[str, np.ndarray], shared: np.ndarray) -> np.ndarray:
        """Convert named arguments (K, ...) of clusters to parameters (K, P)."""
        values = [np.asarray(named[name], dtype=np.float64) for name in self._graphs.parts]
        if not len(values[0]):  # as before the first draw
            return np.empty((0, self._graphs.n_parameters))
        packed: np.ndarray = self._pack(*values, shared)[0]
        return packed


class _Drawn:
    """Function that draws a graph of random variables with a given random key.

    Parameters
    ----------
    inputs : sequence of TensorVariable
    output : TensorVariable
    """

    def __init__(self, inputs: Sequence[Any], output: Any) -> None:
        self._function = _in_python(inputs, [output])
        found = graph_inputs([output])
        self._rngs = [rng for rng in found if isinstance(rng, RandomGeneratorSharedVariable)]

    def __call__(self, key: int, *values: np.ndarray) -> np.ndarray:
        reseed_rngs(self._rngs, int(key) % 2**63)
        drawn: np.ndarray = self._function(*values)[0]
        return drawn


def _in_python(inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
    options: Any = {"on_unused_input": "ignore", "trust_input": True, "mode": _IN_PYTHON}
    return compile_function(list(inputs), list(outputs), **options)


def kernel_of(inputs: Sequence[Any], output: Any) -> Any:
    """Return a numba-compiled function of arrays that returns a tuple of one array."""
    require_compiler("dps.Component")
    options: Any = {"on_unused_input": "ignore", "trust_input": True, "mode": vectorising_mode()}
    return compile_function(list(inputs), output, **options).vm.jit_fn


def flat(values: Sequence[Any]) -> np.ndarray:
    """Concatenate the elements of arrays, as float64."""
    return np.concatenate([np.empty(0), *(np.ravel(value) for value in values)])


def _array_at(address: int, shape: tuple[int, ...]) -> np.ndarray:
    """Return the array of float64 at an address."""
    number = ctypes.c_double * int(np.prod(shape))
    return np.frombuffer(number.from_address(address), np.float64).reshape(shape)
