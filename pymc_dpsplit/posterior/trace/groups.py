"""Groups of a trace, and names of its mixtures.

Mixtures are found by the names of their variables, so that no model is required.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from pymc_dpsplit.posterior.trace.layout import laid_out, rows_first
from pymc_dpsplit.posterior.trace.recorded import counts_of, labels_of, refuse_other_draws

# Groups of draws; those of data have no chains.
_OF_DRAWS = ("posterior", "sample_stats", "prior")


def group_of(idata: xr.DataTree | xr.Dataset, group: str) -> xr.Dataset:
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
        If `idata` is not a DataTree.
    ValueError
        If the trace lacks the group.
    """
    found = find_group(idata, group)
    if found is None:
        raise ValueError(
            f"idata has no group {group}; give the DataTree that pm.sample returns, whole."
        )
    return found


def find_group(idata: xr.DataTree | xr.Dataset, group: str) -> xr.Dataset | None:
    """Return a group of a trace as a Dataset, or None if it has no such group.

    Parameters
    ----------
    idata : DataTree or Dataset
        A trace; or the group ``"posterior"`` alone.
    group : str
        Name of the group.

    Returns
    -------
    Dataset or None
        Groups of draws have the dimensions chain and draw, in this order.

    Raises
    ------
    TypeError
        If `idata` is no trace.
    ValueError
        If a group of draws has none, or its dimensions cannot be told.
    """
    if not isinstance(idata, xr.DataTree | xr.Dataset):
        raise TypeError(
            f"idata is a {type(idata).__name__}; give the DataTree that pm.sample returns."
        )
    is_whole = isinstance(idata, xr.DataTree) and (idata.children or not idata.data_vars)
    if is_whole:
        if group not in idata.children:
            return None
        found = idata[group].to_dataset()
    elif group == "posterior":
        found = idata.to_dataset() if isinstance(idata, xr.DataTree) else idata
    else:
        return None
    return laid_out(found, group) if group in _OF_DRAWS else found


def find_labels(idata: xr.DataTree | xr.Dataset, name: str) -> xr.DataArray | None:
    """Return the labels that a trace records, or None if it holds none.

    Parameters
    ----------
    idata : DataTree or Dataset
    name : str
        Name of the mixture.

    Returns
    -------
    DataArray of int, shape (chain, draw, N), or None

    Raises
    ------
    ValueError
        If they are no labels, or of other draws than the posterior.
    """
    for group in ("posterior", "sample_stats"):
        drawn = find_group(idata, group)
        if drawn is not None and f"{name}_labels" in drawn:
            posterior = find_group(idata, "posterior")
            if posterior is not None:
                refuse_other_draws(posterior, drawn, group)
            labels, observed = labels_of(drawn, name), find_observed(idata, name)
            n_items = None if observed is None else number_of_items(idata, name, len(observed))
            if n_items is not None and n_items != labels.shape[-1]:
                raise ValueError(
                    f"{name}_labels are of {labels.shape[-1]} observations in idata, but the data "
                    f"of the trace are {n_items}; give the trace as pm.sample returned it."
                )
            return labels
    return None


def find_observed(idata: xr.DataTree | xr.Dataset, name: str) -> xr.DataArray | None:
    """Return the observed data of a mixture, or None if a trace holds none.

    Parameters
    ----------
    idata : DataTree or Dataset
    name : str
        Name of the mixture.

    Returns
    -------
    DataArray, shape (N,) or (N, D), or None
    """
    observed = find_group(idata, "observed_data")
    if observed is None or name not in observed:
        return None
    return rows_first(observed[name], name, _features(find_group(idata, "posterior"), name))


class SharedInTrace(NamedTuple):
    """What a trace says of rows that share a label.

    Attributes
    ----------
    group_of_row : ndarray of int, shape (N,), optional
        Group 0 .. G - 1 of each row; None if every row is a group of its own.
    counts : ndarray of int, shape (N,), optional
        Number of rows that each stands for; None if that is one.
    known : ndarray of int, shape (N,), optional
        Known labels of the rows, -1 for unknown; None if all are.
    """

    group_of_row: np.ndarray | None
    counts: np.ndarray | None
    known: np.ndarray | None = None

    @property
    def are_rows_alike(self) -> bool:
        """Return whether all groups have the same number of rows, so that rows weigh the same."""
        sizes = np.ones(1) if self.group_of_row is None else np.bincount(self.group_of_row)
        return self.counts is None and bool((sizes == sizes[0]).all())


def find_shared(idata: xr.DataTree | xr.Dataset, name: str) -> SharedInTrace:
    """Return which rows of a mixture share a label, as the group constant_data says.

    Parameters
    ----------
    idata : DataTree or Dataset
    name : str
        Name of the mixture.

    Returns
    -------
    SharedInTrace
    """
    held = find_group(idata, "constant_data")
    keys = f"{name}_group_of_row", f"{name}_counts", f"{name}_known_labels"
    found = (held[key].to_numpy() if held is not None and key in held else None for key in keys)
    return SharedInTrace(*found)


def number_of_items(idata: xr.DataTree | xr.Dataset, name: str, n_rows: int) -> int:
    """Return the number of labels of a mixture: that of its rows, or of groups of rows."""
    group_of_row = find_shared(idata, name).group_of_row
    return n_rows if group_of_row is None else int(group_of_row.max()) + 1


def find_latent(idata: xr.DataTree | xr.Dataset, name: str) -> xr.DataArray | None:
    """Return the draws of a latent mixture, or None if the mixture is observed.

    Parameters
    ----------
    idata : DataTree or Dataset
    name : str
        Name of the mixture.

    Returns
    -------
    DataArray, shape (chain, draw, N) or (chain, draw, N, D), or None
    """
    posterior = group_of(idata, "posterior")
    if name not in posterior:
        return None
    return rows_first(posterior[name], name, _features(posterior, name))


def _features(posterior: xr.Dataset | None, name: str) -> set[Any]:
    """Dimensions of the parameters of clusters, beside those of clusters and draws."""
    if posterior is None or f"{name}_weights" not in posterior:
        return set()
    over = set(posterior[f"{name}_weights"].dims)
    parameters = [
        of for of in posterior.data_vars.values() if over <= set(of.dims) and of.ndim > len(over)
    ]
    return {dim for of in parameters for dim in of.dims} - over


def mixture_names(idata: xr.DataTree | xr.Dataset) -> list[str]:
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
    return _names_in(group_of(idata, "posterior"))


def _names_in(posterior: xr.Dataset) -> list[str]:
    variables = [str(name) for name in posterior.data_vars]
    counted = [v.removesuffix("_n_clusters") for v in variables if v.endswith("_n_clusters")]
    return [name for name in counted if f"{name}_weights" in variables]


def topic_model_names(posterior: xr.Dataset) -> list[str]:
    """Return the names of the topic models of a trace."""
    counted = [
        str(of).removesuffix("_n_topics") for of in posterior if f"{of}".endswith("_n_topics")
    ]
    return [name for name in counted if f"{name}_weights" in posterior]


def refuse_topics(names: Iterable[str], var_name: str | None, is_alone: bool) -> None:
    """Refuse a topic model, whose tokens readers of mixtures do not know.

    Parameters
    ----------
    names : iterable of str
        Names of the topic models.
    var_name : str, optional
        Name that the user gives.
    is_alone : bool
        Whether there is no mixture, so that without a name the topic model is meant.

    Raises
    ------
    ValueError
        If a topic model is meant.
    """
    topic_models = list(names)
    if var_name in topic_models or (var_name is None and is_alone and topic_models):
        raise ValueError(
            f"{var_name or topic_models[0]} is an HDPTopics, whose tokens this function does not "
            "take; use topic_words, top_words, document_topics for the topics of sampled or new "
            "documents, or topic_perplexity of documents that were left out."
        )


def choose_mixture(idata: xr.DataTree | xr.Dataset, var_name: str | None = None) -> str:
    """Return the name of the mixture to read.

    Parameters
    ----------
    idata : DataTree
        As returned by `pm.sample`.
    var_name : str, optional
        Name of the mixture; required if the trace contains several.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If the trace lacks the mixture, has several and none is named, or has damaged numbers of
        clusters.
    """
    posterior = group_of(idata, "posterior")
    names = _names_in(posterior)
    refuse_topics(topic_model_names(posterior), var_name, not names)
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
    name = names[0] if var_name is None else var_name
    counts_of(posterior, name)
    return name
