"""Documents that users give, as counts of words."""

from typing import Any

import scipy
from pytensor.graph.basic import Variable

from pymc_dpsplit.components.arguments import as_numbers
from pymc_dpsplit.components.sparse_counts import is_sparse, rows_of_sparse
from pymc_dpsplit.data.sparse_rows import SparseRows


def read_documents(observed: Any, name: str = "observed") -> SparseRows:
    """Return documents as compressed rows.

    Parameters
    ----------
    observed : array-like or SciPy sparse matrix, shape (J, V)
        Number of tokens of each word in each document.
    name : str
        Name of the argument, used in the message.

    Returns
    -------
    SparseRows

    Raises
    ------
    ValueError
        With one sentence that names the fault and the remedy.
    """
    try:
        return _rows_of(observed)
    except ValueError as error:
        raise ValueError(str(error).replace("observed", name, 1)) from None


def _rows_of(observed: Any) -> SparseRows:
    if isinstance(observed, Variable):
        raise ValueError(
            f"observed={observed} is a variable, but the documents of a topic model cannot change; "
            "give an array or a sparse matrix."
        )
    if is_sparse(observed):
        rows = rows_of_sparse(observed)
    else:
        array = as_numbers("observed", getattr(observed, "values", observed))
        if array.ndim != 2 or 0 in array.shape:
            raise ValueError(
                f"observed has shape {array.shape}; give counts of shape (J, V), one row for each "
                "document and one column for each word."
            )
        rows = rows_of_sparse(scipy.sparse.csr_array(array))
    if not len(rows.values):
        raise ValueError("observed has no tokens, as all counts are 0; give documents with words.")
    return rows
