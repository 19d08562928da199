"""Whole draws compared with the truth, in four ways.

Each comparison takes a mutant, by which it is seen to fail.
"""

from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

from tests.support.families import FAMILIES, dataset_of
from tests.support.findings import Finding, of_chains, of_replicates
from tests.support.partitions import n_clusters_law, n_clusters_of, partition_index
from tests.support.quadrature import grid_of, moments, posterior, table_of
from tests.support.statistics import (
    combine,
    count_test,
    mean_test,
    partition_test,
    two_sample_test,
)
from tests.support.whole_draws import (
    FACTOR_OF,
    RATE,
    SHAPE,
    STATISTICS,
    Mutant,
    WholeDraws,
    hyperparameters_of,
)


class Comparison(NamedTuple):
    """P-value of a comparison, and the biases behind it."""

    p_value: float
    findings: list[Finding]


def begun(draws: WholeDraws, mutant: Mutant | None, monkeypatch: pytest.MonkeyPatch) -> WholeDraws:
    """Break the draws if they are a control."""
    if mutant is not None:
        mutant(draws, monkeypatch)
    return draws


def one_step(
    case: tuple[str, int],
    n_obs: int,
    n_replicates: int,
    seed: int,
    mutant: Mutant | None = None,
    kernel: str = "exact",
    **of_kernel: Any,
) -> Comparison:
    """One whole draw from an exact forward draw leaves the joint law as it was."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        draws = begun(WholeDraws(*case, n_obs, seed, kernel, **of_kernel), mutant, monkeypatch)
        before, after = around_one_draw(draws, n_replicates)
    findings = of_replicates("one step", str(case), STATISTICS, before, after)
    varies = before.std(0) > 0.0
    return Comparison(two_sample_test(before[:, varies], after[:, varies]), findings)


def around_one_draw(draws: WholeDraws, n_replicates: int) -> np.ndarray:
    """Statistics (2, R, p) of exact forward draws, and of what one whole draw makes of them."""
    before, after = [], []
    for _ in range(n_replicates):
        draws.restart(draws.forward())
        before.append(draws.statistics())
        draws.draw()
        after.append(draws.statistics())
    return np.array([before, after], float)


def geweke(
    case: tuple[str, int],
    n_obs: int,
    n_draws: int,
    seed: int,
    mutant: Mutant | None = None,
    n_chains: int = 4,
) -> Comparison:
    """Rows redrawn after each draw: the chain samples the joint law of rows and all else."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        draws = begun(WholeDraws(*case, n_obs, seed), mutant, monkeypatch)
        found = np.empty((n_chains, n_draws, len(STATISTICS)))
        for chain in range(n_chains):
            draws.restart(draws.forward())
            for s in range(n_draws):
                draws.draw()
                draws.redraw_rows()
                found[chain, s] = draws.statistics()
    exact = np.empty_like(found)
    for chain in range(n_chains):
        for s in range(n_draws):
            draws.restart(draws.forward())
            exact[chain, s] = draws.statistics()
    findings = of_chains("Geweke", str(case), STATISTICS, found, exact)
    return Comparison(combine(*(finding.p_value for finding in findings)), findings)


def enumeration(
    case: tuple[str, int], n_draws: int, seed: int, mutant: Mutant | None = None, n_chains: int = 4
) -> Comparison:
    """Posterior of partition, alpha and the factor of eight rows, enumerated and by quadrature."""
    name, n_features = case
    rows = dataset_of(name, "overlapping", n_features)
    alpha = grid_of(stats.gamma(SHAPE, scale=1.0 / RATE))
    factor = grid_of(stats.gamma(SHAPE, scale=1.0 / RATE), 60)
    if name in FACTOR_OF:
        nodes, log_weights = factor
    else:
        nodes, log_weights = np.ones(1), np.zeros(1)
    twins = [FAMILIES[name].twin(**hyperparameters_of(name, n_features, node)) for node in nodes]
    tables = np.stack([table_of(twin.log_marginal, rows) for twin in twins])
    exact = posterior(tables, log_weights, alpha)
    with pytest.MonkeyPatch.context() as monkeypatch:
        draws = begun(WholeDraws(name, n_features, len(rows), seed), mutant, monkeypatch)
        draws.replace_rows(rows, np.zeros(len(rows), np.int64))
        labels = np.empty((n_chains, n_draws, len(rows)), np.int8)
        scalars = np.empty((n_chains, n_draws, 2))
        for chain in range(n_chains):
            for s in range(-100, n_draws):
                draws.draw()
                if s >= 0:
                    labels[chain, s] = draws.step.labels
                    scalars[chain, s] = draws.alpha, draws.factor
    index, n_obs = partition_index(labels), len(rows)
    law = n_clusters_law(exact.partitions, n_obs)
    alpha_moments = moments(exact.alpha, alpha.nodes)
    p_values = [
        partition_test(index, exact.partitions),
        count_test(n_clusters_of(n_obs)[index], law),
        mean_test(_powers(scalars[..., 0]), *alpha_moments),
    ]
    truths = {"alpha": alpha_moments[0][0], "K": law @ np.arange(n_obs + 1)}
    found = {"alpha": scalars[..., 0], "K": n_clusters_of(n_obs)[index]}
    if name in FACTOR_OF:
        factor_moments = moments(exact.nodes, nodes)
        p_values.append(mean_test(_powers(scalars[..., 1]), *factor_moments))
        truths["factor"], found["factor"] = factor_moments[0][0], scalars[..., 1]
    findings = []
    for statistic, truth in truths.items():
        values = found[statistic][..., None].astype(float)
        (finding,) = of_chains(
            "enumeration", str(case), (statistic,), values, np.full_like(values, truth)
        )
        findings.append(finding._replace(spread=float(values.std())))
    return Comparison(combine(*p_values), findings)


def _powers(draws: np.ndarray) -> np.ndarray:
    return np.stack([draws, draws**2], axis=-1)


class Kernels(NamedTuple):
    """Rows on which two kernels are compared.

    Attributes
    ----------
    case : tuple of str and int
        Family, and number of features.
    n_obs : int
    n_scanned : int
        Rows on the scan list.
    n_iterations : int
        Of the exact kernel in a draw.
    n_sweeps : int
        Of collapsed Gibbs in a draw.
    distance : float
        Between the groups of a pair; their standard deviation is 0.7.
    has_nuts : bool
        Whether NUTS moves alpha too.
    """

    case: tuple[str, int]
    n_obs: int
    n_scanned: int
    n_iterations: int
    n_sweeps: int
    distance: float
    has_nuts: bool = False


SETTINGS = (
    Kernels(("Normal", 1), 300, 6, 12, 5, 2.5),
    Kernels(("MvNormal", 2), 100, 6, 12, 5, 1.5, has_nuts=True),
    Kernels(("MvNormal", 5), 60, 20, 8, 5, 1.5),
    Kernels(("DiagNormal", 10), 60, 20, 8, 5, 2.0),
)
# E[K] is to be known well: so alpha varies little, and there is a least number of clusters.
_ALPHA_NEAR_ONE = (100.0, 100.0)
_PAIRS, _BETWEEN_PAIRS = 4, 6.0


def grouped_rows(setting: Kernels, rng: np.random.Generator) -> np.ndarray:
    """Rows (N, D) of four pairs of groups: those of a pair overlap, the pairs lie apart."""
    (_, n_features), n_obs = setting.case, setting.n_obs
    group = np.arange(n_obs) % (2 * _PAIRS)
    if n_features == 1:
        centres = _BETWEEN_PAIRS * (np.arange(_PAIRS)[:, None] - 1.5)
    else:
        centres = _BETWEEN_PAIRS * np.linalg.qr(rng.standard_normal((n_features, n_features)))[0]
        centres = np.concatenate((centres, -centres))[:_PAIRS]
    sides = setting.distance / np.sqrt(n_features) * (group % 2 - 0.5)
    return centres[group // 2] + sides[:, None] + 0.7 * rng.standard_normal((n_obs, n_features))


def chain_of(
    setting: Kernels,
    kernel: str,
    n_draws: int,
    seed: int,
    mutant: Mutant | None = None,
) -> np.ndarray:
    """Statistics (draws, p) of a chain on the rows of a setting."""
    rows = grouped_rows(setting, np.random.default_rng(setting.n_obs))
    with pytest.MonkeyPatch.context() as monkeypatch:
        draws = WholeDraws(
            *setting.case, setting.n_obs, seed, kernel, _ALPHA_NEAR_ONE, has_factor=False
        )
        n_iterations = setting.n_iterations if kernel == "exact" else setting.n_sweeps
        scanned = np.linspace(0, len(rows) - 1, setting.n_scanned).astype(np.int64)
        draws.schedule = draws.schedule._replace(
            n_iterations=n_iterations, attempts=0.3, scan_list=scanned
        )
        draws.freeze(draws.schedule)
        begun(draws, mutant, monkeypatch)
        draws.replace_rows(rows, np.arange(len(rows)) % 8 // 2)
        found = np.empty((n_draws, len(STATISTICS)))
        for s in range(-200, n_draws):
            draws.draw(has_nuts=setting.has_nuts)
            if s >= 0:
                found[s] = draws.statistics()
    return found


def two_kernels(setting: Kernels, exact: np.ndarray, collapsed: np.ndarray) -> Comparison:
    """Compare chains (chains, S, p) of the exact kernel with those of collapsed Gibbs."""
    findings = of_chains(
        "collapsed Gibbs", f"{setting.case}, N = {setting.n_obs}", STATISTICS, exact, collapsed
    )
    n_clusters = np.arange(exact[..., 2].max() + 1.0)
    p_values = [finding.p_value for finding in findings]
    for k in n_clusters:
        shares = [(draws[..., 2:3] == k).astype(float) for draws in (exact, collapsed)]
        if min(share.mean() for share in shares) > 1e-3:
            (finding,) = of_chains("", "", (f"P(K = {k:g})",), *shares)
            p_values.append(finding.p_value)
    return Comparison(combine(*p_values), findings)
