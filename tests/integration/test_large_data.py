"""Data are used as they are: float32, memory maps and arrays in chunks, without a copy."""

import gc
import tracemalloc

import cloudpickle
import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytest

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.checkpoint.origin import describe
from pymc_dpsplit.moves.conjugate import CONJUGATE
from pymc_dpsplit.variables import find_mixtures, observed
from tests.support.chunked import Chunked
from tests.support.datasets import DATASETS
from tests.support.families import (
    FAMILIES,
    SINGLE,
    as_observed,
    component_of,
    target_of,
    twin_of,
)
from tests.support.partitions import exact_posterior
from tests.support.quick import slow_unless
from tests.support.runs import labels_test, run
from tests.support.statistics import LEVEL

# Strips of a sweep are 4096 observations: with so many there are two.
MANY = 8200
SAMPLING = {
    "draws": 8,
    "tune": 8,
    "chains": 2,
    "cores": 1,
    "random_seed": 7,
    "progressbar": False,
    "quiet": True,
    "compute_convergence_checks": False,
}
TIMES = ("_seconds", "process_time_diff", "perf_counter_diff", "perf_counter_start")


def single_rows(n_obs, n_features, offset=0.0):
    """Rows of three clusters, in float32."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(n_obs, n_features)) + 6.0 * rng.integers(0, 3, n_obs)[:, None]
    return (rows + offset).astype(np.float32)


def model_of(rows, component=None, alpha=1.0, **arguments):
    with pm.Model() as model:
        component = dps.MvNormal.from_data(rows) if component is None else component
        dps.DPMixture("x", alpha, component, observed=rows, **arguments)
    return model


def sampled(model, **arguments):
    with model:
        return pm.sample(**{**SAMPLING, **arguments})


def on_disk(folder, rows, mode="r"):
    rows.tofile(folder / "rows.bin")
    return np.memmap(folder / "rows.bin", rows.dtype, mode, shape=rows.shape)


def array_of(model):
    """The array behind the observed variable."""
    return find_mixtures(model)["x"].data.get_value(borrow=True)


def differences(one, other):
    """Names of what two runs have not in common, times left out."""
    found = []
    for group in ("posterior", "sample_stats"):
        a, b = one[group].to_dataset(), other[group].to_dataset()
        found += [n for n in a.data_vars if not n.endswith(TIMES) and not a[n].equals(b[n])]
    return found


# --- float32 ------------------------------------------------------------------------------

KERNELS = (*sampler.KERNELS, sampler.GREEDY)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", slow_unless("exact".__eq__, KERNELS))
@pytest.mark.parametrize("family", slow_unless("MvNormal".__eq__, SINGLE))
def test_chain_is_that_of_the_same_numbers_in_float64(family, kernel):
    """Far from the origin, where arithmetic in float32 would lose the clusters."""
    n_features = 1 if FAMILIES[family].component.row_ndim == 0 else 3
    rows = family_rows(family, 300, n_features)
    schedule = sampler.Schedule(2, 2, np.arange(0, 300, 3))
    states = []
    for data in (rows, rows.astype(np.float64)):
        target = target_of(component_of(family, n_features), data, 1.0)
        if FAMILIES[family].by_column:
            assert target.data.dtype == data.dtype
        rng = np.random.default_rng(1)
        state = sampler.start(target, rng, 6)
        for _ in range(5):
            state, _ = sampler.advance(kernel, target, state, rng, schedule)
        states.append(state)
    single, double = states
    np.testing.assert_array_equal(single.labels, double.labels)
    np.testing.assert_array_equal(single.stats, double.stats)


def family_rows(family, n_obs, n_features):
    """Rows of a family in float32, as far from the origin as they can be."""
    if not FAMILIES[family].support:
        return single_rows(n_obs, n_features, offset=1e4)
    rows = FAMILIES[family].rows_from(single_rows(n_obs, n_features, offset=-6.0) / 3.0)
    return rows.astype(np.float32)


def everything(family, rows):
    """Draws, log likelihood, labels and predictions of a short run."""
    component = FAMILIES[family].component.from_data(as_observed(family, rows))
    model = model_of(as_observed(family, rows), component, max_clusters=20)
    idata = sampled(model)
    with model:
        pm.compute_log_likelihood(idata, progressbar=False)
    labels = dps.sample_labels(idata, model=model, random_seed=2)
    return idata, labels


@pytest.mark.slow
@pytest.mark.parametrize("family", slow_unless("MvNormal".__eq__, SINGLE))
def test_run_is_that_of_the_same_numbers_in_float64(family):
    rows = family_rows(family, 120, 1 if FAMILIES[family].component.row_ndim == 0 else 2)
    (single, labels), (double, others) = (
        everything(family, data) for data in (rows, rows.astype(np.float64))
    )
    assert differences(single, double) == []
    assert single["log_likelihood"]["x"].equals(double["log_likelihood"]["x"])
    assert labels.equals(others)
    assert single["observed_data"]["x"].dtype == np.float32


@pytest.mark.slow
@pytest.mark.control
def test_numbers_that_were_rounded_give_other_draws():
    rows = single_rows(120, 2, offset=1e4)
    shaken = rows.astype(np.float64) + 1e-5
    assert "x_mu" in differences(sampled(model_of(rows)), sampled(model_of(shaken)))


def enumeration_p_value(observed):
    rows = DATASETS["overlapping"](2).astype(np.float32)
    with pm.Model():
        dps.DPMixture("x", 1.0, component_of("MvNormal", 2), observed=observed)
        idata = run(1500)
    exact = exact_posterior(twin_of("MvNormal", 2), rows.astype(np.float64), 1.0)
    return labels_test(idata, "x", exact)


@pytest.mark.slow
def test_float32_data_against_enumeration():
    assert enumeration_p_value(DATASETS["overlapping"](2).astype(np.float32)) > LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_data_squeezed_are_caught():
    assert enumeration_p_value(0.8 * DATASETS["overlapping"](2).astype(np.float32)) < LEVEL


@pytest.mark.slow
def test_threads_share_float32_data():
    model = model_of(single_rows(MANY, 2))
    assert differences(sampled(model), sampled(model, dpsplit={"threads": 2})) == []


@pytest.mark.slow
def test_predictions_have_the_type_of_the_data():
    model = model_of(single_rows(60, 2))
    with model:
        prior = pm.sample_prior_predictive(3, random_seed=1)
        idata = sampled(model)
        posterior = pm.sample_posterior_predictive(idata, progressbar=False, random_seed=1)
    assert prior["prior_predictive"]["x"].dtype == np.float32
    assert posterior["posterior_predictive"]["x"].dtype == np.float32
    assert idata["posterior"]["x_mu"].dtype == np.float64


@pytest.mark.slow
def test_missing_entries_of_float32_data():
    rows = single_rows(60, 2)
    rows[3, 1] = rows[7] = np.nan
    single, double = (sampled(model_of(data)) for data in (rows, rows.astype(np.float64)))
    assert differences(single, double) == []
    assert single["posterior"]["x_unobserved"].dtype == np.float64


@pytest.mark.slow
def test_data_of_a_regression_may_be_float32():
    rows = single_rows(40, 1)[:, 0]
    found = []
    for data in (rows, rows.astype(np.float64)):
        with pm.Model():
            mean = pm.Normal("m", 0.0, 1.0)
            dps.DPMixture("x", 1.0, dps.Normal(5.0, 0.1, 2.0, 1.0), observed=data - mean)
            found.append(pm.sample(**SAMPLING))
    assert differences(*found) == []


@pytest.mark.slow
def test_floats_of_pytensor_may_be_single():
    rows = single_rows(60, 2)
    with pytensor.config.change_flags(floatX="float32"):
        with pm.Model() as model:
            alpha = pm.Gamma("alpha", 2, 4)
            data = pm.Data("data", rows)
            dps.DPMixture("x", alpha, dps.MvNormal.from_data(rows), observed=data)
            idata = pm.sample(**SAMPLING)
            pm.set_data({"data": rows[:20]})
            posterior = pm.sample_posterior_predictive(idata, progressbar=False)
        kept = model_of(rows.astype(np.float64) + 1e-9)
    assert data.type.dtype == array_of(model).dtype == np.float32
    assert posterior["posterior_predictive"]["x"].shape == (2, 8, 20, 2)
    assert array_of(kept).dtype == np.float64
    assert (array_of(kept) != rows).all()


# --- where the data are -------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)])
def test_memory_map_stays_where_it_is(mode, dtype, tmp_path):
    rows = single_rows(500, 2).astype(dtype)
    mapped = on_disk(tmp_path, rows, mode)
    model = model_of(mapped)
    step = dps.DPSplitMerge(model=model)
    seen = step._reader.read(model.initial_point())[1].data
    idata = sampled(model)
    for found in (array_of(model), seen, idata["observed_data"]["x"].to_numpy()):
        assert np.shares_memory(found, mapped)
    assert differences(idata, sampled(model_of(rows))) == []


@pytest.mark.slow
def test_array_that_cannot_be_written_to():
    rows = single_rows(200, 2).astype(np.float64)
    draws = sampled(model_of(rows))
    locked = rows.copy()
    locked.flags.writeable = False
    kernel = CONJUGATE.kernels["collapsed-split-merge"].iterate  # the one for so few rows
    compiled = len(kernel.entry.signatures)
    assert compiled > 0
    for data in (locked, pd.DataFrame(rows), rows.copy("F")):
        assert differences(draws, sampled(model_of(data))) == []
    assert len(kernel.entry.signatures) == compiled


def test_large_array_is_used_and_a_small_one_copied():
    large = np.zeros(2**21)
    large[0] = 1.0
    for rows, is_shared in ((large, True), (large[:100], False)):
        model = model_of(rows, dps.Normal(0.0, 0.1, 2.0, 1.0))
        assert np.shares_memory(array_of(model), rows) == is_shared
        assert rows.flags.writeable


def traced(rows):
    """Most bytes that NumPy held at once while a model was declared and sampled."""
    tracemalloc.start()
    try:
        model = model_of(rows)
        idata = sampled(model, draws=2, tune=2, chains=1, dpsplit={"iterations": 1})
        with model:
            pm.compute_log_likelihood(idata, progressbar=False)
        describe(model, [], {})
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_nothing_as_large_as_the_data_is_made():
    rows = np.tile(single_rows(2000, 64).astype(np.float64), (50, 1))
    traced(rows)  # so that what is compiled, if no cache has it, is not counted below
    assert rows.nbytes > 5e7
    assert traced(rows) < 0.6 * rows.nbytes


@pytest.mark.slow
@pytest.mark.control
def test_copy_of_the_data_is_seen(monkeypatch):
    rows = np.tile(single_rows(2000, 64).astype(np.float64), (50, 1))
    monkeypatch.setattr(observed, "_of_its_own", np.copy)
    assert traced(rows) > rows.nbytes


@pytest.mark.slow
@pytest.mark.parametrize("start", ["fork", "forkserver"])
def test_processes_open_the_map_by_name(start, tmp_path):
    rows = single_rows(5000, 2)
    model = model_of(on_disk(tmp_path, rows))
    step = dps.DPSplitMerge(model=model)
    small = dps.DPSplitMerge(model=model_of(rows[:1], dps.MvNormal.from_data(rows)))
    assert len(cloudpickle.dumps(step)) < len(cloudpickle.dumps(small)) + rows.nbytes / 4
    draws = sampled(model)
    assert differences(draws, sampled(model, cores=2, mp_ctx=start)) == []


def test_array_in_memory_is_sent_to_processes_once():
    rows = single_rows(5000, 2)
    component = dps.MvNormal.from_data(rows)
    models = (model_of(data, component) for data in (rows, rows[:1]))
    step, small = (dps.DPSplitMerge(model=model) for model in models)
    sent = len(cloudpickle.dumps(step)) - len(cloudpickle.dumps(small))
    assert sent < 1.2 * rows.nbytes


def test_missing_entries_of_a_map(tmp_path):
    rows = single_rows(60, 2)
    rows[3, 1] = np.nan
    mapped = on_disk(tmp_path, rows)
    assert differences(sampled(model_of(rows)), sampled(model_of(mapped))) == []


@pytest.mark.slow
def test_checkpoint_knows_the_data_wherever_they_are(tmp_path):
    rows = single_rows(60, 2)

    def checkpointed(data):
        with model_of(data):
            return pm.sample(**SAMPLING, step=dps.Checkpoint(tmp_path / "run"))

    draws = checkpointed(rows)
    assert differences(draws, checkpointed(on_disk(tmp_path, rows))) == []
    rows[0, 0] += 1.0
    with pytest.raises(ValueError, match="chains of other data"):
        checkpointed(on_disk(tmp_path, rows))


# --- arrays in chunks ---------------------------------------------------------------------


@pytest.mark.slow
def test_chunks_are_read_once_in_order(tmp_path):
    rows = single_rows(200, 2)
    source = Chunked(rows, (30, 1))
    model = model_of(source, dps.MvNormal.from_data(rows))
    np.testing.assert_array_equal(np.concatenate(source.read), np.arange(200))
    draws = sampled(model_of(rows))
    for start in ("fork", "forkserver"):
        assert differences(draws, sampled(model, cores=2, mp_ctx=start)) == []


def test_prior_from_chunks():
    rows = single_rows(200, 2)
    found, expected = (dps.MvNormal.from_data(data) for data in (Chunked(rows, (30, 1)), rows))
    for key, value in expected.hyperparameters.items():
        np.testing.assert_array_equal(found.hyperparameters[key], value)


def zarr_array(folder, rows):
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(
        store=str(folder / "rows.zarr"), shape=rows.shape, chunks=(64, 2), dtype=rows.dtype
    )
    array[:] = rows
    return array


def hdf5_array(folder, rows):
    h5py = pytest.importorskip("h5py")
    return h5py.File(folder / "rows.h5", "w").create_dataset("rows", data=rows, chunks=(64, 2))


def hdf5_array_in_one_piece(folder, rows):
    h5py = pytest.importorskip("h5py")
    return h5py.File(folder / "rows.h5", "w").create_dataset("rows", data=rows)


@pytest.mark.slow
@pytest.mark.parametrize("made", [zarr_array, hdf5_array, hdf5_array_in_one_piece])
def test_arrays_of_libraries(made, tmp_path):
    rows = single_rows(200, 3)
    array = made(tmp_path, rows)
    assert differences(sampled(model_of(rows)), sampled(model_of(array))) == []


def test_refused_with_one_sentence(tmp_path):
    rows = single_rows(20, 2)
    bad = {
        "x: observed has dtype complex64, which is not numeric": on_disk(tmp_path, rows + 0j),
        "x: observed has dtype <U32, which is not numeric": Chunked(rows.astype(str), (5, 2)),
        r"x: observed has shape \(20,\), but this": Chunked(rows[:, 0], (5,)),
        r"x: observed is empty \(shape \(0, 2\)\)": Chunked(rows[:0], (5, 2)),
        "x: observed has 1 infinite entry": Chunked(np.where(rows == rows[3, 1], np.inf, rows), 0),
    }
    for message, data in bad.items():
        with pytest.raises(ValueError, match=message) as raised:
            model_of(data, dps.MvNormal.from_data(rows))
        assert "; " in str(raised.value)
        del raised
    gc.collect()
