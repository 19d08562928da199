"""Coherence of topics: whether their likeliest words occur in the same documents."""

from typing import Any

import numpy as np
import scipy
import xarray as xr

from pymc_dpsplit.components.arguments import check_integer, shown
from pymc_dpsplit.data.sparse_rows import SparseRows
from pymc_dpsplit.topic_model.completed_documents import checked_documents
from pymc_dpsplit.topic_model.read_topics import draw_of_topics, topic_model_name
from pymc_dpsplit.topic_model.recorded_topics import recorded_topics


def topic_coherence(
    idata: xr.DataTree,
    documents: Any,
    *,
    var_name: str | None = None,
    n: int = 10,
    measure: str = "npmi",
    chain: int = 0,
    draw: int = -1,
) -> xr.DataArray:
    """Return how often the likeliest words of each topic of a draw occur together in documents.

    Parameters
    ----------
    idata : DataTree
        Result of `pm.sample` for a model with `HDPTopics`.
    documents : array-like or SciPy sparse matrix, shape (J, V)
        Number of tokens of each word in each document, the words in the order of the model: those
        of the model, or others.
    var_name : str, optional
        Name of the documents of the model; by default those of the only topic model.
    n : int
        Number of words of each topic, the likeliest ones; all, if there are fewer.
    measure : {"npmi", "umass"}
        What is averaged over pairs of these words.
    chain, draw : int
        Position of the draw among those that hold topics; by default the last one of the first
        chain.

    Returns
    -------
    DataArray of float64, shape (topic,)
        Topics in the order of `top_words`.  Higher is more coherent.

    Raises
    ------
    ValueError
        With one sentence that names the argument, the fault and the remedy.

    Notes
    -----
    With p the share of documents that contain one word or both, a pair has for "npmi" the
    normalised pointwise mutual information log(p_ij / (p_i p_j)) / -log p_ij [1]_: 1 if the words
    never occur apart, 0 if they are independent, -1 if they never occur together.  For "umass" it
    has log((D_ij + 1) / D_j), where D counts documents and j is the likelier word of the topic
    [2]_; that is not defined for a word in no document.  Averages, where [2]_ has sums, can be
    compared between numbers of words.

    References
    ----------
    .. [1] Bouma (2009), Normalized (pointwise) mutual information in collocation extraction,
       Proceedings of GSCL.
    .. [2] Mimno, Wallach, Talley, Leenders & McCallum (2011), Optimizing semantic coherence in
       topic models, EMNLP.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_dpsplit as dps
    >>> documents = [[3, 1, 0], [0, 0, 4], [2, 2, 0]]
    >>> with pm.Model() as model:
    ...     _ = dps.HDPTopics("w", 1.0, 1.0, 0.1, observed=documents)
    ...     idata = pm.sample(
    ...         draws=20, tune=20, chains=2, random_seed=1, progressbar=False,
    ...         compute_convergence_checks=False,
    ...     )
    >>> dps.topic_coherence(idata, documents, n=2).dims
    ('topic',)
    """
    check_integer("n", n, 2)
    if measure not in ("npmi", "umass"):
        raise ValueError(f"measure={shown(measure)} is unknown; give 'npmi' or 'umass'.")
    name = topic_model_name(idata, var_name)
    topics = recorded_topics(idata, name)
    rows = checked_documents(documents, topics.words, name)
    words, weights, _ = draw_of_topics(topics, chain, draw)
    probabilities = words.to_numpy()[: int((weights > 0).sum())]
    if probabilities.shape[1] < 2:
        raise ValueError(f"{name} has one word, and coherence needs two; give more words.")
    likeliest = np.argsort(-probabilities, axis=1, kind="stable")[:, :n]
    used, places = np.unique(likeliest, return_inverse=True)
    together = _documents_with_both(rows, used)
    if measure == "umass" and not np.all(together.diagonal()):
        missing = words[words.dims[-1]].to_numpy()[used[together.diagonal() == 0][0]].item()
        raise ValueError(
            f"documents has no word {shown(missing)}, which measure='umass' divides by; give "
            "measure='npmi', or documents with all words of topics."
        )
    places = places.reshape(likeliest.shape)
    values = [_mean_over_pairs(together[np.ix_(of, of)], len(rows.indptr) - 1, measure)
              for of in places]  # fmt: skip
    return xr.DataArray(values, {"topic": np.arange(len(values))}, ("topic",), name=measure)


def _documents_with_both(rows: SparseRows, words: np.ndarray) -> np.ndarray:
    """Return the number of documents that contain both words of each pair (U, U)."""
    occurs = scipy.sparse.csr_array(
        (np.ones(len(rows.indices)), rows.indices, rows.indptr), rows.shape
    )
    occurs.data[rows.values == 0] = 0.0
    occurs = occurs[:, words]
    return np.asarray((occurs.T @ occurs).todense())


def _mean_over_pairs(together: np.ndarray, n_documents: int, measure: str) -> float:
    """Mean over the pairs of the words of a topic, in decreasing order of probability."""
    first, second = np.triu_indices(len(together), 1)
    pair, alone = together[first, second], together.diagonal()
    if measure == "umass":
        return float(np.mean(np.log((pair + 1.0) / alone[first])))
    values = np.full(len(pair), -1.0)
    # Words that all documents contain never occur apart.
    values[pair == n_documents] = 1.0
    some = (pair > 0) & (pair < n_documents)
    log_pair = np.log(pair[some] / n_documents)
    log_alone = np.log(alone[first[some]] / n_documents) + np.log(alone[second[some]] / n_documents)
    values[some] = (log_pair - log_alone) / -log_pair
    return float(values.mean())
