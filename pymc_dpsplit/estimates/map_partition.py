"""`find_map`: the partition, and concentration, at a mode of their posterior."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pymc.initial_point import make_initial_point_fn
from pymc.model import Model, modelcontext

from pymc_dpsplit import sampler
from pymc_dpsplit.components.arguments import as_floats
from pymc_dpsplit.components.declaration import Component
from pymc_dpsplit.components.given import given
from pymc_dpsplit.components.non_conjugate import NonConjugate
from pymc_dpsplit.data.blocks import column_means
from pymc_dpsplit.estimates.climbing import AlphaPrior, Summit, climb
from pymc_dpsplit.estimates.numbering import largest_first
from pymc_dpsplit.moves.conditional_modes import plug_in_parameters
from pymc_dpsplit.moves.partition import log_joint
from pymc_dpsplit.moves.start import draw_n_start
from pymc_dpsplit.options import check_integer
from pymc_dpsplit.variables import (
    MixtureVariables,
    concentration_prior,
    find_mixtures,
    reader_of_points,
)


@dataclass(frozen=True, eq=False)
class MapPartition:
    """What `find_map` found; clusters by decreasing size.

    Attributes
    ----------
    var_name : str
        Name of the mixture.
    labels : ndarray of int64, shape (N,)
        Cluster of each observation, 0 the largest.
    alpha : float
        The concentration: given, or at its mode.
    log_joint : float
        Log density of data and partition given alpha, what the sampler records as
        ``{name}_log_joint``.  Its negative is the NLL of the reference.
    weights : ndarray of float64, shape (K,)
        Posterior means of the weights given the partition; the rest is `new_weight`.
    parameters : dict of ndarray, each (K, ...)
        Plug-in estimates given the partition: posterior means of ``mu``, ``rate`` and ``p``,
        and scales of which the inverse square, or inverse, is the posterior mean precision.
    n_iterations : int
        Sweeps of the best restart.
    log_joints : ndarray of float64, shape (n_restarts,)
        Where each restart ended; if few are near the highest, more restarts may find a higher
        one.
    """

    var_name: str
    labels: np.ndarray
    alpha: float
    log_joint: float
    weights: np.ndarray
    parameters: Mapping[str, np.ndarray]
    n_iterations: int
    log_joints: np.ndarray

    @property
    def n_clusters(self) -> int:
        """Number of clusters K."""
        return len(self.weights)

    @property
    def new_weight(self) -> float:
        """Posterior mean of the weight of everything not yet seen."""
        return self.alpha / (len(self.labels) + self.alpha)


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

    Weights and parameters are integrated out.  Each observation in turn joins the cluster in
    which it is likeliest, or founds one, until none moves; then clusters that are better
    joined are.  The best of several restarts is returned.  It is a mode and no summary of the
    posterior: it says nothing of other partitions, and misses small clusters that most draws
    have.

    Parameters
    ----------
    model : pymc.Model, optional
        By default the one of the context.
    var_name : str, optional
        Name of the mixture; needed when the model has several.
    alpha : float or sequence of float, optional
        Concentration instead of the model's; of several, the one with the highest
        `log_joint` is taken.  By default the model's: a number as it is, and a variable
        at its mode, jointly with the partition.
    n_restarts : int
        The first starts from one cluster and takes the observations as they stand; each
        further one has a random order and a random start.
    max_iterations : int
        Most sweeps in a restart.
    initvals : dict, optional
        Values of other variables, as in `pm.sample`.  Hyperparameters that are variables are
        held there, by default at PyMC's initial point, and so is an alpha that depends
        on more than one variable.
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
    ``pm.sample(dpsplit={"start_labels": found})`` starts the chains here.  They then all start
    alike, so that R-hat no longer tells when all miss the same region: for inference prefer
    the over-dispersed starts of the default.

    References
    ----------
    .. [1] Raykov, Boukouvalas & Little (2014), Simple approximate MAP inference for Dirichlet
       processes, arXiv 1411.0939; docs/method.md, eq. (125)-(127).

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
    model = modelcontext(model)
    check_integer("n_restarts", n_restarts, 1)
    check_integer("max_iterations", max_iterations, 1)
    candidates = None if alpha is None else _checked_candidates(alpha)
    mixture = _complete_mixture(model, var_name)
    rng = np.random.default_rng(random_seed)
    problem = _problem_of(mixture, model, initvals, rng)
    problems = [problem] if candidates is None else [problem.at(value) for value in candidates]
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
    """What is climbed: a target with its mixture, and the prior of alpha if that moves."""

    mixture: MixtureVariables
    component: Component
    shift: np.ndarray
    target: sampler.Target
    prior: AlphaPrior | None = None
    value: float = np.nan

    def at(self, alpha: float) -> "_Problem":
        """The same with alpha fixed."""
        return replace(self, target=self.target._replace(alpha=alpha), prior=None)

    def climb_all(self, n_starts: int, max_iterations: int, seed: int) -> tuple[Summit, np.ndarray]:
        """Climb from several starts; the best, and the log joint density at the end of each."""
        best, log_joints = None, []
        for labels, rows in _starts(self.target, n_starts, np.random.default_rng(seed)):
            end = climb(self.target, labels, rows, max_iterations, self.prior, self.value)
            log_joints.append(log_joint(self.target.prior, end.state.stats, end.alpha))
            if best is None or end.objective > best.objective:
                best = end
        assert best is not None
        return best, np.array(log_joints)

    def result(self, best: Summit, log_joints: np.ndarray) -> MapPartition:
        """Present the best of several climbs."""
        prior = self.target.prior
        labels, order = largest_first(best.state.labels)
        stats = best.state.stats[order]
        return MapPartition(
            var_name=self.mixture.name,
            labels=labels,
            alpha=best.alpha,
            log_joint=float(log_joint(prior, stats, best.alpha)),
            weights=stats[:, 0] / (len(labels) + best.alpha),
            parameters=self.component.unpack(plug_in_parameters(prior, stats), self.shift),
            n_iterations=len(best.path),
            log_joints=log_joints,
        )


def _checked_candidates(alpha: Any) -> np.ndarray:
    candidates = np.atleast_1d(as_floats("alpha", alpha))
    if candidates.ndim > 1 or not len(candidates) or not (candidates > 0).all():
        raise ValueError(
            f"alpha={alpha!r} is not one or several positive numbers; give the concentration, "
            "a sequence of candidates, or leave it out."
        )
    return candidates


def _complete_mixture(model: Model, var_name: str | None) -> MixtureVariables:
    """The mixture of this name, whose observations are data and nothing else."""
    mixtures = find_mixtures(model)
    if var_name is None and len(mixtures) == 1:
        (var_name,) = mixtures
    if var_name not in mixtures:
        known = ", ".join(mixtures) or "none"
        raise ValueError(f"var_name={var_name!r} is no mixture of the model; it has {known}.")
    mixture = mixtures[var_name]
    if mixture.is_latent or mixture.unobserved is not None:
        fault = "has missing entries" if mixture.unobserved is not None else "is latent"
        raise ValueError(
            f"{var_name} {fault}, and find_map needs complete observations; fill them in, or use "
            "pm.sample."
        )
    return mixture


def _problem_of(
    mixture: MixtureVariables,
    model: Model,
    initvals: Mapping[str, Any] | None,
    rng: np.random.Generator,
) -> _Problem:
    """Read prior, data and concentration off a model at its initial point."""
    if isinstance(mixture.component, NonConjugate):
        raise ValueError(
            f"{mixture.name} is of {mixture.component!r}, whose parameters cannot be integrated "
            "out, as find_map does; use pm.sample, or a family such as Normal."
        )
    reader = reader_of_points(mixture, model, {})
    if not reader.rows_are_fixed:
        raise ValueError(
            f"the observations of {mixture.name} depend on other variables, and find_map needs "
            "data; give those less an estimate of what depends on others, or use pm.sample."
        )
    overrides: Any = None if initvals is None else dict(initvals)
    point = make_initial_point_fn(model=model, overrides=overrides)(int(rng.integers(2**31)))
    reading = reader.read(point)
    shift = column_means(reading.rows)
    component = given(mixture.component, reading.values)
    prior = component.prior(reading.values, shift)
    target = sampler.Target(prior, component.arranged(reading.rows), reading.alpha)
    concentration = concentration_prior(mixture, model, point)
    if concentration is None:
        return _Problem(mixture, component, shift, target)
    value = float(point[concentration.value_name])
    return _Problem(mixture, component, shift, target, concentration.given(point), value)


def _starts(
    target: sampler.Target, n_starts: int, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Labels to start from, each with an order of the observations."""
    n_obs = target.data.shape[0]
    yield np.zeros(n_obs, np.int32), np.arange(n_obs)
    for number in range(1, n_starts):
        # One cluster, from which the first starts, would be wasted again.
        n_clusters = max(2, draw_n_start(rng, n_obs))
        if number % 3:
            labels = sampler.start(target, rng, n_clusters).labels
        else:
            # Neighbours apart, as no choice of centres has them.
            labels = np.unique(rng.integers(n_clusters, size=n_obs), return_inverse=True)[1]
        yield labels, rng.permutation(n_obs)
