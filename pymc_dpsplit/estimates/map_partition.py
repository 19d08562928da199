"""`find_map`: partition and concentration at a mode of their posterior."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pymc.model import Model

from pymc_dpsplit import sampler
from pymc_dpsplit.components.arguments import as_floats, check_integer, generator_of
from pymc_dpsplit.estimates.climbing import LawPrior, Summit, climb
from pymc_dpsplit.estimates.fixed_mixture import complete_mixture, read_mixture
from pymc_dpsplit.estimates.numbering import largest_first
from pymc_dpsplit.moves.collapsed.conditional_modes import plug_in_parameters
from pymc_dpsplit.moves.partition import log_joint
from pymc_dpsplit.moves.partition_law import (
    PartitionLaw,
    joining_mass,
    most_clusters,
    opening_mass,
    total_mass,
)
from pymc_dpsplit.moves.start import draw_n_start
from pymc_dpsplit.variables import MixtureVariables, concentration_prior, model_of_context


@dataclass(frozen=True, eq=False)
class MapPartition:
    """Result of `find_map`; clusters by decreasing size.

    Attributes
    ----------
    var_name : str
        Name of the mixture.
    labels : ndarray of int64, shape (N,)
        Cluster of each observation, or of each group of rows; cluster 0 is the largest.
    alpha : float
        The concentration, given or at its mode; of a finite mixture gamma times the number of
        components.
    log_joint : float
        Log density of data and partition given alpha, which the sampler records as
        ``{name}_log_joint``.  Its negative is the NLL of the reference.
    weights : ndarray of float64, shape (K,)
        Posterior means of the weights given the partition; they sum to 1 - `new_weight`.
    parameters : dict of ndarray, each (K, ...)
        Plug-in estimates given the partition: posterior means of ``mu``, ``rate`` and ``p``; scales
        are those whose inverse square, or inverse matrix, is the posterior mean precision.
    n_iterations : int
        Number of sweeps in the best restart.
    log_joints : ndarray of float64, shape (n_restarts,)
        Final value of each restart; if few are near the highest, more restarts may find a higher
        one.
    discount : float
        That of the law of the partition: 0 for a Dirichlet process, -gamma for a finite mixture.
    """

    var_name: str
    labels: np.ndarray
    alpha: float
    log_joint: float
    weights: np.ndarray
    parameters: Mapping[str, np.ndarray]
    n_iterations: int
    log_joints: np.ndarray
    discount: float = 0.0

    @property
    def n_clusters(self) -> int:
        """Number of clusters K."""
        return len(self.weights)

    @property
    def new_weight(self) -> float:
        """Posterior mean of the weight of the remainder."""
        law = PartitionLaw(self.discount, self.alpha)
        return float(opening_mass(law, self.n_clusters) / total_mass(law, len(self.labels)))


def find_map(
    model: Model | None = None,
    *,
    var_name: str | None = None,
    alpha: Any = None,
    n_restarts: int = 10,
    max_iterations: int = 500,
    initvals: Mapping[str, Any] | None = None,
    random_seed: Any = None,
) -> MapPartition:
    """Find a partition of high posterior density by MAP-DPM, much faster than by sampling [1]_.

    Weights and parameters are integrated out.  Each observation in turn joins its likeliest
    cluster, or founds a new one, until none moves; then pairs of clusters are merged if this
    increases the joint density.  The best of several restarts is returned.  It is a mode and does
    not summarise the posterior: it says nothing about other partitions, and misses small clusters
    that most draws have.

    Parameters
    ----------
    model : pymc.Model, optional
        By default the model of the context.
    var_name : str, optional
        Name of the mixture; required if the model has several.
    alpha : float or sequence of float, optional
        Concentration that replaces the model's; of several values, the one with the highest
        `log_joint` is returned.  By default the model's concentration is used: a number as it is,
        a variable at its mode, jointly with the partition, as is a number of components.
    n_restarts : int
        Number of restarts.  The first starts from one cluster and visits the observations in
        order; the others have a random start and a random order.
    max_iterations : int
        Maximum number of sweeps in a restart.
    initvals : dict, optional
        Values of other variables, as in `pm.sample`.  Hyperparameters that are variables are
        fixed at these values, by default at PyMC's initial point, and so are an alpha and a
        discount that depend on more than one variable.
    random_seed : int or numpy.random.Generator, optional

    Returns
    -------
    MapPartition

    Raises
    ------
    ValueError
        If an argument is out of range, if the model has no such mixture, or if its observations
        are latent, incomplete or depend on other variables.

    Warns
    -----
    UserWarning
        If the best restart was stopped by `max_iterations`.

    Notes
    -----
    ``pm.sample(dpsplit={"start_labels": found})`` starts the chains from the result.  All chains
    then start from the same partition, and R-hat does not detect a region that all of them miss.
    For inference prefer the over-dispersed starting points of the default.

    References
    ----------
    .. [1] Raykov, Boukouvalas & Little (2014), Simple approximate MAP inference for Dirichlet
       processes, arXiv 1411.0939; docs/method.md, eq. (12.1)-(12.3).

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_dpsplit as dps
    >>> with pm.Model() as model:
    ...     _ = dps.DPMixture("x", 1.0, dps.Normal(0, 0.1, 2, 1), observed=[0.0, 0.1, 5.0])
    >>> found = dps.find_map(model, random_seed=1)
    >>> found.n_clusters, found.labels
    (2, array([0, 0, 1]))
    """
    rng = generator_of("random_seed", random_seed)
    model = model_of_context(model)
    check_integer("n_restarts", n_restarts, 1)
    check_integer("max_iterations", max_iterations, 1)
    candidates = None if alpha is None else _checked_candidates(alpha)
    mixture = complete_mixture(model, var_name, "find_map")
    problem = _problem_of(mixture, model, initvals, rng)
    problems = [problem] if candidates is None else problem.at_each(candidates)
    seed = int(rng.integers(2**63))  # every candidate has the same starts
    ascents = [one.climb_all(n_restarts, max_iterations, seed) for one in problems]
    best, log_joints = max(ascents, key=lambda ascent: ascent[0].objective)
    if not best.has_settled:
        warnings.warn(
            f"find_map was stopped after {max_iterations} iterations; raise max_iterations.",
            stacklevel=2,
        )
    return problem.result(best, log_joints)


@dataclass(frozen=True, eq=False)
class _Problem:
    """Target of a climb with its mixture, and the prior of the law unless that is fixed."""

    mixture: MixtureVariables
    values: dict[str, np.ndarray]
    shift: np.ndarray
    target: sampler.Target
    prior: LawPrior | None = None
    value: float = np.nan

    def at_each(self, alphas: np.ndarray) -> list["_Problem"]:
        """Copies of the problem with each alpha, fixed, and the discount of the model."""
        if self.mixture.is_finite:
            raise ValueError(
                f"alpha is given, but {self.mixture.name} has a finite number of components; leave "
                "alpha out."
            )
        laws = [self.target.law._replace(strength=float(alpha)) for alpha in alphas]
        return [replace(self, target=self.target._replace(law=law), prior=None) for law in laws]

    def climb_all(self, n_starts: int, max_iterations: int, seed: int) -> tuple[Summit, np.ndarray]:
        """Climb from several starts; return the best result and the final log joint densities."""
        best, log_joints = None, []
        for labels, rows in _starts(self.target, n_starts, np.random.default_rng(seed)):
            end = climb(self.target, labels, rows, max_iterations, self.prior, self.value)
            log_joints.append(log_joint(self.target._replace(law=end.law), end.state.stats))
            if best is None or end.objective > best.objective:
                best = end
        assert best is not None
        return best, np.array(log_joints)

    def result(self, best: Summit, log_joints: np.ndarray) -> MapPartition:
        """Convert the best of several climbs to the user's form."""
        prior, law = self.target.prior, best.law
        labels, order = largest_first(best.state.labels)
        stats = best.state.stats[order]
        return MapPartition(
            var_name=self.mixture.name,
            labels=self.mixture.items.recorded(labels),
            alpha=law.strength,
            log_joint=float(log_joint(self.target._replace(law=law), stats)),
            weights=joining_mass(law, stats[:, 0]) / total_mass(law, stats[:, 0].sum()),
            parameters=self.mixture.items.unpack(
                plug_in_parameters(prior, stats), self.values, self.shift
            ),
            n_iterations=len(best.path),
            log_joints=log_joints,
            discount=law.discount,
        )


def _checked_candidates(alpha: Any) -> np.ndarray:
    candidates = np.atleast_1d(as_floats("alpha", alpha))
    if candidates.ndim > 1 or not len(candidates) or not (candidates > 0).all():
        raise ValueError(
            f"alpha={alpha!r} is not one or several positive numbers; give the concentration, "
            "a sequence of candidates, or leave it out."
        )
    return candidates


def _problem_of(
    mixture: MixtureVariables,
    model: Model,
    initvals: Mapping[str, Any] | None,
    rng: np.random.Generator,
) -> _Problem:
    """Read prior, data and concentration from a model at its initial point."""
    seed = int(rng.integers(2**31))
    read = read_mixture(mixture, model, initvals, seed, "find_map")
    target, values, shift = read.target, read.values, read.shift
    concentration = concentration_prior(mixture, model, read.point)
    if concentration is None:
        return _Problem(mixture, values, shift, target)
    prior = concentration.given(read.point)
    value = concentration.number_of(concentration.with_many(read.point), rng)
    if concentration.is_count:
        target = target._replace(law=prior(value)[1])
    return _Problem(mixture, values, shift, target, prior, value)


def _starts(
    target: sampler.Target, n_starts: int, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield starting labels, each with an order of the observations."""
    n_obs = target.data.shape[0]
    yield np.zeros(n_obs, np.int32), np.arange(n_obs)
    for number in range(1, n_starts):
        # At least two clusters, as the first restart already starts from one.
        n_clusters = max(2, draw_n_start(rng, n_obs))
        n_clusters = min(n_clusters, most_clusters(target.law, n_obs))
        if number % 3:
            labels = sampler.start(target, rng, n_clusters).labels
        else:
            # Random labels separate neighbours, which starts from centres never do.
            labels = np.unique(rng.integers(n_clusters, size=n_obs), return_inverse=True)[1]
        yield labels, rng.permutation(n_obs)
