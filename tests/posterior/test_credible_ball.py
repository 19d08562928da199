import numpy as np
import pytest
import xarray as xr

from pymc_dpsplit.posterior.partitions.credible_ball import credible_ball
from pymc_dpsplit.posterior.partitions.partition_uncertainty import partition_uncertainty
from pymc_dpsplit.posterior.partitions.point_partition import point_partition
from pymc_dpsplit.posterior.partitions.reference import reference_of
from tests.reference.partition_losses import LOSSES

NAMES = [f"row {i}" for i in range(12)]


def noisy_labels(rng):
    """Labels (2, 40, 12) about three clusters."""
    shape = (2, 40, 12)
    drawn = np.where(rng.random(shape) < 0.2, rng.integers(0, 5, shape), np.arange(12) % 3)
    return xr.DataArray(drawn, dims=("chain", "draw", "obs_id"), coords={"obs_id": NAMES})


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("prob", [0.05, 0.5, 0.95, 1.0])
def test_ball_is_that_of_its_definition(rng, name, prob):
    labels, centre = noisy_labels(rng), np.arange(12) % 3
    ball = credible_ball(labels, centre, ci_prob=prob, loss=name)
    flat = labels.values.reshape(-1, 12)
    apart = np.array([LOSSES[name](draw, centre) for draw in flat])
    np.testing.assert_allclose(ball["distance"].values.ravel(), apart, atol=1e-12)
    assert ball["distance"].dims == ("chain", "draw")
    # The smallest radius that is enough: with anything less the ball holds too few.
    radius = float(ball["radius"])
    assert (apart <= radius + 1e-9).mean() == pytest.approx(float(ball["coverage"]))
    assert float(ball["coverage"]) >= prob > (apart < radius - 1e-9).mean()
    inside = apart <= radius + 1e-9
    sizes = np.array([len(set(draw)) for draw in flat])
    chosen = {
        "vertical_upper": inside & (sizes == sizes[inside].min()),
        "vertical_lower": inside & (sizes == sizes[inside].max()),
        "horizontal": inside,
    }
    for bound, among in chosen.items():
        found = ball.sel(bound=bound)
        assert float(found["bound_distance"]) == pytest.approx(apart[among].max())
        assert float(found["bound_distance"]) == pytest.approx(
            LOSSES[name](found["labels"].values, centre)
        )
        assert int(found["n_clusters"]) in sizes[among]
        assert list(found["obs_id"].values) == NAMES


@pytest.mark.control
def test_ball_about_another_partition_is_larger(rng):
    labels = noisy_labels(rng)
    about = [float(credible_ball(labels, of)["radius"]) for of in (np.arange(12) % 3, [0] * 12)]
    assert about[0] < about[1]


def test_certain_partition_has_a_ball_of_radius_0():
    labels = np.tile([5, 5, 2], (9, 1))
    ball = credible_ball(labels, [0, 0, 1])
    assert float(ball["radius"]) == float(ball["bound_distance"].max()) == 0
    np.testing.assert_array_equal(ball["labels"], [[0, 0, 1]] * 3)
    np.testing.assert_array_equal(partition_uncertainty(labels, [0, 0, 1]), 0)


@pytest.mark.parametrize("name", LOSSES)
def test_uncertainty_averages_to_the_expected_loss(rng, name):
    labels = noisy_labels(rng)
    found = point_partition(labels, loss=name, random_seed=1)
    uncertainty = partition_uncertainty(labels, found, loss=name)
    assert float(uncertainty.mean()) == pytest.approx(found.loss)
    assert uncertainty.dims == ("obs_id",)
    assert list(uncertainty["obs_id"].values) == NAMES


def test_uncertainty_of_binder_is_the_share_of_others_placed_differently(rng):
    labels, centre = noisy_labels(rng).values, np.arange(12) % 3
    differ = (labels[..., :, None] == labels[..., None, :]) != (centre[:, None] == centre)
    np.testing.assert_allclose(
        partition_uncertainty(labels, centre), differ.sum(-1).mean((0, 1)) / 11, atol=1e-12
    )


def test_uncertain_observation_stands_out(rng):
    labels = np.tile(np.arange(12) % 3, (100, 1))
    labels[::2, 4] = 0
    for name in LOSSES:
        assert np.argmax(partition_uncertainty(labels, np.arange(12) % 3, loss=name).values) == 4


@pytest.mark.parametrize("of", [credible_ball, partition_uncertainty])
@pytest.mark.parametrize(
    ("partition", "message"),
    [
        ([0] * 11, r"partition has shape \(11,\) and type int64; give one integer for each of the"),
        (np.zeros(12), r"partition has shape \(12,\) and type float64"),
        (np.zeros((2, 12), int), r"partition (has shape \(2, 12\)|is several partitions)"),
    ],
)
def test_what_is_no_partition_is_refused(rng, of, partition, message):
    with pytest.raises(ValueError, match=message):
        of(noisy_labels(rng), partition)


def test_partition_of_other_observations_is_refused(rng):
    labels = noisy_labels(rng)
    partition = point_partition(labels[..., ::-1], random_seed=1)
    with pytest.raises(ValueError, match="partition is one of other observations, by its coord"):
        credible_ball(labels, partition)


GAPS = {
    "numbers": np.r_[np.arange(10.0), np.nan, np.nan],
    "dates": np.r_[np.arange(11).astype("M8[D]").astype("M8[ns]"), np.datetime64("NaT", "ns")],
}


@pytest.mark.parametrize("kind", GAPS)
def test_names_of_observations_may_have_gaps(rng, kind):
    """A frame may have an index with NaN or NaT, each of which equals itself."""
    labels = noisy_labels(rng).assign_coords(obs_id=GAPS[kind])
    partition = point_partition(labels, random_seed=1)
    assert credible_ball(labels, partition)["radius"] >= 0
    assert len(reference_of(partition, "obs_id", GAPS[kind]).labels) == 12
    with pytest.raises(ValueError, match="partition is one of other observations, by its coord"):
        credible_ball(labels, partition.partition[::-1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ci_prob": 0}, "ci_prob=0 must be a number above 0 and at most 1"),
        ({"ci_prob": 95}, "ci_prob=95 must be a number"),
        ({"ci_prob": "0.9"}, "ci_prob='0.9' must be a number"),
        ({"loss": "rand"}, "loss='rand' is not known; give 'vi' or 'binder'"),
    ],
)
def test_bad_arguments_of_the_ball_are_refused(rng, options, message):
    with pytest.raises(ValueError, match=message):
        credible_ball(noisy_labels(rng), [0] * 12, **options)
