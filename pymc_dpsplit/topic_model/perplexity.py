"""How well topics predict documents: perplexity by document completion."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from pymc_dpsplit.components.arguments import check_integer, generator_of
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.topic_model.completed_documents import checked_documents, with_remainder
from pymc_dpsplit.topic_model.read_topics import topic_model_name
from pymc_dpsplit.topic_model.recorded_topics import recorded_topics
from pymc_dpsplit.topics.completion import add_completions
from pymc_dpsplit.topics.corpus import corpus_of
from pymc_dpsplit.topics.halves import divide_documents


def topic_perplexity(
    idata: xr.DataTree,
    documents: Any,
    *,
    var_name: str | None = None,
    draws: int = 20,
    sweeps: int = 12,
    random_seed: Any = None,
) -> float:
    """Return the perplexity of documents that were not sampled, by document completion.

    The tokens of each document are divided in two halves at random.  Given the first half and the
    topics of a draw, each token of the second half has a probability, which is averaged over
    draws.  The perplexity is exp(-mean log probability); that of words drawn at random is their
    number V, and lower is better.

    Parameters
    ----------
    idata : DataTree
        Result of `pm.sample` for a model with `HDPTopics`.
    documents : array-like or SciPy sparse matrix, shape (J, V)
        Number of tokens of each word in each document, the words in the order of the model.
    var_name : str, optional
        Name of the documents of the model; by default those of the only topic model.
    draws : int
        Number of draws to average over, evenly spaced in all chains; all, if there are fewer.
    sweeps : int
        Gibbs sweeps over the first halves in each draw, of which the last two thirds are averaged.
    random_seed : int or numpy.random.Generator, optional

    Returns
    -------
    float

    Raises
    ------
    ValueError
        With one sentence that names the argument, the fault and the remedy.

    Notes
    -----
    The probability is eq. (15.13) of docs/method.md.  A token outside the topics of a draw, in the
    remainder of the measure or beyond `max_topics`, may be any word, each with probability 1 / V.
    Perplexities can be compared only if words, division and definition are the same; a fixed seed
    gives the same division to every trace.

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
    >>> dps.topic_perplexity(idata, [[4, 2, 0]], random_seed=1) < 3
    True
    """
    check_integer("draws", draws, 1)
    check_integer("sweeps", sweeps, 2)
    rng = generator_of("random_seed", random_seed)
    name = topic_model_name(idata, var_name)
    topics = recorded_topics(idata, name)
    rows = checked_documents(documents, topics.words, name)
    halves = divide_documents(corpus_of(rows), rng)
    probability = np.zeros(len(halves.words))
    chosen = _spaced(topics.alphas.sizes["chain"], topics.alphas.sizes["draw"], draws)
    words, weights, alphas = (of.to_numpy() for of in topics)
    for at in chosen:
        law = with_remainder(weights[at], words[at])
        alpha, schedule = float(alphas[at]), (sweeps, sweeps // 3)
        key = np.uint64(draw_key(rng))
        add_completions(halves, *law, alpha, schedule, key, probability)
    logs = np.log(probability[halves.is_second] / len(chosen))
    return float(np.exp(-logs.mean()))


def _spaced(n_chains: int, n_draws: int, wanted: int) -> Sequence[tuple[int, int]]:
    """Return at most `wanted` pairs (chain, draw), evenly spaced."""
    n_all = n_chains * n_draws
    places = np.linspace(0, n_all - 1, min(wanted, n_all)).round().astype(int)
    return [divmod(int(place), n_draws) for place in places]
