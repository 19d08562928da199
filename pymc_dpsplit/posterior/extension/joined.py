"""A trace with the draws of another one after its own."""

import numpy as np
import xarray as xr

from pymc_dpsplit.posterior.trace.groups import find_group

# Groups of draws that go on; those computed from the posterior do not.
_CONTINUED = ("posterior", "sample_stats")
# Draws before the posterior, and of other distributions.
_OTHER_DRAWS = ("warmup_", "prior")


def joined(first: xr.DataTree, second: xr.DataTree) -> tuple[xr.DataTree, list[str]]:
    """Append the draws of the second trace to each chain of the first.

    Parameters
    ----------
    first, second : DataTree
        Of the same model, and as many chains.

    Returns
    -------
    trace : DataTree
        With the chains, coordinates, attributes and data of the first.
    left_out : list of str
        Groups of the first that are computed from its draws, and are left out.
    """
    groups: dict[str, xr.Dataset] = {}
    left_out = []
    # A Dataset is the posterior alone.
    names = list(first.children) if isinstance(first, xr.DataTree) and first.children else []
    for name in names or ["posterior"]:
        if name in _CONTINUED:
            own, more = find_group(first, name), find_group(second, name)
            if own is not None and more is not None:
                groups[name] = _appended(own, more)
        elif "draw" in first[name].dims and not name.startswith(_OTHER_DRAWS):
            left_out.append(name)
        else:
            groups[name] = first[name].to_dataset()
    trace = xr.DataTree.from_dict(groups)
    trace.attrs = dict(first.attrs) if names else {}
    return trace, left_out


def _appended(own: xr.Dataset, more: xr.Dataset) -> xr.Dataset:
    """Append draws; variables that one of both lacks, such as statistics of an option, go."""
    kept = [name for name in own.data_vars if name in more]
    # A trace without these coordinates counts from 0.
    own = own.assign_coords({dim: own[dim].to_numpy() for dim in ("chain", "draw")})
    last = int(own["draw"].to_numpy()[-1])
    more = more.assign_coords(
        chain=own["chain"].to_numpy(), draw=last + 1 + np.arange(more.sizes["draw"])
    )
    first = {name: _named_alike(own[name], more[name]) for name in kept}
    found = xr.concat(
        [xr.Dataset(first, attrs=own.attrs), more[kept]],
        dim="draw",
        data_vars="all",
        coords="minimal",
        compat="override",
        join="override",
        combine_attrs="override",
    )
    if "sampling_time" in own.attrs and "sampling_time" in more.attrs:
        total = float(own.attrs["sampling_time"]) + float(more.attrs["sampling_time"])
        found.attrs["sampling_time"] = total
    return found


def _named_alike(own: xr.DataArray, more: xr.DataArray) -> xr.DataArray:
    """Give dimensions that have numbers only, as in traces made by hand, the names of new draws."""
    absent = [dim for dim in more.dims if dim not in own.dims]
    others = [dim for dim in own.dims if dim not in more.dims]
    if not absent or len(absent) != len(others):
        return own
    return own.drop_vars(others, errors="ignore").rename(dict(zip(others, absent, strict=True)))
