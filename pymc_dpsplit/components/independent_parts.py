"""Laws of independent parts: the methods of a product that its families carry out for it.

Values of (hyper)parameters are those of all parts, with the name of the part as prefix.  Rows,
shifts and features are in the order of the data, see `column_order`.
"""

import copy
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from pymc_dpsplit.components.column_order import ColumnOrder
from pymc_dpsplit.components.component_family import ComponentFamily, Values
from pymc_dpsplit.components.joined_parts import joined_prior, joined_rows
from pymc_dpsplit.components.parts import Part, joined, named_faults, width_of, within


class IndependentParts(ComponentFamily):
    """Families that each have columns of a row, independent given the cluster.

    Attributes
    ----------
    families : dict
        Name of each part to its family.
    columns : dict, optional
        Name of each part to the names or positions of its columns.
    sums_densities : bool
        Whether densities of some columns are sums over `pieces`, of which each is compiled once,
        instead of calls of kernels that would be compiled for each choice of columns.
    """

    row_ndim: ClassVar[int] = 1
    families: dict[str, ComponentFamily]
    columns: dict[str, list[Any]] | None
    sums_densities: bool = False
    _widths: dict[str, int] | None = None
    _order: ColumnOrder | None = None

    @property
    def _known_order(self) -> ColumnOrder:
        return self._order or ColumnOrder()

    def columns_in_data(self, n_features: int) -> dict[str, np.ndarray]:
        """Return the positions in the data of the columns of each part."""
        positions = self._known_order.inward(np.arange(n_features))
        return {part.name: positions[part.start : part.stop] for part in self._parts(n_features)}

    def _parts(self, n_features: int) -> list[Part]:
        """Return the parts with their columns, for rows of D = `n_features`.

        Raises
        ------
        ValueError
            If the columns cannot be assigned to the parts.
        """
        widths = self._widths or self._declared_widths()
        open_parts = [name for name, width in widths.items() if width is None]
        if len(open_parts) > 1:
            raise ValueError(
                f"columns: nothing says which are those of {open_parts[0]!r} and which of "
                f"{open_parts[1]!r}; name them, as in "
                f'Product({{"{open_parts[0]}": [0, 1], "{open_parts[1]}": [2]}}, ...).'
            )
        rest = n_features - sum(width or 0 for width in widths.values())
        if (rest != 0 and not open_parts) or (rest < 1 and open_parts):
            raise ValueError(
                f"observed has {n_features} columns, but the parts of the product have "
                f"{n_features - rest}{' and at least one more' if open_parts else ''}; give each "
                "column a part."
            )
        stops = np.cumsum([rest if width is None else width for width in widths.values()])
        starts = [0, *stops[:-1]]
        return [
            Part(name, family, int(start), int(stop))
            for (name, family), start, stop in zip(
                self.families.items(), starts, stops, strict=True
            )
        ]

    def _declared_widths(self) -> dict[str, int | None]:
        if self.columns is not None:
            return {name: len(keys) for name, keys in self.columns.items()}
        widths = {}
        for name, family in self.families.items():
            with named_faults(name):
                widths[name] = family.declared_features()
        return widths

    def _present(
        self, values: Mapping[str, Any], names: str, n_before: int
    ) -> Iterator[tuple[Part, dict[str, Any]]]:
        """Yield the parts that have values, with these; `restrict` may have removed other parts.

        `names` is the attribute of the family that lists the names of the values, and `n_before`
        the number of axes before those of length D.
        """
        start = 0
        for name, family in self.families.items():
            known = getattr(family, names)
            ndims = known() if callable(known) else known
            own = Part(name, family, 0, 0).own(values, ndims)
            # A part without hyperparameters is present unless its columns were left out.
            is_there = bool(own) if ndims else (self._widths or {}).get(name) != 0
            if is_there:
                width = self._width_in(name, own, ndims, n_before)
                yield Part(name, family, start, start + width), own
                start += width

    def _width_in(
        self, name: str, own: Mapping[str, Any], ndims: Mapping[str, int], n_before: int
    ) -> int:
        """Return the number of columns of a part that has values; see `_present`."""
        family = self.families[name]
        if not family.row_ndim:
            return 1
        all_columns = None if family.has_margins else (self._widths or {}).get(name)
        return width_of(own, ndims, n_before) if all_columns is None else all_columns

    def pieces(
        self,
        n_features: int,
        parameters: Mapping[str, np.ndarray],
        values: Mapping[str, np.ndarray],
    ) -> Iterator[tuple[ComponentFamily, np.ndarray, dict[str, Any], dict[str, Any]]]:
        """Yield what the density of each part depends on.

        Parameters
        ----------
        n_features : int
            Number of columns of the parts present.
        parameters, values : mapping
            Cluster parameters (K, ...) and hyperparameters, as `restrict` returns them.

        Yields
        ------
        family : ComponentFamily
        at : ndarray of int64, shape (width,)
            Columns of the part in the data.
        parameters, values : dict
            Those of the part.
        """
        at = self._known_order.inward(np.arange(n_features))
        for part, own in self._present(parameters, "parameters", 1):
            of_part = part.own(values, part.family.hyperparameter_ndims())
            yield part.family, at[part.start : part.stop], own, of_part

    def of_features(self, features: np.ndarray) -> Self:
        few = copy.copy(self)
        few._order = self._known_order.of_features(features)
        if self._widths is not None:
            inner = self._known_order.inner_features(features)
            parts = self._parts(sum(self._widths.values()))
            few._widths = {part.name: len(within(part, inner)) for part in parts}
        return few

    def arranged(self, rows: Any) -> Any:
        parts = [part for part in self._parts(rows.shape[1]) if part.width]
        return joined_rows(parts, self._known_order.inward(rows))

    def support_point(self, means: np.ndarray) -> np.ndarray:
        parts, means = self._parts(len(means)), self._known_order.inward(means)
        points = [part.family.support_point(means[part.start : part.stop]) for part in parts]
        point: np.ndarray = self._known_order.outward(np.concatenate(points))
        return point

    def discrete_features(self, n_features: int) -> np.ndarray:
        parts = self._parts(n_features)
        kinds = [part.family.discrete_features(part.width) for part in parts]
        kind: np.ndarray = self._known_order.outward(np.concatenate(kinds))
        return kind

    def check(self, values: Values, n_features: int) -> dict[str, np.ndarray]:
        checked: dict[str, np.ndarray] = {}
        for part in self._parts(n_features):
            own = part.own(values, part.family.hyperparameter_ndims())
            with named_faults(part.name):
                checked.update(part.named(part.family.check(own, part.width)))
        return checked

    def prior(self, values: Mapping[str, np.ndarray], shift: np.ndarray) -> Any:
        parts = list(self._present(values, "hyperparameter_ndims", 0))
        shift = self._known_order.inward(shift)
        priors = [part.family.prior(own, shift[part.start : part.stop]) for part, own in parts]
        return joined_prior([part for part, _ in parts], priors, shift)

    def unpack(self, params: np.ndarray, shift: np.ndarray) -> dict[str, np.ndarray]:
        parameters, start = {}, 0
        shift = self._known_order.inward(shift)
        for part in self._parts(len(shift)):
            stop = start + self._n_params(part)
            own = part.family.unpack(params[:, start:stop], shift[part.start : part.stop])
            parameters.update(part.named(own))
            start = stop
        return parameters

    def _n_params(self, part: Part) -> int:
        """Return the length of the kernel parameters of a part, found by packing an example."""
        values = part.family.check(part.family.example_hyperparameters(part.width), part.width)
        central = {name: value[None] for name, value in part.family.central(values).items()}
        return part.family.pack(central, np.zeros(part.width)).shape[1]

    def pack(self, parameters: Mapping[str, np.ndarray], shift: np.ndarray) -> np.ndarray:
        parts = self._present(parameters, "parameters", 1)
        shift = self._known_order.inward(shift)
        return np.hstack([p.family.pack(own, shift[p.start : p.stop]) for p, own in parts])

    def central(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        parts = self._present(values, "hyperparameter_ndims", 0)
        return joined(part.named(part.family.central(own)) for part, own in parts)

    def graph_parameters(self, parameters: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        parts = self._present(parameters, "parameters", 1)
        return joined(part.named(part.family.graph_parameters(own)) for part, own in parts)

    def log_base(self, graph_parameters: Values, values: Values, pt: Any) -> Any:
        """Return the log density of the base measure, the sum over the parts, eq. (7.19)."""
        parts = self._present(graph_parameters, "graph_ndims", 1)
        return sum(
            part.family.log_base(own, part.own(values, part.family.hyperparameter_ndims()), pt)
            for part, own in parts
        )

    def log_density(self, rows: Any, graph_parameters: Values, pt: Any) -> Any:
        """Return the log density of each row, the sum over its parts, eq. (7.19)."""
        total: Any = 0.0
        rows = self._known_order.inward(rows)
        for part, own in self._present(graph_parameters, "graph_ndims", 1):
            columns = rows[:, part.start : part.stop]
            columns = columns if part.family.row_ndim else columns[:, 0]
            total = total + part.family.log_density(columns, own, pt)
        return total

    def restrict(
        self, values: Mapping[str, np.ndarray], features: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Return the hyperparameters of ascending columns, without parts that have none of them."""
        kept: dict[str, np.ndarray] = {}
        features = self._known_order.inner_features(features)
        for part, own in self._present(values, "hyperparameter_ndims", 0):
            chosen = within(part, features)
            if len(chosen):
                own = own if _is_all(part, chosen) else part.family.restrict(own, chosen)
                kept.update(part.named(own))
        return kept

    def restrict_parameters(
        self, parameters: Mapping[str, np.ndarray], features: np.ndarray
    ) -> dict[str, np.ndarray]:
        kept: dict[str, np.ndarray] = {}
        features = self._known_order.inner_features(features)
        for part, own in self._present(parameters, "parameters", 1):
            chosen = within(part, features)
            if len(chosen):
                own = own if _is_all(part, chosen) else part.family.restrict_parameters(own, chosen)
                kept.update(part.named(own))
        return kept

    def draw_base(
        self, rng: np.random.Generator, values: Mapping[str, np.ndarray], size: int
    ) -> dict[str, np.ndarray]:
        parts = self._present(values, "hyperparameter_ndims", 0)
        return joined(part.named(part.family.draw_base(rng, own, size)) for part, own in parts)

    def draw_rows(
        self,
        rng: np.random.Generator,
        parameters: Mapping[str, np.ndarray],
        labels: np.ndarray,
    ) -> np.ndarray:
        parts = self._present(parameters, "parameters", 1)
        drawn = [(part, part.family.draw_rows(rng, own, labels)) for part, own in parts]
        hstacked = np.hstack([rows.reshape(len(labels), part.width) for part, rows in drawn])
        outward: np.ndarray = self._known_order.outward(hstacked)
        return outward

    def draw_missing(
        self,
        rng: np.random.Generator,
        rows: np.ndarray,
        is_missing: np.ndarray,
        parameters: Mapping[str, np.ndarray],
        labels: np.ndarray,
    ) -> np.ndarray:
        drawn, order = [], self._known_order
        rows, is_missing = order.inward(rows), order.inward(is_missing)
        for part, own in self._present(parameters, "parameters", 1):
            at = np.s_[:, part.start : part.stop]
            # A row of a part without margins is missing as a whole, or complete.
            if part.family.has_margins or is_missing[at].any():
                drawn.append(part.family.draw_missing(rng, rows[at], is_missing[at], own, labels))
            else:
                drawn.append(rows[at])
        outward: np.ndarray = order.outward(np.hstack(drawn))
        return outward


def _is_all(part: Part, chosen: np.ndarray) -> bool:
    """Whether a family without margins keeps all of its columns."""
    return not part.family.has_margins and len(chosen) == part.width
