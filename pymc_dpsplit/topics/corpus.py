"""Documents as kernels read them."""

from typing import NamedTuple

import numpy as np
import scipy

from pymc_dpsplit.data.sparse_rows import SparseRows, row_totals

# Above it the difference of digamma functions loses its digits.
_LARGE_ALPHA = 1e6


class Corpus(NamedTuple):
    """Documents of words; the tokens of a document are ordered by word.

    Attributes
    ----------
    indptr : ndarray of int64, shape (J + 1,)
        Document j has the entries indptr[j] to indptr[j + 1] - 1.
    words : ndarray of int32, shape (M,)
        Word of each entry.
    counts : ndarray of int32, shape (M,)
        Number of tokens of each entry.
    first_token : ndarray of int64, shape (J + 1,)
        Document j has the tokens first_token[j] to first_token[j + 1] - 1.
    n_words : int
        Number of words V of the vocabulary.
    """

    indptr: np.ndarray
    words: np.ndarray
    counts: np.ndarray
    first_token: np.ndarray
    n_words: int


def corpus_of(rows: SparseRows) -> Corpus:
    """Return documents (rows) of words (columns) as a corpus; the arrays are not copied."""
    first_token = np.concatenate(([0], np.cumsum(row_totals(rows))))
    return Corpus(rows.indptr, rows.indices, rows.values, first_token, rows.shape[1])


def document_lengths(corpus: Corpus) -> np.ndarray:
    """Return the number of tokens (J,) of each document."""
    return np.diff(corpus.first_token)


def expected_tables(lengths: np.ndarray, alpha: float) -> float:
    """Return the prior mean of the number of tables of documents with the given lengths (J,)."""
    if alpha > _LARGE_ALPHA:
        return float(np.sum(alpha * np.log1p(lengths / (alpha - 0.5))))
    digamma = scipy.special.digamma
    return float(np.sum(alpha * (digamma(alpha + lengths) - digamma(alpha))))
