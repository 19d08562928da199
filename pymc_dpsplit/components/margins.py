"""Families whose rows have a law only as a whole, alone and as parts of a product."""

import numpy as np

from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.components.independent_parts import IndependentParts
from pymc_dpsplit.components.linear_regression.family import LinearRegression


def families_without_margins(
    component: ComponentFamily, n_features: int
) -> list[tuple[ComponentFamily, np.ndarray]]:
    """Return the families in which some columns of a row have no law of their own.

    Parameters
    ----------
    component : ComponentFamily
    n_features : int
        Number of columns D of the data.

    Returns
    -------
    list of tuple
        Each family, the component itself or that of a part, and the positions of its columns in
        the data; the response of a regression comes last.
    """
    pairs = [(component, np.arange(n_features))]
    if isinstance(component, IndependentParts):
        columns = component.columns_in_data(n_features)
        pairs = [(component.families[key], at) for key, at in columns.items()]
    return [(family, at) for family, at in pairs if not family.has_margins]


def as_new_rows(component: ComponentFamily, rows: np.ndarray) -> np.ndarray:
    """Check new rows, in which a part of a product without margins may be missing as a whole.

    Parameters
    ----------
    component : ComponentFamily
    rows : ndarray of float64 or float32, shape (M, D)
        NaN where missing.

    Returns
    -------
    ndarray, shape (M, D)
        The rows.  Where the response of a regression is missing its covariates are too: what is
        conditioned on has no density.

    Raises
    ------
    ValueError
        As `ComponentFamily.validate_rows`.
    """
    if not isinstance(component, IndependentParts):
        component.validate_rows(rows)
        return rows
    filled, found = rows.copy(), rows.copy()
    for family, at in families_without_margins(component, rows.shape[1]):
        deciding = at[-1:] if isinstance(family, LinearRegression) else at
        is_absent = np.isnan(rows[:, deciding]).all(1)
        # A legal row in its place.
        filled[np.ix_(is_absent, at)] = family.support_point(np.zeros(len(at)))
        found[np.ix_(is_absent, at)] = np.nan
    component.validate_rows(filled)
    return found
