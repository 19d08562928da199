"""Columns of which a density is asked, and those given, in families that condition themselves.

A row of `Multinomial` has a law given its total, one of `LinearRegression` given its covariates;
docs/method.md, eq. (7.19).
"""

from collections.abc import Collection
from typing import NamedTuple

from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.components.linear_regression.family import LinearRegression
from pymc_dpsplit.components.margins import families_without_margins
from pymc_dpsplit.components.multinomial import Multinomial


class Conditioned(NamedTuple):
    """Features that are given, in the two densities whose ratio is asked for, eq. (11.11).

    Attributes
    ----------
    jointly : tuple of int
        Those in the density that the asked features are in too.
    alone : tuple of int
        Those in the density by which it is divided: without covariates of a response asked for.
    """

    jointly: tuple[int, ...]
    alone: tuple[int, ...]


def conditioned_columns(
    component: ComponentFamily, keep: Collection[int], given: Collection[int], n_features: int
) -> Conditioned | ComponentFamily:
    """Return how some columns are conditioned on others, or the family in which they have no law.

    Parameters
    ----------
    component : ComponentFamily
    keep, given : collection of int
        Columns whose density is asked, and columns that are given.
    n_features : int
        Number of columns D of the data.

    Returns
    -------
    Conditioned or ComponentFamily
    """
    silent: set[int] = set()  # covariates of no response
    divided: set[int] = set()
    for family, at in families_without_margins(component, n_features):
        own = set(at.tolist())
        asked, known = own & set(keep), own & set(given)
        if isinstance(family, LinearRegression):
            response = {int(at[-1])}
            covariates, has_response = own - response, bool(response & (asked | known))
            silent |= set() if has_response else known
            divided |= covariates & known if response <= asked else set()
            is_lawful = not asked & covariates and (covariates <= known or not has_response)
        else:
            is_whole = asked in (set(), own) and known in (set(), own)
            # A row of counts has a law given its total, so there is none of the row by itself.
            is_lawful = is_whole and not (asked and isinstance(family, Multinomial))
        if not is_lawful:
            return family
    jointly = tuple(d for d in given if d not in silent)
    return Conditioned(jointly, tuple(d for d in jointly if d not in divided))


def columns_without_law(
    component: ComponentFamily, given: Collection[int], n_features: int
) -> set[int]:
    """Return the columns that have no density of their own, given some others."""
    lawless: set[int] = set()
    for family, at in families_without_margins(component, n_features):
        has_response = isinstance(family, LinearRegression) and set(at[:-1]) <= set(given)
        lawless.update(at[:-1].tolist() if has_response else at.tolist())
    return lawless
