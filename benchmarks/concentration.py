"""Effective draws of alpha: moved by NUTS alone, and by NUTS and the step in turn."""

import logging
from collections.abc import Iterator
from contextlib import nullcontext
from unittest import mock

import arviz as az
import numpy as np
import pymc as pm

import pymc_dpsplit as dps
from benchmarks import workloads
from benchmarks.row import Row

_OPTIONS = {"draws": 600, "tune": 400, "chains": 4, "cores": 1, "random_seed": 1}


def _rate(observed: np.ndarray, by_nuts_alone: bool) -> float:
    """Effective draws of alpha ~ Gamma(2, 4) per second of sampling, tuning included."""
    family = dps.MvNormal if observed.ndim > 1 else dps.Normal
    unseen = mock.patch("pymc_dpsplit.step.dp_split_merge.concentrations_to_move", return_value=[])
    with pm.Model(), unseen if by_nuts_alone else nullcontext():
        alpha = pm.Gamma("alpha", 2.0, 4.0)
        dps.DPMixture("x", alpha, family.from_data(observed), observed=observed)
        idata = pm.sample(**_OPTIONS, progressbar=False, compute_convergence_checks=False)
    size = float(az.ess(idata, var_names=["alpha"])["alpha"])
    return size / float(idata["posterior"].attrs["sampling_time"])


def run() -> Iterator[Row]:
    """One row for each data set."""
    logging.getLogger("pymc").setLevel(logging.ERROR)
    for name in ("galaxies", "faithful"):
        observed = workloads.load(name).observed
        _rate(observed, by_nuts_alone=False)  # compiles
        alone = _rate(observed, by_nuts_alone=True)
        both = _rate(observed, by_nuts_alone=False)
        yield Row(
            name=f"{name}: with the step over NUTS alone",
            measured=both / alone,
            unit="x",
            note=f"{both:.0f} and {alone:.0f} effective draws per second",
        )
