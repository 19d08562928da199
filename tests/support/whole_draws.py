"""Whole draws of the sampler, as `pm.sample` makes them, on rows that a test exchanges at will.

A draw is all that happens between two rows of a trace: the schedule's iterations of linked sweeps,
scan and split/merge attempts, alpha by slice, then alpha and a hyperparameter by NUTS.  The
schedule is that of a tuned chain, frozen.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytest
from scipy.special import betainc

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.components.arguments import rows_of
from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.data.blocks import column_centres
from pymc_dpsplit.data.fixed_rows import fixed
from pymc_dpsplit.moves.conjugate import densities_of_list, finish_exact
from pymc_dpsplit.moves.forward import draw_seating
from pymc_dpsplit.moves.measure import Atoms, no_atoms
from pymc_dpsplit.moves.partition import entropy, log_joint
from pymc_dpsplit.moves.strength import move_strength
from pymc_dpsplit.moves.sweep.assignment import next_sweep
from pymc_dpsplit.step.concentration_move import with_present_law
from tests.support import family_cases
from tests.support.families import EXAMPLES, FAMILIES, as_observed

SHAPE, RATE = 4.0, 2.0  # of the prior of alpha, and of that of the factor of a hyperparameter
# Hyperparameter of each family that gets a factor with a prior.  The others have alpha alone.
FACTOR_OF = {name: example.factor for name, example in EXAMPLES.items() if example.factor}
N_ITERATIONS = 30
STATISTICS = (
    "alpha",
    "factor",
    "K",
    "largest",
    "singletons",
    "entropy",
    "log joint",
    "together",
    "rest and alpha",
)


class Truth(NamedTuple):
    """An exact forward draw; `other` is the second number of the law, if it has one."""

    alpha: float
    factor: float
    labels: np.ndarray
    rows: np.ndarray
    other: float = 0.0


def hyperparameters_of(name: str, n_features: int, factor: Any) -> dict[str, Any]:
    """Test hyperparameters of a family, one of them times a factor."""
    found = dict(family_cases.hyperparameters_of(name, n_features))
    if name in FACTOR_OF:
        found[FACTOR_OF[name]] = factor * found[FACTOR_OF[name]]
    return found


def component_of(name: str, n_features: int, factor: Any) -> ComponentFamily:
    """Family with its test hyperparameters, one of them times a factor."""
    return FAMILIES[name].component(**hyperparameters_of(name, n_features, factor))


class WholeDraws:
    """The step methods that `pm.sample` would assign, and the point that they move.

    Parameters
    ----------
    name : str
        A family of `FAMILIES`.
    n_features : int
    n_obs : int
    seed : int
    kernel : str
        One of `sampler.KERNELS`.
    alpha : tuple of float
        Shape and rate of the prior of alpha.
    has_factor : bool, optional
        Whether a hyperparameter is sampled; by default if the family has one in `FACTOR_OF`.
    **of_kernel : int or bool
        Options of that kernel.
    """

    def __init__(
        self,
        name: str,
        n_features: int,
        n_obs: int,
        seed: int,
        kernel: str = "exact",
        alpha: tuple[float, float] = (SHAPE, RATE),
        has_factor: bool | None = None,
        **of_kernel: Any,
    ) -> None:
        self.name, self.n_features, self.n_obs = name, n_features, n_obs
        self.prior_of_alpha = alpha
        self.has_factor = name in FACTOR_OF if has_factor is None else has_factor
        self.rng = np.random.default_rng([seed, 1])
        example = self.forward().rows
        with pm.Model() as model:
            moved = [pm.Gamma("alpha", *alpha)]
            factor = 1.0
            if self.has_factor:
                factor = pm.Gamma("factor", SHAPE, RATE)
                moved.append(factor)
            component = component_of(name, n_features, factor)
            moved += self._declare(moved[0], component, as_observed(name, example))
            owned = [rv for rv in model.free_RVs if rv not in moved]
            given = {"rng": np.random.default_rng([seed, 2]), "kernel": kernel, **of_kernel}
            self.step = dps.DPSplitMerge(owned, **given)
            self.nuts = pm.NUTS(moved, rng=np.random.default_rng([seed, 3]))
            self.nuts.stop_tuning()
            self.point = model.initial_point()
        # Every second row, so that what the scan leaves out is left to the sweeps alone.
        self.schedule = sampler.Schedule(N_ITERATIONS, 0.5, np.arange(0, n_obs, 2))
        self.freeze(self.schedule)

    def _declare(self, alpha: Any, component: ComponentFamily, observed: Any) -> list[Any]:
        """Declare the mixture; return further variables that NUTS moves."""
        dps.DPMixture("x", alpha, component, observed=observed)
        return []

    def freeze(self, schedule: sampler.Schedule) -> None:
        """Give the step a schedule, as tuning does, and end its tuning."""
        self.step.n_iterations, self.step.attempts, self.step.scan_list = schedule[:3]
        self.step.window = schedule.window
        self.step.n_tune, self.step.n_done = 0, 1

    def forward(self) -> Truth:
        """Draw alpha, the factor, labels and rows from the model."""
        rng = self.rng
        shape, rate = self.prior_of_alpha
        alpha = rng.gamma(shape, 1.0 / rate)
        factor = rng.gamma(SHAPE, 1.0 / RATE) if self.has_factor else 1.0
        labels, other = self._labels(alpha)
        component, values = self.family(factor)
        parameters = component.draw_base(rng, values, int(labels.max()) + 1)
        rows = component.draw_rows(rng, parameters, labels).reshape(self.n_obs, -1)
        return Truth(alpha, factor, labels, rows, other)

    def _labels(self, alpha: float) -> tuple[np.ndarray, float]:
        """Draw labels given alpha, and the second number of the law."""
        return draw_seating(self.rng, alpha, self.n_obs), 0.0

    def family(self, factor: float) -> tuple[ComponentFamily, dict[str, np.ndarray]]:
        """Return the family at a factor, and its hyperparameters."""
        component = component_of(self.name, self.n_features, factor)
        if FAMILIES[self.name].is_conditional or FAMILIES[self.name].is_composed:
            # Rows may contain covariates, which `draw_rows` takes from rows that it has seen.
            seen = family_cases.rows_of("overlapping", self.n_features)
            component = component.validate_rows(FAMILIES[self.name].rows_from(seen))
        return component, component.check(component.hyperparameters, self.n_features)

    def restart(self, truth: Truth) -> None:
        """Go on from an exact draw."""
        self.point = {**self.point, "alpha_log__": np.asarray(np.log(truth.alpha))}
        if self.has_factor:
            self.point["factor_log__"] = np.asarray(np.log(truth.factor))
        self.replace_rows(truth.rows, truth.labels)
        self.rest_and_alpha = self._product(self.rng.random())

    def replace_rows(self, rows: np.ndarray, labels: np.ndarray) -> None:
        """Exchange the observations; the partition stays the state of the chain."""
        step = self.step
        step._reader.evaluator._fixed_rows = fixed(rows_of(rows, 1))
        step._reader.centre(column_centres(step._reader.evaluator._fixed_rows))
        target = self.target()
        step.labels, step.cluster_stats, step.of_rows, step.of_clusters = sampler.resume(
            target, labels
        )

    def target(self) -> sampler.Target:
        """Posterior of the partition at the present point."""
        return self.step._reader.read(self.point)[1]

    def draw(self, has_nuts: bool = True) -> None:
        """Make one draw, with NUTS or without."""
        self.point, _ = self.step.step(self.point)
        self.rest_and_alpha = self._product(self._quantile_of_rest())
        if has_nuts:
            self.point, _ = self.nuts.step(self.point)

    def _quantile_of_rest(self) -> float:
        """Quantile of the weight of what is not yet seen, Beta(alpha, N) for every partition."""
        rest = np.exp(self.point["x_new_weight_log__"])
        return float(betainc(self.alpha, self.n_obs, rest))

    def _product(self, quantile: float) -> float:
        """Relate the quantile of the remainder, which is uniform, to alpha."""
        return (quantile - 0.5) * float(self.point["alpha_log__"])

    @property
    def alpha(self) -> float:
        """Present concentration."""
        return float(np.exp(self.point["alpha_log__"]))

    @property
    def factor(self) -> float:
        """Present factor of the hyperparameter, 1 if it has none."""
        return float(np.exp(self.point["factor_log__"])) if self.has_factor else 1.0

    def redraw_rows(self) -> None:
        """Draw parameters given rows and labels, and rows given parameters and labels."""
        target, labels = self.target(), self.step.labels
        measure = sampler.measure(
            target, sampler.ChainState(labels, self.step.cluster_stats), self.rng
        )
        component, _ = self.family(self.factor)
        parameters = component.unpack(measure.params, self.step._reader.shift)
        rows = component.draw_rows(self.rng, parameters, measure.rank[labels])
        self.replace_rows(rows.reshape(self.n_obs, -1), labels)

    def statistics(self) -> list[float]:
        """Functions of the state in the order of `STATISTICS`; numbers of clusters play no part."""
        target, labels, stats = self.target(), self.step.labels, self.step.cluster_stats
        sizes = stats[:, 0]
        return [
            self.alpha,
            self.factor,
            len(sizes),
            sizes.max(),
            (sizes == 1).sum(),
            entropy(stats),
            log_joint(target, stats),
            labels[0] == labels[1],
            self.rest_and_alpha,
        ]


# --- mistakes that only a composition shows -----------------------------------------------

Mutant = Callable[[WholeDraws, pytest.MonkeyPatch], None]


def _plan_each_iteration(
    monkeypatch: pytest.MonkeyPatch,
    plan: Callable[[sampler.ChainState, sampler.Schedule], sampler.Schedule],
) -> None:
    """Have every iteration of a draw run by a schedule that depends on the state before it."""
    honest = sampler.advance

    def advance(
        form: Any, target: Any, state: Any, rng: Any, schedule: Any, pool: Any = None
    ) -> Any:
        acceptance_counts = np.zeros(4, np.int64)
        for _ in range(schedule.n_iterations):
            single = plan(state, schedule._replace(n_iterations=1))
            state, more = honest(form, target, state, rng, single, pool)
            target = with_present_law(target, schedule.strength)
            acceptance_counts += more
        return state, acceptance_counts

    monkeypatch.setattr("pymc_dpsplit.step.dp_split_merge.sampler.advance", advance)


def plan_by_state(draws: WholeDraws, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scan, in every iteration, the members of the smallest clusters that there are."""
    del draws

    def plan(state: sampler.ChainState, schedule: sampler.Schedule) -> sampler.Schedule:
        return schedule._replace(scan_list=np.flatnonzero(state.stats[state.labels, 0] <= 2.0))

    _plan_each_iteration(monkeypatch, plan)


def with_window(draws: WholeDraws, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scan a quarter of the rows in every iteration, from a random one on; no mistake."""
    del monkeypatch
    draws.schedule = draws.schedule._replace(window=draws.n_obs // 4)
    draws.freeze(draws.schedule)


def with_long_window(draws: WholeDraws, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scan all rows twice and a quarter of them once more, from a random one on; no mistake."""
    del monkeypatch
    draws.schedule = draws.schedule._replace(window=2 * draws.n_obs + draws.n_obs // 4)
    draws.freeze(draws.schedule)


def window_by_state(draws: WholeDraws, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin the window with a member of the smallest cluster."""

    def plan(state: sampler.ChainState, schedule: sampler.Schedule) -> sampler.Schedule:
        first = int(np.argmin(state.stats[state.labels, 0]))
        rows = (first + np.arange(draws.n_obs // 4)) % draws.n_obs
        return schedule._replace(scan_list=rows, window=0)

    _plan_each_iteration(monkeypatch, plan)


def attempts_by_state(draws: WholeDraws, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make split/merge attempts, many at a time, only while there are few clusters."""
    del draws

    def plan(state: sampler.ChainState, schedule: sampler.Schedule) -> sampler.Schedule:
        return schedule._replace(attempts=8.0 if len(state.stats) <= 5 else 0.0)

    _plan_each_iteration(monkeypatch, plan)


def stale_measure(draws: WholeDraws, monkeypatch: pytest.MonkeyPatch) -> None:
    """Move alpha with weights summed out, and keep the alpha before to draw the measure with."""
    del draws
    monkeypatch.setattr(
        "pymc_dpsplit.step.dp_split_merge.with_present_law", lambda target, strength: target
    )


def atoms_by_number(draws: WholeDraws, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each cluster follow the atom of its number, whatever other moves did in between."""

    def advance(
        form: Any, target: Any, state: Any, rng: Any, schedule: Any, pool: Any = None
    ) -> Any:
        labels, stats = state.labels.copy(), state.stats
        acceptance_counts = np.zeros(4, np.int64)
        atoms = no_atoms(target.prior)
        single = schedule._replace(n_iterations=1)
        log_alone = densities_of_list(target, schedule)
        for _ in range(schedule.n_iterations):
            n_kept = min(len(atoms.stats), len(stats))
            atoms = Atoms(stats[:n_kept], *(array[:n_kept] for array in atoms[1:]))
            stats, atoms = next_sweep(target, labels, stats, rng, atoms)
            stats = finish_exact(target, labels, stats, rng, single, log_alone, acceptance_counts)
            target = move_strength(target, stats, atoms, schedule.strength, rng)
        return sampler.ChainState(labels, stats), acceptance_counts

    monkeypatch.setattr("pymc_dpsplit.step.dp_split_merge.sampler.advance", advance)


MUTANTS: dict[str, Mutant] = {
    "schedule by state": plan_by_state,
    "window by state": window_by_state,
    "attempts by state": attempts_by_state,
    "stale measure": stale_measure,
    "atoms by number": atoms_by_number,
}
