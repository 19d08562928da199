"""Sparse counts inside models: the same run as with the array they stand for, and no such array."""

import tracemalloc
from pathlib import Path
from typing import Any

import arviz as az
import cloudpickle
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.backends import arviz as arviz_backend
from scipy import sparse

import pymc_dpsplit as dps

N, V = 40, 12
SHORT: dict[str, Any] = {
    "draws": 20,
    "tune": 20,
    "chains": 2,
    "cores": 1,
    "random_seed": 3,
    "progressbar": False,
    "compute_convergence_checks": False,
    "quiet": True,
}


def counts_of_words() -> np.ndarray:
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.full(V, 0.3), 3)
    return np.array([rng.multinomial(rng.integers(5, 12), p[k]) for k in rng.integers(3, size=N)])


COUNTS = counts_of_words()


def declared(observed: Any, beta: Any = 0.4, **arguments: Any) -> pm.Model:
    with pm.Model(coords={"doc": range(N), "word": [f"w{v}" for v in range(V)]}) as model:
        alpha = pm.Gamma("alpha", 2.0, 2.0)
        arguments = {"dims": ("doc", "word"), **arguments}
        dps.DPMixture("x", alpha, dps.Multinomial(beta), observed=observed, **arguments)
    return model


def everything(observed: Any, **arguments: Any) -> tuple[Any, Any]:
    """Draws, log likelihood and predictions of a short run, and its labels."""
    model = declared(observed)
    with model:
        idata = pm.sample(**{**SHORT, **arguments})
        pm.compute_log_likelihood(idata, progressbar=False)
        idata.update(pm.sample_posterior_predictive(idata, random_seed=1, progressbar=False))
        return idata, dps.sample_labels(idata, random_seed=1)


@pytest.fixture(scope="module")
def dense() -> tuple[Any, Any]:
    return everything(COUNTS)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [{}, {"cores": 2}, {"cores": 2, "mp_ctx": "spawn"}], ids=str)
def test_run_is_that_of_the_array(dense: Any, arguments: dict[str, Any], tmp_path: Path) -> None:
    idata, labels = everything(sparse.csr_array(COUNTS), **arguments)
    for group in ("posterior", "log_likelihood", "posterior_predictive", "observed_data"):
        found, wanted = (of[group].to_dataset() for of in (idata, dense[0]))
        assert found.equals(wanted), group
    assert labels.equals(dense[1])
    np.testing.assert_array_equal(idata["observed_data"]["x"], COUNTS)
    totals = idata["posterior_predictive"]["x"].sum("word")
    assert (totals == COUNTS.sum(1)).all()
    idata.to_netcdf(tmp_path / "trace.nc")
    again = az.from_netcdf(tmp_path / "trace.nc")
    other = declared(sparse.coo_matrix(COUNTS))
    assert dps.sample_labels(again, model=other, random_seed=1).equals(labels)
    assert "x: 2 chains" in str(dps.diagnose(again))


@pytest.mark.slow
def test_hyperparameter_may_be_a_variable() -> None:
    with pm.Model() as model:
        beta = pm.Gamma("beta", 2.0, 4.0)
        dps.DPMixture("x", 1.0, dps.Multinomial(beta), observed=sparse.csr_array(COUNTS))
        idata = pm.sample(**{**SHORT, "chains": 1})
    assert np.ptp(idata["posterior"]["beta"].to_numpy()) > 0.0
    assert model["x"].type.shape == (N, V)


@pytest.mark.slow
def test_killed_chain_goes_on(tmp_path: Path) -> None:
    def run(folder: Path, **arguments: Any) -> Any:
        with declared(sparse.csr_array(COUNTS)):
            return pm.sample(step=dps.Checkpoint(folder), **{**SHORT, **arguments})

    def stop(trace: Any, draw: Any) -> None:
        if draw.draw_idx == 12:
            raise RuntimeError("killed")

    whole = run(tmp_path / "whole")
    with pytest.raises(RuntimeError, match="killed"):
        run(tmp_path / "killed", callback=stop)
    resumed = run(tmp_path / "killed")
    assert resumed["posterior"].to_dataset().equals(whole["posterior"].to_dataset())


@pytest.mark.slow
def test_model_is_pickled_and_restricted() -> None:
    model = cloudpickle.loads(cloudpickle.dumps(declared(sparse.csr_array(COUNTS))))
    point = model.initial_point()
    log_p = declared(COUNTS).compile_logp()(point)
    assert model.compile_logp()(point) == pytest.approx(log_p, rel=1e-12)
    with pm.do(model, {"alpha": 2.0}):
        idata = pm.sample(**SHORT)
    assert "alpha" not in idata["posterior"]


def large(n_rows: int = 4000, n_columns: int = 50_000) -> Any:
    rng = np.random.default_rng(2)
    rows = np.repeat(np.arange(n_rows), 10)
    columns = rng.integers(0, n_columns, len(rows)) // (1 + 9 * (rows % 2))
    return sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape=(n_rows, n_columns))


@pytest.mark.slow
def test_no_array_of_large_data_is_made() -> None:
    """Which would take 1.6 GB; statistics and parameters of the clusters are all there is."""
    tracemalloc.start()
    with pm.Model() as model:
        dps.DPMixture("x", 1.0, dps.Multinomial(0.01), observed=large())
        arguments = {**SHORT, "draws": 3, "tune": 3, "chains": 1}
        # PyMC, which cannot make the array either, does not warn of it.
        idata = pm.sample(
            var_names=["x_n_clusters"],
            dpsplit={"keep_labels": True, "start_clusters": 2, "iterations": 1},
            **arguments,
        )
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # Up to eight arrays of clusters by columns, of which there are 170 at the end of the run.
        of_clusters = 8.0 * 50_000 * float(idata["posterior"]["x_n_clusters"].max())
        assert peak < 60e6 + 8.0 * of_clusters < 1e9
        assert "x" not in idata["observed_data"]
        assert dps.sample_labels(idata, model=model).shape == (1, 3, 4000)


def test_other_data_that_cannot_be_extracted_are_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    with pm.Model() as model:
        dps.DPMixture("x", 1.0, dps.Multinomial(0.01), observed=large())
        y = pm.Normal("y", 0.0, 1.0, observed=0.0)
    monkeypatch.setitem(model.rvs_to_values, y, pt.dscalar())
    with pytest.warns(UserWarning, match="Could not extract data .* observation y") as got:
        found = arviz_backend.find_observations(model)
    assert len(got) == 1
    assert not found


# --- refusals -----------------------------------------------------------------------------


def test_other_families_refuse_sparse_data() -> None:
    with pm.Model(), pytest.raises(ValueError, match="sparse matrix, which Poisson cannot read"):
        dps.DPMixture("x", 1.0, dps.Poisson(1.0, 1.0), observed=sparse.csr_array(COUNTS))


@pytest.mark.parametrize(
    ("observed", "message"),
    [
        (np.where(COUNTS == 1, np.nan, COUNTS), "x: observed has .* missing entries, which Multin"),
        (COUNTS - 1.0, "x: observed has -1 in column"),
        (COUNTS + 0.5, "x: observed has 0.5 in column"),
        (sparse.csr_array(COUNTS * -1.0), "x: observed has -.* in column"),
        (sparse.csr_array(COUNTS * np.nan), "x: observed has .* NaN entries"),
        (COUNTS[:, 0], r"x: observed has shape \(40,\)"),
    ],
)
def test_data_that_are_no_counts_are_refused(observed: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        declared(observed)


@pytest.mark.parametrize(
    ("beta", "message"),
    [
        (0.0, "x: a0=0.0 must be positive"),
        ([0.1, 0.2], r"x: a0 has shape \(2,\), but the data have 12 features"),
        (-np.ones(V), "must be positive"),
    ],
)
def test_weights_that_are_none_are_refused(beta: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        declared(COUNTS, beta)


def test_latent_counts_are_refused() -> None:
    with pm.Model(), pytest.raises(ValueError, match="rows of Multinomial cannot be latent"):
        dps.DPMixture("x", 1.0, dps.Multinomial(1.0), shape=(3, 4))


def test_too_many_rows_to_draw_are_refused() -> None:
    component = dps.Multinomial(1.0)
    p = {"p": np.full((1, 60_000), 1.0 / 60_000)}
    with pytest.raises(ValueError, match="20000 rows of 60000 columns are too many to draw"):
        component.draw_rows(np.random.default_rng(1), p, np.zeros(20_000, int))


def test_part_of_a_row_has_no_law() -> None:
    component = dps.Multinomial(1.0)
    for restricted in (component.restrict, component.restrict_parameters):
        with pytest.raises(ValueError, match="rows of Multinomial have missing entries"):
            restricted({}, np.array([0]))
