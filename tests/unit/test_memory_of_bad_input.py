"""Input that asks for more memory than there is: refused, not tried."""

import re
import subprocess
import sys

import pytest

# A runaway meets the limit, and not the memory of the machine.
LIMITED = """
import resource
import numpy as np
import pymc as pm
import xarray as xr
import pymc_dpsplit as dps
from pymc_dpsplit.prior.elicit import elicit_alpha
from pymc_dpsplit.prior.n_clusters import prior_n_clusters
from pymc_dpsplit.posterior.trace.labels import sample_labels

with pm.Model() as model:
    dps.DPMixture("x", 1.0, dps.Normal(0, 0.1, 2, 1), observed=[0.0, 1.0, 5.0])
shape = (1, 2)
weights = np.zeros((*shape, 3))
weights[..., 0] = 0.9
measure = {"weights": weights, "mu": weights, "sigma": weights + 1}
posterior = xr.Dataset(
    {
        "x_n_clusters": (("chain", "draw"), np.zeros(shape, int)),
        "x_new_weight": (("chain", "draw"), np.full(shape, 0.1)),
        **{f"x_{key}": (("chain", "draw", "x_cluster"), of) for key, of in measure.items()},
    },
    coords={"chain": [0], "draw": [0, 1]},
)
idata = xr.DataTree.from_dict({"posterior": posterior})
held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + 2**30, held + 2**30))
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
"""
CALLS = {
    "elicit_alpha(10**12, 3, 10)": "n is more than 1e[+]08 observations, .*; give",
    "prior_n_clusters(1.0, 10**400)": "n is more than 1e[+]08 observations, .*; give",
    "sample_labels(idata, model=model, random_seed=1)": "x_n_clusters is 0 to 0 in idata, .*; give",
}


@pytest.mark.skipif(sys.platform != "linux", reason="reads and limits memory as Linux does")
def test_memory_is_not_eaten() -> None:
    """All calls in one process, which takes longer to start than they do."""
    tried = f"""
for call in {list(CALLS)!r}:
    try:
        eval(call)
    except ValueError as error:
        print(error)
    else:
        print("taken")
"""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED + tried], capture_output=True, text=True, timeout=300
    )
    said = done.stdout.splitlines()
    for message, expected in zip(said, CALLS.values(), strict=True):
        assert re.fullmatch(f"{expected}.*", message)
