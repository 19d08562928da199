"""What a trace records of rows in groups, and the weights of clusters in a group."""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from pymc_dpsplit.hierarchical_model.groups import RowGroups
from pymc_dpsplit.posterior.trace.groups import find_group, find_labels, group_of
from pymc_dpsplit.posterior.trace.replaced_data import other_argument


class RowsInGroups(NamedTuple):
    """Rows in groups, as a trace records them.

    Attributes
    ----------
    group_of_row : ndarray of int64, shape (N,)
        Group 0 .. J - 1 of each row.
    names : DataArray, shape (J,)
        Names of the groups, over their dimension.
    labels : ndarray of int, shape (chain, draw, N)
        Rows of the recorded weights.
    alphas : ndarray of float64, shape (chain, draw)
        Concentration of groups.
    """

    group_of_row: np.ndarray
    names: xr.DataArray
    labels: np.ndarray
    alphas: np.ndarray

    def rows_of(self, group: Any) -> np.ndarray:
        """Return which rows (N,) are of a group, by its name.

        Raises
        ------
        ValueError
            If no group has that name.
        """
        known = [str(of) for of in self.names.to_numpy()]
        if str(group) not in known:
            listed = ", ".join(known[:8]) + (", .." if len(known) > 8 else "")
            raise ValueError(f"group={group!r} is no group of the trace; give one of {listed}.")
        found: np.ndarray = self.group_of_row == known.index(str(group))
        return found


def rows_in_groups(idata: xr.DataTree, name: str) -> RowsInGroups:
    """Return what a trace records of the groups of a hierarchical mixture.

    Parameters
    ----------
    idata : DataTree
    name : str
        Name of the mixture.

    Returns
    -------
    RowsInGroups

    Raises
    ------
    ValueError
        If the mixture has no groups, or the trace lacks its labels.
    """
    held, stats = find_group(idata, "constant_data"), find_group(idata, "sample_stats")
    keys = f"{name}_groups", f"{name}_group_sizes"
    if held is None or any(key not in held for key in keys):
        raise ValueError(
            f"{name} has no groups in idata; give the trace of an HDPMixture, with the group "
            "constant_data."
        )
    labels = find_labels(idata, name)
    if labels is None or stats is None or f"{name}_alpha" not in stats:
        raise ValueError(
            f"idata holds no {name}_labels, on which the weights of groups depend; sample with "
            'hdp={"keep_labels": True}.'
        )
    dim = held[keys[1]].dims[0]
    alphas = stats[f"{name}_alpha"].transpose("chain", "draw").to_numpy()
    return RowsInGroups(held[keys[0]].to_numpy(), held[dim], labels.to_numpy(), alphas)


def refuse_other_groups_of_rows(
    idata: xr.DataTree | xr.Dataset, name: str, groups: RowGroups
) -> None:
    """Refuse a trace of rows in other groups than the model has, in number, members or name.

    Parameters
    ----------
    idata : DataTree or Dataset
        Its group constant_data may have been dropped, or be without the names.
    name : str
        Name of the hierarchical mixture.
    groups : RowGroups
        Those of the model.

    Raises
    ------
    ValueError
    """
    held = find_group(idata, "constant_data")
    keys = f"{name}_groups", f"{name}_group_sizes"
    if held is None or any(key not in held for key in keys):
        return
    dim = held[keys[1]].dims[0]
    are_same = (
        np.array_equal(held[keys[0]].to_numpy(), groups.group_of_row)
        and np.array_equal(held[keys[1]].to_numpy(), groups.sizes)
        and (dim not in held.coords or _are_same_names(held[dim], groups))
    )
    if not are_same:
        raise ValueError(other_argument("groups", name))


def _are_same_names(recorded: xr.DataArray, groups: RowGroups) -> bool:
    """Whether groups have the names of a trace, which may store them as another type."""
    known = xr.DataArray(list(groups.names), dims=recorded.dims)
    of_trace, of_model = (list(map(str, of.to_numpy())) for of in (recorded, known))
    # Dates are written with more or fewer digits.
    return of_trace == of_model or recorded.to_index().equals(known.to_index())


def trace_of_group(idata: xr.DataTree, name: str, group: Any) -> xr.DataTree:
    """Return a trace with the weights that are expected in a group, eq. (16.7).

    Parameters
    ----------
    idata : DataTree
    name : str
        Name of the mixture.
    group : object
        Name of the group.

    Returns
    -------
    DataTree
        With other weights and another remainder in ``posterior``.

    Raises
    ------
    ValueError
        If the trace has no such group.
    """
    rows = rows_in_groups(idata, name)
    labels = rows.labels[..., rows.rows_of(group)]
    posterior = group_of(idata, "posterior")
    weights, rest = posterior[f"{name}_weights"], posterior[f"{name}_new_weight"]
    n_kept, n_rows = weights.shape[-1], labels.shape[-1]
    counts = np.zeros(weights.shape)
    for place in np.ndindex(*rows.alphas.shape):
        # Clusters that the trace does not record are in the remainder.
        counts[place] = np.bincount(labels[place].astype(np.int64), minlength=n_kept)[:n_kept]
    share = rows.alphas / (n_rows + rows.alphas)
    of_group = weights.copy(data=counts / n_rows * (1 - share)[..., None] if n_rows else counts)
    of_group = of_group + share[..., None] * weights
    found = idata.copy()
    found["posterior"] = xr.DataTree(
        posterior.assign({weights.name: of_group, rest.name: rest * share})
    )
    return found
