"""Shift of the rows of a latent mixture against an intercept of their likelihood."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pymc_dpsplit import sampler
from pymc_dpsplit.moves.partition import log_joint
from pymc_dpsplit.moves.slice import slice_draw
from pymc_dpsplit.variables.intercepts import Intercept


def move_intercepts(
    intercepts: Sequence[Intercept],
    target: sampler.Target,
    state: sampler.ChainState,
    point: Mapping[str, np.ndarray],
    rng: np.random.Generator,
) -> tuple[sampler.Target, sampler.ChainState, dict[str, np.ndarray]]:
    """Slice-sample numbers added to all rows and subtracted from an intercept, eq. (8.7).

    Parameters
    ----------
    intercepts : sequence of Intercept
    target : Target
        Its data are the rows.
    state : ChainState
        Not modified.
    point : mapping
        Value of every variable; not modified.
    rng : numpy.random.Generator

    Returns
    -------
    target : Target
    state : ChainState
    point : dict
    """
    point = dict(point)
    for intercept in intercepts:
        intercept.hold(point)
        own, rows = point[intercept.value_name], point[intercept.rows_name]
        present = _Shifted(target, state, own, rows)
        for direction in np.eye(own.size).reshape(-1, *own.shape):
            present = _moved_along(direction, intercept, present, rng)
        target, state = present.target, present.state
        point |= {intercept.value_name: present.own, intercept.rows_name: present.rows}
    return target, state, point


class _Shifted(NamedTuple):
    """Target and state of the chain, and values of the intercept and of the rows."""

    target: sampler.Target
    state: sampler.ChainState
    own: np.ndarray
    rows: np.ndarray


def _moved_along(
    direction: np.ndarray,
    intercept: Intercept,
    present: _Shifted,
    rng: np.random.Generator,
) -> _Shifted:
    """Slice-sample the shift along a direction, in the shape of the intercept."""

    def shifted(c: float) -> _Shifted:
        rows = present.rows + c * direction
        data = intercept.component.arranged(rows.reshape(len(rows), -1))
        target = present.target._replace(data=data)
        stats = sampler.resume(target, present.state.labels).stats
        state = present.state._replace(stats=stats)
        return _Shifted(target, state, np.asarray(present.own - c * direction), rows)

    def log_density(c: float) -> float:
        there = shifted(c)
        log_prior, log_likelihood = intercept.log_terms(there.own, there.rows)
        found = log_prior + log_likelihood + float(log_joint(there.target, there.state.stats))
        return found if np.isfinite(found) else -np.inf

    # The spread of the rows is the same after any shift, and so is the width of the slice.
    width = float(np.std(present.rows)) or 1.0
    return shifted(slice_draw(log_density, 0.0, width, rng))
