"""What is measured: every use that the benchmarks make of the package's internals."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pymc as pm

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.components.sparse_counts import rows_of_sparse
from pymc_dpsplit.data.fixed_rows import read_only
from pymc_dpsplit.kernels.mass import accumulate
from pymc_dpsplit.kernels.tiles import TILE
from pymc_dpsplit.moves.measure import no_atoms
from pymc_dpsplit.moves.partition_law import PartitionLaw, dirichlet_process
from pymc_dpsplit.moves.strength import StrengthPrior, draw_strength
from pymc_dpsplit.moves.sweep.assignment import slice_sweep
from pymc_dpsplit.moves.sweep.threaded_sweep import threaded_sweep
from pymc_dpsplit.step.schedule import make_schedule
from pymc_dpsplit.variables import concentration_prior, find_mixtures


def make_target(rows: np.ndarray, component: Any) -> sampler.Target:
    """Rows (N, D) as they are, the prior in kernel form for their mean, alpha = 1."""
    shift = rows.mean(0)
    prior = component.prior(component.check(component.hyperparameters, rows.shape[1]), shift)
    return sampler.Target(prior, read_only(rows), dirichlet_process(1.0))


def make_sparse_target(observed: Any, component: Any) -> sampler.Target:
    """Counts in a SciPy sparse matrix as kernels read them, alpha = 1."""
    rows = rows_of_sparse(observed)
    n_features = rows.shape[1]
    values = component.check(component.hyperparameters, n_features)
    prior = component.prior(values, np.zeros(n_features))
    return sampler.Target(prior, component.arranged(rows), dirichlet_process(1.0))


def evaluate_all(target: sampler.Target) -> sampler.Target:
    """The target of a full-covariance mixture, sampled without pruning."""
    return target._replace(prior=target.prior._replace(has_bounds=None))


class Chain:
    """A chain on one target, advanced by sweeps or by whole iterations.

    Parameters
    ----------
    target : Target
    labels : ndarray of int, shape (N,), optional
        Where to start; not changed.
    n_start : int, optional
        Instead: the number of clusters of a random start.
    seed : int
    pool : ThreadPoolExecutor, optional
        Threads that share a sweep.
    """

    def __init__(
        self,
        target: sampler.Target,
        labels: np.ndarray | None = None,
        n_start: int | None = None,
        seed: int = 1,
        pool: ThreadPoolExecutor | None = None,
    ) -> None:
        self.target, self.pool = target, pool
        self.rng = np.random.default_rng(seed)
        if labels is None:
            self.state = sampler.start(target, self.rng, n_start)
        else:
            self.state = sampler.resume(target, labels.astype(np.int32))
        self.replan()

    def replan(self) -> None:
        """Choose anew, for the present state, what an iteration consists of."""
        schedule = make_schedule("exact", self.target, self.state)
        self.schedule = schedule._replace(n_iterations=1)

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(self.state.stats)

    def sweep(self) -> None:
        """One sweep over all labels, in threads if there is a pool."""
        labels = self.state.labels
        arguments = (self.target, labels, self.state.stats, self.rng)
        if self.pool is None:
            stats = slice_sweep(*arguments)
        else:
            stats, _ = threaded_sweep(*arguments, no_atoms(self.target.prior), self.pool)
        self.state = sampler.ChainState(labels, stats)

    def iterate(self, n_iterations: int = 1, greedy: bool = False) -> None:
        """Whole iterations, exact ones or those of early tuning."""
        form = sampler.GREEDY if greedy else "exact"
        schedule = self.schedule._replace(n_iterations=1 if greedy else n_iterations)
        for _ in range(n_iterations if greedy else 1):
            self.state, _ = sampler.advance(
                form, self.target, self.state, self.rng, schedule, self.pool
            )


def prior_of_components(
    gamma: float, prior: Callable[[], Any], number: int
) -> tuple[StrengthPrior, Any]:
    """Prior of a number of components as kernels read it; `prior` is called in a model.

    The first move starts from `number`, which is to be at least the number of clusters.  What is
    returned beside it has the compiled density, of which kernels know the address alone.
    """
    with pm.Model() as model:
        normal = dps.Normal(0.0, 0.1, 2.0, 1.0)
        dps.MFMixture("x", gamma, normal, n_components=prior(), observed=[0.0, 1.0])
    point = model.initial_point()
    concentration = concentration_prior(find_mixtures(model)["x"], model, point)
    assert concentration is not None
    point["x_n_components"] = np.asarray(number, point["x_n_components"].dtype)
    rng = np.random.default_rng(1)
    return concentration.strength_prior(point, gamma * number, rng), concentration


def with_moved_strength(chain: Chain, prior: StrengthPrior) -> None:
    """One sweep, and a move of what determines the strength."""
    chain.sweep()
    law, n_obs = chain.target.law, float(len(chain.state.labels))
    law = draw_strength(prior, law, chain.n_clusters, n_obs, chain.rng)
    chain.target = chain.target._replace(law=PartitionLaw(*law))


def exponentials(log_mass: np.ndarray) -> None:
    """The package's own exponential of (A, TILE) numbers with its maxima and running sums."""
    kind = log_mass.dtype
    accumulate(log_mass, len(log_mass), np.empty(TILE, kind), np.empty(TILE, kind))
