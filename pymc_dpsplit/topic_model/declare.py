"""`HDPTopics`: declare a hierarchical Dirichlet process of topics in a PyMC model."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.transforms import log
from pymc.model import Model
from pymc.pytensorf import rvs_in_graph
from pytensor.graph.basic import Variable
from pytensor.tensor.random.variable import shared_rng

from pymc_dpsplit.components.arguments import check_integer
from pymc_dpsplit.components.multinomial import Multinomial
from pymc_dpsplit.data.sparse_rows import SparseRows, column_totals, row_totals
from pymc_dpsplit.topic_model.documents import read_documents
from pymc_dpsplit.topic_model.measure import ROLES, TopicDocuments, TopicMeasure
from pymc_dpsplit.topic_model.record import WORD_TOTALS
from pymc_dpsplit.variables.dims import add_names, checked_dims, entries_of, refuse_reserved
from pymc_dpsplit.variables.hyperparameters import checked_scalar
from pymc_dpsplit.variables.names import names_in
from pymc_dpsplit.variables.sparse_data import expanded

_MOST_TOPICS = 128

_MEANING = 'concentration; give a positive number, or a variable such as pm.Gamma("{}", 2, 4)'


def HDPTopics(  # noqa: N802  (used like the distributions of PyMC)
    name: str,
    alpha: Any,
    gamma: Any,
    eta: Any,
    *,
    observed: Any,
    dims: Sequence[str] | None = None,
    max_topics: int | None = None,
) -> Variable:
    """Declare the topics of documents, a hierarchical Dirichlet process, in the current model.

    Each token, that is each occurrence of a word, belongs to a topic, a law over words that is
    Dirichlet(eta, .., eta).  Documents share topics: a document is a Dirichlet process with
    concentration alpha around a global measure, which is one with concentration gamma.

    The function adds the free variables ``{name}_n_topics``, ``{name}_n_tables``,
    ``{name}_new_weight``, ``{name}_weights`` and, if eta is a variable, ``{name}_log_words``;
    `HDPTopicsStep` samples them.  It also adds the observed variable ``{name}``.

    Parameters
    ----------
    name : str
        Name of the documents in the model.
    alpha : float or PyMC variable
        Concentration of documents, positive: the larger, the more topics a document has.
    gamma : float or PyMC variable
        Concentration of the global measure, positive: the larger, the more topics there are.
    eta : float or PyMC variable
        Concentration of topics, positive: the smaller, the fewer words a topic has.
    observed : array-like or SciPy sparse matrix, shape (J, V)
        Number of tokens of each word in each document, whole numbers.  Documents without words
        are legal.
    dims : sequence of str, optional
        Names of the dimensions of documents and words.  By default those that a frame has, or
        ``{name}_row`` and ``{name}_feature``.
    max_topics : int, optional
        Number of topics recorded, largest first.  The chain is not truncated:
        ``{name}_n_topics`` is exact.  The default is 128, or the number of tokens if that is less.

    Returns
    -------
    TensorVariable
        The observed variable.

    Raises
    ------
    ValueError
        With one sentence that names the argument, the fault and the remedy.

    Notes
    -----
    The log probability of the model is that of eq. (15.3) of docs/method.md as a function of the
    concentrations: words belong to topics that are not variables of the model, so it has no term
    for ``{name}``, and documents cannot be drawn from the model.

    References
    ----------
    .. [1] Teh, Jordan, Beal & Blei (2006), Hierarchical Dirichlet processes, JASA 101.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_dpsplit as dps
    >>> with pm.Model() as model:
    ...     alpha, gamma = pm.Gamma("alpha", 2, 2), pm.Gamma("gamma", 2, 2)
    ...     w = dps.HDPTopics("w", alpha, gamma, 0.1, observed=[[3, 1, 0], [0, 0, 4]])
    >>> [rv.name for rv in model.free_RVs]
    ['alpha', 'gamma', 'w_n_topics', 'w_n_tables', 'w_new_weight', 'w_weights']
    """
    model = _current_model(name)
    names = names_in(observed)
    try:
        rows = read_documents(observed)
        concentrations = [
            checked_scalar(key, value, model, _MEANING.format(key))
            for key, value in {"alpha": alpha, "gamma": gamma, "eta": eta}.items()
        ]
        n_kept = _checked_max_topics(max_topics, int(row_totals(rows).sum()))
        # Names of dimensions are checked as for rows of counts.
        counts = Multinomial(1.0)
        data_dims = checked_dims(entries_of(dims), rows.shape, counts, names, name, model)
        _check_names(name, model)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    target = model.name_for(name)
    lengths, times = np.unique(row_totals(rows), return_counts=True)
    op = TopicMeasure(target, rows.shape[1], n_kept, bool(rvs_in_graph([concentrations[2]])))
    node = op.make_node(shared_rng(seed=None), *concentrations, lengths, times)
    add_names(data_dims, names, model)
    model.add_coord(f"{target}_topic", range(n_kept))
    for rv, role in zip(node.outputs[1:], op.roles, strict=True):
        # Log transform, because the weight of the remainder underflows if gamma is small.
        transform = log if role == "new_weight" else None
        own = (f"{target}_topic",) if role == "weights" else None
        model.register_rv(rv, f"{name}_{role}", dims=own, default_transform=transform)
    documents = TopicDocuments(target, rows.shape[1])
    x: Any = documents(shared_rng(seed=None), rows.shape[0], *node.outputs[1:])
    return _register_documents(x, name, rows, data_dims, model)


def _current_model(name: Any) -> Model:
    model = Model.get_context(error_if_none=False)
    if model is None:
        raise ValueError(
            f"HDPTopics {name!r} is declared outside a model; put it inside `with pm.Model():`."
        )
    if not isinstance(name, str) or not name:
        raise ValueError(f"name={name!r} is not a name; give a non-empty string.")
    return model


def _checked_max_topics(given: Any, n_tokens: int) -> int:
    if given is None:
        return min(_MOST_TOPICS, n_tokens)
    check_integer("max_topics", given, 1)
    return min(int(given), n_tokens)


def _check_names(name: str, model: Model) -> None:
    refuse_reserved(name, model)
    for suffix in ("", *(f"_{role}" for role in (*ROLES, WORD_TOTALS))):
        if model.named_vars.tree_contains(model.name_for(name + suffix)):
            raise ValueError(
                f"name={name!r} is taken: the model already has a variable {name + suffix!r}; "
                "choose another name."
            )
    if f"{model.name_for(name)}_topic" in model.coords:
        raise ValueError(
            f"name={name!r} is taken: the model already has a dimension '{name}_topic'; choose "
            "another name."
        )


def _register_documents(
    x: Any,
    name: str,
    rows: SparseRows,
    dims: tuple[str, ...] | None,
    model: Model,
) -> Variable:
    """Register the documents as an observed variable, which stays sparse."""
    x.name = model.name_for(name)
    # Readers of a trace know the words by it.
    words = column_totals(rows).astype(np.int64)
    totals: Any = pt.constant(words, name=model.name_for(f"{name}_{WORD_TOTALS}"))
    for axis, dim in enumerate(dims or ()):
        if dim not in model.dim_lengths:
            model.add_coord(dim, values=None, length=pt.constant(rows.shape[axis]))
    model.register_data_var(totals, dims=None if dims is None else dims[1:])
    value = expanded(rows)
    model.create_value_var(x, transform=None, default_transform=None, value_var=value)
    model.add_named_variable(x, dims)
    model.observed_RVs.append(x)
    return x
