"""What completion and weights of documents read: their counts, and topics with a remainder."""

import numpy as np
import xarray as xr

from pymc_dpsplit.data.sparse_rows import SparseRows
from pymc_dpsplit.topic_model.documents import read_documents
from pymc_dpsplit.variables.names import names_in


def checked_documents(documents: object, topics: xr.DataArray, name: str) -> SparseRows:
    """Return documents as compressed rows, with the words of the model.

    Parameters
    ----------
    documents : array-like or SciPy sparse matrix, shape (J, V)
    topics : DataArray, shape (..., V)
        Those of the trace, see `topic_words`.
    name : str
        Name of the documents of the model.

    Returns
    -------
    SparseRows

    Raises
    ------
    ValueError
        If they are no counts, or have other words.
    """
    rows = read_documents(documents, "documents")
    n_words = topics.shape[-1]
    if rows.shape[1] != n_words:
        raise ValueError(
            f"documents has {rows.shape[1]} words, but {name} has {n_words}; give one column for "
            "each word of the model, in its order."
        )
    word, given = str(topics.dims[-1]), names_in(documents).coords[-1]
    if given is not None and word in topics.coords:
        own = topics[word].to_numpy()
        different = np.flatnonzero(np.asarray(given) != own)
        if len(different):
            at = different[0]
            raise ValueError(
                f"documents has the word {given[at]!r} in column {at}, where {name} has "
                f"{own[at].item()!r}; order the columns as in the model."
            )
    return rows


def with_remainder(weights: np.ndarray, topics: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights and topics of a draw, and of its remainder, which comes last.

    Parameters
    ----------
    weights : ndarray of float64, shape (L,)
        0 from the number of topics K on.
    topics : ndarray of float32, shape (L, V)

    Returns
    -------
    weights : ndarray of float64, shape (K + 1,)
    phi : ndarray of float64, shape (V, K + 1)
    """
    occupied = int((weights > 0).sum())
    phi = np.empty((topics.shape[1], occupied + 1))
    phi[:, :-1] = topics[:occupied].T
    # Probabilities are recorded as float32.
    phi[:, :-1] /= phi[:, :-1].sum(axis=0)
    phi[:, -1] = 1.0 / len(phi)
    shares = np.append(weights[:occupied], max(0.0, 1.0 - weights[:occupied].sum()))
    return shares / shares.sum(), phi
