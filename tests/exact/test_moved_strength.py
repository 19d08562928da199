"""Alpha moved by kernels after every sweep, while the next sweep follows the atoms of the last one.

Sweeps linked by their atoms and moves of alpha alternate; partition and alpha are compared with
enumeration and quadrature, level 1e-5.  The weights of the atoms are those of the former alpha and
have to become those of the new one, whose law is compared too.
"""

from typing import Any

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dpsplit as dps
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.moves.measure import Atoms, change_law, no_atoms
from pymc_dpsplit.moves.partition_law import dirichlet_process
from pymc_dpsplit.moves.strength import StrengthPrior, draw_strength
from pymc_dpsplit.moves.sweep.assignment import next_sweep
from pymc_dpsplit.moves.target import Target
from pymc_dpsplit.sampler import resume
from pymc_dpsplit.variables import concentration_prior, find_mixtures
from tests.support.families import component_of, target_of, twin_of
from tests.support.partitions import n_clusters_law, n_clusters_of, partition_index
from tests.support.quadrature import grid_of, moments, posterior, table_of
from tests.support.statistics import LEVEL, combine, count_test, mean_test, partition_test

ROWS = np.array([[-1.0], [-0.6], [-0.2], [0.3], [0.8], [1.4]])
# A wide prior: from one sweep to the next alpha changes by a factor of ten.
MEAN, SPREAD = 0.0, 1.5


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


def compiled_prior() -> StrengthPrior:
    """Prior of alpha as kernels read it, from a model."""
    with pm.Model() as model:
        alpha = pm.LogNormal("alpha", MEAN, SPREAD)
        dps.DPMixture("x", alpha, dps.Normal(0.0, 0.1, 2.0, 1.0), observed=ROWS[:, 0])
    point = model.initial_point()
    prior = concentration_prior(find_mixtures(model)["x"], model, point)
    assert prior is not None
    return prior.strength_prior(point, 1.0)


def p_value(rng: np.random.Generator, n_obs: float) -> float:
    """P-value of the partition, of K and of log alpha."""
    n, n_chains, n_draws = len(ROWS), 64, 1500
    grid = grid_of(stats.lognorm(SPREAD, scale=np.exp(MEAN)), 400)
    table = table_of(twin_of("Normal", 1).log_marginal, ROWS)[None]
    exact = posterior(table, np.zeros(1), grid)
    prior, target = compiled_prior(), target_of(component_of("Normal", 1), ROWS, 1.0)
    found, alphas = [], np.empty((n_chains, n_draws))
    for chain in range(n_chains):
        kept = np.empty((n_draws, n), np.int32)
        state = resume(target, np.zeros(n, np.int32))
        prior.present[:] = 0.0, 1.0
        run_chain(target, state.labels, state.stats, rng, prior, n_obs, kept, alphas[chain])
        found.append(partition_index(kept[None])[0])
    index = np.stack(found)
    probabilities = exact.partitions
    mean, variance = moments(exact.alpha, np.log(grid.nodes))
    logs = np.log(alphas)
    return combine(
        partition_test(index, probabilities),
        count_test(n_clusters_of(n)[index], n_clusters_law(probabilities, n)),
        mean_test(np.stack([logs, logs**2], axis=-1), mean, variance),
    )


def test_linked_sweeps_and_moves_of_alpha_are_exact(rng: np.random.Generator) -> None:
    assert p_value(rng, float(len(ROWS))) > LEVEL


@pytest.mark.control
def test_move_given_a_wrong_number_of_observations_is_caught(rng: np.random.Generator) -> None:
    assert p_value(rng, len(ROWS) + 3.0) < LEVEL


def weights_p_value(rng: np.random.Generator, change: Any) -> float:
    """P-value of weights drawn under alpha = 0.3 and changed to alpha = 4."""
    sizes, old, new = np.array([1.0, 3.0, 2.0]), dirichlet_process(0.3), dirichlet_process(4.0)
    drawn = np.empty((4000, 3))
    for out in drawn:
        atoms = Atoms(sizes[:, None], np.log(rng.dirichlet([*sizes, 0.3])[:3]), np.empty((3, 0)))
        change(atoms, old, new, rng)
        out[:] = np.exp(atoms.log_weights)
    total = sizes.sum() + 4.0
    laws = [stats.beta(size, total - size) for size in (*sizes, sizes.sum())]
    columns = [*drawn.T, drawn.sum(axis=1)]
    p_values = [
        stats.kstest(column, law.cdf).pvalue for column, law in zip(columns, laws, strict=True)
    ]
    return combine(*p_values)


def test_weights_get_the_law_of_the_new_alpha(rng: np.random.Generator) -> None:
    assert weights_p_value(rng, change_law) > LEVEL


@pytest.mark.control
def test_weights_that_stay_are_caught(rng: np.random.Generator) -> None:
    assert weights_p_value(rng, lambda *_: None) < LEVEL
