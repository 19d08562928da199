"""Forward draws of mixtures: the parts of a measure together, and labels for their own rows.

`pm.sample_posterior_predictive` takes each variable from the trace or draws it.  The parts of a
measure, which are the number of clusters, their weights and parameters, are one draw: a part drawn
beside others of the trace has another number of clusters, so this is refused.

Rows of a latent mixture are drawn given their labels in the trace.  Where the coordinates of the
model are not those of the trace, rows are new, and the labels would be those of other rows: new
rows are drawn from the measure.

The prior of a measure depends on the number of rows.  `pm.sample_prior_predictive` draws it for the
rows that the data have then, which `pm.set_data` may have replaced.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from pymc.model import Model
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.traversal import ancestors

from pymc_dpsplit.variables import MixtureRows, is_owned
from pymc_dpsplit.variables.lookup import rows_by_mixture
from pymc_dpsplit.variables.measure import RandomMeasure, measured_after
from pymc_dpsplit.variables.rows import drawn_without_labels

# Parts on which rows do not depend; the labels are another one, unless the rows are latent.
_NO_ROWS_DEPEND_ON = {"log_weights", "n_tables"}


class _Draws(NamedTuple):
    """What a call takes from the trace, and what it draws.

    Attributes
    ----------
    listed : set of TensorVariable
        Variables in `sample_vars`.
    kept : set of TensorVariable
        Variables taken from the trace.
    wanted : set of TensorVariable
        Variables returned.
    needed : set of TensorVariable
        These, and all that they are drawn from.
    coords : mapping
        Dimension to coordinate in the trace.
    """

    listed: set[Any]
    kept: set[Any]
    wanted: set[Any]
    needed: set[Any]
    coords: Mapping[Any, Any]

    def draws(self, variable: Variable) -> bool:
        """Return whether the variable is drawn."""
        return variable in self.needed and variable not in self.kept


def of_whole_mixtures(sample: Callable[..., Any]) -> Callable[..., Any]:
    """Make `pm.sample_posterior_predictive` draw whole measures, and new rows without labels."""

    def sampling(trace: Any, model: Any = None, **kwargs: Any) -> Any:
        of = Model.get_context(error_if_none=False) if model is None else model
        if not isinstance(of, Model) or not any(map(is_owned, of.free_RVs)):
            return sample(trace, model, **kwargs)
        found = _read(trace, of, kwargs.get("var_names"), kwargs.get("sample_vars"))
        new, rows_of = [], rows_by_mixture(of)
        for node, parts in _measures(of):
            rows = rows_of.get(node.op.target)
            _refuse_parts(node.op.target, parts, rows, found)
            if rows is not None and "labels" in parts and _are_new(rows, parts, found, of):
                new.append(node.op.target)
        with drawn_without_labels(new):
            return sample(trace, model, **kwargs)

    return sampling


def after_present_rows(sample: Callable[..., Any]) -> Callable[..., Any]:
    """Make `pm.sample_prior_predictive` draw measures after as many rows as the data now have."""

    def sampling(draws: int = 500, model: Any = None, *args: Any, **kwargs: Any) -> Any:
        of = Model.get_context(error_if_none=False) if model is None else model
        n_obs = _numbers_of_rows(of) if isinstance(of, Model) else {}
        with measured_after(n_obs):
            return sample(draws, model, *args, **kwargs)

    return sampling


def _numbers_of_rows(model: Model) -> dict[str, int]:
    """Return the number of rows of each mixture of which `pm.set_data` may have changed it."""
    rows_of, found = rows_by_mixture(model), {}
    for node, _ in _measures(model):
        rows = rows_of.get(node.op.target)
        if not isinstance(node.op, RandomMeasure) or node.op.labelled or rows is None:
            continue
        op, n_rows = rows.owner.op, rows.owner.inputs[1]
        if isinstance(op, MixtureRows) and op.shared is None:
            found[node.op.target] = int(n_rows.eval())
    return found


def _read(trace: Any, model: Model, var_names: Any, sample_vars: Any) -> _Draws:
    """Return what the arguments of a call ask for."""
    if "posterior" in getattr(trace, "children", ()):
        trace = trace["posterior"]
    first = trace[0] if isinstance(trace, list) and trace else ()
    recorded = getattr(trace, "data_vars", getattr(trace, "varnames", first))
    listed = _variables_in(sample_vars, model)
    names = sample_vars if var_names is None else var_names
    wanted = set(model.observed_RVs) if names is None else _variables_in(names, model)
    kept = _variables_in(list(recorded), model) - listed
    needed = set(ancestors(list(wanted), blockers=kept))
    return _Draws(listed, kept, wanted, needed, getattr(trace, "coords", {}))


def _variables_in(names: Any, model: Model) -> set[Any]:
    """Return the variables of a model among names; PyMC refuses other names."""
    listed = [names] if isinstance(names, str) else names or ()
    return {model[name] for name in listed if name in model}


def _measures(model: Model) -> Iterator[tuple[Apply, dict[str, Variable]]]:
    """Yield the measures of a model with their free variables by role."""
    for node in dict.fromkeys(rv.owner for rv in model.free_RVs if is_owned(rv)):
        # Missing entries are owned too, and have no roles.
        if hasattr(node.op, "roles"):
            roles = zip(node.op.roles, node.outputs[1:], strict=True)
            yield node, {role: rv for role, rv in roles if rv in model.free_RVs}


def _refuse_parts(target: str, parts: Mapping[str, Any], rows: Any, found: _Draws) -> None:
    """Refuse to draw some parts of a measure while others are taken from the trace."""
    kept = _names(rv for rv in parts.values() if rv in found.kept)
    listed = _names(rv for rv in parts.values() if rv in found.listed)
    if kept and listed:
        raise ValueError(
            f"{target}: sample_vars lists {listed}, drawn together with {kept}; list all of them "
            "in sample_vars, or none."
        )
    unused = set(_NO_ROWS_DEPEND_ON)
    # `MixtureRows` without labels are drawn from the measure.
    if rows is None or isinstance(rows.owner.op, MixtureRows):
        unused.add("labels")
    absent = _names(
        rv
        for role, rv in parts.items()
        if found.draws(rv) and (rv in found.wanted or role not in unused)
    )
    if kept and absent:
        raise ValueError(
            f"{target}: the trace holds {kept}, but not {absent}, drawn together with them; give "
            "a trace sampled without var_names=."
        )


def _are_new(rows: Any, parts: Mapping[str, Any], found: _Draws, model: Model) -> bool:
    """Return whether latent rows are drawn from a measure of the trace, without labels in it."""
    labels = parts["labels"]
    if not (rows.owner.op.is_latent and found.draws(rows)):
        return False
    if labels not in found.kept:
        # Drawn with the whole measure, of whose rows they are then the labels; or not recorded.
        return any(rv in found.kept for rv in parts.values())
    dim, *_ = model.named_vars_to_dims.get(rows.name) or (None,)
    now = model.coords.get(str(dim))
    # xarray numbers the entries of a dimension that has no coordinate.
    if dim not in found.coords or now is None:
        return False
    before = found.coords[dim].to_index()
    if list(before) == list(now):
        return False
    if labels in found.wanted:
        raise ValueError(
            f"{labels.name} in the trace has other coordinates of {dim} than the model, for which "
            f"{rows.name} is drawn; leave {labels.name} out of var_names."
        )
    if not isinstance(rows.owner.op, MixtureRows) and len(before) == len(now):
        raise ValueError(
            f"{rows.name} is drawn given the labels in the trace, which has other coordinates of "
            f"{dim} than the model; give the model those of the trace."
        )
    return True


def _names(variables: Iterator[Any]) -> str:
    return ", ".join(str(rv.name) for rv in variables)
