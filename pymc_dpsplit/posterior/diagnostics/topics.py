"""Label-invariant quantities of topic models, and what is said of their traces alone."""

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.data.sparse_rows import column_totals
from pymc_dpsplit.posterior.diagnostics.invariants import collect_quantities
from pymc_dpsplit.posterior.trace.groups import (
    find_group,
    group_of,
    mixture_names,
    topic_model_names,
)
from pymc_dpsplit.posterior.trace.recorded import refuse_dims, whole_numbers
from pymc_dpsplit.topic_model.lookup import TopicVariables, find_topic_models
from pymc_dpsplit.topic_model.record import WORD_TOTALS
from pymc_dpsplit.variables.concentration import roots_of

_ROLES = ("n_topics", "n_tables", "new_weight")
_STATS = ("entropy", "largest_share", "log_joint")
_START = (
    "Splits and merges of topics are not attempted, so chains from one number of topics may agree "
    'without having found it: run a chain with pm.sample(topics={"start_topics": ...}) from far '
    "fewer or more, and compare."
)


def choose_topics(idata: xr.DataTree | xr.Dataset, var_name: str | None) -> str | None:
    """Return the name of the topic model to judge, or None if a mixture is to be judged.

    Parameters
    ----------
    idata : DataTree
    var_name : str, optional
        By default the only topic model of a trace without mixtures.

    Returns
    -------
    str or None

    Raises
    ------
    ValueError
        If there are several topic models and none is named, or no model of that name.
    """
    names = _topic_names(idata)
    if var_name in names:
        return var_name
    if not names or mixture_names(idata):
        return None
    listed = ", ".join(repr(name) for name in names)
    if var_name is not None:
        raise ValueError(f"var_name={var_name!r} is no topic model of idata; give one of {listed}.")
    if len(names) > 1:
        raise ValueError(f"idata holds several topic models; give var_name as one of {listed}.")
    return names[0]


def _topic_names(idata: xr.DataTree | xr.Dataset) -> list[str]:
    return topic_model_names(group_of(idata, "posterior"))


def topic_quantities(
    idata: xr.DataTree | xr.Dataset, posterior: xr.Dataset, stats: xr.Dataset, name: str
) -> xr.Dataset:
    """Collect the label-invariant quantities of a topic model.

    Parameters
    ----------
    idata : DataTree
    posterior, stats : Dataset
        Its groups posterior and sample_stats.
    name : str

    Returns
    -------
    Dataset
        Variables of float64, each (chain, draw).

    Raises
    ------
    ValueError
        If the trace lacks one, or has numbers of topics that are none.
    """
    others = {
        f"{other}_{role}" for other in _topic_names(idata) for role in (*_ROLES, "log_words")
    } - {f"{name}_log_words"}
    others |= {
        f"{of}_{role}" for of in mixture_names(idata) for role in ("n_clusters", "new_weight")
    }
    own, own_stats = ([f"{name}_{key}" for key in keys] for keys in (_ROLES, _STATS))
    found = collect_quantities(posterior, stats, own, own_stats, others)
    counts = posterior[f"{name}_n_topics"]
    refuse_dims(counts, 0)
    if whole_numbers(counts).min() < 1:
        raise ValueError(
            f"{counts.name} is {int(counts.min())} in a draw of idata, but every draw has a topic; "
            "give the trace as pm.sample returned it."
        )
    return found


def topic_model_in(
    idata: xr.DataTree | xr.Dataset, name: str, model: Model | None
) -> TopicVariables | None:
    """Return a topic model by name, or None if there is no such model.

    Parameters
    ----------
    idata : DataTree
    name : str
    model : pymc.Model, optional

    Returns
    -------
    TopicVariables or None

    Raises
    ------
    ValueError
        If it has other documents than the trace, as far as the numbers of words tell.
    """
    topics = None if model is None else find_topic_models(model).get(name)
    held = find_group(idata, "constant_data")
    if topics is None or held is None or f"{name}_{WORD_TOTALS}" not in held:
        return topics
    if not np.array_equal(held[f"{name}_{WORD_TOTALS}"].to_numpy(), column_totals(topics.rows)):
        raise ValueError(
            f"the documents of {name} have other words in idata than in the model; give the model "
            "with the documents with which idata was sampled."
        )
    return topics


def names_of_concentrations(topics: TopicVariables, model: Model) -> set[str]:
    """Return the names of the free variables on which the concentrations depend."""
    graphs = topics.concentrations.values()
    return {str(of.name) for graph in graphs for of in roots_of(graph, model)}


def topic_remarks(posterior: xr.Dataset, name: str) -> list[str]:
    """Return what the trace lacks, and what agreement of chains does not show."""
    counts = posterior[f"{name}_n_topics"]
    n_rows = posterior[f"{name}_weights"].sizes[f"{name}_topic"]
    n_over = int((counts > n_rows).sum())
    if n_over == 0:
        return [_START]
    return [
        f"Topics left out: {n_over} of {counts.size} draws have more topics (up to "
        f"{int(counts.max())}) than the {n_rows} recorded; the chains are not affected, but the "
        "record of the smallest topics is: give a larger max_topics to HDPTopics.",
        _START,
    ]
