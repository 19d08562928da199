"""Every family as a user meets it: declared, sampled by `pm.sample`, and read from the trace."""

import numpy as np
import pymc as pm
import pytest

import pymc_dpsplit as dps
from tests.reference.estimates import log_joint
from tests.support.families import FAMILIES, as_observed, component_of, dataset_of, twin_of
from tests.support.quick import over_compiled

ALPHA = 1.3


@pytest.mark.parametrize("family", over_compiled(FAMILIES))
def test_draws_are_those_of_a_mixture(family: str) -> None:
    n_features = FAMILIES[family].n_features[-1]
    rows, twin = dataset_of(family, "overlapping", n_features), twin_of(family, n_features)
    with pm.Model():
        component = component_of(family, n_features)
        dps.DPMixture("x", ALPHA, component, observed=as_observed(family, rows))
        idata = pm.sample(
            draws=20,
            tune=20,
            chains=1,
            cores=1,
            random_seed=3,
            progressbar=False,
            quiet=True,
            compute_convergence_checks=False,
            dpsplit={"keep_labels": True},
        )
    posterior, stats = idata["posterior"].isel(chain=0), idata["sample_stats"].isel(chain=0)
    labels, n_clusters = stats["x_labels"].to_numpy(), posterior["x_n_clusters"].to_numpy()
    np.testing.assert_array_equal(labels.max(axis=1) + 1, n_clusters)
    weights = posterior["x_weights"].to_numpy()
    np.testing.assert_allclose(weights.sum(axis=1) + posterior["x_new_weight"], 1.0)
    occupied = np.arange(weights.shape[1]) < n_clusters[:, None]
    for name in component.parameters:
        assert np.isfinite(posterior[f"x_{name}"].to_numpy()[occupied]).all()
    expected = [log_joint(twin, rows, of_draw, ALPHA) for of_draw in labels]
    np.testing.assert_allclose(stats["x_log_joint"], expected, rtol=1e-8)
