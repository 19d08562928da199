"""Effective draws of alpha: moved by NUTS alone, and by NUTS and the step in turn."""

from unittest import mock

import arviz as az
import numpy as np
import pymc as pm

import pymc_dpsplit as dps
from pymc_dpsplit.demo import DATA_SETS

_OPTIONS = {"draws": 2000, "tune": 1000, "chains": 4, "cores": 1, "random_seed": 1}


def _run(observed: np.ndarray) -> str:
    """Sample with alpha ~ Gamma(2, 4); return effective draws, and those of alpha per second."""
    family = dps.MvNormal if observed.ndim > 1 else dps.Normal
    with pm.Model():
        alpha = pm.Gamma("alpha", 2.0, 4.0)
        dps.DPMixture("x", alpha, family.from_data(observed), observed=observed)
        idata = pm.sample(**_OPTIONS, progressbar=False, compute_convergence_checks=False)
    sizes = az.ess(idata, var_names=["alpha", "x_n_clusters"])
    alpha_size, k_size = float(sizes["alpha"]), float(sizes["x_n_clusters"])
    rate = alpha_size / idata["posterior"].attrs["sampling_time"]
    return f"alpha {alpha_size:5.0f}, K {k_size:5.0f}, alpha {rate:4.0f} per s"


def main() -> None:
    """Print both, for each data set."""
    print("concentration: effective draws of 8000, and per second of sampling with tuning")
    for name in ("galaxies", "faithful"):
        rows, _ = DATA_SETS[name].load()
        observed = rows.squeeze()
        _run(observed)  # compiles
        with mock.patch("pymc_dpsplit.step.concentration_prior", return_value=None):
            print(f"  {name}, NUTS alone:        {_run(observed)}")
        print(f"  {name}, NUTS and the step: {_run(observed)}")


if __name__ == "__main__":
    main()
