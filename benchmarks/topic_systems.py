"""Samplers of topics side by side: this package's and, where they are installed, two others.

Each gives the labels or the topics that it holds, and `heldout.py` judges all of them.
"""

import importlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import numpy as np

from pymc_dpsplit.data.sparse_rows import SparseRows
from pymc_dpsplit.topics.corpus import Corpus, corpus_of, document_lengths, expected_tables
from pymc_dpsplit.topics.state import Strengths, start_topics
from pymc_dpsplit.topics.sweep import redraw_weights, sweep_topics

STRENGTHS = Strengths(alpha=1.0, gamma=1.0, eta=0.1)
# Documents that gensim reads at a time, its default.
_GENSIM_CHUNK = 256


class Tokens(NamedTuple):
    """Where all tokens are.

    Attributes
    ----------
    documents, words, topics : ndarray of int, shape (T,)
        Document, word and topic of each token, in any order.
    """

    documents: np.ndarray
    words: np.ndarray
    topics: np.ndarray


class System(Protocol):
    """A sampler of topics under way."""

    def advance(self, n_sweeps: int) -> None:
        """Redraw the topics of all tokens so many times, on one thread."""
        ...

    def tokens(self) -> Tokens:
        """Return the topics of all tokens."""
        ...


class Ours:
    """The sweeps of `HDPTopics`, concentrations fixed."""

    def __init__(
        self,
        rows: SparseRows,
        n_topics: int,
        seed: int,
        pool: ThreadPoolExecutor | None = None,
    ) -> None:
        self._corpus, self._pool = corpus_of(rows), pool
        self._rng = np.random.default_rng(seed)
        self._state = start_topics(self._corpus, n_topics, self._rng)
        self._floor = 1.0 / expected_tables(document_lengths(self._corpus), STRENGTHS.alpha)

    def advance(self, n_sweeps: int) -> None:
        """Redraw the topics of all tokens so many times, on the threads of the pool."""
        given = STRENGTHS, self._floor, self._rng, self._pool
        for _ in range(n_sweeps):
            state = sweep_topics(self._corpus, self._state, *given)
            self._state = redraw_weights(state, STRENGTHS.gamma, self._rng)

    def tokens(self) -> Tokens:
        """Return the topics of all tokens."""
        return Tokens(*_places(self._corpus), self._state.labels)


class Tomotopy:
    """tomotopy's `HDPModel` with the same concentrations, which it does not move either."""

    def __init__(self, tomotopy: Any, rows: SparseRows, n_topics: int, seed: int) -> None:
        alpha, gamma, eta = STRENGTHS
        self._model = tomotopy.HDPModel(
            initial_k=n_topics, alpha=alpha, gamma=gamma, eta=eta, seed=seed
        )
        documents, words = _places(corpus_of(rows))
        self._documents, first = np.unique(documents, return_index=True)
        for of in np.split(words, first[1:]):
            self._model.add_doc(list(map(str, of)))
        self._model.burn_in = self._model.optim_interval = 0
        # Reads the documents, and makes no sweep.
        self._model.train(0, workers=1)

    def advance(self, n_sweeps: int) -> None:
        """Redraw the topics of all tokens so many times, on one thread."""
        self._model.train(n_sweeps, workers=1)

    def tokens(self) -> Tokens:
        """Return the topics of all tokens."""
        names = np.array(self._model.used_vocabs).astype(np.int64)
        held = [(np.array(of.words), np.array(of.topics)) for of in self._model.docs]
        documents = np.repeat(self._documents, [len(words) for words, _ in held])
        words, topics = (np.concatenate(parts) for parts in zip(*held, strict=True))
        return Tokens(documents, names[words], topics.astype(np.int64))


def gensim_topics(
    gensim: Any, rows: SparseRows, seed: int, n_passes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Fit gensim's `HdpModel` in some passes; return its weights (K,) and topics (V, K)."""
    alpha, gamma, eta = STRENGTHS
    documents = [
        list(zip(rows.indices[i:j].tolist(), rows.values[i:j].tolist(), strict=True))
        for i, j in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    ]
    names = {word: str(word) for word in range(rows.shape[1])}
    n_chunks = n_passes * -(-len(documents) // _GENSIM_CHUNK)
    model = gensim.HdpModel(
        documents, names, max_chunks=n_chunks, chunksize=_GENSIM_CHUNK, alpha=alpha, gamma=gamma,
        eta=eta, random_state=seed,
    )  # fmt: skip
    shapes, topics = model.hdp_to_lda()
    return shapes / shapes.sum(), np.ascontiguousarray(np.array(topics).T)


def installed(name: str) -> Any:
    """Return the module, or None where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _places(corpus: Corpus) -> tuple[np.ndarray, np.ndarray]:
    """Return document and word of each token."""
    lengths = document_lengths(corpus)
    return np.repeat(np.arange(len(lengths)), lengths), np.repeat(corpus.words, corpus.counts)
