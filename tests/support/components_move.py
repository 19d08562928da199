"""Mixtures of finite mixtures: the step's move of the number of components M, and exact laws."""

from typing import Any

import numpy as np
import pymc as pm
from scipy.special import logsumexp

import pymc_dpsplit as dps
from pymc_dpsplit.moves.partition_law import PartitionLaw, finite_mixture
from pymc_dpsplit.moves.strength import fixed_strength
from pymc_dpsplit.step.concentration_move import move_concentrations
from pymc_dpsplit.variables import concentrations_to_move, find_mixtures
from pymc_dpsplit.variables.concentration import ConcentrationPrior
from pymc_dpsplit.variables.n_components import whole_part
from tests.support.moves import Move
from tests.support.partition_laws import assigned, posterior_under
from tests.support.partitions import HasMarginal, enumerate_partitions


class _Remembered:
    """A prior of M that evaluates the compiled graph once for every M."""

    def __init__(self, prior: ConcentrationPrior) -> None:
        self._prior, self._known = prior, {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._prior, name)

    def given(self, point: Any) -> Any:
        evaluate = self._prior.given(point)

        def remembered(number: float) -> Any:
            key = whole_part(number)
            if key not in self._known:
                self._known[key] = evaluate(number)
            return self._known[key]

        return remembered


class MoveOfComponents:
    """The step's own move of M given the partition, which `pm.sample` makes in Python or compiled.

    Parameters
    ----------
    gamma : float
    prior : callable
        Returns the distribution of M; called in the context of a model.
    """

    def __init__(self, gamma: float, prior: Any) -> None:
        self.gamma = gamma
        with pm.Model() as model:
            normal = dps.Normal(0.0, 0.1, 2.0, 1.0)
            dps.MFMixture("x", gamma, normal, n_components=prior(), observed=[0.0, 1.0])
        self._point = model.initial_point()
        mixture = find_mixtures(model)["x"]
        (prior_of_m,) = concentrations_to_move(mixture, model, self._point)
        self._concentrations: Any = [_Remembered(prior_of_m)]

    def law(self, n_components: int) -> PartitionLaw:
        """Law of the partition given M."""
        return finite_mixture(self.gamma, n_components)

    def __call__(
        self, n_components: int, target: Any, state: Any, rng: np.random.Generator
    ) -> tuple[Any, int]:
        """Move M; return the target at the new one, and the new one."""
        point = {**self._point, "x_n_components": np.array(n_components)}
        target, moved = move_concentrations(
            self._concentrations, point, target, fixed_strength(), state, rng
        )
        return target, int(moved["x_n_components"])


def then_components(move: Move, components: MoveOfComponents) -> Any:
    """A move of the partition and then one of M: from (M, target, state) to the same."""

    def both(n_components: int, target: Any, state: Any, rng: np.random.Generator) -> Any:
        state = move(target, state, rng)
        target, n_components = components(n_components, target, state, rng)
        return n_components, target, state

    return both


def given_k(prior: np.ndarray, gamma: float, n_clusters: int, n_obs: int) -> np.ndarray:
    """Law of M given K and N, from that of all assignments to M components.

    Parameters
    ----------
    prior : ndarray of float64, shape (S,)
        Probabilities of M = 0, 1, .., S - 1.
    gamma : float
    n_clusters, n_obs : int

    Returns
    -------
    ndarray of float64, shape (S,)
    """
    labels = np.minimum(np.arange(n_obs), n_clusters - 1)
    with np.errstate(divide="ignore"):
        joint = np.log(prior)
    joint[0] = -np.inf
    joint[1:] += [assigned(gamma, m)(labels) for m in range(1, len(prior))]
    return np.exp(joint - logsumexp(joint))


def joint_law(prior: np.ndarray, gamma: float, family: HasMarginal, rows: np.ndarray) -> np.ndarray:
    """Posterior (S, Bell(n)) of M = 0, 1, .., S - 1 and the partition of the rows (n, D)."""
    partitions = enumerate_partitions(len(rows))
    flat = posterior_under(lambda _: 0.0, family, rows)
    with np.errstate(divide="ignore"):
        joint = np.log(prior)[:, None] + np.log(flat)[None]
    joint[0] = -np.inf
    for m in range(1, len(prior)):
        of_partition = assigned(gamma, m)
        joint[m] += [of_partition(labels) for labels in partitions]
    return np.exp(joint - logsumexp(joint))


def prior_of_k(prior: np.ndarray, gamma: float, n_obs: int) -> np.ndarray:
    """Law (n_obs + 1,) of the number of clusters before data, by seating one after the other."""
    total = np.zeros(n_obs + 1)
    for m in range(1, len(prior)):
        law = np.zeros(n_obs + 1)
        law[1] = 1.0
        for seen in range(1, n_obs):
            counts = np.arange(n_obs + 1)
            opens = np.clip(gamma * (m - counts), 0.0, None) / (gamma * m + seen)
            law = law * (1.0 - opens) + np.concatenate(([0.0], (law * opens)[:-1]))
        total += prior[m] * law
    return total / total.sum()


def draw_number(prior: np.ndarray, rng: np.random.Generator) -> int:
    """Draw M from its prior."""
    return int(rng.choice(len(prior), p=prior / prior.sum()))
