"""`describe_clusters`: size, weight and parameters of the clusters of a reference partition."""

from typing import Any

import arviz_base as azb
import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.components.arguments import generator_of, shown
from pymc_dpsplit.posterior.description.cluster_description import ClusterDescription
from pymc_dpsplit.posterior.partitions.reference import (
    Reference,
    counts_shared,
    reference_of,
    refuse_other_length,
    shares_of,
)
from pymc_dpsplit.posterior.trace.declared import as_declared
from pymc_dpsplit.posterior.trace.draws import draws_of, recorded_posterior
from pymc_dpsplit.posterior.trace.labels import (
    model_given,
    observations_in,
    refuse_other_data,
)
from pymc_dpsplit.posterior.trace.members import (
    Members,
    mixture_of_either_kind,
)
from pymc_dpsplit.posterior.trace.places import spread_within_chains
from pymc_dpsplit.variables import MixtureVariables

# Names of quantities that every description has.
_OWN = ("size", "weight", "certainty")
# What the parameters of a reference cluster may be taken from.
_CLUSTER, _OBSERVATIONS = "cluster", "observations"


def describe_clusters(
    idata: xr.DataTree,
    partition: Any,
    *,
    model: Model | None = None,
    var_name: str | None = None,
    parameters_of: str = _CLUSTER,
    ci_prob: float | None = None,
    num_samples: int | None = 1000,
    random_seed: Any = None,
) -> ClusterDescription:
    r"""Describe the clusters of a reference partition: size, weight, parameters with intervals.

    In each draw a reference cluster gets the parameters of the cluster of this draw that has the
    most observations in common with it.  Renumbering the clusters of a draw does not change this,
    so there is no label switching.  The result contains posterior mean, standard deviation and
    interval over the draws, which include the uncertainty of the partition.

    Parameters
    ----------
    idata : DataTree
        As returned by ``pm.sample``, or loaded from disk.
    partition : PointPartition, DataArray or array_like of int, shape (N,)
        Reference clusters of the observations, as from `point_partition`, `find_map` or
        `dp_means`; or known classes.
    model : pymc.Model, optional
        The sampled model, by default that of the context.
    var_name : str, optional
        Name of the mixture; required if the model has several.
    parameters_of : {"cluster", "observations"}
        ``"cluster"``: parameters as above; if several clusters of a draw have equally many
        observations in common with the reference cluster, their average.
        ``"observations"``: the average over the observations of the reference cluster of the
        parameters of the cluster that each belongs to in the draw,
        :math:`|C_r|^{-1} \sum_{i \in C_r} \theta^{(s)}_{z_i^{(s)}}` [1]_ [2]_.
    ci_prob : float, optional
        Probability of the equal-tailed intervals; by default that of ArviZ,
        ``rcParams["stats.ci_prob"]``.
    num_samples : int, optional
        Largest number of draws to use, evenly spaced and the same of each chain, at least one of
        each; None for all.
    random_seed : int or numpy.random.Generator, optional
        Random seed for labels that are redrawn.

    Returns
    -------
    ClusterDescription
        ``to_dataframe()`` and ``to_dataset()`` return summaries, ``draws`` the averages of every
        draw, for instance for `arviz.plot_forest`, ``top_words()`` the words of clusters of texts,
        and ``covariance("beta")`` the posterior covariance of a vector.  Quantities over
        ``{name}_reference_cluster``:

        ``size``
            Number of observations, the same in every draw.
        ``weight``
            Probability that a new observation shares a cluster of the draw with observations, and
            that one chosen at random among these is in the reference cluster: the prediction of
            `predict` for a row of which nothing is known.  For an `HDPMixture` it is that in a new
            group; `group_weights` has those of its groups.
        ``certainty``
            Average over the observations of the reference cluster of their ``membership`` in it;
            1 if in no draw they share a cluster with others.
        parameters of the component
            Under their names, such as ``mu``; see `parameters_of`.  If columns of strings have
            different categories, a coordinate such as ``category_p_category_name`` names them.

        ``membership``, over observations and reference clusters, is the probability that an
        observation chosen at random from the cluster of this one in a draw (itself included) is in
        the reference cluster.  Each row sums to one.

    Raises
    ------
    ValueError
        If there is no model, if the partition does not match it, if the trace lacks the mixture,
        if draws have more clusters than were recorded, or if another argument is out of range.

    Notes
    -----
    Where all observations of a reference cluster belong to it with certainty, the two kinds of
    parameters are equal.  Where some belong to another cluster in part of the draws, averages over
    observations lie between the parameters of both, and their intervals are narrow around that
    value: they describe the observations, not a cluster.  Where ``certainty`` is low no cluster of
    the draws corresponds to the reference cluster.  Neither kind is the posterior given the
    reference partition, whose intervals would be those of a partition that is known.

    Labels of the trace are used if they are variables of the model or of rows in groups.  If the
    trace keeps others, and the family is conjugate, weights and parameters are redrawn given these.
    Otherwise labels are redrawn given the weights and parameters of the draw, see `sample_labels`.
    All three are exact.  Memory: 8 bytes for each draw, reference cluster and entry of a
    parameter.

    References
    ----------
    .. [1] Molitor, Papathomas, Jerrett and Richardson (2010). Bayesian profile regression with an
       application to the National Survey of Children's Health. Biostatistics 11, 484-498.
    .. [2] Liverani, Hastie, Azizi, Papathomas and Richardson (2015). PReMiuM: an R package for
       profile regression mixture models using Dirichlet processes. J. Stat. Softw. 64(7).

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_dpsplit as dps
    >>> with pm.Model() as model:
    ...     _ = dps.DPMixture("x", 1.0, dps.Normal(0, 0.1, 2, 1), observed=[0.0, 0.1, 0.2, 9.0])
    ...     idata = pm.sample(
    ...         draws=50, tune=50, chains=2, random_seed=1, progressbar=False,
    ...         compute_convergence_checks=False,
    ...     )
    >>> found = dps.describe_clusters(idata, [0, 0, 0, 1], model=model, random_seed=1)
    >>> list(found.to_dataframe().loc[0].index)
    ['size', 'weight', 'certainty', 'mu', 'sigma']
    >>> found.membership.shape
    (4, 2)
    """
    rng = generator_of("random_seed", random_seed)
    model = model_given(model)
    mixture = mixture_of_either_kind(model, var_name)
    ci_prob = azb.rcParams["stats.ci_prob"] if ci_prob is None else ci_prob
    if not 0 < ci_prob < 1:
        raise ValueError(f"ci_prob={ci_prob} must lie between 0 and 1.")
    if parameters_of not in (_CLUSTER, _OBSERVATIONS):
        raise ValueError(
            f"parameters_of={shown(parameters_of)} is unknown; give {_CLUSTER!r} or "
            f"{_OBSERVATIONS!r}."
        )
    recorded = recorded_posterior(idata, mixture)
    chosen = spread_within_chains(recorded, num_samples)
    posterior = recorded.isel(draw=chosen)
    dim, coord = observations_in(model, mixture)
    reference = reference_of(partition, dim, coord)
    refuse_other_data(idata, mixture)
    members = Members(idata, recorded, mixture, model, chosen)
    form = parameters_of == _CLUSTER
    drawn, membership = _quantities(posterior, mixture, model, reference, members, form, rng)
    cluster = f"{mixture.name}_reference_cluster"
    coords = {cluster: reference.names} | ({} if coord is None else {dim: coord})
    named = _named(drawn, as_declared(posterior, mixture, model), mixture, cluster)
    sizes = np.bincount(reference.labels)
    return ClusterDescription(
        name=mixture.name,
        draws=named.assign_coords({cluster: reference.names}),
        size=xr.DataArray(sizes, dims=cluster, coords={cluster: reference.names}, name="size"),
        membership=xr.DataArray(membership, dims=(dim, cluster), coords=coords, name="membership"),
        ci_prob=float(ci_prob),
    )


def _quantities(
    posterior: xr.Dataset,
    mixture: MixtureVariables,
    model: Model,
    reference: Reference,
    members: Members,
    of_cluster: bool,
    rng: np.random.Generator,
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the quantities (chain, draw, R, ...) of each draw, and the membership (N, R)."""
    shape = posterior.sizes["chain"], posterior.sizes["draw"]
    places = list(np.ndindex(*shape))
    membership = np.zeros((len(reference.labels), len(reference.names)))
    found: dict[str, np.ndarray] = {}
    for place, draw in zip(places, draws_of(posterior, mixture, model, places), strict=True):
        refuse_other_length(
            reference, mixture.items.number_of_observations(draw.rows), mixture.name
        )
        draw, labels = members.at(place, draw, rng)
        counts = counts_shared(labels, len(draw.weights), reference)
        membership += shares_of(counts)[labels]
        parameters = {_public(key, mixture.name): of for key, of in draw.parameters.items()}
        found_here = quantities_of(draw.weights, parameters, counts, of_cluster=of_cluster)
        for key, values in found_here.items():
            out = found.setdefault(key, np.empty((*shape, *values.shape)))
            out[place] = values
    return found, membership / len(places)


def quantities_of(
    weights: np.ndarray,
    parameters: dict[str, np.ndarray],
    counts: np.ndarray,
    *,
    of_cluster: bool,
) -> dict[str, np.ndarray]:
    """Return the weight, certainty and parameters of reference clusters in one draw.

    Parameters
    ----------
    weights : ndarray of float64, shape (A,)
    parameters : dict
        Name to ndarray (A, ...).
    counts : ndarray of int, shape (A, R)
        Observations that each atom and each reference cluster have in common.
    of_cluster : bool
        Whether parameters are those of the atom with the most observations in common; otherwise
        they are averages over the observations.

    Returns
    -------
    dict
        Name to ndarray (R, ...).
    """
    shares, portions = shares_of(counts), shares_of(counts.T)
    # Ties share, as the order of the atoms means nothing.
    used = shares_of((counts == counts.max(0)).T) if of_cluster else portions
    averages = {key: np.tensordot(used, of, axes=1) for key, of in parameters.items()}
    return {"weight": weights @ shares, "certainty": (portions * shares.T).sum(1), **averages}


def _public(parameter: str, name: str) -> str:
    """Return the name of a parameter in the description, without that of the mixture if it can."""
    return f"{name}_{parameter}" if parameter in _OWN else parameter


def _named(
    drawn: dict[str, np.ndarray], posterior: xr.Dataset, mixture: MixtureVariables, cluster: str
) -> xr.Dataset:
    """Name the dimensions of the quantities (chain, draw, R, ...) as in the trace."""
    dims = ("chain", "draw", cluster)
    variables: dict[str, Any] = {key: (dims, drawn[key]) for key in _OWN[1:]}
    for parameter in mixture.component.parameters:
        key = _public(parameter, mixture.name)
        recorded = posterior[f"{mixture.name}_{parameter}"]
        over = recorded.dims[3:]
        coords: dict[str, Any] = {
            str(dim): recorded.coords[dim] for dim in over if dim in recorded.coords
        }
        categories = mixture.component.category_names(parameter)
        if categories is not None:
            coords[f"{key}_category_name"] = (over, categories)
        variables[key] = xr.DataArray(drawn[key], dims=(*dims, *over), coords=coords)
    return xr.Dataset(variables, coords={dim: posterior.coords[dim] for dim in dims[:2]})
