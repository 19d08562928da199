"""`compare_samplers`: the Dirichlet-process mixture beside finite mixtures that NUTS samples."""

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

from pymc_dpsplit.components.arguments import positive_scalar, rows_of
from pymc_dpsplit.components.declaration import Component
from pymc_dpsplit.finite.finite_mixture import finite_mixture
from pymc_dpsplit.mixture import DPMixture
from pymc_dpsplit.posterior.diagnose import LARGEST_R_HAT, LEAST_ESS, R_HAT_APART
from pymc_dpsplit.posterior.invariants import LEAST_DRAWS, tabulate
from pymc_dpsplit.posterior.mixture_draws import log_densities, numbers_occupied
from pymc_dpsplit.posterior.timed_runs import (
    NUTPIE,
    Run,
    Settings,
    can_run_nutpie,
    run_nutpie,
    run_pymc,
)

# It declares no types.
azs: Any = arviz_stats

OURS = "dpsplit"
_RUNNERS: dict[str, Callable[[Model, Settings, int], Run]] = {
    OURS: run_pymc,
    "pymc": run_pymc,
    NUTPIE: run_nutpie,
}
_NAME = "x"
_N_PROBES = 12
_LINE = 100  # characters


@dataclass(frozen=True, eq=False)
class Comparison:
    """What `compare_samplers` found; ``print`` it for the table and what it means.

    Attributes
    ----------
    table : pandas.DataFrame
        One row for each run, columns as listed at `compare_samplers`.
    elpd : pandas.DataFrame or None
        What ``az.compare`` says of the runs, the best first; None if there is one run only.
    traces : dict
        Name of the run to its DataTree.  Finite mixtures have ``x_n_clusters`` too, the number
        of components that have a member, and all have the group log_likelihood.
    remarks : tuple of str
        What else is worth knowing.
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
    """One run to be made."""

    label: str
    sampler: str
    n_components: float
    model: Model


def compare_samplers(
    observed: Any,
    component: Component,
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
    """Sample one data set by a Dirichlet-process mixture and by finite mixtures, and tabulate.

    Parameters
    ----------
    observed : array-like
        Observations without missing entries, shape (N,) for `Normal`, else (N, D).
    component : Component
        One that `finite_mixture` takes, with numbers as hyperparameters.
    alpha : float
        Positive concentration.
    n_components : int or sequence of int
        Numbers of components of the finite mixtures.
    samplers : sequence of str
        Of ``"dpsplit"``, the Dirichlet-process mixture by `DPSplitMerge`; ``"pymc"`` and
        ``"nutpie"``, finite mixtures by the NUTS of each.  Without nutpie installed its runs are
        left out, and a remark says so.
    weights : {"dirichlet", "stick"}
        Prior of the weights of finite mixtures, see `finite_mixture`.
    held_out : array-like, optional
        Further observations, on which predictions are judged.
    draws, tune, chains : int
        As for `pm.sample`, of every run.
    cores : int
        How many chains run at once.
    target_accept : float
        For NUTS; higher than by default, as posteriors of mixtures are uneven.
    random_seed : int, optional

    Returns
    -------
    Comparison
        With the columns of ``table``:

        - ``sampler``; ``n_components``, infinite for the Dirichlet process;
        - ``compile_s``, seconds before the first draw, which are less when kernels are cached;
          ``wall_s`` and ``cpu_s``, seconds of tuning and sampling, the latter of all processes;
        - ``ess_density``, the least bulk ESS of the log predictive density at 12 observations
          between the extremes of the first principal component; ``ess_n_clusters``, that of
          the number of occupied clusters, NaN if it is constant; both also per CPU second;
        - ``r_hat``, the largest of these quantities; ``divergences``;
        - ``n_clusters``, the posterior mean;
        - ``elpd_loo`` and ``elpd_se``, by leave-one-out cross-validation with its standard error;
        - ``held_out``, the log predictive density of `held_out`, summed over its rows;
        - ``verdict``, in words.

    Raises
    ------
    ValueError
        With one sentence that names the argument, the fault and the remedy.

    Notes
    -----
    Only quantities that do not depend on the numbering of clusters are judged, so that label
    switching is not held against any sampler.  Seconds of processes are counted where these
    are forked or spawned by this one.  See docs/method.md, eq. (123)-(124).

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
    rows, component, tested = _checked_data(observed, component, held_out)
    alpha = _checked_alpha(alpha)
    settings = _checked_settings(draws, tune, chains, cores, target_accept)
    chosen, remarks = _checked_samplers(samplers)
    numbers = _checked_numbers(n_components)
    try:
        jobs = _jobs(rows, component, alpha, numbers, chosen, weights)
    except ValueError as error:
        raise ValueError(str(error).removeprefix(f"{_NAME}: ")) from None
    rng = np.random.default_rng(random_seed)
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
) -> tuple[np.ndarray, Component, np.ndarray | None]:
    """Rows (N, D), the component that suits them, and the rows held out."""
    if not isinstance(component, Component):
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
    component = component.suited_to(rows)
    component.check(component.hyperparameters, rows.shape[1])
    if held_out is None:
        return rows, component, None
    try:
        tested = np.asarray(rows_of(held_out, component.row_ndim), np.float64)
        component.suited_to(tested)
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
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return is_integer and value >= least


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
    component: Component,
    alpha: float,
    numbers: list[int],
    samplers: list[str],
    weights: str,
) -> list[_Job]:
    """Declare every model, so that whatever is wrong is said before any is sampled."""
    observed = rows if component.row_ndim else rows[:, 0]
    models: dict[int, Model] = {}
    if set(samplers) != {OURS}:
        for number in numbers:
            with pm.Model() as models[number]:
                finite_mixture(
                    _NAME, number, component, observed=observed, weights=weights, alpha=alpha
                )
    jobs = []
    for sampler in samplers:
        if sampler == OURS:
            with pm.Model() as model:
                DPMixture(_NAME, alpha, component, observed=observed)
            jobs.append(_Job(OURS, OURS, np.inf, model))
        else:
            jobs += [_Job(f"{sampler} K={k}", sampler, k, models[k]) for k in numbers]
    return jobs


def _judge(
    job: _Job,
    run: Run,
    component: Component,
    rows: np.ndarray,
    held_out: np.ndarray | None,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """One row of the table; adds to the trace what it is made from."""
    posterior = run.trace["posterior"].to_dataset()
    log_density = log_densities(posterior, _NAME, component, rows)
    number = f"{_NAME}_n_clusters"
    if job.sampler != OURS:
        occupied = numbers_occupied(posterior, _NAME, component, rows, rng)
        posterior = posterior.assign({number: (("chain", "draw"), occupied)})
        run.trace["posterior"] = xr.DataTree(posterior)
    numbers = posterior[number].transpose("chain", "draw").to_numpy()
    of_rows = xr.Dataset({_NAME: (("chain", "draw", f"{_NAME}_dim_0"), log_density)})
    run.trace["log_likelihood"] = xr.DataTree(of_rows)
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
    """Positions of rows that are evenly spread along the first principal component, by rank."""
    scale = rows.std(0)
    scaled = (rows - rows.mean(0)) / np.where(scale > 0, scale, 1.0)
    direction = np.linalg.svd(scaled, full_matrices=False)[2][0]
    order = np.argsort(scaled @ direction, kind="stable")
    return order[np.linspace(0, len(rows) - 1, min(_N_PROBES, len(rows))).round().astype(int)]


def _leave_one_out(trace: xr.DataTree) -> tuple[int, dict[str, float]]:
    """Return the number of rows at which the estimate is unreliable, and the estimate."""
    with warnings.catch_warnings():
        # The verdict says it, of which run.
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
    """Say in words how well a run mixed, by the same standard for all."""
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
