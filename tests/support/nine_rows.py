"""Nine rows in two clusters, as models and traces, for tests of rows that share a label."""

from pathlib import Path
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr

import pymc_dpsplit as dps

ROWS = np.array([0.1, 5.0, 0.3, -0.2, 5.2, 4.9, 0.2, 5.1, 5.3])
HYPERPARAMETERS = {"mu0": 2.0, "kappa0": 0.1, "a0": 3.0, "b0": 0.2}
SAMPLING: dict[str, Any] = {
    "draws": 60,
    "tune": 60,
    "chains": 2,
    "cores": 1,
    "random_seed": 3,
    "progressbar": False,
    "compute_convergence_checks": False,
}


def model_with(**arguments: Any) -> pm.Model:
    """Model of the rows, with arguments of `DPMixture`."""
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", 2, 2)
        dps.DPMixture("x", alpha, dps.Normal(**HYPERPARAMETERS), observed=ROWS, **arguments)
    return model


def trace_through(folder: Path, model: pm.Model) -> Any:
    """A trace with labels that has been through netCDF."""
    with model:
        drawn = pm.sample(dpsplit={"keep_labels": True}, **SAMPLING)
    drawn.to_netcdf(folder / "trace.nc")
    return xr.open_datatree(folder / "trace.nc").load()


def without_labels(idata: Any) -> Any:
    """A copy of the trace as it is by default."""
    copied = idata.copy()
    copied["sample_stats"] = xr.DataTree(idata["sample_stats"].to_dataset().drop_vars("x_labels"))
    return copied
