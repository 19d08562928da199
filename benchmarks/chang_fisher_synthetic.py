"""Held-out density against time on ten Gaussians (Chang & Fisher 2013, figure 4), every kernel."""

from collections.abc import Iterator
from functools import partial
from itertools import product

from benchmarks import workloads
from benchmarks.held_out_curves import Curve, compile_all, curves_of, keep_curves, rows_of
from benchmarks.predictive import held_out_score, oracle_score
from benchmarks.row import Row
from benchmarks.subject import make_target
from benchmarks.workloads import Workload
from pymc_dpsplit import sampler
from pymc_dpsplit.moves.partition_law import dirichlet_process

_ALPHAS, _STARTS = (1.0, 0.01, 100.0), (1, 10, 100)
# CPU seconds of each kernel from each start.
_BUDGET = 3.0


def _score(workload: Workload, alpha: float, state: sampler.ChainState) -> float:
    return held_out_score(workload, state.labels, alpha)


def run() -> Iterator[Row]:
    """Setting by setting."""
    workload = workloads.load("W2_1e5")
    compile_all(make_target(workload.rows[:200], workload.component))
    target = make_target(workload.rows, workload.component)
    level, curves = oracle_score(workload), dict[str, list[Curve]]()
    for alpha, n_start in product(_ALPHAS, _STARTS):
        given = target._replace(law=dirichlet_process(alpha)), partial(_score, workload, alpha)
        setting = f"alpha = {alpha:g}, from {n_start}"
        curves[setting] = curves_of(*given, n_start, _BUDGET)
        keep_curves("chang_fisher_synthetic", dict.fromkeys(curves, level), curves)
        yield from rows_of(setting, curves[setting], level)
