from functools import partial

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from pymc.backends.base import MultiTrace
from pymc.backends.ndarray import NDArray

import pymc_dpsplit as dps
from pymc_dpsplit.posterior.partitions.credible_ball import credible_ball
from pymc_dpsplit.posterior.partitions.partition_uncertainty import partition_uncertainty
from pymc_dpsplit.posterior.partitions.point_partition import point_partition
from pymc_dpsplit.posterior.partitions.similarity import similarity_matrix


def naive_similarity(labels):
    labels = labels.reshape(-1, labels.shape[-1])
    return (labels[:, :, None] == labels[:, None, :]).mean(0)


@pytest.mark.parametrize("n_obs", [1, 5, 300])
@pytest.mark.parametrize("n_draws", [1, 255, 300])
def test_equals_naive_count(rng, n_obs, n_draws):
    labels = rng.integers(0, 4, size=(2, n_draws, n_obs))
    found = similarity_matrix(labels)
    np.testing.assert_allclose(found, naive_similarity(labels), rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32, np.int64])
def test_takes_any_integers(rng, dtype):
    info = np.iinfo(dtype)
    codes = np.array([info.min, info.min + 1, info.max], dtype=dtype)
    labels = codes[rng.integers(0, 3, size=(1, 40, 6))]
    np.testing.assert_allclose(similarity_matrix(labels), naive_similarity(labels))


def test_numbering_of_clusters_does_not_matter(rng):
    labels = rng.integers(0, 5, size=(3, 20, 30))
    renumbered = np.empty_like(labels)
    for index in np.ndindex(3, 20):
        renumbered[index] = rng.permutation(1000)[labels[index]]
    np.testing.assert_array_equal(similarity_matrix(labels), similarity_matrix(renumbered))


def test_keeps_names_and_coordinates():
    names = ["a", "b", "c"]
    labels = xr.DataArray(
        np.zeros((1, 2, 3), int), dims=("chain", "draw", "obs_id"), coords={"obs_id": names}
    )
    found = similarity_matrix(labels, rows=[2, 0])
    assert found.dims == ("obs_id", "obs_id_bis")
    assert list(found["obs_id"].values) == list(found["obs_id_bis"].values) == ["c", "a"]
    assert similarity_matrix(labels.values).dims == ("obs", "obs_bis")


def test_rows_pick_a_part(rng):
    labels = rng.integers(0, 3, size=(1, 50, 40))
    rows = np.array([3, 17, 4])
    whole = naive_similarity(labels)
    np.testing.assert_allclose(similarity_matrix(labels, rows=rows), whole[np.ix_(rows, rows)])


def test_too_many_observations_need_rows():
    labels = np.zeros((1, 2, 30_000), np.uint8)
    with pytest.raises(ValueError, match="give rows="):
        similarity_matrix(labels)
    assert similarity_matrix(labels, rows=range(3)).shape == (3, 3)


@pytest.mark.parametrize(
    ("labels", "rows", "message"),
    [
        (np.zeros((1, 2, 3)), None, "labels are of type float64; give integers"),
        (np.zeros((1, 0, 3), int), None, r"labels have shape \(1, 0, 3\)"),
        (np.zeros((1, 2, 3), int), [3], "rows must be a list of positions from 0 to 2"),
        (np.zeros((1, 2, 3), int), [], "rows must be a list of positions"),
        (np.zeros((1, 2, 3), int), [0.5], "rows must be a list of positions"),
    ],
)
def test_bad_input_is_refused(labels, rows, message):
    with pytest.raises(ValueError, match=message):
        similarity_matrix(labels, rows=rows)


READERS = [
    similarity_matrix,
    point_partition,
    partial(credible_ball, partition=[0, 0, 1, 1]),
    partial(partition_uncertainty, partition=[0, 0, 1, 1]),
]


@pytest.mark.parametrize("read", READERS)
def test_trace_stands_for_its_labels(read, line_trace, rng):
    with pytest.raises(ValueError, match="idata holds no x_labels"):
        read(line_trace)
    with pytest.raises(ValueError, match="var_name='y' is no mixture of idata"):
        read(line_trace, var_name="y")
    shape = [line_trace["posterior"].sizes[dim] for dim in ("chain", "draw")]
    labels = xr.DataArray(rng.integers(0, 2, (*shape, 4)), dims=("chain", "draw", "obs"))
    line_trace["observed_data"] = line_trace["observed_data"].to_dataset().isel(x_dim_0=range(4))
    line_trace["sample_stats"] = xr.DataTree(xr.Dataset({"x_labels": labels}))
    of_trace, of_labels = read(line_trace, random_seed=1), read(labels, random_seed=1)
    if isinstance(of_trace, tuple):  # a PointPartition
        of_trace, of_labels = of_trace.partition, of_labels.partition
    xr.testing.assert_equal(of_trace.drop_vars(["chain", "draw"], errors="ignore"), of_labels)


@pytest.mark.parametrize("read", READERS)
def test_what_is_neither_trace_nor_labels_is_refused(read, line_trace):
    with pytest.raises(ValueError, match=r"idata holds no x_labels, .*; give model="):
        read(line_trace["posterior"].to_dataset())
    with pytest.raises(ValueError, match=r"group posterior of idata has no dimension chain"):
        read(xr.Dataset())
    with pytest.raises(ValueError, match=r"idata holds no mixture|no group posterior"):
        read(xr.DataTree())


@pytest.mark.parametrize("order", [("obs", "draw", "chain"), ("draw", "obs", "chain")])
@pytest.mark.parametrize("read", READERS)
def test_dimensions_of_labels_are_known_by_name(read, order, rng):
    """Labels (obs, draw, chain) are not partitions of the chains."""
    labels = xr.DataArray(rng.integers(0, 2, (2, 3, 4)), dims=("chain", "draw", "obs"))
    of_turned, of_labels = (
        read(given, **({"random_seed": 1} if read is point_partition else {}))
        for given in (labels.transpose(*order), labels)
    )
    if isinstance(of_turned, tuple):  # a PointPartition
        of_turned, of_labels = of_turned.partition, of_labels.partition
    xr.testing.assert_equal(of_turned, of_labels)


@pytest.mark.parametrize("read", READERS)
def test_labels_that_are_not_whole_are_refused(read):
    with pytest.raises(ValueError, match="labels has masked entries; give every observation"):
        read(np.ma.masked_equal([[0, 0, 1, 2]], 2))
    with pytest.raises(ValueError, match=r"labels is ragged, .*; give one label for each"):
        read([[0, 0, 1, 2], [0]])
    with pytest.raises(ValueError, match="none of which is of observations; give what"):
        read(xr.DataArray([[0, 1]], dims=("chain", "draw")))


def test_masked_partition_is_refused():
    masked = np.ma.masked_equal([0, 0, 1, 2], 2)
    for read in (credible_ball, partition_uncertainty):
        with pytest.raises(ValueError, match="partition has masked entries; give every"):
            read(np.array([[0, 0, 1, 1]]), masked)


@pytest.mark.parametrize(
    "given",
    [MultiTrace([NDArray(model=pm.Model())]), None, "idata.nc", {"posterior": {}}, [xr.DataTree()]],
    ids=["MultiTrace", "None", "str", "dict", "list"],
)
@pytest.mark.parametrize(
    "read",
    [
        similarity_matrix,
        point_partition,
        partial(partition_uncertainty, partition=[0, 1]),
        partial(credible_ball, partition=[0, 1]),
        dps.plot_similarity,
        dps.plot_partition_uncertainty,
    ],
)
def test_what_is_no_trace_is_refused(read, given):
    kind = type(given).__name__
    with pytest.raises(TypeError, match=f"idata is a {kind}; give the DataTree that pm.sample"):
        read(given)
