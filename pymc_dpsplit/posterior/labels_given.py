"""Labels of draws for a figure: those a user gives, or those of the trace a user gives."""

from typing import Any

import xarray as xr
from pymc.model import Model

from pymc_dpsplit.posterior.label_arrays import labels_of_draws
from pymc_dpsplit.posterior.labels import sample_labels
from pymc_dpsplit.posterior.trace import choose_mixture, group_of


def labels_given(
    idata: Any, var_name: str | None, model: Model | None, random_seed: Any
) -> xr.DataArray:
    """Return labels of every draw.

    Parameters
    ----------
    idata : DataTree, or DataArray or ndarray of int, shape (..., obs)
        A trace, or what `sample_labels` returned.
    var_name : str, optional
        Name of the mixture in the trace; needed if it holds several.
    model : pymc.Model, optional
        The model sampled, by default the one of the context; needed if the trace holds no labels.
    random_seed : int or numpy.random.Generator, optional
        Used if labels are redrawn.

    Returns
    -------
    DataArray of int, shape (..., obs)

    Raises
    ------
    ValueError
        If the trace holds no such mixture, or neither labels nor model are there.
    """
    if not isinstance(idata, xr.DataTree):
        return labels_of_draws(idata)
    name = choose_mixture(idata, var_name)
    model = Model.get_context(error_if_none=False) if model is None else model
    if model is not None:
        return sample_labels(idata, model, var_name=name, random_seed=random_seed)
    for group in ("posterior", "sample_stats"):
        if group in idata.children and f"{name}_labels" in idata[group]:
            return group_of(idata, group)[f"{name}_labels"]
    raise ValueError(
        f"idata holds no {name}_labels, and to redraw them takes the model; give model=, with "
        "which idata was sampled."
    )
