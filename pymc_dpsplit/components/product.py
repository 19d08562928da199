"""Products: columns of different kinds, independent given the cluster.

The density of a row is the product of the densities of its parts, docs/method.md, eq. (7.19); each
part is a family with its own columns.  The kernels are in `pair`, and `columns` reads tables.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from pymc_dpsplit.components.arguments import shown
from pymc_dpsplit.components.categorical import Categorical
from pymc_dpsplit.components.columns import (
    array_of_rows,
    columns_by_kind,
    columns_of_parts,
    encoded_columns,
    is_table,
)
from pymc_dpsplit.components.component_family import ComponentFamily, Values
from pymc_dpsplit.components.diag_normal import DiagNormal
from pymc_dpsplit.components.nonconjugate.family import NonconjugateFamily
from pymc_dpsplit.components.pair import PairPrior
from pymc_dpsplit.components.parts import Part, joined, named_faults, width_of, within
from pymc_dpsplit.components.poisson import Poisson


def _refuse_parts(parts: Mapping[str, Any]) -> None:
    if not parts:
        raise ValueError(
            "parts are missing; give families by name, as in "
            "dps.Product(height=dps.Normal(...), visits=dps.Poisson(...))."
        )
    for name, family in parts.items():
        if not isinstance(family, ComponentFamily):
            raise ValueError(
                f"{name}={shown(family)} is not a component; give a family, as dps.Normal."
            )
        if family.reads_sparse:
            raise ValueError(
                f"{name} is {type(family).__name__}, whose columns are not independent and may be "
                "sparse; give it a mixture of its own, or Poisson instead."
            )
        if isinstance(family, NonconjugateFamily):
            raise ValueError(
                f"{name}={family!r} has no conjugate base measure, which parts of a product need; "
                "give a family such as Normal, or a mixture of this component alone."
            )
        if isinstance(family, Product):
            raise ValueError(f"{name} is itself a product; give its parts to this one directly.")


class Product(ComponentFamily):
    """Clusters of rows with columns of different kinds, each kind with its own family.

    The parts of a row are independent given the cluster: the density of a row is the product of the
    densities of its parts, and the base measure is the product of theirs.

    Parameters
    ----------
    columns : dict, optional
        Name of each part to its columns: a name, a position or a list of them.  By default, each
        part takes the column of its own name, if the data are a data frame or dict with such a
        column for every part.  Otherwise the parts take columns in the order in which they are
        given: each as many as its hyperparameters imply, and at most one part whose
        hyperparameters are plain numbers takes the rest.  This argument is positional only, so that
        a part may have any name.
    **parts : ComponentFamily
        The families, by names of your choice; `Normal` takes one column, the others one or more.

    Raises
    ------
    ValueError
        If there is no part, or a part is not a family, is a product or non-conjugate, or reads
        sparse rows (`Multinomial`).

    Notes
    -----
    Names of hyperparameters and cluster parameters are prefixed by the name of their part:
    ``x_height_mu`` in the trace of a mixture ``x`` with a part ``height``.  In a `Categorical` part
    strings become codes in alphabetical order, and pandas categories in their own order; booleans
    become zeros and ones.  Entries may be missing if the part allows it.  `pm.Data` and
    `pm.set_data` take numbers, with columns in the order of the parts.

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> dps.Product(
    ...     height=dps.Normal(mu0=170.0, kappa0=0.1, a0=2.0, b0=100.0),
    ...     visits=dps.Poisson(a0=1.0, b0=0.5),
    ... )
    Product(height=Normal(mu0=170.0, kappa0=0.1, a0=2.0, b0=100.0), visits=Poisson(a0=1.0, b0=0.5))
    """

    row_ndim: ClassVar[int] = 1

    def __init__(self, columns: Mapping[str, Any] | None = None, /, **parts: Any) -> None:
        _refuse_parts(parts)
        self.families: dict[str, ComponentFamily] = dict(parts)
        self.columns = columns_of_parts(columns, parts)
        self.categories: dict[Any, Sequence[Any]] = {}
        self._widths: dict[str, int] | None = None
        self._describe()

    def _describe(self) -> None:
        """Set the attributes of the product from those of its families."""
        parts = [Part(name, family, 0, 0) for name, family in self.families.items()]
        self.hyperparameters = joined(part.named(part.family.hyperparameters) for part in parts)
        # No axis has the length D of a row: the axes of parts have lengths and names of their own.
        self.parameters = joined(  # type: ignore[misc]
            part.named(dict.fromkeys(part.family.parameters, 0)) for part in parts
        )
        self.graph_ndims = joined(  # type: ignore[misc]
            part.named(dict.fromkeys(part.family.graph_ndims, 0)) for part in parts
        )
        self.is_discrete = any(part.family.is_discrete for part in parts)  # type: ignore[misc]
        self.is_bounded = any(part.family.is_bounded for part in parts)  # type: ignore[misc]
        fixed = [part.named(dict.fromkeys(part.family.likelihood_arguments)) for part in parts]
        self.likelihood_arguments = tuple(joined(fixed))

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={family!r}" for name, family in self.families.items())
        return f"Product({parts})"

    @classmethod
    def from_data(cls, observed: Any) -> "Product":
        """Return a product with a part for each kind of column, with weak default priors.

        In a data frame, columns of floats, and of integers some of which are negative, form the
        part ``numeric``, a `DiagNormal`; other columns of integers ``count``, a `Poisson`; columns
        of strings, categories and booleans ``category``, a `Categorical`.  An array is a
        single part ``numeric``.

        Parameters
        ----------
        observed : data frame, dict of columns, or array-like of shape (N, D)

        Returns
        -------
        Product

        Raises
        ------
        ValueError
            If the data are empty, infinite, or all entries of a column are missing.

        Examples
        --------
        >>> import pandas as pd
        >>> import pymc_dpsplit as dps
        >>> frame = pd.DataFrame({"visits": [0, 3, 1], "colour": ["red", "blue", "red"]})
        >>> list(dps.Product.from_data(frame).families)
        ['count', 'category']
        """
        if not is_table(observed):
            return cls(numeric=DiagNormal.from_data(observed))
        kinds: dict[str, Any] = {"numeric": DiagNormal, "count": Poisson, "category": Categorical}
        columns = columns_by_kind(observed)
        rows, _ = encoded_columns(observed, columns, kinds, {})
        parts, start = {}, 0
        for kind, keys in columns.items():
            parts[kind] = kinds[kind].from_data(rows[:, start : start + len(keys)])
            start += len(keys)
        return cls(columns, **parts)

    def read_table(self, observed: Any) -> tuple["Product", Any]:
        if not is_table(observed) and self.columns is None:
            return self, observed
        observed = observed if is_table(observed) else array_of_rows(observed)
        columns = columns_of_parts(self.columns, self.families, observed)
        if columns is None:
            columns = self._columns_in_order(observed)
        rows, categories = encoded_columns(observed, columns, self.families, self.categories)
        read = copy.copy(self)
        read.categories = categories
        read._widths = {name: len(keys) for name, keys in columns.items()}
        return read, rows

    def _columns_in_order(self, table: Any) -> dict[str, list[Any]]:
        keys = list(table.columns) if hasattr(table, "columns") else list(table)
        return {part.name: keys[part.start : part.stop] for part in self._parts(len(keys))}

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
            if own:
                width = width_of(own, ndims, n_before) if family.row_ndim else 1
                yield Part(name, family, start, start + width), own
                start += width

    def with_hyperparameters(self, values: Mapping[str, Any]) -> "Product":
        copied = copy.copy(self)
        copied.families = {
            name: family.with_hyperparameters(
                Part(name, family, 0, 0).own(values, family.hyperparameters)
            )
            for name, family in self.families.items()
        }
        copied._describe()
        return copied

    def for_n_features(self, n_features: int) -> "Product":
        for_n_features = copy.copy(self)
        parts = self._parts(n_features)
        for_n_features._widths = {part.name: part.width for part in parts}
        for_n_features.families = {
            part.name: part.family.for_n_features(part.width) for part in parts
        }
        for_n_features._describe()
        return for_n_features

    def validate_rows(self, rows: np.ndarray) -> "Product":
        suited = self.for_n_features(rows.shape[1])
        for part in suited._parts(rows.shape[1]):
            with named_faults(part.name):
                suited.families[part.name] = part.family.validate_rows(
                    rows[:, part.start : part.stop]
                )
        suited._describe()
        return suited

    def support_point(self, means: np.ndarray) -> np.ndarray:
        parts = self._parts(len(means))
        return np.concatenate([p.family.support_point(means[p.start : p.stop]) for p in parts])

    def discrete_features(self, n_features: int) -> np.ndarray:
        parts = self._parts(n_features)
        return np.concatenate([part.family.discrete_features(part.width) for part in parts])

    def example_hyperparameters(self, n_features: int) -> dict[str, Any]:
        parts = self._parts(n_features)
        return joined(part.named(part.family.example_hyperparameters(part.width)) for part in parts)

    def _owner(self, name: str) -> tuple[Part, str]:
        """Return the part that a (hyper)parameter belongs to, and its name in that part."""
        for part, family in self.families.items():
            own = name.removeprefix(f"{part}_")
            names = (family.hyperparameters, family.parameters, family.graph_ndims)
            if own != name and any(own in known for known in names):
                width = (self._widths or {}).get(part) or 0
                return Part(part, family, 0, width), own
        raise KeyError(name)

    def own_dims(self, name: str) -> dict[str, int]:
        part, own = self._owner(name)
        ndim = part.family.parameters.get(own, 0)
        axes = [f"{part.name}_feature", f"{part.name}_feature_bis"][:ndim]
        own_dims = part.family.own_dims(own)
        return dict.fromkeys(axes, part.width) | {
            f"{part.name}_{dim}": length for dim, length in own_dims.items()
        }

    def shape_of(self, name: str, ndim: int, n_features: int) -> tuple[int, ...]:
        owner, own = self._owner(name)
        # `n_features` may be unknown when only parameters are given, but the widths are known.
        n_known = sum(self._widths.values()) if self._widths else n_features
        part = next(part for part in self._parts(n_known) if part.name == owner.name)
        ndims = part.family.parameters | part.family.graph_ndims
        ndim = ndims.get(own, ndim)
        return part.family.shape_of(own, ndim, part.width)

    def hyperparameter_ndims(self) -> dict[str, int]:
        families = self.families.items()
        parts = [Part(name, family, 0, 0) for name, family in families]
        return joined(part.named(part.family.hyperparameter_ndims()) for part in parts)

    def check(self, values: Values, n_features: int) -> dict[str, np.ndarray]:
        checked: dict[str, np.ndarray] = {}
        for part in self._parts(n_features):
            own = part.own(values, part.family.hyperparameter_ndims())
            with named_faults(part.name):
                checked.update(part.named(part.family.check(own, part.width)))
        return checked

    def prior(self, values: Mapping[str, np.ndarray], shift: np.ndarray) -> Any:
        parts = list(self._present(values, "hyperparameter_ndims", 0))
        priors = [part.family.prior(own, shift[part.start : part.stop]) for part, own in parts]
        other = priors.pop()
        for (part, _), first in zip(parts[-2::-1], priors[::-1], strict=True):
            other = PairPrior(shift[part.start :], part.width, first, other)
        return other

    def unpack(self, params: np.ndarray, shift: np.ndarray) -> dict[str, np.ndarray]:
        parameters, start = {}, 0
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
        for part, own in self._present(values, "hyperparameter_ndims", 0):
            chosen = within(part, features)
            if len(chosen):
                kept.update(part.named(part.family.restrict(own, chosen)))
        return kept

    def restrict_parameters(
        self, parameters: Mapping[str, np.ndarray], features: np.ndarray
    ) -> dict[str, np.ndarray]:
        kept: dict[str, np.ndarray] = {}
        for part, own in self._present(parameters, "parameters", 1):
            chosen = within(part, features)
            if len(chosen):
                kept.update(part.named(part.family.restrict_parameters(own, chosen)))
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
        return np.hstack([rows.reshape(len(labels), part.width) for part, rows in drawn])

    def draw_missing(
        self,
        rng: np.random.Generator,
        rows: np.ndarray,
        is_missing: np.ndarray,
        parameters: Mapping[str, np.ndarray],
        labels: np.ndarray,
    ) -> np.ndarray:
        drawn = []
        for part, own in self._present(parameters, "parameters", 1):
            at = np.s_[:, part.start : part.stop]
            drawn.append(part.family.draw_missing(rng, rows[at], is_missing[at], own, labels))
        return np.hstack(drawn)
