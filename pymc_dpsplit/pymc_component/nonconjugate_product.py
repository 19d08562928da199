"""Products with a non-conjugate part, of which all parameters are in the state of the chain.

The density of a row is the sum over the parts, as in any product, docs/method.md, eq. (7.19);
kernels call it by address, as that of a component.
"""

import logging
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt

from pymc_dpsplit.components.categorical import Categorical
from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.components.nonconjugate.compiled_prior import CompiledPrior
from pymc_dpsplit.components.nonconjugate.family import NonconjugateFamily
from pymc_dpsplit.components.parts import Part
from pymc_dpsplit.components.product import Product
from pymc_dpsplit.data.blocks import column_centres
from pymc_dpsplit.data.fixed_rows import read_only
from pymc_dpsplit.moves.sweep.density import log_prior_predictive
from pymc_dpsplit.pymc_component.compiled import (
    N_PILOTS,
    PILOT_KEY,
    POOL,
    CompiledKernels,
    flat,
)
from pymc_dpsplit.pymc_component.free_part import FreePart, counts_in, plain, scales_of

# A child of PyMC's logger, so that the message appears among those of PyMC.
_log = logging.getLogger("pymc.dpsplit")

Present = Sequence[tuple[FreePart, Mapping[str, np.ndarray]]]


class ProductGraphs:
    """Graphs of all parts: the sums of theirs, each of its own elements of the inputs.

    Parameters
    ----------
    present : sequence of tuple
        Parts, and numbers of the shapes of their hyperparameters.

    Attributes
    ----------
    theta, shared, block : symbolic tensors
        As in `graphs.Graphs`, with the parts one after the other.
    """

    n_covariates = 0

    def __init__(self, present: Present) -> None:
        self.theta: Any = pt.vector("theta", dtype="float64")
        self.shared: Any = pt.vector("shared", dtype="float64")
        self.block: Any = pt.matrix("block", dtype="float64")
        self.parts = [part for part, _ in present]
        self.n_parameters = sum(part.n_parameters for part in self.parts)
        self._shapes = [{name: of.shape for name, of in own.items()} for _, own in present]

    def values_in(self, shared: Any) -> list[dict[str, Any]]:
        """Return the hyperparameters of each part in one vector, symbolic or not."""
        found, start = [], 0
        for shapes in self._shapes:
            own = {}
            for name, shape in shapes.items():
                stop = start + int(np.prod(shape))
                own[name] = shared[start:stop].reshape(shape) if shape else shared[start]
                start = stop
            found.append(own)
        return found

    def _pieces(self) -> list[tuple[FreePart, Any, dict[str, Any]]]:
        """Return the parts with their elements of ``theta`` and their hyperparameters."""
        stops = np.cumsum([part.n_parameters for part in self.parts])
        return [
            (part, self.theta[stop - part.n_parameters : stop], own)
            for part, stop, own in zip(self.parts, stops, self.values_in(self.shared), strict=True)
        ]

    def log_prior(self) -> Any:
        """Return the base log density of ``theta``, with the Jacobians."""
        return sum(part.log_prior(free, own) for part, free, own in self._pieces())

    def log_density(self) -> Any:
        """Return the log density (n,) of the rows of ``block`` under ``theta``."""
        total: Any = 0.0
        for free_part, free, own in self._pieces():
            part = free_part.part
            total += free_part.log_density(self.block[part.start : part.stop], free, own)
        return total


class _Compiled(CompiledKernels):
    """Compiled functions of the parts of a product."""

    def __init__(self, present: Present, n_shared: int) -> None:
        self._graphs = ProductGraphs(present)
        self._pilots: tuple[bytes, np.ndarray] | None = None
        n_features = sum(part.part.width for part, _ in present)
        super().__init__(self._graphs, n_features, n_shared)

    def pilots(self, shared: np.ndarray) -> np.ndarray:
        """Return fixed draws from the base measure, the same from draw to draw if it is."""
        of = shared.tobytes()
        if self._pilots is None or self._pilots[0] != of:
            self._pilots = of, self.draw_base(PILOT_KEY, shared)[:N_PILOTS]
        return self._pilots[1]

    def draw_base(self, key: int, shared: np.ndarray) -> np.ndarray:
        rng, values = np.random.default_rng(key), self._graphs.values_in(shared)
        parts = zip(self._graphs.parts, values, strict=True)
        return np.concatenate([part.draw_base(rng, own, POOL) for part, own in parts], axis=1)


class NonconjugateProduct(Product, NonconjugateFamily):
    """A product with a non-conjugate part; `Product` makes it of such parts."""

    def __init__(self, columns: Mapping[str, Any] | None = None, /, **parts: Any) -> None:
        super().__init__(columns, **parts)
        _refuse_other_parts(parts)
        self._made: dict[Hashable, _Compiled] = {}
        _log.info(
            "%r has parts whose parameters cannot be integrated out, so those of all parts are "
            "drawn, which mixes more slowly than a product of conjugate parts alone.", self,
        )  # fmt: skip

    def __copy__(self) -> "NonconjugateProduct":
        """Return a copy that shares the compiled functions, as copies are made for each draw."""
        twin: NonconjugateProduct = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without compiled functions, which belong to one process."""
        return {**self.__dict__, "_made": {}}

    def of_features(self, features: np.ndarray) -> "NonconjugateProduct":
        few = super().of_features(features)
        # The density of a product is compiled once for each choice of columns, and rows with
        # missing entries may have as many choices as there are rows.
        few.sums_densities = True
        return few

    def arranged(self, rows: Any) -> Any:
        # Graphs read all columns from one array, also those of families whose kernels do not.
        return read_only(self._known_order.inward(rows))

    def _free_parts(self, values: Mapping[str, np.ndarray]) -> Present:
        """Return the parts that have hyperparameters, and these."""
        return [
            (FreePart(part, counts_in(part.family, _weights_in(part.family, own), part.width)), own)
            for part, own in self._present(values, "hyperparameter_ndims", 0)
        ]

    def prior(self, values: Mapping[str, np.ndarray], shift: np.ndarray) -> CompiledPrior:
        present = self._free_parts(values)
        shared = flat([of for _, own in present for of in own.values()])
        key = tuple(
            (part.part.name, part.part.width, part.form, *(of.shape for of in own.values()))
            for part, own in present
        )
        if key not in self._made:
            self._made[key] = _Compiled(present, len(shared))
        compiled = self._made[key]
        pilots = compiled.pilots(shared)
        return compiled.prior(self._known_order.inward(shift), shared, pilots)

    def unpack(self, params: np.ndarray, shift: np.ndarray) -> dict[str, np.ndarray]:
        named: dict[str, np.ndarray] = {}
        start = 1
        for part in self._parts(len(shift)):
            if not part.width:  # left out by `of_features`
                continue
            free = FreePart(part, counts_in(part.family, None, part.width))
            stop = start + free.n_parameters
            named |= part.named(free.named(params[:, start:stop]))
            start = stop
        return named

    def pack(self, parameters: Mapping[str, np.ndarray], shift: np.ndarray) -> np.ndarray:
        columns = []
        for part, own in self._present(parameters, "parameters", 1):
            (first, *_) = own.values()
            table = first[0] if len(first) else None
            columns.append(FreePart(part, counts_in(part.family, table, part.width)).free(own))
        return np.column_stack([np.zeros(len(columns[0])), *columns])

    def log_prior_predictive(
        self, rows: np.ndarray, values: Mapping[str, np.ndarray]
    ) -> np.ndarray:
        """Return the log of the density of each row averaged over the base measure.

        It is the sum over the parts: exact for a conjugate part, and eq. (9.6) for another.

        Parameters
        ----------
        rows : ndarray of float64 or float32, shape (N, D)
        values : mapping
            Hyperparameters as `check` returned them.

        Returns
        -------
        ndarray of float64, shape (N,)
        """
        total = np.zeros(len(rows))
        rows = self._known_order.inward(rows)
        for part, own in self._present(values, "hyperparameter_ndims", 0):
            total += _predictive(part, np.ascontiguousarray(rows[:, part.start : part.stop]), own)
        return total


# Messages name the class that a user wrote; pickle goes by `__qualname__`.
NonconjugateProduct.__name__ = Product.__name__


def _predictive(part: Part, rows: np.ndarray, values: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the log prior predictive density (N,) of the columns of a part."""
    family = part.family
    if isinstance(family, NonconjugateFamily):
        return family.log_prior_predictive(rows, values)
    prior = family.prior(values, column_centres(rows))
    found: np.ndarray = log_prior_predictive(prior, family.arranged(rows))
    return found


def _weights_in(family: ComponentFamily, values: Mapping[str, np.ndarray]) -> Any:
    """Return probabilities, 0 where a column lacks a category, of a family that has them."""
    if not isinstance(plain(family), Categorical):
        return None
    (central,) = family.central(values).values()
    return central


def _nonconjugate(families: Mapping[str, ComponentFamily]) -> list[str]:
    return [name for name, of in families.items() if isinstance(of, NonconjugateFamily)]


def _refuse_other_parts(families: Mapping[str, ComponentFamily]) -> None:
    """Refuse conjugate parts whose parameters have no unconstrained scale here."""
    (first, *_) = _nonconjugate(families)
    for name, family in families.items():
        if name == first or isinstance(family, NonconjugateFamily):
            continue
        if scales_of(family) is None:
            raise ValueError(
                f"{name} is {type(family).__name__}, whose parameters cannot be drawn together "
                f"with those of {first}, which is not conjugate; give families of independent "
                "columns, such as DiagNormal, or a mixture of conjugate parts alone."
            )
