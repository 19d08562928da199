"""Moves of the variables behind the concentrations of a hierarchical mixture, given the labels."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pymc_dpsplit.hierarchical.concentrations import factor_of_alpha_given_weights
from pymc_dpsplit.hierarchical.state import GroupedState, GroupedTarget
from pymc_dpsplit.hierarchical.tables import draw_tables
from pymc_dpsplit.moves.franchise import factor_of_gamma
from pymc_dpsplit.variables.concentration import ConcentrationPrior
from pymc_dpsplit.variables.scalar_priors import Point, move_scalars


def move_concentrations(
    priors: Mapping[str, ConcentrationPrior],
    target_at: Callable[[Point], tuple[GroupedTarget, Any]],
    target: GroupedTarget,
    state: GroupedState,
    tables: np.ndarray,
    point: Point,
    rng: np.random.Generator,
) -> tuple[GroupedTarget, np.ndarray, Point]:
    """Move alpha with the tables summed out, draw these, and move gamma given them.

    Given their number alpha would move half as far.  Global weights are summed out for gamma, so
    that the caller redraws them afterwards.

    Parameters
    ----------
    priors : mapping
        Result of `variables.scalar_priors.priors_to_move`.
    target_at : callable
        ``(point) -> (target, hyperparameters)``.
    target : GroupedTarget
        At the point.
    state : GroupedState
    tables : ndarray of int64, shape (K,)
        Drawn given the state.
    point : dict
        Not modified.
    rng : numpy.random.Generator

    Returns
    -------
    target : GroupedTarget
    tables : ndarray of int64, shape (K,)
        Those of before unless alpha moves.
    point : dict
    """
    if "alpha" in priors:
        factor = {"alpha": factor_of_alpha_given_weights(target, state)}
        point = move_scalars({"alpha": priors["alpha"]}, factor, point, rng)
        target, _ = target_at(point)
        tables = draw_tables(target, state.labels, state.weights, rng)
    if "gamma" in priors:
        factor = {"gamma": factor_of_gamma(len(tables), int(tables.sum()))}
        point = move_scalars({"gamma": priors["gamma"]}, factor, point, rng)
        target, _ = target_at(point)
    return target, tables, point
