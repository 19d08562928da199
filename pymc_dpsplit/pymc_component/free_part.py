"""A part of a product whose parameters are in the state of the chain, as real numbers.

A non-conjugate part brings its own graphs; a conjugate one is moved like it, so its densities are
made into graphs of the same form, with the Jacobians of its scales.
"""

from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.replace import graph_replace

from pymc_dpsplit.components.by_column import OneParameterByColumn
from pymc_dpsplit.components.categorical import Categorical
from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.components.diag_normal import DiagNormal
from pymc_dpsplit.components.fixed_hyperparameters import with_values
from pymc_dpsplit.components.linear_regression.family import LinearRegression
from pymc_dpsplit.components.multinomial import Multinomial
from pymc_dpsplit.components.mv_normal.family import MvNormal
from pymc_dpsplit.components.mv_normal_known_cov import MvNormalKnownCov
from pymc_dpsplit.components.nonconjugate.family import NonconjugateFamily
from pymc_dpsplit.components.normal_known_sigma import NormalKnownSigma
from pymc_dpsplit.components.parameter_laws import BetaLaw, GammaLaw
from pymc_dpsplit.components.parts import Part
from pymc_dpsplit.components.spherical_normal import SphericalNormal
from pymc_dpsplit.pymc_component.compiled import flat
from pymc_dpsplit.pymc_component.pymc_parametrised import PyMCParametrised
from pymc_dpsplit.pymc_component.unconstrained import (
    POSITIVE,
    PROBABILITY,
    REAL,
    Covariances,
    Scale,
    Simplexes,
)

Values = Mapping[str, Any]
_OF_LAW: dict[type, Scale] = {GammaLaw: POSITIVE, BetaLaw: PROBABILITY}


def plain(family: ComponentFamily) -> ComponentFamily:
    """Return the family of vectors behind one that is renamed, or the family itself."""
    return family.family if isinstance(family, PyMCParametrised) else family


def scales_of(family: ComponentFamily, n_categories: Any = ()) -> dict[str, Scale] | None:
    """Return the scale of each parameter of a conjugate family, None if there are none.

    Parameters
    ----------
    family : ComponentFamily
    n_categories : sequence of int
        Number of categories of each column of a `Categorical`, or of a `Multinomial`.

    Returns
    -------
    dict or None
        None if the density of a row has no graph here.
    """
    of = plain(family)
    if isinstance(of, DiagNormal | SphericalNormal):
        return {"mu": REAL, "sigma": POSITIVE}
    if isinstance(of, NormalKnownSigma | MvNormalKnownCov):
        return {"mu": REAL}
    if isinstance(of, LinearRegression):
        return {"beta": REAL, "sigma": POSITIVE}
    if isinstance(of, MvNormal):
        return {"mu": REAL, "cov": Covariances()}
    if isinstance(of, Categorical | Multinomial):
        scale: Scale | None = Simplexes(tuple(map(int, n_categories)))
    elif isinstance(of, OneParameterByColumn):
        scale = _OF_LAW.get(type(of.law))
    else:
        scale = None
    return None if scale is None else dict.fromkeys(family.parameters, scale)


def counts_in(family: ComponentFamily, table: Any, width: int) -> tuple[int, ...]:
    """Return the number of categories of each column, () for families without categories.

    Parameters
    ----------
    family : ComponentFamily
    table : ndarray (D, C) or (C,), optional
        Not 0 where a column has a category; by default the numbers are those of the data.
    width : int
        Number of columns of the part, which are the categories of a `Multinomial`.
    """
    of = plain(family)
    if isinstance(of, Multinomial):
        return (width,)
    if not isinstance(of, Categorical):
        return ()
    if table is None:
        assert of.n_categories is not None
        return tuple(of.n_categories.tolist())
    return tuple(np.count_nonzero(np.atleast_2d(table), axis=1).tolist())


class FreePart:
    """Parameters of a part as real numbers, and its densities as graphs.

    Parameters
    ----------
    part : Part
    counts : tuple of int
        As `counts_in` returns it.
    """

    def __init__(self, part: Part, counts: tuple[int, ...] = ()) -> None:
        self.part, self._counts = part, counts
        family: Any = part.family
        is_free = isinstance(part.family, NonconjugateFamily)
        self._graphs: Any = family.graphs if is_free else None
        self._scales = {} if self._graphs is not None else scales_of(family, counts) or {}
        self._shapes = {
            name: family.shape_of(name, ndim, part.width)
            for name, ndim in family.parameters.items()
        }

    @property
    def form(self) -> Hashable:
        """Return what graphs depend on beside the shapes of hyperparameters."""
        return self._counts if self._graphs is None else self._graphs

    @cached_property
    def n_parameters(self) -> int:
        """Return the number of real numbers P of one cluster."""
        if self._graphs is not None:
            return int(self._graphs.n_parameters)
        return sum(self._sizes)

    @cached_property
    def _sizes(self) -> list[int]:
        return [scale.n_free(self._shapes[name]) for name, scale in self._scales.items()]

    def free(self, parameters: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the real numbers (K, P) of named parameters, each (K, ...)."""
        if self._graphs is not None:
            return self.part.family.pack(parameters, np.zeros(self.part.width))[:, 1:]
        free = [scale.free(parameters[name]) for name, scale in self._scales.items()]
        return np.concatenate(free, axis=1)

    def named(self, free: np.ndarray) -> dict[str, np.ndarray]:
        """Return the named parameters, each (K, ...), of real numbers (K, P)."""
        if self._graphs is not None:
            params = np.column_stack([np.zeros(len(free)), free])
            return self.part.family.unpack(params, np.zeros(self.part.width))
        pieces = np.split(free, np.cumsum(self._sizes)[:-1], axis=1)
        return {
            name: scale.values(piece, self._shapes[name])
            for (name, scale), piece in zip(self._scales.items(), pieces, strict=True)
        }

    def draw_base(self, rng: np.random.Generator, values: Values, size: int) -> np.ndarray:
        """Return real numbers (size, P) drawn from the base measure."""
        family: Any = self.part.family
        if self._graphs is not None:
            shared = flat(list(values.values()))
            drawn: np.ndarray = family.base_draws(int(rng.integers(2**62)), size, shared)
            return drawn
        return self.free(family.draw_base(rng, values, size))

    def log_prior(self, free: Any, values: Values) -> Any:
        """Return the base log density of a symbolic vector (P,), with the Jacobian, eq. (9.7)."""
        graphs = self._graphs
        if graphs is not None:
            pairs = {graphs.theta: free, graphs.shared: _joined(values)}
            return graph_replace([graphs.log_prior()], pairs, strict=False)[0]
        total = self.part.family.log_base(self._symbolic(free), values, pt)[0]
        pieces = zip(self._scales.items(), self._pieces(free), strict=True)
        return total + sum(
            scale.log_jacobian(piece, self._shapes[name]) for (name, scale), piece in pieces
        )

    def log_density(self, block: Any, free: Any, values: Values) -> Any:
        """Return the log density (n,) of symbolic columns (D, n) of rows at one cluster."""
        graphs = self._graphs
        if graphs is not None:
            pairs = {graphs.block: block, graphs.theta: free, graphs.shared: _joined(values)}
            density: Any = graph_replace([graphs.log_density()], pairs, strict=False)[0]
            # A density that does not depend on the row has a single element.
            return density[pt.minimum(pt.arange(block.shape[1]), density.shape[0] - 1)]
        family, parameters = with_values(self.part.family, values), self._symbolic(free)
        if isinstance(plain(family), Categorical):
            return _log_density_of_codes(block, parameters)
        rows = block.T if family.row_ndim else block[0]
        return family.log_density(rows, parameters, pt)

    def _pieces(self, free: Any) -> list[Any]:
        stops = np.cumsum(self._sizes)
        return [free[stop - size : stop] for size, stop in zip(self._sizes, stops, strict=True)]

    def _symbolic(self, free: Any) -> dict[str, Any]:
        """Return the symbolic parameters (1, ...) of one cluster, as the graphs read them."""
        found: dict[str, Any] = {}
        for (name, scale), piece in zip(self._scales.items(), self._pieces(free), strict=True):
            found |= scale.graph_parameters(name, piece, self._shapes[name])
        return found


def _log_density_of_codes(block: Any, parameters: Values) -> Any:
    """Return the log density (n,) of codes (D, n), read from one table for all rows."""
    (p,) = parameters.values()
    n_categories = p.type.shape[-1]
    table = pt.log(p).flatten()
    first = pt.arange(block.shape[0])[:, None] * n_categories
    at = (block.astype("int64") + first).flatten()
    return table[at].reshape(block.shape).sum(axis=0)


def _joined(values: Values) -> Any:
    flattened = [pt.as_tensor(value).flatten() for value in values.values()]
    return pt.concatenate([pt.zeros(0), *flattened])
