"""Families whose rows have a law only as a whole, alone and as parts of a product."""

from collections.abc import Sequence

import numpy as np

from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.components.independent_parts import IndependentParts


def family_without_margin(
    component: ComponentFamily, features: Sequence[int], n_features: int
) -> ComponentFamily | None:
    """Return the family in which some columns have no law of their own, None if they have one.

    Parameters
    ----------
    component : ComponentFamily
    features : sequence of int
        Positions of columns in the data.
    n_features : int
        Number of columns D of the data.

    Returns
    -------
    ComponentFamily or None
        The family itself, or that of the part of a product that has one of the columns.
    """
    families = [component]
    if isinstance(component, IndependentParts):
        columns = component.columns_in_data(n_features)
        families = [component.families[key] for key, at in columns.items()
                    if np.isin(at, features).any()]  # fmt: skip
    return next((family for family in families if not family.has_margins), None)


def validate_new_rows(component: ComponentFamily, rows: np.ndarray) -> None:
    """Check new rows, in which a part of a product without margins may be missing as a whole.

    Parameters
    ----------
    component : ComponentFamily
    rows : ndarray of float64 or float32, shape (M, D)
        NaN where missing.

    Raises
    ------
    ValueError
        As `ComponentFamily.validate_rows`.
    """
    if isinstance(component, IndependentParts):
        rows = rows.copy()
        for key, at in component.columns_in_data(rows.shape[1]).items():
            family, is_absent = component.families[key], np.isnan(rows[:, at]).all(1)
            if not family.has_margins:
                # A legal row in its place.
                rows[np.ix_(is_absent, at)] = family.support_point(np.zeros(len(at)))
    component.validate_rows(rows)
