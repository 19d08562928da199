"""Search for a partition by k-means that is likelier than one cluster, where the draws have one.

It tells a chain that never left one cluster from data that have one.
"""

import math
from typing import NamedTuple

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.components.prior_choice.partitions import provisional_partitions
from pymc_dpsplit.data.blocks import column_centres, moments_of
from pymc_dpsplit.moves.partition import log_joint
from pymc_dpsplit.moves.target import Target
from pymc_dpsplit.posterior.trace.draws import conditionings_of
from pymc_dpsplit.posterior.trace.recorded import counts_of
from pymc_dpsplit.sampler import moves_of, resume
from pymc_dpsplit.variables import MixtureVariables

# One cluster then has probability below 1 / 20 given alpha and the hyperparameters.
_LEAST_GAIN = math.log(20.0)
# Entries of the data that take seconds; more are not looked at.
_MOST_ENTRIES = 2_000_000


class LikelierPartition(NamedTuple):
    """A partition with a higher log joint density than one cluster.

    Attributes
    ----------
    n_clusters : int
    gain : float
        Difference of the log joint densities, docs/method.md, eq. (1.4).
    """

    n_clusters: int
    gain: float


def likelier_partition(
    posterior: xr.Dataset, mixture: MixtureVariables, model: Model
) -> LikelierPartition | None:
    """Compare one cluster, if most draws have one, with partitions of the rows by k-means.

    Log joint densities are given alpha, the hyperparameters and the imputed entries of the last
    draw with one cluster; for an `MFMixture` given as many components as a partition needs.  The
    result is the same for the same trace.

    Parameters
    ----------
    posterior : Dataset
        The group posterior.
    mixture : MixtureVariables
    model : pymc.Model

    Returns
    -------
    LikelierPartition, or None
        None if most draws have several clusters, if no partition that is tried is 20 times as
        likely, or if none can be tried: the family is not conjugate, the data are sparse or have
        more than 2e6 entries, rows share labels, or the trace lacks a variable.
    """
    if mixture.items.shared is not None:
        return None
    is_one = counts_of(posterior, mixture.name).transpose("chain", "draw").to_numpy() == 1
    if not is_one.mean() > 0.5:
        return None
    place = tuple(np.argwhere(is_one)[-1].tolist())
    try:
        (conditioning,) = conditionings_of(posterior, mixture, model, [place])
    except ValueError:  # the trace lacks a variable
        return None
    rows = conditioning.rows
    if not isinstance(rows, np.ndarray) or rows.size > _MOST_ENTRIES:
        return None
    component, shift = mixture.component, column_centres(rows)
    prior = component.prior(conditioning.values, shift)
    if not moves_of(prior).is_conjugate:
        return None
    mean, variance = moments_of(rows)
    partitions = list(provisional_partitions((rows - mean) / np.sqrt(variance)))
    law = conditioning.law
    if mixture.n_components is not None:
        # One cluster leaves few components; all are compared with as many as any of them needs.
        most = max(int(labels.max()) + 1 for labels in partitions)
        law = law._replace(strength=max(law.strength, -law.discount * most))
    target = Target(prior, component.arranged(rows), law)
    states = (resume(target, labels).stats for labels in partitions)
    found = [LikelierPartition(len(stats), float(log_joint(target, stats))) for stats in states]
    best = max(found, key=lambda of: of.gain)
    gain = best.gain - found[0].gain  # the first is one cluster
    return LikelierPartition(best.n_clusters, gain) if gain > _LEAST_GAIN else None
