"""What it takes to sample alpha: against NUTS, and against a fixed alpha."""

import logging
from collections.abc import Iterator
from contextlib import nullcontext
from unittest import mock

import arviz as az
import numpy as np
import pymc as pm

import pymc_dpsplit as dps
from benchmarks import workloads
from benchmarks.mixing import Case, rates, sample
from benchmarks.row import Row

_OPTIONS = {"draws": 600, "tune": 400, "chains": 4, "cores": 1, "random_seed": 1}
# Shape and rate of the prior.
_PRIOR = (2.0, 4.0)
_SEEDS = range(31, 38)  # single ratios scatter by a fifth


def _rate(observed: np.ndarray, by_nuts_alone: bool) -> float:
    """Effective draws of alpha per second of sampling, tuning included."""
    family = dps.MvNormal if observed.ndim > 1 else dps.Normal
    unseen = mock.patch("pymc_dpsplit.step.dp_split_merge.concentrations_to_move", return_value=[])
    with pm.Model(), unseen if by_nuts_alone else nullcontext():
        alpha = pm.Gamma("alpha", *_PRIOR)
        dps.DPMixture("x", alpha, family.from_data(observed), observed=observed)
        idata = pm.sample(**_OPTIONS, progressbar=False, compute_convergence_checks=False)
    size = float(az.ess(idata, var_names=["alpha"])["alpha"])
    return size / float(idata["posterior"].attrs["sampling_time"])


def _against_nuts(name: str) -> Row:
    observed = workloads.load(name).observed
    _rate(observed, by_nuts_alone=False)  # compiles
    alone = _rate(observed, by_nuts_alone=True)
    both = _rate(observed, by_nuts_alone=False)
    return Row(
        name=f"{name}: alpha, by the step over NUTS",
        measured=both / alone,
        unit="x",
        note=f"{both:.0f} and {alone:.0f} effective draws per second",
    )


def _against_fixed(name: str) -> Row:
    """K per CPU second with a sampled alpha over that with alpha = 1, several seeds."""
    case = Case(name, 600, 1500, 0.6, 0.8)
    pairs = []
    for seed in _SEEDS:
        workload = workloads.load(name, seed)
        traces = (sample(case, workload, seed, prior=prior) for prior in (_PRIOR, None))
        sampled, fixed = (rates(each)["k"] for each in traces)
        pairs.append((sampled, fixed))
    ratios = [sampled / fixed for sampled, fixed in pairs]
    each = "; ".join(f"{sampled:.3g} : {fixed:.3g}" for sampled, fixed in pairs)
    return Row(
        name=f"{name}: K, alpha sampled over alpha = 1",
        measured=float(np.median(ratios)),
        unit="x",
        must=case.must,
        aim=case.aim,
        note=f"{min(ratios):.2g} to {max(ratios):.2g}; per s {each}",
    )


def run() -> Iterator[Row]:
    """Two rows for each data set."""
    logging.getLogger("pymc").setLevel(logging.ERROR)
    for name in ("galaxies", "faithful"):
        yield _against_nuts(name)
        yield _against_fixed(name)
