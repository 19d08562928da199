"""State of a chain before its first draw: a new partition, a given one, or that of a trace."""

from collections.abc import Mapping

import numpy as np

from pymc_dpsplit import sampler
from pymc_dpsplit.moves.partition_law import most_clusters
from pymc_dpsplit.moves.start import draw_n_start
from pymc_dpsplit.moves.sweep.density import log_density_alone
from pymc_dpsplit.step.options import Options
from pymc_dpsplit.variables import MixtureVariables
from pymc_dpsplit.variables.conditioning import Conditioning


def first_state(
    mixture: MixtureVariables,
    options: Options,
    conditioning: Conditioning,
    shift: np.ndarray,
    point: Mapping[str, np.ndarray],
    target: sampler.Target,
    rng: np.random.Generator,
) -> sampler.ChainState:
    """Return the state from which a chain makes its first draw.

    Parameters
    ----------
    mixture : MixtureVariables
    options : Options
    conditioning : Conditioning
        Evaluated at `point`.
    shift : ndarray of float64, shape (D,)
        That of the prior of `target`.
    point : mapping
        Values of all variables.
    target : Target
    rng : numpy.random.Generator

    Returns
    -------
    ChainState
    """
    if options.continues:
        return _continued(mixture, conditioning, shift, point, target, rng)
    labels = options.start_labels
    labels = mixture.labels_in(point) if labels is None else labels
    if labels is not None:
        own = mixture.items.of_recorded(np.unique(labels, return_inverse=True)[1])
        state = sampler.resume(target, own)
        _refuse_impossible(mixture.name, target, len(state.stats))
        return state
    n_start = options.start_clusters or mixture.count_in(point) or None
    if n_start is None and mixture.needs_all_rows:
        n_start = min(draw_n_start(rng, target.data.shape[0]), mixture.max_clusters)
    return sampler.start(target, rng, n_start)


def _refuse_impossible(name: str, target: sampler.Target, n_clusters: int) -> None:
    """Refuse a partition to start from with more clusters than a finite mixture has components."""
    most = most_clusters(target.law, target.data.shape[0])
    if n_clusters > most:
        raise ValueError(
            f"{name}: the partition to start from has {n_clusters} clusters, but the mixture has "
            f"{most} components; give start_labels with as many clusters, or leave it out."
        )


def _continued(
    mixture: MixtureVariables,
    conditioning: Conditioning,
    shift: np.ndarray,
    point: Mapping[str, np.ndarray],
    target: sampler.Target,
    rng: np.random.Generator,
) -> sampler.ChainState:
    """Return the state of a chain whose draw is the point.

    Labels are drawn given the measure of the point, and law and hyperparameters that other
    steps may have moved since.  Those steps condition on the measure, so all of it still follows
    the posterior if the draw did.
    """
    weights, log_rest, parameters = mixture.measure_in(point)
    component, values = mixture.component, conditioning.values
    params = mixture.items.pack(parameters, values, shift)
    if mixture.is_labelled:
        # Other variables have moved given these labels, which are therefore kept.
        return sampler.resume_with_atoms(target, point[mixture.value_names["labels"]], params)
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)
    alone = log_density_alone(component, target.prior, target.data, conditioning.rows, values)
    return sampler.start_from_measure(target, rng, alone, log_weights, log_rest, params)
