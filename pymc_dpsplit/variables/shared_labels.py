"""The arguments `groups`, `counts` and `labels` of a mixture: rows that share a label."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc.model import Model
from pytensor.graph.basic import Variable

from pymc_dpsplit.components.arguments import as_numbers, shown
from pymc_dpsplit.components.nonconjugate.family import NonconjugateFamily
from pymc_dpsplit.components.shared_labels.items import SharedLabels
from pymc_dpsplit.components.sparse_counts import is_sparse
from pymc_dpsplit.variables.known_labels import checked_known_labels, rows_of_known_labels
from pymc_dpsplit.variables.observed import Observed

# Names of the variables and the dimension that say which rows share a label, after the mixture's.
GROUP, GROUP_OF_ROW, COUNTS = "group", "group_of_row", "counts"
KNOWN_LABELS = "known_labels"
# Sums of the counts of all rows stay exact.
_MOST_COUNT = 2**31 - 1


def read_shared_labels(
    groups: Any, counts: Any, labels: Any, observed: Any, data: Observed
) -> SharedLabels | None:
    """Check the groups and counts of rows, or their known labels.

    Parameters
    ----------
    groups : array-like of int or str, shape (N,), optional
    counts : array-like of int, shape (N,), optional
    labels : array-like of int, shape (N,), optional
        -1 for unknown.
    observed : object
        The observations as the user gives them.
    data : Observed
        The same, read.

    Returns
    -------
    SharedLabels or None
        None if none is given, or if no two rows have the same known label, which says nothing.

    Raises
    ------
    ValueError
        If they do not fit the rows, or if the mixture is of a kind whose rows cannot share labels.
    """
    arguments = {"groups": groups, "counts": counts, "labels": labels}
    given = [key for key, of in arguments.items() if of is not None]
    if not given:
        return None
    if labels is not None and len(given) > 1:
        raise ValueError(
            f"labels and {given[0]} are both given, but rows of a known label are observations of "
            f"the process, and a group is one; leave out labels or {given[0]}."
        )
    _refuse_mixture(given[0], observed, data)
    n_rows = data.shape[0]
    if labels is not None:
        refuse_other_index("labels", labels, observed)
        return rows_of_known_labels(checked_known_labels(labels, n_rows))
    numbers, names = np.arange(n_rows), None
    if groups is not None:
        refuse_other_index("groups", groups, observed)
        numbers, names = numbered_groups(groups, n_rows)
    multiples = np.ones(n_rows)
    if counts is not None:
        refuse_other_index("counts", counts, observed)
        multiples = _checked_counts(counts, n_rows)
    return SharedLabels(numbers, multiples, names)


def refuse_taken_names(name: str, shared: SharedLabels | None, model: Model) -> None:
    """Refuse a mixture whose variables of groups and counts would have names that are taken."""
    for suffix in [] if shared is None else (GROUP, GROUP_OF_ROW, COUNTS, KNOWN_LABELS):
        full = f"{model.name_for(name)}_{suffix}"
        if model.named_vars.tree_contains(full) or full in model.coords:
            raise ValueError(
                f"name={name!r} is taken: the model already has {name}_{suffix}; choose another "
                "name."
            )


def register_shared_labels(
    name: str, shared: SharedLabels | None, dims: tuple[str, ...] | None, model: Model
) -> None:
    """Add the groups, counts or labels of rows to a model as constants, which traces record.

    Parameters
    ----------
    name : str
        Name of the mixture.
    shared : SharedLabels, optional
    dims : tuple of str, optional
        Those of the observations.
    model : pymc.Model
    """
    if shared is None:
        return
    held: dict[str, np.ndarray] = {}
    if shared.names is not None:
        model.add_coord(f"{model.name_for(name)}_{GROUP}", shared.names)
        held[GROUP_OF_ROW] = shared.group_of_row
    if shared.known is not None:
        held[KNOWN_LABELS] = shared.known
    if shared.has_counts:
        held[COUNTS] = shared.counts.astype(np.int64)
    for suffix, values in held.items():
        constant: Any = pt.constant(values, name=model.name_for(f"{name}_{suffix}"))
        model.register_data_var(constant, dims=None if dims is None else dims[:1])


def _refuse_mixture(argument: str, observed: Any, data: Observed) -> None:
    """Refuse the mixtures whose rows cannot share labels."""
    if data.values is None:
        raise ValueError(
            f"{argument} is given without observed, but each value of a latent mixture has a label "
            "of its own; give observed, or let rows of a likelihood share values, as in b[group]."
        )
    if is_sparse(observed):
        sums = "" if argument == "labels" else ", or the sums of the rows of each group"
        raise ValueError(f"{argument} is given for a sparse matrix; give observed.toarray(){sums}.")
    if isinstance(observed, Variable):
        raise ValueError(
            f"{argument} is given, but observed={observed} is a variable, whose rows may change; "
            "give the array itself."
        )
    if isinstance(data.component, NonconjugateFamily):
        raise ValueError(
            f"{argument} needs a family whose parameters can be integrated out, which "
            f"{data.component!r} is not; give a family such as Normal, or leave it out."
        )
    if data.is_labelled:
        raise ValueError(
            f"{argument} is given, but the density of a row depends on a variable "
            f"({', '.join(data.component.likelihood_arguments)}); give a number in its place."
        )
    if len(data.initial_values):
        raise ValueError(
            f"{argument} is given, but observed has {len(data.initial_values)} missing entries, "
            "which are drawn for rows with labels of their own only; fill them in, or drop "
            "those rows."
        )


def refuse_other_index(argument: str, given: Any, observed: Any) -> None:
    """Refuse a series of pandas that is not in the order of the observations.

    Parameters
    ----------
    argument : str
        Its name.
    given, observed : object
        As the user gives them.

    Raises
    ------
    ValueError
    """
    own, other = (getattr(of, "index", None) for of in (given, observed))
    if not all(hasattr(index, "to_numpy") for index in (own, other)):
        return
    if own is not None and not own.equals(other) and len(own) == len(other):  # type: ignore[arg-type]
        raise ValueError(
            f"{argument} has another index than observed; give {argument}.loc[observed.index], or "
            f"{argument}.to_numpy() if both are in one order."
        )


def numbered_groups(groups: Any, n_rows: int) -> tuple[np.ndarray, Sequence[Any]]:
    """Number groups by first appearance.

    Parameters
    ----------
    groups : array-like of int or str, shape (N,)
    n_rows : int
        Number of rows N.

    Returns
    -------
    numbers : ndarray of int64, shape (N,)
        Number of the group of each row.
    names : sequence
        Names of the groups.

    Raises
    ------
    ValueError
        If they are no ids, of another number than the rows, or missing.
    """
    ids = _as_ids(groups)
    if ids.shape != (n_rows,):
        raise ValueError(
            f"groups has shape {ids.shape}, but observed has {n_rows} rows; give one id for each."
        )
    if ids.dtype.kind == "O":
        ids = _of_one_type(ids)
    n_missing = int((ids != ids).sum())
    if n_missing:
        raise ValueError(
            f"groups has {n_missing} missing id{'s' if n_missing > 1 else ''}; give every row the "
            "id of its group, and a row of its own an id that no other row has."
        )
    if ids.dtype.kind == "f":
        if not np.isfinite(ids).all() or (ids != np.rint(ids)).any():
            raise ValueError(
                "groups holds numbers that are not whole; give ids, such as integers or strings."
            )
        ids = ids.astype(np.int64)
    if ids.dtype.kind not in "iuUMmb":
        raise ValueError(f"groups is of type {ids.dtype}; give ids, such as integers or strings.")
    sorted_ids, first, position = np.unique(ids, return_index=True, return_inverse=True)
    order = np.argsort(first)
    names = sorted_ids[order]
    numbers = np.argsort(order)[position.reshape(-1)].astype(np.int64)
    return numbers, [str(of) for of in names] if names.dtype.kind in "Ub" else list(names)


def _as_ids(groups: Any) -> np.ndarray:
    """Return ids as an array, those of a list as objects, as NumPy makes 1 and "1" equal."""
    if isinstance(groups, str | bytes | dict | set) or not hasattr(groups, "__len__"):
        raise ValueError(
            f"groups={shown(groups)} is no array of ids; give one for each row of observed."
        )
    if np.ma.is_masked(groups):
        ids = np.asarray(np.ma.getdata(groups)).astype(object)
        ids[np.ma.getmaskarray(groups)] = None
        return ids
    if isinstance(groups, list | tuple):
        ids = np.empty(len(groups), object)
        for at, value in enumerate(groups):
            ids[at] = value
        return ids
    return np.asarray(groups)


def _of_one_type(ids: np.ndarray) -> np.ndarray:
    """Return ids of type object as integers, floats or strings."""
    is_missing = np.array([of is None or _differs_from_itself(of) for of in ids])
    known = ids[~is_missing]
    kinds = {str if isinstance(of, str) else _number_type(of) for of in known}
    if is_missing.any():
        return np.where(is_missing, np.nan, 0.0)  # which the caller refuses and counts
    if len(kinds) != 1 or None in kinds:
        types = ", ".join(sorted({type(of).__name__ for of in known}))
        raise ValueError(
            f"groups holds ids of type {types}; give ids of one type, all integers or all strings."
        )
    return known.astype(kinds.pop())


def _number_type(value: Any) -> Any:
    if isinstance(value, bool | np.bool_):
        return bool
    if isinstance(value, int | np.integer):
        return np.int64
    return np.float64 if isinstance(value, float | np.floating) else None


def _differs_from_itself(value: Any) -> bool:
    """Return whether a value is missing: NaN, NaT, or NA of pandas, which equals nothing."""
    if type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(value != value)


def _checked_counts(counts: Any, n_rows: int) -> np.ndarray:
    numbers = as_numbers("counts", counts)
    if numbers.shape != (n_rows,):
        raise ValueError(
            f"counts has shape {numbers.shape}, but observed has {n_rows} rows; give one number "
            "for each."
        )
    is_wrong = ~((numbers >= 1) & (numbers <= _MOST_COUNT) & (numbers == np.rint(numbers)))
    if is_wrong.any():
        at = int(np.flatnonzero(is_wrong)[0])
        raise ValueError(
            f"counts has {numbers[at]:g} in row {at}; give whole numbers from 1 to {_MOST_COUNT}, "
            "and drop rows that stand for none."
        )
    return numbers
