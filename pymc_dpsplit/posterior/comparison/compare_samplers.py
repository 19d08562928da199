"""`compare_samplers`: compare a Dirichlet-process mixture with finite mixtures under NUTS."""

import textwrap
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import arviz_stats
import numpy as np
import pymc as pm
import xarray as xr
from pymc.model import Model
from pytensor.graph.basic import Variable
from scipy.special import logsumexp

from pymc_dpsplit.components.arguments import generator_of, is_integer, positive_scalar, rows_of
from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.finite.finite_mixture import finite_mixture
from pymc_dpsplit.mixture.dp_mixture import DPMixture
from pymc_dpsplit.mixture.finite_dirichlet import FiniteMixture
from pymc_dpsplit.posterior.comparison.compared_quantities import log_densities, numbers_occupied
from pymc_dpsplit.posterior.comparison.timed_runs import (
    NUTPIE,
    Run,
    Settings,
    can_run_nutpie,
    run_nutpie,
    run_pymc,
)
from pymc_dpsplit.posterior.diagnostics.invariants import LEAST_DRAWS, tabulate
from pymc_dpsplit.posterior.diagnostics.problems import LARGEST_R_HAT, LEAST_ESS, R_HAT_APART
from pymc_dpsplit.posterior.prediction.loo import left_out_likelihood
from pymc_dpsplit.variables import find_mixtures

# arviz_stats has no type annotations.
azs: Any = arviz_stats

OURS, OURS_FINITE = "dpsplit", "dpsplit-finite"
_RUNNERS: dict[str, Callable[[Model, Settings, int], Run]] = {
    OURS: run_pymc,
    OURS_FINITE: run_pymc,
    "pymc": run_pymc,
    NUTPIE: run_nutpie,
}
_NAME = "x"
_N_PROBES = 12
_LINE = 100  # characters


@dataclass(frozen=True, eq=False)
class Comparison:
    """Result of `compare_samplers`; ``print`` it for the table and the verdicts.

    Attributes
    ----------
    table : pandas.DataFrame
        One row for each run, columns as listed at `compare_samplers`.
    elpd : pandas.DataFrame or None
        Table of ``az.compare``, the best run first; None if there is only one run.
    traces : dict
        Name of the run to its DataTree.  Finite mixtures also have ``x_n_clusters``, the number of
        components with at least one member.  All traces have the group log_likelihood, that of
        runs of `DPSplitMerge` as in `loo`.
    remarks : tuple of str
        Further notes, for instance on samplers that were skipped.
    """

    table: Any
    elpd: Any
    traces: dict[str, xr.DataTree]
    remarks: tuple[str, ...]

    def __str__(self) -> str:
        numbers = self.table.drop(columns=["sampler", "n_components", "verdict"]).T
        lines = [numbers.to_string(float_format=lambda x: f"{x:.4g}"), ""]
        lines += [f"{run}: {verdict}" for run, verdict in self.table["verdict"].items()]
        for remark in self.remarks:
            lines += textwrap.wrap(remark, _LINE, subsequent_indent="  ")
        return "\n".join(lines)


class _Job(NamedTuple):
    """One run: a model and the sampler for it."""

    label: str
    sampler: str
    n_components: float
    model: Model


def compare_samplers(
    observed: Any,
    component: ComponentFamily,
    *,
    alpha: float = 1.0,
    n_components: int | Sequence[int] = (2, 4, 8),
    samplers: Sequence[str] = (OURS, "pymc", NUTPIE),
    weights: str = "dirichlet",
    held_out: Any = None,
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 4,
    cores: int = 1,
    target_accept: float = 0.95,
    random_seed: int | None = None,
) -> Comparison:
    """Sample a Dirichlet-process mixture and finite mixtures of one data set, and compare them.

    Parameters
    ----------
    observed : array-like
        Observations without missing entries, shape (N,) for `Normal`, otherwise (N, D).
    component : ComponentFamily
        A family that `finite_mixture` supports, with numerical hyperparameters.
    alpha : float
        Concentration, positive.
    n_components : int or sequence of int
        Numbers of components of the finite mixtures.
    samplers : sequence of str
        Any of ``"dpsplit"``, which samples the Dirichlet-process mixture by `DPSplitMerge`,
        ``"dpsplit-finite"``, which samples finite mixtures with Dirichlet weights by it, and
        ``"pymc"`` and ``"nutpie"``, which sample finite mixtures by their versions of NUTS.  If
        nutpie is not installed its runs are skipped, with a remark.
    weights : {"dirichlet", "stick"}
        Prior of the weights of finite mixtures, see `finite_mixture`.
    held_out : array-like, optional
        Further observations, on which predictions are evaluated.
    draws, tune, chains : int
        As for `pm.sample`, for every run.
    cores : int
        Number of chains that run in parallel.
    target_accept : float
        For NUTS.  The default is higher than that of `pm.sample`, because the curvature of
        posteriors of mixtures varies.
    random_seed : int, optional

    Returns
    -------
    Comparison
        The columns of ``table`` are:

        - ``sampler``; ``n_components``, infinite for the Dirichlet process;
        - ``compile_s``, seconds before the first draw, fewer if kernels are cached; ``wall_s`` and
          ``cpu_s``, seconds of tuning and sampling, the latter summed over processes;
        - ``ess_density``, the smallest bulk ESS of the log predictive density at 12 observations
          between the extremes of the first principal component; ``ess_n_clusters``, the bulk ESS of
          the number of occupied clusters, NaN if it is constant; both also per CPU second;
        - ``r_hat``, the largest R-hat of these quantities; ``divergences``;
        - ``n_clusters``, its posterior mean;
        - ``elpd_loo`` and ``elpd_se``, by leave-one-out cross-validation with its standard error;
        - ``held_out``, the log predictive density of `held_out`, summed over its rows;
        - ``verdict``, in words.

    Raises
    ------
    ValueError
        With one sentence that names the argument, the fault and the remedy.

    Notes
    -----
    Only quantities that do not depend on the numbering of clusters are compared, so that label
    switching does not affect the verdict.  CPU seconds include processes that this process forked
    or spawned.  See docs/method.md, eq. (13.4)-(13.5).

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> found = dps.compare_samplers(
    ...     [0.0, 0.1, 0.2, 4.8, 5.0, 5.1], dps.Normal(2.5, 0.1, 2, 0.1),
    ...     samplers=["dpsplit"], draws=100, tune=100, chains=2, random_seed=1,
    ... )
    >>> list(found.table.index), list(found.traces)
    (['dpsplit'], ['dpsplit'])
    """
    rng = generator_of("random_seed", random_seed)
    rows, component, tested = _checked_data(observed, component, held_out)
    alpha = _checked_alpha(alpha)
    settings = _checked_settings(draws, tune, chains, cores, target_accept)
    chosen, remarks = _checked_samplers(samplers)
    numbers = _checked_numbers(n_components)
    if OURS_FINITE in chosen and weights == "stick":
        raise ValueError(
            f'samplers names {OURS_FINITE}, whose weights are Dirichlet, beside weights="stick"; '
            "leave one of them out."
        )
    try:
        jobs = _jobs(rows, component, alpha, numbers, chosen, weights)
    except ValueError as error:
        raise ValueError(str(error).removeprefix(f"{_NAME}: ")) from None
    found, traces = [], {}
    for job in jobs:
        run = _RUNNERS[job.sampler](job.model, settings, int(rng.integers(2**31)))
        found.append(_judge(job, run, component, rows, tested, rng))
        traces[job.label] = run.trace
    columns = {key: ("run", [of[key] for of in found]) for key in found[0]}
    table = xr.Dataset(columns, coords={"run": [job.label for job in jobs]}).to_dataframe()
    return Comparison(table, _compared(traces), traces, tuple(remarks))


def _checked_data(
    observed: Any, component: Any, held_out: Any
) -> tuple[np.ndarray, ComponentFamily, np.ndarray | None]:
    """Return the rows (N, D), the component adapted to them, and the held-out rows."""
    if not isinstance(component, ComponentFamily):
        raise ValueError(
            f"component={component!r} is not a component family with its hyperparameters; give "
            "for instance MvNormal.from_data(observed)."
        )
    if any(isinstance(value, Variable) for value in component.hyperparameters.values()):
        raise ValueError(
            "component has PyMC variables as hyperparameters, but compare_samplers makes models "
            "of its own; give numbers."
        )
    rows = np.asarray(rows_of(observed, component.row_ndim), np.float64)
    component = component.validate_rows(rows)
    component.check(component.hyperparameters, rows.shape[1])
    if held_out is None:
        return rows, component, None
    try:
        tested = np.asarray(rows_of(held_out, component.row_ndim), np.float64)
        component.validate_rows(tested)
    except ValueError as error:
        raise ValueError(str(error).replace("observed", "held_out")) from None
    if tested.shape[1] != rows.shape[1]:
        raise ValueError(
            f"held_out has {tested.shape[1]} features, but observed has {rows.shape[1]}; give "
            "rows of the same features."
        )
    return rows, component, tested


def _checked_alpha(alpha: Any) -> float:
    if isinstance(alpha, Variable):
        raise ValueError(
            "alpha is a PyMC variable, but compare_samplers makes models of its own; give a "
            "positive number."
        )
    return positive_scalar("alpha", alpha)


def _is_count(value: Any, least: int) -> bool:
    return is_integer(value) and value >= least


def _checked_settings(
    draws: Any, tune: Any, chains: Any, cores: Any, target_accept: Any
) -> Settings:
    least = {"draws": LEAST_DRAWS, "tune": 1, "chains": 1, "cores": 1}
    given = {"draws": draws, "tune": tune, "chains": chains, "cores": cores}
    for name, value in given.items():
        if not _is_count(value, least[name]):
            raise ValueError(f"{name}={value!r} will not do; give an integer from {least[name]}.")
    if not 0 < positive_scalar("target_accept", target_accept) < 1:
        raise ValueError(f"target_accept={target_accept} must lie below 1; give for instance 0.95.")
    return Settings(**given, target_accept=float(target_accept))


def _checked_samplers(samplers: Any) -> tuple[list[str], list[str]]:
    """Return the samplers that can run, and a remark on one that cannot."""
    chosen = list(dict.fromkeys([samplers] if isinstance(samplers, str) else samplers))
    if not chosen or any(sampler not in _RUNNERS for sampler in chosen):
        raise ValueError(f"samplers={samplers!r} is not known; give some of {tuple(_RUNNERS)}.")
    if NUTPIE not in chosen or can_run_nutpie():
        return chosen, []
    chosen.remove(NUTPIE)
    if not chosen:
        raise ValueError('samplers names nutpie alone, which is not installed; give "pymc" too.')
    return chosen, ["nutpie is not installed, so its runs are left out."]


def _checked_numbers(n_components: Any) -> list[int]:
    given = [n_components] if np.ndim(n_components) == 0 else list(n_components)
    if not given or not all(_is_count(number, 1) for number in given):
        raise ValueError(f"n_components={n_components!r} will not do; give integers from 1.")
    return list(dict.fromkeys(int(number) for number in given))


def _jobs(
    rows: np.ndarray,
    component: ComponentFamily,
    alpha: float,
    numbers: list[int],
    samplers: list[str],
    weights: str,
) -> list[_Job]:
    """Declare every model, so that errors are raised before the first run."""
    observed = rows if component.row_ndim else rows[:, 0]
    for_nuts: dict[int, Model] = {}
    if not {OURS, OURS_FINITE}.issuperset(samplers):
        for number in numbers:
            with pm.Model() as for_nuts[number]:
                finite_mixture(
                    _NAME, alpha, component, n_components=number, observed=observed, weights=weights
                )
    jobs = []
    for sampler in samplers:
        if sampler == OURS:
            with pm.Model() as model:
                DPMixture(_NAME, alpha, component, observed=observed)
            jobs.append(_Job(OURS, OURS, np.inf, model))
            continue
        for number in numbers:
            if sampler == OURS_FINITE:
                with pm.Model() as model:
                    FiniteMixture(
                        _NAME, alpha / number, component, n_components=number, observed=observed
                    )
            else:
                model = for_nuts[number]
            jobs.append(_Job(f"{sampler} K={number}", sampler, number, model))
    return jobs


def _judge(
    job: _Job,
    run: Run,
    component: ComponentFamily,
    rows: np.ndarray,
    held_out: np.ndarray | None,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Compute one row of the table, and add the underlying quantities to the trace."""
    posterior = run.trace["posterior"].to_dataset()
    log_density = log_densities(posterior, _NAME, component, rows)
    number = f"{_NAME}_n_clusters"
    is_ours = job.sampler in (OURS, OURS_FINITE)
    if not is_ours:
        occupied = numbers_occupied(posterior, _NAME, component, rows, rng)
        posterior = posterior.assign({number: (("chain", "draw"), occupied)})
        run.trace["posterior"] = xr.DataTree(posterior)
    numbers = posterior[number].transpose("chain", "draw").to_numpy()
    of_rows = xr.DataArray(log_density, dims=("chain", "draw", f"{_NAME}_dim_0"))
    if is_ours:
        (mixture,) = find_mixtures(job.model).values()
        of_rows = left_out_likelihood(run.trace, job.model, mixture, None, rng)
    run.trace["log_likelihood"] = xr.DataTree(xr.Dataset({_NAME: of_rows}))
    probes = {
        f"log density of row {i}": (("chain", "draw"), log_density[:, :, i]) for i in _probes(rows)
    }
    quantities = tabulate(xr.Dataset({"K": (("chain", "draw"), numbers.astype(float)), **probes}))
    ess = quantities["ess_bulk"].to_numpy()
    diverging = run.trace["sample_stats"].get("diverging")
    found = {
        "sampler": job.sampler,
        "n_components": float(job.n_components),
        "compile_s": run.compile_s,
        "wall_s": run.wall_s,
        "cpu_s": run.cpu_s,
        "ess_density": ess[1:].min(),
        "ess_n_clusters": ess[0],
        "ess_density_per_s": ess[1:].min() / run.cpu_s,
        "ess_n_clusters_per_s": ess[0] / run.cpu_s,
        "r_hat": np.nanmax(quantities["r_hat"].to_numpy()) if len(numbers) > 1 else np.nan,
        "divergences": 0 if diverging is None else int(diverging.sum()),
        "n_clusters": numbers.mean(),
    }
    n_unreliable, loo = _leave_one_out(run.trace)
    found |= loo
    if held_out is not None:
        of_tested = log_densities(posterior, _NAME, component, held_out)
        found["held_out"] = (logsumexp(of_tested, axis=(0, 1)) - np.log(numbers.size)).sum()
    return found | {"verdict": _verdict(found, n_unreliable)}


def _probes(rows: np.ndarray) -> np.ndarray:
    """Return indices of rows at evenly spaced ranks along the first principal component."""
    scale = rows.std(0)
    scaled = (rows - rows.mean(0)) / np.where(scale > 0, scale, 1.0)
    direction = np.linalg.svd(scaled, full_matrices=False)[2][0]
    order = np.argsort(scaled @ direction, kind="stable")
    return order[np.linspace(0, len(rows) - 1, min(_N_PROBES, len(rows))).round().astype(int)]


def _leave_one_out(trace: xr.DataTree) -> tuple[int, dict[str, float]]:
    """Return the number of rows with an unreliable estimate, and the estimate."""
    with warnings.catch_warnings():
        # The verdict of the run reports it.
        warnings.filterwarnings("ignore", message="Estimated shape parameter of Pareto")
        loo = azs.loo(trace, pointwise=True)
    n_unreliable = int((loo.pareto_k > loo.good_k).sum())
    return n_unreliable, {"elpd_loo": float(loo.elpd), "elpd_se": float(loo.se)}


def _compared(traces: dict[str, xr.DataTree]) -> Any:
    if len(traces) < 2:
        return None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Estimated shape parameter of Pareto")
        return azs.compare(traces)


def _verdict(found: dict[str, Any], n_unreliable: int) -> str:
    """Describe how well a run mixed, by the same criteria for all runs."""
    faults = []
    if np.isnan(found["r_hat"]):
        faults.append("R-hat needs two chains")
    elif not found["r_hat"] < R_HAT_APART:
        faults.append(f"chains do not agree (R-hat {found['r_hat']:.2f})")
    elif not found["r_hat"] < LARGEST_R_HAT:
        faults.append(f"wants longer chains (R-hat {found['r_hat']:.3f})")
    ess = np.nanmin([found["ess_density"], found["ess_n_clusters"]])
    if not ess > LEAST_ESS:
        faults.append(f"few effective draws ({ess:.0f})")
    if found["divergences"]:
        faults.append(f"divergences ({found['divergences']})")
    if n_unreliable:
        faults.append(f"leave-one-out is unreliable at {n_unreliable} of the rows")
    return "; ".join(faults) or "mixes well"
