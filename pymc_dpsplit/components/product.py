"""Products: columns of different kinds, independent given the cluster.

The density of a row is the product of those of its parts, docs/method.md, eq. (90); each part is a
family of its own with some of the columns.  The kernels are those of `pair`, the reading of
tables that of `columns`.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from pymc_dpsplit.components.categorical import Categorical
from pymc_dpsplit.components.columns import (
    columns_by_kind,
    columns_of_parts,
    encoded_columns,
    is_table,
)
from pymc_dpsplit.components.declaration import Component, Values
from pymc_dpsplit.components.diag_normal import DiagNormal
from pymc_dpsplit.components.non_conjugate import NonConjugate
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
        if not isinstance(family, Component):
            raise ValueError(f"{name}={family!r} is not a component; give a family, as dps.Normal.")
        if family.reads_sparse:
            raise ValueError(
                f"{name} is {type(family).__name__}, whose columns are not independent and may be "
                "sparse; give it a mixture of its own, or Poisson instead."
            )
        if isinstance(family, NonConjugate):
            raise ValueError(
                f"{name}={family!r} has no conjugate base measure, which parts of a product need; "
                "give a family such as Normal, or a mixture of this component alone."
            )
        if isinstance(family, Product):
            raise ValueError(f"{name} is itself a product; give its parts to this one directly.")


class Product(Component):
    """Clusters of rows with columns of different kinds, each kind with a family of its own.

    Given the cluster, the parts of a row are independent: the density of a row is the product of
    those of its parts, and the base measure the product of theirs.

    Parameters
    ----------
    columns : dict, optional
        Name of each part to its columns, a name or number or a list of them.  By default, of a
        data frame or dict that has a column with the name of each part, a part has that one; else
        parts have columns in the order in which they are given: as many as their
        hyperparameters have, and one part with plain numbers the rest.  By position only, so
        that a part may have any name.
    **parts : Component
        The families, by names of your choice; `Normal` takes one column, the others one or more.

    Raises
    ------
    ValueError
        If there is no part, or one is not a family or itself a product.

    Notes
    -----
    Hyperparameters and cluster parameters have the names of their parts before their own:
    ``x_height_mu`` in the trace of a mixture ``x`` with a part ``height``.  Strings and pandas
    categories become codes, in alphabetical order or in their own, where the part is
    `Categorical`; truth values become zeros and ones.  Entries may be missing where they may be in
    the parts.  `pm.Data` and `pm.set_data` take the numbers, columns in the order of the parts.

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> dps.Product(
    ...     height=dps.Normal(mu0=170.0, kappa0=0.1, a0=2.0, b0=100.0),
    ...     visits=dps.Poisson(a=1.0, b=0.5),
    ... )
    Product(height=Normal(mu0=170.0, kappa0=0.1, a0=2.0, b0=100.0), visits=Poisson(a=1.0, b=0.5))
    """

    row_ndim: ClassVar[int] = 1

    def __init__(self, columns: Mapping[str, Any] | None = None, /, **parts: Any) -> None:
        _refuse_parts(parts)
        self.families: dict[str, Component] = dict(parts)
        self.columns = columns_of_parts(columns, parts)
        self.categories: dict[Any, Sequence[Any]] = {}
        self._widths: dict[str, int] | None = None
        self._describe()

    def _describe(self) -> None:
        """Derive from the families what others read off the product."""
        parts = [Part(name, family, 0, 0) for name, family in self.families.items()]
        self.hyperparameters = joined(part.named(part.family.hyperparameters) for part in parts)
        # No dimension has the length of a row: those of the parts are dimensions of their own.
        self.parameters = joined(  # type: ignore[misc]
            part.named(dict.fromkeys(part.family.parameters, 0)) for part in parts
        )
        self.natural_ndims = joined(  # type: ignore[misc]
            part.named(dict.fromkeys(part.family.natural_ndims, 0)) for part in parts
        )
        self.is_discrete = any(part.family.is_discrete for part in parts)  # type: ignore[misc]
        self.is_bounded = any(part.family.is_bounded for part in parts)  # type: ignore[misc]
        held = [part.named(dict.fromkeys(part.family.likelihood_arguments)) for part in parts]
        self.likelihood_arguments = tuple(joined(held))

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={family!r}" for name, family in self.families.items())
        return f"Product({parts})"

    @classmethod
    def from_data(cls, observed: Any) -> "Product":
        """Parts by the kinds of the columns, each with weakly informative hyperparameters.

        Of a data frame, columns of floats become ``numeric``, a `DiagNormal`; of integers that are
        not negative ``count``, a `Poisson`; of strings, categories and truth values
        ``category``, a `Categorical`.  An array is all ``numeric``.

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
        """Parts with their columns, of rows with so many.

        Raises
        ------
        ValueError
            If the columns cannot be shared out.
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
        return {name: family.declared_features() for name, family in self.families.items()}

    def _present(
        self, values: Mapping[str, Any], names: str, n_before: int
    ) -> Iterator[tuple[Part, dict[str, Any]]]:
        """Parts of which there are values, with these; the others were restricted away.

        `names` is the attribute that lists what the values are of, `n_before` the number of axes
        they have before those of features.
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

    def sized(self, n_features: int) -> "Product":
        sized = copy.copy(self)
        parts = self._parts(n_features)
        sized._widths = {part.name: part.width for part in parts}
        sized.families = {part.name: part.family.sized(part.width) for part in parts}
        sized._describe()
        return sized

    def suited_to(self, rows: np.ndarray) -> "Product":
        suited = self.sized(rows.shape[1])
        for part in suited._parts(rows.shape[1]):
            with named_faults(part.name):
                suited.families[part.name] = part.family.suited_to(rows[:, part.start : part.stop])
        suited._describe()
        return suited

    def support_point(self, means: np.ndarray) -> np.ndarray:
        parts = self._parts(len(means))
        return np.concatenate([p.family.support_point(means[p.start : p.stop]) for p in parts])

    def stand_ins(self, n_features: int) -> dict[str, Any]:
        parts = self._parts(n_features)
        return joined(part.named(part.family.stand_ins(part.width)) for part in parts)

    def _owner(self, name: str) -> tuple[Part, str]:
        """Part that a (hyper)parameter belongs to, and the name it has there."""
        for part, family in self.families.items():
            own = name.removeprefix(f"{part}_")
            names = (family.hyperparameters, family.parameters, family.natural_ndims)
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
        # Where parameters alone are known, so are the widths, but not that of all together.
        n_known = sum(self._widths.values()) if self._widths else n_features
        part = next(part for part in self._parts(n_known) if part.name == owner.name)
        ndims = part.family.parameters | part.family.natural_ndims
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
        """Length of the parameters of a part as kernels have them, found by packing some."""
        values = part.family.check(part.family.stand_ins(part.width), part.width)
        central = {name: value[None] for name, value in part.family.central(values).items()}
        return part.family.pack(central, np.zeros(part.width)).shape[1]

    def pack(self, parameters: Mapping[str, np.ndarray], shift: np.ndarray) -> np.ndarray:
        parts = self._present(parameters, "parameters", 1)
        return np.hstack([p.family.pack(own, shift[p.start : p.stop]) for p, own in parts])

    def central(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        parts = self._present(values, "hyperparameter_ndims", 0)
        return joined(part.named(part.family.central(own)) for part, own in parts)

    def natural(self, parameters: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        parts = self._present(parameters, "parameters", 1)
        return joined(part.named(part.family.natural(own)) for part, own in parts)

    def log_base(self, natural: Values, values: Values, pt: Any) -> Any:
        """Log density of the base measure: the sum of those of the parts, eq. (90)."""
        parts = self._present(natural, "natural_ndims", 1)
        return sum(
            part.family.log_base(own, part.own(values, part.family.hyperparameter_ndims()), pt)
            for part, own in parts
        )

    def log_density(self, rows: Any, natural: Values, pt: Any) -> Any:
        """Log density of each row: the sum of those of its parts, eq. (90)."""
        total: Any = 0.0
        for part, own in self._present(natural, "natural_ndims", 1):
            columns = rows[:, part.start : part.stop]
            columns = columns if part.family.row_ndim else columns[:, 0]
            total = total + part.family.log_density(columns, own, pt)
        return total

    def restrict(
        self, values: Mapping[str, np.ndarray], features: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Return the hyperparameters of some columns, ascending; none of parts without any."""
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
