"""The dimensions of a group of a trace, put in the order in which `pm.sample` writes them.

Users select a chain or a draw, stack both, transpose or rename: what can be undone is undone here,
so that all else reads arrays (chain, draw, ...).
"""

from typing import Any

import xarray as xr

_DRAWN = ("chain", "draw")
_REMEDY = "give the trace with the dimensions chain and draw, as pm.sample returns it"


def laid_out(drawn: xr.Dataset, group: str) -> xr.Dataset:
    """Put chain and draw first, and clusters next.

    Parameters
    ----------
    drawn : Dataset
        With the dimensions chain and draw; or both stacked in one; or with one chain or one draw
        selected, whose number is a coordinate.
    group : str
        Name of the group, for messages.

    Returns
    -------
    Dataset
        Read from disk no sooner than the argument, unless it is stacked.

    Raises
    ------
    ValueError
        If chains and draws are not to be found, or there are none.
    """
    drawn = _unstacked(drawn, group)
    for dim in _DRAWN:
        if dim not in drawn.dims and dim in drawn.coords and drawn.coords[dim].ndim == 0:
            drawn = drawn.expand_dims(dim)
    absent = [dim for dim in _DRAWN if dim not in drawn.dims]
    if absent:
        found = ", ".join(str(dim) for dim in drawn.dims)
        raise ValueError(
            f"the group {group} of idata has no dimension {absent[0]}, only ({found}); {_REMEDY}."
        )
    if 0 in (drawn.sizes[dim] for dim in _DRAWN):
        raise ValueError(f"the group {group} of idata holds no draws; give a trace with some.")
    clusters = [dim for dim in drawn.dims if str(dim).endswith("_cluster")]
    return drawn.transpose(*_DRAWN, *clusters, ...)


def _unstacked(drawn: xr.Dataset, group: str) -> xr.Dataset:
    """Undo `stack(sample=("chain", "draw"))`, under whatever name."""
    coords = [drawn.coords[dim] for dim in _DRAWN if dim in drawn.coords]
    over = {coord.dims for coord in coords}
    if len(coords) < len(_DRAWN) or len(over) > 1 or any(coord.ndim != 1 for coord in coords):
        return drawn
    dim: Any = coords[0].dims[0]
    if dim in _DRAWN:
        return drawn
    pairs = set(zip(*(coord.to_numpy().tolist() for coord in coords), strict=True))
    n_chains, n_draws = (len(set(of)) for of in zip(*pairs, strict=True)) if pairs else (0, 0)
    if not len(pairs) == drawn.sizes[dim] == n_chains * n_draws:
        raise ValueError(
            f"the group {group} of idata holds, along {dim}, not the same draws of every chain; "
            f"{_REMEDY}."
        )
    if dim not in drawn.indexes:
        stacked: dict[Any, Any] = {dim: list(_DRAWN)}
        drawn = drawn.set_index(stacked)
    return drawn.unstack([dim])


def rows_first(values: xr.DataArray, name: str, features: set[Any]) -> xr.DataArray:
    """Put the dimension of features last in the values of a mixture.

    Parameters
    ----------
    values : DataArray
        Observations, or draws of them.
    name : str
        Name of the mixture.
    features : set
        Dimensions of the parameters of its clusters.
    """
    # PyMC numbers dimensions that have no name.
    last = [dim for dim in values.dims if dim in features or dim == f"{name}_dim_1"]
    return values.transpose(..., *last) if len(last) == 1 else values
