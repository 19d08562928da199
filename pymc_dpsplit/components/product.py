"""Products: columns of different kinds, independent given the cluster.

The density of a row is the product of the densities of its parts, docs/method.md, eq. (7.19); each
part is a family with its own columns.  The kernels are in `pair`, and `columns` reads tables.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from pymc_dpsplit.components.arguments import shown
from pymc_dpsplit.components.column_kinds import FAMILY_OF_KIND, kinds_of_columns
from pymc_dpsplit.components.column_order import keys_of, order_of
from pymc_dpsplit.components.columns import (
    columns_of_parts,
    coordinate_of_categories,
    encoded_columns,
    is_table,
    names_of,
    table_of_rows,
)
from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.components.diag_normal import DiagNormal
from pymc_dpsplit.components.doubtful_rows import unwarned, warn_of_rows
from pymc_dpsplit.components.independent_parts import IndependentParts
from pymc_dpsplit.components.linear_regression.family import LinearRegression
from pymc_dpsplit.components.nonconjugate.family import NonconjugateFamily
from pymc_dpsplit.components.parts import Part, joined, named_faults


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
        if isinstance(family, LinearRegression) and family.has_covariates:
            raise ValueError(
                f"{name} is LinearRegression with covariates of its own; leave them out, and give "
                "the part columns of the data that hold them, before that of the response."
            )
        if isinstance(family, NonconjugateFamily) and family.has_covariates:
            raise ValueError(
                f"{name}={family!r} has covariates, which a part of a product cannot have; leave "
                "them out, or give a mixture of this component alone."
            )
        if isinstance(family, Product):
            raise ValueError(f"{name} is itself a product; give its parts to this one directly.")


class Product(IndependentParts):
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
        If there is no part, or a part is not a family, is a product, or is a `LinearRegression` or
        `Component` with covariates of its own; if columns and parts do not match.

    Notes
    -----
    In the trace of a mixture ``x`` are the parameters of each part, prefixed by its name, such as
    ``x_height_mu`` (K, D) of a part ``height``; hyperparameters are named in the same way.
    `from_data` chooses the kinds of columns, and the hyperparameters of each kind by the data.
    In a `Categorical` part strings become codes in alphabetical order, and pandas categories in
    their own order; booleans become zeros and ones.  Entries may be missing if the part allows it,
    whatever the other parts are.

    A `Multinomial` part is a block of dense columns of counts, such as the words of texts beside
    what else is known of them.  The part of a `LinearRegression` holds the covariates, then the
    response.  With a law of the covariates in another part, the model is a profile regression [1]_:
    clusters of rows with similar covariates and one regression each.  A column belongs to one part,
    so the other part takes a copy of it: ``frame.assign(age_law=frame["age"])``.  Drawn rows have
    the totals and the covariates of the observed rows, as in a mixture of such a family alone.
    `predict` with ``covariates=`` predicts the response of new rows from all of their other
    columns, and takes rows with a missing response, or without any words.  `density` takes the
    response given its covariates, as in ``features="pressure", given={"age": 50, "age_law": 50}``.

    A part may be a `Component`, such as a Student t distribution.  As its parameters cannot be
    integrated out, those of all parts are then drawn in every iteration, docs/method.md, eq. (9.7):
    the conjugate parts mix more slowly than in a product without it.  Entries of a `Component` of
    scalars may be missing, and of one of vectors all entries of a row together.

    The trace keeps the columns in the order of the data, whatever the order of the parts.
    `pm.Data` and `pm.set_data` take numbers without names: in the order of the frame of
    `from_data`, at the positions that `columns` gives, or else in the order of the parts.

    References
    ----------
    .. [1] Molitor, Papathomas, Jerrett and Richardson (2010). Bayesian profile regression with an
       application to the National Survey of Children's Health. Biostatistics 11, 484-498.

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> dps.Product(
    ...     height=dps.Normal(mu0=170.0, kappa0=0.1, a0=2.0, b0=100.0),
    ...     visits=dps.Poisson(a0=1.0, b0=0.5),
    ... )
    Product(height=Normal(mu0=170.0, kappa0=0.1, a0=2.0, b0=100.0), visits=Poisson(a0=1.0, b0=0.5))

    Texts with the age of their author, and a profile regression:

    >>> texts = dps.Product(
    ...     {"words": ["cat", "dog", "fish"], "age": "age"},
    ...     words=dps.Multinomial(a0=0.5),
    ...     age=dps.Normal(mu0=40.0, kappa0=0.1, a0=2.0, b0=100.0),
    ... )
    >>> profiles = dps.Product(
    ...     {"outcome": ["age", "pressure"], "age": ["age_law"]},
    ...     outcome=dps.LinearRegression(mu0=0.0, lambda0=0.01, a0=2.0, b0=100.0),
    ...     age=dps.Normal(mu0=40.0, kappa0=0.1, a0=2.0, b0=100.0),
    ... )
    >>> list(profiles.parameters)
    ['outcome_beta', 'outcome_sigma', 'age_mu', 'age_sigma']

    Waiting times with heavy tails beside counts:

    >>> import pymc as pm
    >>> time = dps.Component(pm.StudentT, nu=4, mu=pm.Normal.dist(0, 10), sigma=1.0)
    >>> list(dps.Product(time=time, visits=dps.Poisson(a0=1.0, b0=0.5)).parameters)
    ['time_mu', 'visits_rate']
    """

    _listed: ClassVar[tuple[str, ...]] = (
        *ComponentFamily._listed,
        "categories",
        "columns",
        "families",
    )

    def __new__(cls, columns: Mapping[str, Any] | None = None, /, **parts: Any) -> Any:
        """Return a product, of the class for non-conjugate parts if there are such parts."""
        found = [of.product_class for of in parts.values() if isinstance(of, NonconjugateFamily)]
        return super().__new__(found[0] if found else cls)

    def __init__(self, columns: Mapping[str, Any] | None = None, /, **parts: Any) -> None:
        _refuse_parts(parts)
        self.families: dict[str, ComponentFamily] = dict(parts)
        self.columns = columns_of_parts(columns, parts)
        self.categories: dict[Any, Sequence[Any]] = {}
        # Names of the columns in the order of the data; those of `from_data` until data are read.
        self._names: list[Any] | None = None
        self._names_expected: list[Any] | None = None
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
        self.holds_covariates = any(  # type: ignore[misc]
            part.family.holds_covariates for part in parts
        )
        fixed = [part.named(dict.fromkeys(part.family.likelihood_arguments)) for part in parts]
        self.likelihood_arguments = tuple(joined(fixed))

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={family!r}" for name, family in self.families.items())
        return f"Product({parts})"

    @classmethod
    def from_data(cls, observed: Any, kinds: Mapping[Any, str] | None = None) -> "Product":
        """Return a product with a part for each kind of column, with weak default priors.

        A part is named for its kind.  What an entry is counts, not its type, so that integers with
        missing entries, which pandas turns into floats, have the kind that they have without:

        ``binary``
            Booleans, and numbers that are all 0 or 1; a `Bernoulli`.
        ``category``
            Strings and categories; a `Categorical`.
        ``count``
            Whole numbers from 0 with a mean of at most 30; a `Poisson`.
        ``overdispersed``
            Such numbers with a variance above 10 times their mean; a `NegativeBinomial`.
        ``numeric``
            All other numbers, also whole ones with a larger mean, for which a normal distribution
            has the freer variance; a `DiagNormal`.

        The choice is logged.  An array is a single part ``numeric``.

        Parameters
        ----------
        observed : data frame, dict of columns, or array-like of shape (N, D)
        kinds : dict, optional
            Column to its kind where it should be another one, such as
            ``{"body_mass_g": "numeric"}``.  Numbers of the kind ``category`` are not codes but
            names of categories.  Columns of an array are given by position.

        Returns
        -------
        Product

        Raises
        ------
        ValueError
            If the data are empty, infinite, or all entries of a column are missing; if a column
            contains dates, or not what its kind in `kinds` requires.

        Warns
        -----
        UserWarning
            If a numeric column does not vary.

        Examples
        --------
        >>> import pandas as pd
        >>> import pymc_dpsplit as dps
        >>> frame = pd.DataFrame({"visits": [0, 3, 1], "colour": ["red", "blue", "red"]})
        >>> list(dps.Product.from_data(frame).families)
        ['count', 'category']
        >>> dps.Product.from_data(frame, kinds={"visits": "numeric"}).columns
        {'numeric': ['visits'], 'category': ['colour']}
        """
        if not is_table(observed):
            if kinds is None:
                return cls(numeric=DiagNormal.from_data(observed))
            observed = table_of_rows(observed, None)
        columns, categories = kinds_of_columns(observed, kinds)
        rows, _ = encoded_columns(observed, columns, FAMILY_OF_KIND, categories)
        parts, start = {}, 0
        for kind, keys in columns.items():
            own = rows[:, start : start + len(keys)]
            with named_faults(kind), unwarned():
                parts[kind] = FAMILY_OF_KIND[kind].from_data(own)
            if FAMILY_OF_KIND[kind] is DiagNormal:
                warn_of_rows(own, keys)
            start += len(keys)
        product = cls(columns, **parts)
        product.categories = categories
        product._names_expected = names_of(observed)
        return product

    def read_table(self, observed: Any) -> tuple["Product", Any]:
        if not is_table(observed):
            if self.columns is None:
                return self, observed
            observed = table_of_rows(observed, self._names or self._names_expected)
        columns = columns_of_parts(self.columns, self.families, observed)
        if columns is None:
            columns = self._columns_in_order(observed)
        rows, categories = encoded_columns(observed, columns, self.families, self.categories)
        read = copy.copy(self)
        read.categories, read.columns = categories, columns
        read._widths = {name: len(keys) for name, keys in columns.items()}
        read._names = self._names or names_of(observed)
        read._order = order_of(keys_of(columns), read._names)
        return read, read._order.outward(rows)

    def _columns_in_order(self, table: Any) -> dict[str, list[Any]]:
        keys = names_of(table)
        return {part.name: keys[part.start : part.stop] for part in self._parts(len(keys))}

    def warning_for(self, rows: np.ndarray) -> str | None:
        """Return the first warning of a part about its columns, with the name of the part."""
        rows = self._known_order.inward(rows)
        for part in self._parts(rows.shape[1]):
            warning = part.family.warning_for(rows[:, part.start : part.stop])
            if warning is not None:
                return f"part {part.name!r}: {warning}"
        return None

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
        if self._order is None:
            keys, names = keys_of(self.columns), self._names_expected
            for_n_features._order = order = order_of(keys, names)
            for_n_features._names = names or order.names_outward(keys)
        for_n_features._describe()
        return for_n_features

    def validate_rows(self, rows: np.ndarray) -> "Product":
        suited = self.for_n_features(rows.shape[1])
        rows = suited._known_order.inward(rows)
        for part in suited._parts(rows.shape[1]):
            with named_faults(part.name):
                suited.families[part.name] = part.family.validate_rows(
                    rows[:, part.start : part.stop]
                )
        suited._describe()
        return suited

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

    def own_coords(
        self, name: str, feature_names: Sequence[Any] | None
    ) -> dict[str, Sequence[Any]]:
        owner, own = self._owner(name)
        parts = self._parts(sum((self._widths or {}).values()))
        part = next(part for part in parts if part.name == owner.name)
        columns: Sequence[Any] = (self.columns or {}).get(part.name, ())
        several = [self.categories.get(key) for key in columns]
        names = None if feature_names is None else self._names_in_part(part, feature_names)
        own_coords = part.family.own_coords(own, names)
        coords = {f"{part.name}_{axis}": of for axis, of in own_coords.items()}
        for axis, length in self.own_dims(name).items():
            if axis == f"{part.name}_category" and several:
                coords[axis] = coordinate_of_categories(several, length) or range(length)
            elif axis.startswith(f"{part.name}_feature") and names is not None:
                coords[axis] = names
        return coords

    def category_names(self, name: str) -> np.ndarray | None:
        part, own = self._owner(name)
        length = part.family.own_dims(own).get("category")
        several = [self.categories.get(key) for key in (self.columns or {}).get(part.name, ())]
        if length is None or not several or None in several:
            return None
        padded = [[*map(str, names or ()), *[""] * length][:length] for names in several]
        return np.array(padded, dtype=object)

    def names_of_codes(self) -> dict[int, Sequence[str]]:
        """Return the position of each column of named categories, and the names of 0, 1, ..."""
        columns = self._names or self._names_expected or []
        known = self.categories
        return {at: [*map(str, known[key])] for at, key in enumerate(columns) if key in known}

    def _names_in_part(self, part: Part, names: Sequence[Any]) -> Sequence[Any]:
        """Return the names of the columns of a part; positions are those in the part."""
        if list(names) == list(range(len(names))):
            return range(part.width)
        positions = self._known_order.inward(np.arange(len(names)))
        return [names[at] for at in positions[part.start : part.stop]]

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
