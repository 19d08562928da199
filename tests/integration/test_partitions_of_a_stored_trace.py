"""Partitions of a trace that another process sampled and wrote."""

import json
import subprocess
import sys

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_dpsplit as dps

OBSERVED = [-5.1, -4.9, -5.0, -5.3, 0.1, 0.2, -0.1, 6.0, 6.2, 5.9]

SCRIPT = """
import json, sys
import arviz as az
import matplotlib
import pymc as pm
import xarray as xr
import pymc_dpsplit as dps

matplotlib.use("Agg")
idata = az.from_netcdf(sys.argv[1])
labels = xr.load_dataarray(sys.argv[2])
with pm.Model(coords={"obs_id": range(10)}) as model:
    dps.DPMixture(
        "x", 1.0, dps.Normal(0, 0.01, 2, 0.1), observed=json.loads(sys.argv[3]), dims="obs_id"
    )
partition, loss = dps.point_partition(labels, random_seed=1)
ball = dps.credible_ball(labels, partition)
axes = [dps.plot_clusters(idata, partition=partition), dps.plot_clusters(idata, model=model)]
axes.append(dps.plot_partition_uncertainty(labels, partition=partition))
axes.append(dps.plot_partition_uncertainty(idata, model=model))
found = {"loss": loss, "radius": float(ball["radius"]), "labels": partition.values.tolist()}
print(json.dumps(found | {"patches": [len(ax.patches) > 0 for ax in axes]}))
"""


@pytest.mark.slow
def test_another_process_reads_the_same(tmp_path):
    with pm.Model(coords={"obs_id": range(10)}) as model:
        component = dps.Normal(0, 0.01, 2, 0.1)
        dps.DPMixture("x", 1.0, component, observed=np.array(OBSERVED), dims="obs_id")
        idata = pm.sample(
            draws=60,
            tune=60,
            chains=2,
            cores=1,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
    labels = dps.sample_labels(idata, model=model, random_seed=1)
    partition, loss = dps.point_partition(labels, random_seed=1)
    redrawn = {"model": model, "random_seed": 1}
    xr.testing.assert_equal(dps.similarity_matrix(idata, **redrawn), dps.similarity_matrix(labels))
    xr.testing.assert_equal(
        dps.credible_ball(idata, partition, **redrawn), dps.credible_ball(labels, partition)
    )
    assert dps.point_partition(idata, **redrawn).partition.dims == ("obs_id",)
    idata.to_netcdf(tmp_path / "trace.nc")
    labels.to_netcdf(tmp_path / "labels.nc")
    arguments = [str(tmp_path / "trace.nc"), str(tmp_path / "labels.nc"), json.dumps(OBSERVED)]
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments], check=True, capture_output=True, text=True
    )
    found = json.loads(run.stdout.splitlines()[-1])
    assert found["loss"] == loss
    assert found["labels"] == partition.values.tolist()
    assert found["radius"] == pytest.approx(float(dps.credible_ball(labels, partition)["radius"]))
    assert found["patches"] == [True] * 4
    assert int(partition.max()) >= 2
