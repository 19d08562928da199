"""Graphs of a declared component, as functions of flat vectors.

``theta`` (P,) contains the parameters of one cluster on an unconstrained scale, the concatenated
transformed arguments; ``shared`` (S,) contains the values that all clusters share; ``block`` (F, n)
contains n rows of the data, transposed, with covariates last.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.shape_utils import change_dist_size
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace, graph_replace, vectorize_graph
from pytensor.graph.traversal import graph_inputs
from pytensor.tensor.shape import specify_shape

from pymc_dpsplit.components.arguments import shown
from pymc_dpsplit.components.data_reader import DataReader
from pymc_dpsplit.pymc_component.declaration import Declaration


@dataclass(frozen=True)
class Part:
    """An argument that is a cluster parameter.

    Attributes
    ----------
    rv : TensorVariable
        Its base distribution, registered in a separate model.
    value : TensorVariable
        Its value on the unconstrained scale.
    shape : tuple of int
        Shape of the argument.
    where : slice
        Its elements of ``theta``.
    transform : Transform or None
    """

    rv: Any
    value: Any
    shape: tuple[int, ...]
    where: slice
    transform: Any


class Graphs:
    """Symbolic inputs of a component, and graphs of these inputs.

    Parameters
    ----------
    declaration : Declaration

    Attributes
    ----------
    parts : dict
        Name to `Part`, for each cluster parameter.
    n_parameters : int
        Length P of ``theta``.
    row_ndim : int
        0 if a row is a scalar, 1 if it is a vector.
    is_discrete : bool
        Whether rows are whole numbers.
    """

    def __init__(self, declaration: Declaration) -> None:
        self.declaration = declaration
        self.theta: Any = pt.vector("theta", dtype="float64")
        self.shared: Any = pt.vector("shared", dtype="float64")
        self.block: Any = pt.matrix("block", dtype="float64")
        # `model=None`, since it would otherwise join the model of the context.
        self._base = pm.Model(model=None)
        self.parts: dict[str, Part] = {}
        start = 0
        for name, rv in declaration.own.items():
            self.parts[name] = self._part(name, rv, start)
            start = self.parts[name].where.stop
        self.n_parameters = start
        self._own = {name: pt.tensor(name, dtype=part.rv.dtype, shape=part.shape)
                     for name, part in self.parts.items()}  # fmt: skip
        one = self._row_variable(self._own, pt.constant(2), dict(self._covariates(2)))
        self._refuse_unused(one)
        self.row_ndim, self.is_discrete = one.ndim - 1, one.dtype.startswith(("int", "uint"))

    def __reduce__(self) -> tuple[Any, ...]:
        # Made anew of the declaration, as no model can be pickled, nor every transform.
        return Graphs, (self.declaration,)

    def __copy__(self) -> "Graphs":
        """Return a copy with the same inputs, with those of compiled functions."""
        twin: Graphs = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def _refuse_unused(self, rows: Any) -> None:
        """Refuse arguments that the distribution of rows ignores, for instance misspelt ones."""
        used = set(graph_inputs([rows]))
        for name, of in {**self._own, **self._shared_arguments()}.items():
            if of not in used:
                raise ValueError(
                    f"{self.declaration.label} does not depend on {name}; give arguments under "
                    "the names that it has."
                )

    def _part(self, name: str, rv: Any, start: int) -> Part:
        with self._base:
            # A copy, because a model sets the name of a registered variable.
            rv = self._base.register_rv(clone_replace([rv])[0], name)
        value, transform = self._base.rvs_to_values[rv], self._base.rvs_to_transforms[rv]
        if rv.dtype.startswith(("int", "uint", "bool")):
            raise ValueError(
                f"{name} is drawn per cluster from a discrete distribution, which no step moves; "
                "give a continuous one."
            )
        shape, own = _static_shape(name, rv), _static_shape(name, value)
        stop = start + int(np.prod(own))
        return Part(rv, value, shape, slice(start, stop), transform)

    def scale_inputs(self) -> dict[str, set[Variable]]:
        """Return the inputs on which the unconstrained scale of each part depends."""
        found: dict[str, set[Variable]] = {}
        for name, part in self.parts.items():
            of = self._own[name]
            if part.transform is not None:
                of = part.transform.forward(of, *part.rv.owner.inputs)
            found[name] = set(graph_inputs([of]))
        return found

    def _covariates(self, n_rows: Any) -> Mapping[str, Any]:
        """Return inputs for the covariates of rows."""
        rows = self.declaration.covariates.items()
        return {name: pt.zeros((n_rows, *value.shape[1:])) for name, value in rows}

    def _covariates_in(self, columns: Any) -> Mapping[str, Any]:
        """Return the covariates in a block (C, n), by name."""
        found, start = {}, 0
        for name, value in self.declaration.covariates.items():
            width = int(np.prod(value.shape[1:]))
            flat = columns[start : start + width].T
            found[name] = flat[:, 0] if value.ndim == 1 else flat.reshape((-1, *value.shape[1:]))
            start += width
        return found

    @property
    def n_covariates(self) -> int:
        rows = self.declaration.covariates.values()
        return sum(int(np.prod(value.shape[1:])) for value in rows)

    def _row_variable(self, own: Mapping[str, Any], n_rows: Any, covariates: Any) -> Any:
        """Return rows of one cluster as a random variable (n,) or (n, D)."""
        label = self.declaration.label
        try:
            made = self.declaration.make(**own, **self._shared_arguments(), **covariates)
        except Exception as error:  # whatever a function of the user raises
            given = ", ".join([*own, *self._shared_arguments(), *covariates])
            (first, *_) = str(error).splitlines() or [type(error).__name__]
            raise ValueError(
                f"{label} cannot be made of {given} ({first.rstrip('.')}); give the arguments that "
                "it takes."
            ) from None
        op: Any = getattr(getattr(made, "owner", None), "op", None)
        if not hasattr(op, "ndim_supp"):
            raise ValueError(
                f"{label} returned {shown(made)}, which is no distribution; return an "
                "unnamed one, made by .dist()."
            )
        if op.ndim_supp > 1 or made.ndim - op.ndim_supp > 1:
            raise ValueError(
                f"{label} has rows of {made.ndim} dimensions; give a distribution "
                "of scalars or of vectors, and parameters of one cluster."
            )
        is_batch = made.ndim > op.ndim_supp
        return made if is_batch else change_dist_size(made, (n_rows,))

    def _shared_arguments(self) -> dict[str, Any]:
        """Return the shared values that are arguments of the distribution of rows."""
        taken = self.declaration.arguments
        return {name: of for name, of in self.declaration.shared.items() if name in taken}

    def _spread(self, outputs: Sequence[Any], theta: Any) -> list[Any]:
        """Express graphs of parameter values and shared inputs by ``theta`` and ``shared``."""
        pairs: dict[Any, Any] = {
            part.value: theta[part.where].reshape(part.value.type.shape)
            for part in self.parts.values()
        }
        replaced: Any = graph_replace(list(outputs), {**pairs, **self._unflat()}, strict=False)
        return replaced

    def _unflat(self) -> dict[Any, Any]:
        """Return the shared inputs as slices of the vector ``shared``."""
        pairs, start = {}, 0
        for of in self.declaration.shared.values():
            size = int(np.prod(of.type.shape))
            flat = self.shared[start : start + size].reshape(of.type.shape)
            pairs[of] = specify_shape(flat, of.type.shape).astype(of.type.dtype)
            start += size
        return pairs

    def shared_values(self) -> dict[str, Any]:
        """Return the shared values by name, as pieces of ``shared``."""
        pieces = self._unflat()
        return {name: pieces[of] for name, of in self.declaration.shared.items()}

    def arguments(self) -> list[Any]:
        """Return the arguments of one cluster as functions of ``theta`` and ``shared``."""
        rvs = [part.rv for part in self.parts.values()]
        return self._spread(self._base.replace_rvs_by_values(rvs), self.theta)

    def log_prior(self) -> Any:
        """Return the base log density of ``theta``, with the Jacobian, eq. (9.1)."""
        return self._spread([self._base.logp(jacobian=True, sum=True)], self.theta)[0]

    def log_density(self) -> Any:
        """Return the log density (n,) of the rows of ``block`` under ``theta``."""
        n_data = self.block.shape[0] - self.n_covariates
        rows = self.block[0] if self.row_ndim == 0 else self.block[:n_data].T
        covariates = self._covariates_in(self.block[n_data:])
        own = dict(zip(self.parts, self.arguments(), strict=True))
        variable = self._row_variable(own, self.block.shape[1], covariates)
        try:
            density = pm.logp(variable, rows.astype(variable.dtype))
        except (NotImplementedError, RuntimeError):
            raise ValueError(
                f"{self.declaration.label} has no log-probability that PyMC can derive; give a "
                "distribution that has one, such as pm.CustomDist with logp=."
            ) from None
        except Exception as error:  # whatever a function of the user raises
            (first, *_) = str(error).splitlines() or [type(error).__name__]
            raise ValueError(
                f"the log density of {self.declaration.label} cannot be computed "
                f"({first.rstrip('.')}); give a logp of the rows and the arguments."
            ) from None
        if not isinstance(density, Variable):
            raise ValueError(
                f"the log density of {self.declaration.label} is {shown(density)}; give a logp "
                "that returns an expression, one log density for each row."
            )
        return graph_replace([density], self._unflat(), strict=False)[0]

    def rows(self) -> Any:
        """Return rows drawn for the covariates in ``block`` (C, n) under ``theta``."""
        own = dict(zip(self.parts, self.arguments(), strict=True))
        covariates = self._covariates_in(self.block)
        variable = self._row_variable(own, self.block.shape[1], covariates)
        return graph_replace([variable], self._unflat(), strict=False)[0]

    def base_draws(self, n_draws: int) -> Any:
        """Return draws (n_draws, P) of ``theta`` from the base measure.

        Parameters
        ----------
        n_draws : int

        Returns
        -------
        symbolic matrix (n_draws, P)
        """
        columns = []
        for part in self.parts.values():
            many = change_dist_size(part.rv, (n_draws,), expand=True)
            if part.transform is not None:
                many = part.transform.forward(many, *part.rv.owner.inputs)
            columns.append(many.reshape((n_draws, -1)))
        joined = pt.concatenate(columns, axis=1)
        return graph_replace([joined], self._unflat(), strict=False)[0]

    def unpacked(self, thetas: Any) -> list[Any]:
        """Return the arguments (K, ...) of clusters with parameters `thetas` (K, P)."""
        made: Any = vectorize_graph(self.arguments(), {self.theta: thetas})
        return made

    def packed(self, named: Mapping[str, Any]) -> Any:
        """Return the parameters (K, P) of clusters with arguments `named`, each (K, ...).

        Parameters
        ----------
        named : mapping
            Name of each cluster parameter to tensor (K, ...).

        Returns
        -------
        symbolic matrix (K, P)
        """
        columns = []
        for name, part in self.parts.items():
            forward: Any = self._own[name]
            if part.transform is not None:
                forward = part.transform.forward(forward, *part.rv.owner.inputs)
            columns.append(forward.flatten())
        flat = graph_replace([pt.concatenate(columns)], self._unflat(), strict=False)[0]
        pairs: dict[Any, Any] = {self._own[name]: named[name] for name in self.parts}
        return vectorize_graph(flat, pairs)

    def log_base_at(self, named: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
        """Return the base log density (K,) at the arguments of clusters, each (K, ...).

        Parameters
        ----------
        named : mapping
            Name of each cluster parameter to tensor (K, ...).
        values : mapping
            Name of each shared value to tensor.

        Returns
        -------
        symbolic vector (K,)
        """
        terms = [pm.logp(part.rv, self._own[name]).sum() for name, part in self.parts.items()]
        total: Any = sum(terms)
        total = vectorize_graph(
            total, {of: pt.as_tensor(named[name]) for name, of in self._own.items()}
        )
        return self._with_values(total, values)

    def log_density_at(self, rows: Any, named: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
        """Return the log density of each row under its own arguments.

        Parameters
        ----------
        rows : symbolic tensor, shape (N,) or (N, D)
        named : mapping
            Name of each cluster parameter to tensor (N, ...).
        values : mapping
            Name of each shared value to tensor.

        Returns
        -------
        symbolic vector (N,)
        """
        rows = pt.as_tensor(rows)
        one = pt.tensor("row", dtype="float64", shape=(1, *rows.type.shape[1:]))
        covariates = {
            name: pt.tensor(name, dtype="float64", shape=(1, *value.shape[1:]))
            for name, value in self.declaration.covariates.items()
        }
        variable = self._row_variable(self._own, pt.constant(1), covariates)
        density = pm.logp(variable, one.astype(variable.dtype))[0]
        mapping: dict[Any, Any] = {of: pt.as_tensor(named[name]) for name, of in self._own.items()}
        mapping[one] = rows[:, None]
        for name, of in covariates.items():
            held = self.declaration.held[name]
            # As a variable, so that the density follows pm.set_data.
            own = held.variable if isinstance(held, DataReader) else held
            mapping[of] = pt.as_tensor(own).astype("float64")[:, None]
        return self._with_values(vectorize_graph(density, mapping), values)

    def _with_values(self, graph: Any, values: Mapping[str, Any]) -> Any:
        shared = self.declaration.shared
        pairs = {of: pt.as_tensor(values[name]).astype(of.type.dtype)
                 for name, of in shared.items()}  # fmt: skip
        return graph_replace([graph], pairs, strict=False)[0]


def _static_shape(name: str, variable: Any) -> tuple[int, ...]:
    """Return the shape of a variable, which must be constant."""
    if None not in variable.type.shape:
        return tuple(variable.type.shape)
    try:
        return tuple(int(length) for length in variable.shape.eval())
    except Exception:
        raise ValueError(
            f"{name} has a shape that depends on other variables; give shape= in its .dist()."
        ) from None
