"""Log likelihood of each row in a trace, or group of rows, without rows that have no entry.

A row without an observed entry has the likelihood one in every draw.  It is no data point: PyMC
leaves the missing values of its own variables out of the group `log_likelihood`, and functions of
ArviZ such as `az.loo` refuse values that do not vary.

A group of rows that share a label has one likelihood, and so have the rows of a known label.  PyMC
gives it the dimension of the rows, which is replaced here by that of the groups, or of items: known
labels and single rows.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pymc.model import Model

from pymc_dpsplit.variables import find_mixtures, is_owned

if TYPE_CHECKING:
    import xarray as xr


def of_observed_rows(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Make `pm.compute_log_likelihood` follow rows without entry, and groups."""

    def computing(
        idata: Any, *, model: Any = None, extend_inferencedata: bool = True, **kwargs: Any
    ) -> Any:
        of = Model.get_context(error_if_none=False) if model is None else model
        _refuse_without_density(of, kwargs.get("var_names"))
        is_mixture = isinstance(of, Model) and any(map(is_owned, of.free_RVs))
        empty = _rows_without_entries(of) if is_mixture else {}
        groups = _names_of_groups(of) if is_mixture else {}
        if not (empty or groups):
            return compute(idata, model=model, extend_inferencedata=extend_inferencedata, **kwargs)
        found = compute(idata, model=model, extend_inferencedata=False, **kwargs)
        for name in empty.keys() & set(found.data_vars):
            found = _without_rows(found, name, empty[name])
        for name in groups.keys() & set(found.data_vars):
            found = _over_groups(found, name, *groups[name])
        if not extend_inferencedata:
            return found
        idata["log_likelihood"] = found
        return idata

    return computing


def _refuse_without_density(model: Any, var_names: Any) -> None:
    """Refuse observations of hierarchical models, whose density given a draw is an integral."""
    observed = model.observed_RVs if isinstance(model, Model) else []
    for rv in observed:
        op: Any = getattr(rv.owner, "op", None)
        is_wanted = var_names is None or rv.name in var_names
        if is_wanted and not getattr(op, "has_density", True):
            raise ValueError(
                f"{rv.name}: pm.compute_log_likelihood needs the density of observations given a "
                f"draw, which has no formula; {op.instead_of_density}, or give var_names= without "
                "it if the model has other observations."
            )


def _rows_without_entries(model: Model) -> dict[str, list[int]]:
    """Return the rows of each mixture that have no observed entry, if there are any."""
    found = {}
    for mixture in find_mixtures(model).values():
        incomplete = mixture.incomplete()
        rows = incomplete.where[incomplete.is_missing.all(axis=1)]
        if len(rows):
            found[str(mixture.rv.name)] = rows.tolist()
    return found


def _names_of_groups(model: Model) -> dict[str, tuple[str, list[Any]]]:
    """Return the dimension and names of the groups of each mixture whose rows share labels."""
    found = {}
    for mixture in find_mixtures(model).values():
        shared, name = mixture.items.shared, str(mixture.rv.name)
        named = None if shared is None else shared.dimension_in(name)
        if named is not None:
            found[name] = named
    return found


def _over_groups(found: "xr.Dataset", name: str, group: str, names: list[Any]) -> "xr.Dataset":
    """Return a dataset in which the last dimension of a variable is that of groups."""
    values = found[name]
    dim = str(values.dims[-1])
    others = found.drop_vars(name)
    if not any(dim in other.dims for other in others.data_vars.values()):
        others = others.drop_dims(dim, errors="ignore")
    renamed = values.drop_vars(dim, errors="ignore").rename({dim: group})
    return others.assign({name: renamed.assign_coords({group: names})})[list(found.data_vars)]


def _without_rows(found: "xr.Dataset", name: str, rows: list[int]) -> "xr.Dataset":
    """Return a dataset without some rows of one variable, whose last dimension is that of rows."""
    dim = str(found[name].dims[-1])
    kept = found[name].drop_isel({dim: rows})
    others = found.drop_vars(name)
    if any(dim in other.dims for other in others.data_vars.values()):
        # Other variables keep all rows, and a dimension has one length.
        kept = kept.rename({dim: f"{name}_{dim}"})
    else:
        others = others.drop_dims(dim, errors="ignore")
    return others.assign({name: kept})[list(found.data_vars)]
