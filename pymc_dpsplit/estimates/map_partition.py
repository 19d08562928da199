"""`find_map`: partition and concentration at a mode of their posterior."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pymc.model import Model

from pymc_dpsplit import sampler
from pymc_dpsplit.components.arguments import check_integer, generator_of
from pymc_dpsplit.estimates.alpha_choice import checked_candidates
from pymc_dpsplit.estimates.climbing import LawPrior, Summit, climb
from pymc_dpsplit.estimates.fixed_mixture import (
    complete_mixture,
    grouped_mixture,
    of_other_mixtures,
    read_mixture,
)
from pymc_dpsplit.estimates.grouped_map import find_grouped_map
from pymc_dpsplit.estimates.map_prediction import predictive_of_rows
from pymc_dpsplit.estimates.map_result import MapPartition
from pymc_dpsplit.estimates.numbering import largest_first
from pymc_dpsplit.estimates.starts import starts_of
from pymc_dpsplit.moves.collapsed.conditional_modes import plug_in_parameters
from pymc_dpsplit.moves.partition import log_joint
from pymc_dpsplit.moves.partition_law import joining_mass, total_mass
from pymc_dpsplit.variables import MixtureVariables, concentration_prior, model_of_context


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
        a variable at its mode, jointly with the partition, as is a number of components.  Other
        mixtures with the same variable are left out: the mode is not given their observations.
        It must be left out for an `HDPMixture`.
    n_restarts : int
        Number of restarts.  The first starts from one cluster and visits the observations in
        order; the others have a random start and a random order.
    max_iterations : int
        Maximum number of sweeps in a restart.
    initvals : dict, optional
        Values of other variables, as in `pm.sample`.  Hyperparameters that are variables are
        fixed at these values, by default at PyMC's initial point, and so are an alpha and a
        discount that depend on more than one variable, and variables, other than those of
        mixtures, that depend on alpha.
    random_seed : int or numpy.random.Generator, optional

    Returns
    -------
    MapPartition
        ``log_predictive(new)`` and ``likeliest_clusters(new)`` predict new rows.  Of an
        `HDPMixture` it has two more attributes: ``gamma``, and ``group_weights`` (J, K), the
        expected weights of the clusters in each group.

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

    `choose_alpha` chooses the concentration by cross-validation instead of by `log_joint`.

    Of an `HDPMixture` the partition of the rows of all groups is found.  Its density has tables,
    weights of groups and global weights summed out, eq. (16.14) of docs/method.md, and
    ``log_joint`` is its logarithm; that which the sampler records is given the global weights of a
    draw.  Rows join clusters by the mean global weights before a sweep, and a sweep is undone if it
    lowers the density, so that some single row may still gain by a move.  Alpha and gamma that
    depend on one scalar variable each are at their modes.  A restart takes time proportional to
    the square of the number of tables beside that of its sweeps.

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
    grouped = grouped_mixture(model, var_name)
    if grouped is not None:
        _refuse_alpha(alpha, grouped.name)
        found, has_settled = find_grouped_map(
            grouped, model, n_restarts, max_iterations, initvals, rng
        )
        _warn_if_stopped(has_settled, max_iterations)
        return found
    candidates = None if alpha is None else checked_candidates("alpha", alpha)
    mixture = complete_mixture(model, var_name, "find_map")
    problem = _problem_of(mixture, model, initvals, rng)
    problems = [problem] if candidates is None else problem.at_each(candidates)
    seed = int(rng.integers(2**63))  # every candidate has the same starts
    ascents = [one.climb_all(n_restarts, max_iterations, seed) for one in problems]
    best, log_joints = max(ascents, key=lambda ascent: ascent[0].objective)
    _warn_if_stopped(best.has_settled, max_iterations)
    return problem.result(best, log_joints)


def _refuse_alpha(alpha: Any, name: str) -> None:
    """Refuse candidates for one of the two concentrations of a hierarchical mixture."""
    if alpha is not None:
        raise ValueError(
            f"alpha is given, but {name} is an HDPMixture with two concentrations; give both where "
            "it is declared, and leave alpha out."
        )


def _warn_if_stopped(has_settled: bool, max_iterations: int) -> None:
    if not has_settled:
        warnings.warn(
            f"find_map was stopped after {max_iterations} iterations; raise max_iterations.",
            stacklevel=3,
        )


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
        for labels, rows in starts_of(self.target, n_starts, np.random.default_rng(seed)):
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
        of_model = self.mixture.name, self.mixture.component, self.mixture.n_features
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
            predictive=predictive_of_rows(*of_model, prior, stats, law),
        )


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
    others = of_other_mixtures(model, mixture.name)
    concentration = concentration_prior(mixture, model, read.point, others)
    if concentration is None:
        return _Problem(mixture, values, shift, target)
    prior = concentration.given(read.point)
    value = concentration.number_of(concentration.with_many(read.point), rng)
    if concentration.is_count:
        target = target._replace(law=prior(value)[1])
    return _Problem(mixture, values, shift, target, prior, value)
