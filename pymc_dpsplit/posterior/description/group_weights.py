"""`group_weights`: shares of the clusters of a reference partition in each group of rows."""

from collections.abc import Iterator
from typing import Any

import arviz_base as azb
import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.components.arguments import generator_of
from pymc_dpsplit.hierarchical.group_weights import log_dirichlet
from pymc_dpsplit.posterior.partitions.reference import (
    counts_shared,
    reference_of,
    refuse_other_length,
    shares_of,
)
from pymc_dpsplit.posterior.trace.draws import dropped_draws
from pymc_dpsplit.posterior.trace.groups import choose_mixture, find_observed, group_of
from pymc_dpsplit.posterior.trace.labels import refuse_other_data
from pymc_dpsplit.posterior.trace.members import mixture_of_either_kind
from pymc_dpsplit.posterior.trace.places import spread_within_chains
from pymc_dpsplit.posterior.trace.recorded import counts_of
from pymc_dpsplit.posterior.trace.rows_in_groups import RowsInGroups, rows_in_groups


def group_weights(
    idata: xr.DataTree,
    partition: Any,
    *,
    model: Model | None = None,
    var_name: str | None = None,
    ci_prob: float | None = None,
    num_samples: int | None = 1000,
    random_seed: Any = None,
) -> xr.Dataset:
    r"""Compute the weights of the clusters of a reference partition in the groups of an HDPMixture.

    In each draw the weights of clusters in a group are drawn from their law given the labels, the
    global weights and alpha.  The weight of a cluster of the draw is divided among the reference
    clusters as its observations are, so that nothing depends on the numbering of clusters [1]_.

    Parameters
    ----------
    idata : DataTree
        As returned by ``pm.sample``, or loaded from disk.
    partition : PointPartition, DataArray or array_like of int, shape (N,)
        Reference clusters of the rows, as from `point_partition`; or known classes.
    model : pymc.Model, optional
        Not needed: the trace has all that is read.  If given, a trace of other data is refused.
    var_name : str, optional
        Name of the mixture; required if the trace contains several.
    ci_prob : float, optional
        Probability of the equal-tailed intervals; by default that of ArviZ,
        ``rcParams["stats.ci_prob"]``.
    num_samples : int, optional
        Largest number of draws to use, evenly spaced and the same of each chain, at least one of
        each; None for all.
    random_seed : int or numpy.random.Generator, optional
        Random seed for the weights.

    Returns
    -------
    Dataset
        Variables over the groups, under their names:

        ``weight``, also over ``{name}_reference_cluster`` and ``statistic``
            Statistics over the draws are mean, sd, and the ends of the interval, such as
            ``eti89_lb``.
        ``new_weight``, also over ``statistic``
            Weight of clusters without observations.  In each draw the weights of a group and this
            one sum to 1.
        ``size``, also over ``{name}_reference_cluster``
            Number of rows of the group in the reference cluster.

    Raises
    ------
    ValueError
        If the trace is of no HDPMixture or lacks its labels, if the partition does not match it, if
        draws have more clusters than were recorded, or if another argument is out of range.

    References
    ----------
    .. [1] docs/method.md, eqs. (16.8) and (16.9).

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_dpsplit as dps
    >>> with pm.Model() as model:
    ...     _ = dps.HDPMixture(
    ...         "x", 1.0, 1.0, dps.Normal(0, 0.1, 2, 1), groups=["a", "a", "b"],
    ...         observed=[0.0, 0.1, 9.0], group_dim="patient",
    ...     )
    ...     idata = pm.sample(
    ...         draws=50, tune=50, chains=2, random_seed=1, progressbar=False,
    ...         compute_convergence_checks=False,
    ...     )
    >>> found = dps.group_weights(idata, [0, 0, 1], random_seed=1)
    >>> found["weight"].sel(statistic="mean").to_pandas().idxmax(axis=1).to_dict()
    {'a': 0, 'b': 1}
    """
    rng = generator_of("random_seed", random_seed)
    ci_prob = azb.rcParams["stats.ci_prob"] if ci_prob is None else ci_prob
    if not 0 < ci_prob < 1:
        raise ValueError(f"ci_prob={ci_prob} must lie between 0 and 1.")
    name = choose_mixture(idata, var_name)
    if model is not None:
        refuse_other_data(idata, mixture_of_either_kind(model, name))
    rows = rows_in_groups(idata, name)
    reference = reference_of(partition, *_observations(idata, name))
    refuse_other_length(reference, len(rows.group_of_row), name)
    posterior = group_of(idata, "posterior")
    chosen = spread_within_chains(posterior, num_samples)
    of_clusters, of_rest = [], []
    for labels, log_weights in _draws(posterior.isel(draw=chosen), rows, name, chosen, rng):
        weights = np.exp(log_weights)
        shares = shares_of(counts_shared(labels, weights.shape[1] - 1, reference))
        of_clusters.append(weights[:, :-1] @ shares)
        of_rest.append(weights[:, -1])
    group, cluster = str(rows.names.dims[0]), f"{name}_reference_cluster"
    size = np.zeros((len(rows.names), len(reference.names)), np.int64)
    np.add.at(size, (rows.group_of_row, reference.labels), 1)
    interval = f"eti{100 * ci_prob:.0f}"
    return xr.Dataset(
        {
            "weight": ((group, cluster, "statistic"), _summary(np.array(of_clusters), ci_prob)),
            "new_weight": ((group, "statistic"), _summary(np.array(of_rest), ci_prob)),
            "size": ((group, cluster), size),
        },
        coords={
            group: rows.names.to_numpy(),
            cluster: reference.names,
            "statistic": ["mean", "sd", f"{interval}_lb", f"{interval}_ub"],
        },
    )


def _draws(
    posterior: xr.Dataset,
    rows: RowsInGroups,
    name: str,
    chosen: np.ndarray,
    rng: np.random.Generator,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield labels (N,) and log weights (J, K + 1) of all groups, that of the remainder last."""
    weights, rest = (posterior[f"{name}_{key}"].to_numpy() for key in ("weights", "new_weight"))
    n_clusters_of, kept = counts_of(posterior, name), weights.shape[-1]
    if (n_clusters_of > kept).any():
        raise ValueError(dropped_draws(n_clusters_of, kept))
    counts = n_clusters_of.to_numpy()
    for place in np.ndindex(*counts.shape):
        at = place[0], int(chosen[place[1]])
        labels, alpha = rows.labels[at], float(rows.alphas[at])
        n_clusters = int(counts[place])
        shapes = np.zeros((len(rows.names), n_clusters + 1))
        np.add.at(shapes, (rows.group_of_row, labels), 1.0)
        shapes[:, :-1] += alpha * weights[place][:n_clusters]
        shapes[:, -1] = alpha * rest[place]
        yield labels, log_dirichlet(shapes, rng)


def _observations(idata: xr.DataTree, name: str) -> tuple[str, np.ndarray | None]:
    """Return the dimension of the rows and its coordinate, as the trace has them."""
    observed = find_observed(idata, name)
    if observed is None:
        return f"{name}_dim_0", None
    dim = str(observed.dims[0])
    return dim, observed[dim].to_numpy() if dim in observed.coords else None


def _summary(drawn: np.ndarray, ci_prob: float) -> np.ndarray:
    """Return mean, standard deviation and interval (..., 4) over draws (S, ...)."""
    tail = (1 - ci_prob) / 2
    ends = np.quantile(drawn, [tail, 1 - tail], axis=0)
    return np.stack([drawn.mean(0), drawn.std(0), *ends], axis=-1)
