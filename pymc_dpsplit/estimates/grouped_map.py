"""`find_map` of mixtures of rows in groups."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from pymc.model import Model

from pymc_dpsplit.estimates.climbing_in_groups import GroupedClimb, climb_groups
from pymc_dpsplit.estimates.fixed_mixture import FixedMixture, read_mixture, refuse_incomplete
from pymc_dpsplit.estimates.grouped_concentrations import GroupedConcentrations
from pymc_dpsplit.estimates.map_result import GroupedMapPartition
from pymc_dpsplit.estimates.numbering import largest_first
from pymc_dpsplit.estimates.starts import starts_of
from pymc_dpsplit.hierarchical.state import GroupedTarget
from pymc_dpsplit.hierarchical_model.lookup import HierarchicalVariables
from pymc_dpsplit.moves.collapsed.conditional_modes import plug_in_parameters


def find_grouped_map(
    mixture: HierarchicalVariables,
    model: Model,
    n_restarts: int,
    max_iterations: int,
    initvals: Mapping[str, Any] | None,
    rng: np.random.Generator,
) -> tuple[GroupedMapPartition, bool]:
    """Find a partition of rows in groups of high posterior density.

    Parameters
    ----------
    mixture : HierarchicalVariables
    model : pymc.Model
    n_restarts, max_iterations, initvals
        See `find_map`.
    rng : numpy.random.Generator

    Returns
    -------
    found : GroupedMapPartition
    has_settled : bool
        Whether the best restart ended by itself.
    """
    refuse_incomplete(mixture.as_mixture, "find_map")
    read = read_mixture(mixture.as_mixture, model, initvals, int(rng.integers(2**31)), "find_map")
    concentrations = GroupedConcentrations(mixture, model, read.point)
    groups = mixture.groups
    alpha, _ = concentrations.at(read.point)
    target = GroupedTarget(read.target, groups.group_of_row, groups.sizes, alpha)
    climbs = [
        climb_groups(target, read.point, concentrations, labels, rows, max_iterations)
        for labels, rows in starts_of(read.target, n_restarts, rng)
    ]
    best = max(climbs, key=lambda climb: climb.objective)
    log_joints = np.array([climb.summit.log_joint for climb in climbs])
    return _result(mixture, read, best, log_joints), best.has_settled


def _result(
    mixture: HierarchicalVariables, read: FixedMixture, best: GroupedClimb, log_joints: np.ndarray
) -> GroupedMapPartition:
    """Convert the best of several climbs to the user's form."""
    summit = best.summit
    prior, _, law = summit.target.of_rows
    labels, order = largest_first(summit.labels)
    weights, alpha = summit.seatings.weights[order], summit.target.alpha
    sizes = summit.target.sizes[:, None]
    return GroupedMapPartition(
        var_name=mixture.name,
        labels=labels,
        alpha=alpha,
        log_joint=summit.log_joint,
        weights=weights,
        parameters=mixture.as_mixture.items.unpack(
            plug_in_parameters(prior, summit.stats[order]), read.values, read.shift
        ),
        n_iterations=len(best.path),
        log_joints=log_joints,
        gamma=law.strength,
        group_weights=(summit.counts[:, order] + alpha * weights) / (sizes + alpha),
    )
