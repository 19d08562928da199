"""`x_log_joint` is what the other numbers of the same draw give, whatever moves them."""

from collections.abc import Callable
from inspect import unwrap
from typing import Any

import numpy as np
import pymc as pm
import pytest
from pymc.sampling import mcmc
from pymc.step_methods.compound import CompoundStep
from scipy.special import gammaln

import pymc_dpsplit as dps
from tests.reference import families as naive

Y = np.array([-1.3, -0.8, -0.5, 0.0, 0.3, 0.9, 1.2, 3.5])
HYPERPARAMETERS = {"mu0": 0.2, "kappa0": 0.3, "a0": 2.0}
Draw = dict[str, np.ndarray]


def sampled(step: Any = None) -> Any:
    """Sample the model of the context, labels kept."""
    options = {"dpsplit": {"keep_labels": True}} if step is None else {"step": step}
    return pm.sample(
        25, tune=20, chains=1, random_seed=3, progressbar=False, compute_convergence_checks=False,
        **options,
    )  # fmt: skip


def log_joint(labels: np.ndarray, rows: np.ndarray, alpha: float, twin: Any) -> float:
    """Log density of data and partition, weights and parameters integrated out."""
    blocks = [rows[labels == k] for k in np.unique(labels)]
    total = gammaln(alpha) - gammaln(alpha + len(rows)) + len(blocks) * np.log(alpha)
    return float(total + sum(gammaln(len(b)) + twin.log_marginal(b) for b in blocks))


def assert_recomputable(
    idata: Any,
    name: str,
    alpha_of: Callable[[Draw], float],
    twin_of: Callable[[Draw], Any],
    rows_of: Callable[[Draw], np.ndarray],
) -> None:
    labels = idata["sample_stats"][f"{name}_labels"].to_numpy()[0]
    said = idata["sample_stats"][f"{name}_log_joint"].to_numpy()[0]
    posterior = {key: of.to_numpy()[0] for key, of in idata["posterior"].data_vars.items()}
    found = []
    for s in range(len(said)):
        draw = {key: values[s] for key, values in posterior.items()}
        found.append(log_joint(labels[s], rows_of(draw), alpha_of(draw), twin_of(draw)))
    np.testing.assert_allclose(said, found, rtol=1e-9)


def twin(draw: Draw) -> Any:
    return naive.Normal(b0=float(draw["b0"]), **HYPERPARAMETERS)


def alpha_of(draw: Draw) -> float:
    return float(draw["alpha"])


def component() -> Any:
    return dps.Normal(b0=pm.Gamma("b0", 2, 2), **HYPERPARAMETERS)


def observed_rows(_: Draw) -> np.ndarray:
    return Y[:, None]


@pytest.mark.slow
def test_alpha_and_hyperparameter_of_the_same_draw() -> None:
    with pm.Model():
        dps.DPMixture("x", pm.Gamma("alpha", 2, 2), component(), observed=Y)
        idata = sampled()
    assert_recomputable(idata, "x", alpha_of, twin, observed_rows)


@pytest.mark.slow
@pytest.mark.parametrize("compound", [False, True])
def test_a_step_given_by_the_user_comes_last_too(compound: bool) -> None:
    with pm.Model() as model:
        dps.DPMixture("x", pm.Gamma("alpha", 2, 2), component(), observed=Y)
        owned = [rv for rv in model.free_RVs if rv.name.startswith("x_")]
        step = dps.DPSplitMerge(owned, keep_labels=True)
        given = [CompoundStep([step])] if compound else [step, pm.Slice([model["b0"]])]
        idata = sampled(step=given)
    assert_recomputable(idata, "x", alpha_of, twin, observed_rows)


@pytest.mark.control
def test_another_order_of_steps_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcmc, "instantiate_steppers", unwrap(mcmc.instantiate_steppers))
    with pytest.raises(AssertionError):
        test_a_step_given_by_the_user_comes_last_too(False)


@pytest.mark.slow
def test_mixtures_that_share_alpha() -> None:
    other = Y[::-1] ** 2
    with pm.Model():
        alpha = pm.Gamma("alpha", 2, 2)
        shared = dps.Normal(b0=0.6, **HYPERPARAMETERS)
        dps.DPMixture("x", alpha, shared, observed=Y)
        dps.DPMixture("w", 2.0 * alpha, shared, observed=other)
        idata = sampled()

    def fixed_twin(_: Draw) -> Any:
        return naive.Normal(b0=0.6, **HYPERPARAMETERS)

    assert_recomputable(idata, "x", alpha_of, fixed_twin, observed_rows)
    assert_recomputable(
        idata, "w", lambda draw: 2.0 * alpha_of(draw), fixed_twin, lambda _: other[:, None]
    )


@pytest.mark.slow
def test_alpha_shared_with_rows_in_groups() -> None:
    with pm.Model():
        alpha = pm.Gamma("alpha", 2.0, 1.0)
        dps.DPMixture("x", alpha, dps.Normal(**HYPERPARAMETERS, b0=0.8), observed=Y)
        groups = np.repeat([0, 1], 4)
        dps.HDPMixture("h", alpha, 1.0, dps.Poisson(2.0, 1.0), groups=groups, observed=[[1.0]] * 8)
        idata = sampled()
    posterior = idata["posterior"]
    np.testing.assert_array_equal(idata["sample_stats"]["h_alpha"], posterior["alpha"])
    assert len(np.unique(posterior["alpha"])) > 20
    twin = naive.Normal(**HYPERPARAMETERS, b0=0.8)
    assert_recomputable(idata, "x", alpha_of, lambda _: twin, observed_rows)


def test_missing_entries_of_the_same_draw() -> None:
    rows = np.column_stack([Y, Y[::-1] + 0.3])
    rows[[1, 4, 4], [0, 0, 1]] = np.nan
    s0 = np.array([[1.2, 0.4], [0.4, 1.6]])
    with pm.Model():
        mixture = dps.MvNormal(np.zeros(2), 0.3, 4.5, s0)
        dps.DPMixture("x", pm.Gamma("alpha", 2, 2), mixture, observed=rows)
        idata = sampled()

    def completed(draw: Draw) -> np.ndarray:
        found = rows.copy()
        found[np.isnan(rows)] = draw["x_unobserved"]
        return found

    def fixed_twin(_: Draw) -> Any:
        return naive.MvNormal(np.zeros(2), 0.3, 4.5, s0)

    assert_recomputable(idata, "x", alpha_of, fixed_twin, completed)


@pytest.mark.slow
def test_latent_rows_of_the_same_draw() -> None:
    with pm.Model(coords={"group": range(len(Y))}):
        # Declared before all that NUTS moves: without an order its step would come first.
        latent = dps.DPMixture("b", 1.5, dps.Normal(b0=0.6, **HYPERPARAMETERS), dims="group")
        pm.Normal("y", latent, pm.HalfNormal("sigma", 1.0), observed=Y)
        idata = sampled()
    assert_recomputable(
        idata,
        "b",
        lambda _: 1.5,
        lambda _: naive.Normal(b0=0.6, **HYPERPARAMETERS),
        lambda draw: draw["b"][:, None],
    )
