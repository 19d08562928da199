"""`document_topics`: weights of topics in documents, sampled or new."""

from typing import Any

import numpy as np
import xarray as xr

from pymc_dpsplit.components.arguments import check_integer, generator_of
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.topic_model.completed_documents import checked_documents, with_remainder
from pymc_dpsplit.topic_model.read_topics import draw_of_topics, topic_model_name
from pymc_dpsplit.topic_model.recorded_topics import recorded_topics
from pymc_dpsplit.topics.completion import fill_document_weights
from pymc_dpsplit.topics.corpus import corpus_of
from pymc_dpsplit.variables.names import names_in


def document_topics(
    idata: xr.DataTree,
    documents: Any,
    *,
    var_name: str | None = None,
    chain: int = 0,
    draw: int = -1,
    sweeps: int = 60,
    random_seed: Any = None,
) -> xr.Dataset:
    """Return the expected weights of the topics of one draw in documents, sampled or new.

    Given the topics and global weights of a draw, the topics of the tokens of each document are
    redrawn in turn, with the weights of the document summed out.  Numbers of topics differ between
    draws and their numbering has no meaning, so weights are those of one draw: give `top_words` the
    same `chain` and `draw` for its topics.

    Parameters
    ----------
    idata : DataTree
        Result of `pm.sample` for a model with `HDPTopics`.
    documents : array-like or SciPy sparse matrix, shape (J, V)
        Number of tokens of each word in each document, the words in the order of the model.
    var_name : str, optional
        Name of the documents of the model; by default those of the only topic model.
    chain, draw : int
        Position of the draw among those that hold topics; by default the last one of the first
        chain.
    sweeps : int
        Gibbs sweeps over the tokens, of which the last two thirds are averaged.
    random_seed : int or numpy.random.Generator, optional

    Returns
    -------
    Dataset
        Of float64: ``weight`` (document, topic), and ``new_weight`` (document), that of topics
        which the draw does not record.  Together they sum to 1 for each document.  Documents have
        the names that a frame gives them.

    Raises
    ------
    ValueError
        With one sentence that names the argument, the fault and the remedy.

    Notes
    -----
    The weights are eq. (15.14) of docs/method.md.  A document without words has the global weights.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_dpsplit as dps
    >>> with pm.Model() as model:
    ...     _ = dps.HDPTopics("w", 1.0, 1.0, 0.1, observed=[[3, 1, 0], [0, 0, 4]])
    ...     idata = pm.sample(
    ...         draws=20, tune=20, chains=2, random_seed=1, progressbar=False,
    ...         compute_convergence_checks=False,
    ...     )
    >>> dps.document_topics(idata, [[4, 2, 0], [0, 0, 1]], random_seed=1).sizes["document"]
    2
    """
    check_integer("sweeps", sweeps, 2)
    rng = generator_of("random_seed", random_seed)
    name = topic_model_name(idata, var_name)
    topics = recorded_topics(idata, name)
    rows = checked_documents(documents, topics.words, name)
    words, weights, alpha = draw_of_topics(topics, chain, draw)
    shares, phi = with_remainder(weights.to_numpy(), words.to_numpy())
    corpus, key = corpus_of(rows), np.uint64(draw_key(rng))
    tokens = np.repeat(corpus.words, corpus.counts)
    found = np.empty((rows.shape[0], len(shares)))
    schedule = sweeps, sweeps // 3
    fill_document_weights(tokens, corpus.first_token, shares, phi, alpha, schedule, key, found)
    given = names_in(documents).coords[0]
    return xr.Dataset(
        {
            "weight": (("document", "topic"), found[:, :-1]),
            "new_weight": ("document", found[:, -1]),
        },
        coords={
            "document": np.arange(len(found)) if given is None else np.asarray(given),
            "topic": np.arange(found.shape[1] - 1),
        },
    )
