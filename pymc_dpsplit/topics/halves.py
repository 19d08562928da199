"""Documents whose tokens are divided in two halves at random."""

from typing import NamedTuple

import numpy as np

from pymc_dpsplit.topics.corpus import Corpus, document_lengths


class Halves(NamedTuple):
    """Tokens of documents, those of the first half before those of the second.

    Attributes
    ----------
    words : ndarray of int32, shape (T,)
        Word of each token.
    first_token : ndarray of int64, shape (J + 1,)
        Document j has the tokens first_token[j] to first_token[j + 1] - 1.
    middle : ndarray of int64, shape (J,)
        First token of the second half of each document.
    """

    words: np.ndarray
    first_token: np.ndarray
    middle: np.ndarray

    @property
    def is_second(self) -> np.ndarray:
        """Return whether each token (T,) belongs to a second half."""
        lengths = np.diff(self.first_token)
        return np.arange(len(self.words)) >= np.repeat(self.middle, lengths)


def divide_documents(corpus: Corpus, rng: np.random.Generator) -> Halves:
    """Divide the tokens of each document at random; the second half has the odd token.

    Parameters
    ----------
    corpus : Corpus
    rng : numpy.random.Generator

    Returns
    -------
    Halves
    """
    lengths = document_lengths(corpus)
    documents = np.repeat(np.arange(len(lengths)), lengths)
    words = np.repeat(corpus.words, corpus.counts)
    order = np.lexsort((rng.random(len(words)), documents))
    return Halves(words[order], corpus.first_token, corpus.first_token[:-1] + lengths // 2)
