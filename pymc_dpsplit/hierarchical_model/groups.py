"""The argument `groups` of a hierarchical mixture."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pymc.model import Model
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable

from pymc_dpsplit.components.arguments import shown
from pymc_dpsplit.variables.observed import values_of
from pymc_dpsplit.variables.shared_labels import numbered_groups, refuse_other_index


@dataclass(frozen=True, eq=False)
class RowGroups:
    """Groups of the rows of a hierarchical mixture.

    Attributes
    ----------
    group_of_row : ndarray of int64, shape (N,)
        Group 0 .. J - 1 of each row.
    names : sequence
        Names of the J groups, of which some may have no rows.
    dim : str
        Name of their dimension.
    data : tuple of str and ndarray, optional
        Name of the ``pm.Data`` that holds the groups, and its value when the mixture was declared.
    """

    group_of_row: np.ndarray
    names: Sequence[Any]
    dim: str
    data: tuple[str, np.ndarray] | None = None

    @property
    def sizes(self) -> np.ndarray:
        """Return the number of rows of each group, shape (J,)."""
        return np.bincount(self.group_of_row, minlength=len(self.names))


def column_of_groups(groups: Any, observed: Any) -> tuple[Any, Any]:
    """Return the groups, and the observations without that column if they name one of a frame.

    Parameters
    ----------
    groups, observed : object
        As the user gives them.

    Returns
    -------
    groups, observed : object

    Raises
    ------
    ValueError
        If a frame has no such column, or no other.
    """
    is_frame = hasattr(observed, "columns") and hasattr(observed, "loc")
    if not isinstance(groups, str) or not is_frame:
        return groups, observed
    columns = [str(of) for of in observed.columns]
    if groups not in columns or len(columns) == 1:
        raise ValueError(
            f"groups={groups!r} is no column of observed beside others, of which it has "
            f"{', '.join(columns)}; give the name of one, or an id for each row."
        )
    return observed[groups], observed.drop(columns=[groups])


def refuse_changed_groups(groups: RowGroups, name: str, model: Model) -> None:
    """Refuse groups that ``pm.set_data`` has changed since the mixture was declared."""
    if groups.data is None:
        return
    key, before = groups.data
    now = values_of(model[key]) if model.named_vars.tree_contains(key) else before
    if not np.array_equal(np.asarray(now), before):
        raise ValueError(
            f"{name}: groups={key} has other values than when {name} was declared; declare the "
            "mixture anew."
        )


def read_groups(
    groups: Any, group_dim: Any, n_rows: int, observed: Any, name: str, model: Model
) -> RowGroups:
    """Read the groups of rows.

    Parameters
    ----------
    groups : array-like of int or str, or pm.Data, shape (N,)
    group_dim : str or None
        Name of the dimension of groups.
    n_rows : int
    observed : object
        The observations as the user gives them.
    name : str
        Name of the mixture.
    model : pymc.Model
        If it has a coordinate of that name, groups are those of the coordinate, in its order; else
        they are sorted.

    Returns
    -------
    RowGroups

    Raises
    ------
    ValueError
        If the groups do not fit the rows, or the coordinate.
    """
    dim = f"{model.name_for(name)}_group" if group_dim is None else group_dim
    if not isinstance(dim, str) or not dim:
        raise ValueError(
            f"group_dim={shown(group_dim)} is not a name; give that of the dimension of groups, or "
            "leave it out."
        )
    if model.named_vars.tree_contains(dim):
        raise ValueError(
            f"group_dim={dim!r} is the name of a variable of the model; give another name."
        )
    data = None
    if isinstance(groups, SharedVariable) and groups in model.data_vars:
        value = np.array(values_of(groups))
        data, groups = (str(groups.name), value), value
    if groups is None or isinstance(groups, Variable):
        raise ValueError(
            f"groups={groups} is no array of ids; give one for each row of observed, such as a "
            "column of a table, or pm.Data of the model."
        )
    refuse_other_index("groups", groups, observed)
    try:
        numbers, names = numbered_groups(groups, n_rows)
    except ValueError as error:
        of = name if observed is None else "observed"
        raise ValueError(str(error).replace("observed", of)) from None
    if dim not in model.dim_lengths:
        order = np.argsort(np.asarray(names), kind="stable")
        return RowGroups(np.argsort(order)[numbers], [names[at] for at in order], dim, data)
    known = model.coords.get(dim)
    if known is None:
        raise ValueError(
            f"group_dim={dim!r} is a dimension of the model without names; give another name, or "
            "coords with the groups."
        )
    places = {str(of): at for at, of in enumerate(known)}
    unknown = [of for of in names if str(of) not in places]
    if unknown:
        raise ValueError(
            f"groups holds {shown(unknown[0])}, which is not in the coordinate {dim!r} of the "
            "model; add it there, or give another group_dim."
        )
    at_coordinate = np.array([places[str(of)] for of in names])
    return RowGroups(at_coordinate[numbers], list(known), dim, data)
