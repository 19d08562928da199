"""Alpha moved by kernels after every sweep, while the next sweep follows the atoms of the last one.

Sweeps linked by their atoms and moves of alpha alternate; partition and alpha are compared with
enumeration and quadrature, level 1e-5.  The weights of the atoms are those of the former alpha and
have to become those of the new one, whose law is compared too.  All of it also under a Pitman-Yor
process, whose strength may be negative.
"""

from typing import Any

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from scipy.special import logsumexp

import pymc_dpsplit as dps
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.moves.measure import Atoms, atoms_to_follow, change_law, no_atoms
from pymc_dpsplit.moves.partition_law import PartitionLaw, dirichlet_process, finite_mixture
from pymc_dpsplit.moves.strength import StrengthPrior, draw_strength
from pymc_dpsplit.moves.sweep.assignment import next_sweep
from pymc_dpsplit.moves.target import Target
from pymc_dpsplit.sampler import resume
from pymc_dpsplit.variables import concentration_prior, find_mixtures
from tests.support.families import component_of, target_of, twin_of
from tests.support.partition_laws import seated
from tests.support.partitions import (
    enumerate_partitions,
    n_clusters_law,
    n_clusters_of,
    partition_index,
)
from tests.support.quadrature import Grid, grid_of, log_joint, moments, posterior, table_of
from tests.support.statistics import LEVEL, combine, count_test, mean_test, partition_test

ROWS = np.array([[-1.0], [-0.6], [-0.2], [0.3], [0.8], [1.4]])
# A wide prior: from one sweep to the next alpha changes by a factor of ten.
MEAN, SPREAD = 0.0, 1.5
# Of the Pitman-Yor process; its strength is the variable less this, and so may be negative.  Larger
# discounts would need too many sticks under a few strengths, for which chains take other sweeps.
DISCOUNT, LESS = 0.15, 0.1


@jitted
def run_chain(target, labels, cluster_stats, rng, prior, n_obs, kept, alphas):
    """Write labels (S, N) and alpha (S,) of a chain that moves alpha given `n_obs` observations."""
    atoms = no_atoms(target.prior)
    for s in range(alphas.shape[0]):
        cluster_stats, atoms = next_sweep(target, labels, cluster_stats, rng, atoms)
        law = draw_strength(prior, target.law, cluster_stats.shape[0], n_obs, rng)
        change_law(atoms, target.law, law, rng)
        target = Target(target.prior, target.data, law)
        kept[s] = labels
        alphas[s] = law.strength


def compiled_prior(discount: float = 0.0, less: float = 0.0) -> StrengthPrior:
    """Prior of the strength as kernels read it, from a model."""
    with pm.Model() as model:
        alpha = pm.LogNormal("alpha", MEAN, SPREAD) - less
        family = dps.Normal(0.0, 0.1, 2.0, 1.0)
        dps.DPMixture("x", alpha, family, discount=discount, observed=ROWS[:, 0])
    point = model.initial_point()
    prior = concentration_prior(find_mixtures(model)["x"], model, point)
    assert prior is not None
    return prior.strength_prior(point, 1.0 - less, np.random.default_rng(0))


def p_value(rng: np.random.Generator, n_obs: float) -> float:
    """P-value of the partition, of K and of log alpha."""
    grid = grid_of(stats.lognorm(SPREAD, scale=np.exp(MEAN)), 400)
    table = table_of(twin_of("Normal", 1).log_marginal, ROWS)[None]
    exact = posterior(table, np.zeros(1), grid)
    law = dirichlet_process(1.0)
    return chains_p_value(rng, compiled_prior(), law, n_obs, exact.partitions, exact.alpha, grid)


def p_value_under_discount(rng: np.random.Generator, n_obs: float) -> float:
    """The same under a Pitman-Yor process, with the log of its strength plus `LESS`."""
    grid = grid_of(stats.lognorm(SPREAD, scale=np.exp(MEAN)), 400)
    table = table_of(twin_of("Normal", 1).log_marginal, ROWS)
    # `log_joint` has the factor Gamma(n_k) of a Dirichlet process, which the prior replaces.
    n = len(ROWS)
    of_rows = log_joint(table, n) - log_joint(np.zeros(2**n), n)
    joint = np.empty((len(grid.nodes), len(of_rows)))
    for at, node in enumerate(grid.nodes):
        log_prior = seated(node - LESS, DISCOUNT)
        joint[at] = [log_prior(labels) for labels in enumerate_partitions(n)]
    joint += of_rows + grid.log_weights[:, None]
    exact = np.exp(joint - logsumexp(joint))
    prior, law = compiled_prior(DISCOUNT, LESS), PartitionLaw(DISCOUNT, 1.0 - LESS)
    return chains_p_value(rng, prior, law, n_obs, exact.sum(0), exact.sum(1), grid)


def chains_p_value(
    rng: np.random.Generator,
    prior: StrengthPrior,
    law: PartitionLaw,
    n_obs: float,
    probabilities: np.ndarray,
    of_nodes: np.ndarray,
    grid: Grid,
) -> float:
    """P-value of chains, given the law (P,) of the partition and that of the variable (G,)."""
    n, n_chains, n_draws = len(ROWS), 64, 1500
    target = target_of(component_of("Normal", 1), ROWS, 1.0)._replace(law=law)
    found, alphas = [], np.empty((n_chains, n_draws))
    for chain in range(n_chains):
        kept = np.empty((n_draws, n), np.int32)
        state = resume(target, np.zeros(n, np.int32))
        prior.present[:] = 0.0, law.strength
        run_chain(target, state.labels, state.stats, rng, prior, n_obs, kept, alphas[chain])
        found.append(partition_index(kept[None])[0])
    index = np.stack(found)
    mean, variance = moments(of_nodes, np.log(grid.nodes))
    # The variable is the strength and what the model takes off it.
    logs = np.log(alphas + (1.0 - law.strength))
    return combine(
        partition_test(index, probabilities),
        count_test(n_clusters_of(n)[index], n_clusters_law(probabilities, n)),
        mean_test(np.stack([logs, logs**2], axis=-1), mean, variance),
    )


@pytest.mark.slow
def test_linked_sweeps_and_moves_of_alpha_are_exact(rng: np.random.Generator) -> None:
    assert p_value(rng, float(len(ROWS))) > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("n_more", [0.0, pytest.param(3.0, marks=pytest.mark.control)])
def test_moves_of_a_strength_under_a_discount(n_more: float, rng: np.random.Generator) -> None:
    is_right = n_more == 0.0
    assert (p_value_under_discount(rng, len(ROWS) + n_more) > LEVEL) == is_right


@pytest.mark.slow
@pytest.mark.control
def test_move_given_a_wrong_number_of_observations_is_caught(rng: np.random.Generator) -> None:
    assert p_value(rng, len(ROWS) + 3.0) < LEVEL


def weights_p_value(rng: np.random.Generator, change: Any, discount: float = 0.0) -> float:
    """P-value of weights drawn under strength 0.3 and changed to strength 4."""
    sizes = np.array([1.0, 3.0, 2.0])
    old, new = PartitionLaw(discount, 0.3), PartitionLaw(discount, 4.0)
    masses, rest = sizes - discount, 3.0 * discount
    drawn = np.empty((4000, 3))
    for out in drawn:
        weights = rng.dirichlet([*masses, 0.3 + rest])[:3]
        atoms = Atoms(sizes[:, None], np.log(weights), np.empty((3, 0)))
        change(atoms, old, new, rng)
        out[:] = np.exp(atoms.log_weights)
    total = sizes.sum() + 4.0
    laws = [stats.beta(mass, total - mass) for mass in (*masses, masses.sum())]
    columns = [*drawn.T, drawn.sum(axis=1)]
    p_values = [
        stats.kstest(column, law.cdf).pvalue for column, law in zip(columns, laws, strict=True)
    ]
    return combine(*p_values)


@pytest.mark.parametrize("discount", [0.0, 0.3])
def test_weights_get_the_law_of_the_new_alpha(discount: float, rng: np.random.Generator) -> None:
    assert weights_p_value(rng, change_law, discount) > LEVEL


@pytest.mark.control
@pytest.mark.parametrize("discount", [0.0, 0.3])
def test_weights_that_stay_are_caught(discount: float, rng: np.random.Generator) -> None:
    assert weights_p_value(rng, lambda *_: None, discount) < LEVEL


@pytest.mark.parametrize("n_components", [2, 3, 4])
def test_atoms_are_followed_if_there_is_a_component_for_each(
    n_components: int, rng: np.random.Generator
) -> None:
    sizes = np.array([[1.0], [3.0], [2.0]])
    atoms = Atoms(sizes, np.log([0.2, 0.5, 0.3]), np.empty((3, 0)))
    change_law(atoms, finite_mixture(1.2, 3), finite_mixture(1.2, n_components), rng)
    # Two clusters have merged since.
    expected = [1, -1] if n_components >= 3 else [-1, -1]
    assert atoms_to_follow(np.array([[3.0], [3.5]]), atoms).tolist() == expected
