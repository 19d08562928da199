"""`smc`: an approximate trace of a mixture by particles that take in the data row by row."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pymc as pm
from pymc.backends.base import MultiTrace
from pymc.backends.ndarray import NDArray
from pymc.model import Model

from pymc_dpsplit import sampler
from pymc_dpsplit.components.arguments import check_integer, generator_of
from pymc_dpsplit.estimates.fixed_mixture import FixedMixture, complete_mixture, read_mixture
from pymc_dpsplit.kernels.generators import address_of
from pymc_dpsplit.moves.collapsed.scan import log_densities_alone
from pymc_dpsplit.samplers.particles import resampled, run_particles
from pymc_dpsplit.variables import MixtureVariables, model_of_context

_STATISTICS: dict[str, Any] = {
    "log_joint": np.float64,
    "entropy": np.float64,
    "largest_share": np.float64,
    "occupied": np.int64,
}


def smc(
    model: Model | None = None,
    *,
    var_name: str | None = None,
    particles: int = 1000,
    random_seed: Any = None,
) -> Any:
    """Approximate the posterior of a mixture by sequential Monte Carlo.

    Particles are partitions of the observations so far.  Each takes in the next observation, in a
    random order, with the probabilities of a collapsed sweep, and is weighted by the predictive
    density of the observation; they are resampled when half of them are lost [1]_.  No observation
    is visited twice, so that mistakes of the first ones stay: the law of the draws approaches the
    posterior only as the number of particles grows, and the more slowly the more data there are.
    It is here for comparison; `pm.sample` is exact.

    Parameters
    ----------
    model : pymc.Model, optional
        By default the model of the context.
    var_name : str, optional
        Name of the mixture; required if the model has several.
    particles : int
        Number of particles.
    random_seed : int or numpy.random.Generator, optional

    Returns
    -------
    xarray.DataTree
        As from `pm.sample`, one chain with a draw for each particle, all of one weight; draws that
        descend from one particle are equal in part or as a whole.  ``posterior`` has the attributes
        ``log_evidence``, the log of an unbiased estimate of the marginal likelihood, and
        ``n_partitions``, the number of different partitions among the draws: if it is small, more
        particles are needed.

    Raises
    ------
    ValueError
        If an argument is out of range; if the model has no such mixture, or free variables besides
        it; if the mixture is no Dirichlet process, or its family is not conjugate; or if its
        observations are latent or incomplete.

    References
    ----------
    .. [1] MacEachern, Clyde & Liu (1999), Sequential importance sampling for nonparametric Bayes
       models: the next generation, Can. J. Stat. 27, 251-267; Fearnhead (2004), Particle filters
       for mixture models with an unknown number of components, Stat. Comput. 14, 11-21.
       docs/samplers.md.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_dpsplit as dps
    >>> with pm.Model() as model:
    ...     _ = dps.DPMixture("x", 1.0, dps.Normal(0, 0.1, 2, 1), observed=[0.0, 0.1, 5.0])
    >>> idata = dps.smc(model, particles=200, random_seed=1)
    >>> idata["posterior"]["x_n_clusters"].sizes["draw"]
    200
    """
    rng = generator_of("random_seed", random_seed)
    model = model_of_context(model)
    check_integer("particles", particles, 2)
    mixture = complete_mixture(model, var_name, "smc")
    _refuse_others(mixture, model)
    read = read_mixture(mixture, model, None, int(rng.integers(2**31)), "smc")
    if read.target.law.discount != 0.0:
        raise ValueError(
            f"smc is for Dirichlet processes, and {mixture.name} has another law; use pm.sample."
        )
    labels, log_evidence = _final_partitions(read.target, particles, rng)
    trace = NDArray(model=model)
    trace.setup(particles, 0, [{f"{mixture.name}_{key}": of for key, of in _STATISTICS.items()}])
    for values, statistics in _draws(mixture, read, labels, rng):
        trace.record({**read.point, **values}, [statistics], in_warmup=False)
    idata = pm.to_inference_data(MultiTrace([trace]), model=model, save_warmup=False)
    idata["posterior"].attrs["log_evidence"] = log_evidence
    idata["posterior"].attrs["n_partitions"] = len(np.unique(labels, axis=0))
    return idata


def _refuse_others(mixture: MixtureVariables, model: Model) -> None:
    """Refuse a model with free variables besides those of the mixture."""
    others = [rv.name for rv in model.free_RVs if rv not in mixture.owned]
    if others:
        raise ValueError(
            f"the model has the variables {', '.join(others)} besides {mixture.name}, and smc "
            "needs numbers in their place; give alpha and hyperparameters as numbers, or use "
            "pm.sample."
        )


def _final_partitions(
    target: sampler.Target, n_particles: int, rng: np.random.Generator
) -> tuple[np.ndarray, float]:
    """Partitions (n_particles, N), resampled to one weight, and the log evidence."""
    n_obs = target.data.shape[0]
    log_alone = log_densities_alone(target.prior, target.data, np.arange(n_obs))
    labels, log_weights, log_evidence, _ = run_particles(
        target, rng.permutation(n_obs), log_alone, n_particles, address_of(rng)
    )
    return labels[resampled(log_weights, rng.random())], float(log_evidence)


def _draws(
    mixture: MixtureVariables, read: FixedMixture, labels: np.ndarray, rng: np.random.Generator
) -> Iterator[tuple[dict[str, np.ndarray], dict[str, Any]]]:
    """Yield values of the mixture and statistics of the partition for each row of labels."""
    for own in labels:
        state = sampler.resume(read.target, own)
        measure = sampler.measure(read.target, state, rng)
        parameters = mixture.items.unpack(measure.params, read.values, read.shift)
        drawn = measure.weights, measure.log_rest, parameters, measure.rank[own]
        values = mixture.point_values(len(measure.rank), *drawn, measure.sum_log_weights)
        statistics = {
            "log_joint": measure.log_joint,
            "entropy": measure.entropy,
            "largest_share": measure.largest_share,
            "occupied": len(measure.rank),
        }
        yield values, {f"{mixture.name}_{key}": value for key, value in statistics.items()}
