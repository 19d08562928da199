"""Share of the sampling time spent in our step: N = 1e6, alpha sampled by NUTS.

NUTS must not pay for the data at each leapfrog.  The share is the sum of the step's own seconds
over the time between the first and the last draw of the chain.
"""

import time

import numpy as np
import pymc as pm

import pymc_dpsplit as dps

_N_OBS = 1_000_000
_DRAWS = 60


def main() -> None:
    """Print the share and the target."""
    rng = np.random.default_rng(0)
    centres = 5.0 * rng.standard_normal((10, 2))
    rows = centres[rng.integers(10, size=_N_OBS)] + rng.standard_normal((_N_OBS, 2))
    moments: list[float] = []
    with pm.Model():
        alpha = pm.Gamma("alpha", 2.0, 4.0)
        dps.DPMixture("x", alpha, dps.MvNormal.from_data(rows), observed=rows)
        idata = pm.sample(
            draws=_DRAWS,
            tune=20,
            chains=1,
            cores=1,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
            callback=lambda **_: moments.append(time.perf_counter()),
        )
    inside = float(idata["sample_stats"]["x_seconds"].sum())
    total = moments[-1] - moments[-1 - _DRAWS]
    print(
        f"model share: N={_N_OBS}, D=2, alpha by NUTS: {1e3 * total / _DRAWS:.0f} ms per draw, "
        f"{100 * inside / total:.1f} % in our step (target 80 %)"
    )


if __name__ == "__main__":
    main()
