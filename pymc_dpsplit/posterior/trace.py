"""Which mixtures a trace holds, found by the names of their variables alone.

So a trace loaded from disk in a new process serves as well as one just sampled.
"""

import xarray as xr


def group_of(idata: xr.DataTree, group: str) -> xr.Dataset:
    """Return a group of a trace as a Dataset.

    Parameters
    ----------
    idata : DataTree
        As returned by `pm.sample`.
    group : str
        Name of the group, such as ``"posterior"``.

    Returns
    -------
    Dataset

    Raises
    ------
    TypeError
        If `idata` is no DataTree.
    ValueError
        If it has no such group.
    """
    if not isinstance(idata, xr.DataTree):
        raise TypeError(
            f"idata is a {type(idata).__name__}; give the DataTree that pm.sample returns."
        )
    if group not in idata.children:
        raise ValueError(
            f"idata has no group {group}; give the DataTree that pm.sample returns, whole."
        )
    return idata[group].to_dataset()


def mixture_names(idata: xr.DataTree) -> list[str]:
    """Return the names under which the mixtures of a trace were declared.

    Parameters
    ----------
    idata : DataTree
        As returned by `pm.sample`.

    Returns
    -------
    list of str
        In the order of the posterior group.
    """
    variables = [str(name) for name in group_of(idata, "posterior").data_vars]
    counted = [v.removesuffix("_n_clusters") for v in variables if v.endswith("_n_clusters")]
    return [name for name in counted if f"{name}_weights" in variables]


def choose_mixture(idata: xr.DataTree, var_name: str | None = None) -> str:
    """Return the name of the mixture to read.

    Parameters
    ----------
    idata : DataTree
        As returned by `pm.sample`.
    var_name : str, optional
        Name of the mixture; needed if the trace holds several.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If the choice is open, or there is no such mixture.
    """
    names = mixture_names(idata)
    listed = ", ".join(repr(name) for name in names)
    if not names:
        raise ValueError(
            "idata holds no mixture (no pair of variables <name>_n_clusters and <name>_weights); "
            "give the trace of a model with a DPMixture."
        )
    if var_name is None and len(names) > 1:
        raise ValueError(f"idata holds several mixtures; give var_name as one of {listed}.")
    if var_name is not None and var_name not in names:
        raise ValueError(f"var_name={var_name!r} is no mixture of idata; give one of {listed}.")
    return names[0] if var_name is None else var_name
