import numpy as np
import pytest
import xarray as xr

from pymc_dpsplit.posterior.partitions import partition_search, point_partition
from pymc_dpsplit.posterior.partitions.label_arrays import labels_of_draws, partition_draws
from pymc_dpsplit.posterior.partitions.partition_loss import contributions, distances, loss_of
from pymc_dpsplit.posterior.partitions.point_partition import point_partition as searched
from tests.reference.partition_losses import LOSSES
from tests.support.partitions import canonical, enumerate_partitions

WEIGHTS = [0.0, 0.5, 1.0, 1.3, 2.0]
ROUNDING = 1e-9


def random_labels(rng, n_obs):
    """Labels (S, N) of three kinds: without structure, of few clusters, about one partition."""
    shape = (int(rng.integers(1, 30)), n_obs)
    kind = rng.integers(3)
    if kind < 2:
        return rng.integers(0, (n_obs, rng.integers(1, 4))[kind], shape)
    centre = rng.integers(0, 3, n_obs)
    return np.where(rng.random(shape) < 0.4, rng.integers(0, 4, shape), centre)


def together(partitions):
    """Whether two points share a cluster, float64 (..., n, n)."""
    return (partitions[..., :, None] == partitions[..., None, :]).astype(float)


def least_losses(labels):
    """Least expected loss of all partitions, by loss and weight, from counts at each point."""
    n_obs = labels.shape[1]
    of_draws, of_all = together(labels), together(enumerate_partitions(n_obs))
    both = np.einsum("sij,bij->sbi", of_draws, of_all)
    sizes = of_draws.sum(-1)[:, None], of_all.sum(-1)[None], both
    found = {}
    for name, term in (("vi", np.log), ("binder", lambda n: (n - 1) / max(n_obs - 1, 1))):
        own, theirs, shared = (term(size).mean((0, 2)) for size in sizes)
        for a in WEIGHTS:
            found[name, a] = (a * own + (2 - a) * theirs - 2 * shared).min()
    return found


def n_missed(rng, n_sets, sizes=range(1, 8), **options):
    """How often, of how many, the search ends above the least expected loss."""
    found = []
    for _ in range(n_sets):
        labels = random_labels(rng, int(rng.choice(sizes)))
        for (name, a), least in least_losses(labels).items():
            got = searched(labels, loss=name, a=a, random_seed=rng, **options).loss
            assert got >= least - ROUNDING
            found.append(got > least + ROUNDING)
    return int(sum(found)), len(found)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("a", WEIGHTS)
@pytest.mark.parametrize("n_obs", [1, 2, 7, 40])
def test_losses_equal_their_definitions(rng, name, a, n_obs):
    labels = rng.integers(0, 4, size=(12, n_obs))
    estimate = canonical(rng.integers(0, 3, size=n_obs))
    draws, loss = partition_draws(labels_of_draws(labels)), loss_of(name, n_obs, a)
    expected = [LOSSES[name](draw, estimate, a) for draw in labels]
    np.testing.assert_allclose(distances(estimate, draws, loss), expected, atol=1e-12)
    parts = contributions(estimate, draws, loss)
    assert parts.mean() == pytest.approx(np.mean(expected), abs=1e-12) or a != 1


@pytest.mark.slow
def test_finds_the_least_loss_of_all_partitions(rng):
    assert n_missed(rng, 40) == (0, 400)


@pytest.mark.slow
def test_finds_the_least_loss_of_all_partitions_of_many_sets(rng):
    assert n_missed(rng, 400, sizes=[5, 6, 7]) == (0, 4_000)


@pytest.mark.control
def test_search_without_sweetening_misses(rng, monkeypatch):
    monkeypatch.setattr(point_partition, "sweeten", lambda search, order, most: (search, 0))
    monkeypatch.setattr(point_partition, "rebuild", lambda search, members, most: (search, 0.0))
    missed, _ = n_missed(rng, 30, sizes=[6, 7], n_restarts=1)
    assert missed > 0


@pytest.mark.parametrize("name", LOSSES)
def test_tables_stay_those_of_the_labels(rng, name):
    labels = rng.integers(0, 6, size=(9, 30))
    draws, loss = partition_draws(labels_of_draws(labels)), loss_of(name, 30, 0.8)
    search = point_partition._new_search(draws, loss, 3)
    start = canonical(rng.integers(0, 5, 30))
    search = point_partition._started(search, start, 30, rng)
    before = distances(search.labels, draws, loss).mean() * loss.divisor
    for _ in range(3):
        search, _ = partition_search.sweeten(search, rng.permutation(30), 30)
    members = rng.permutation(np.flatnonzero(search.labels == 0))
    between = distances(search.labels, draws, loss).mean() * loss.divisor
    search, change = partition_search.rebuild(search, members, 30)
    after = distances(search.labels, draws, loss).mean() * loss.divisor
    assert after - between == pytest.approx(change, abs=1e-8)
    assert after <= between <= before
    n_clusters = int(search.n_clusters[0])
    assert sorted(set(search.labels)) == list(range(n_clusters))
    rows = search.first_row + search.draws
    shared = np.zeros_like(search.shared)
    np.add.at(shared, (rows, search.labels[:, None]), 1)
    np.testing.assert_array_equal(search.shared, shared)
    np.testing.assert_array_equal(search.gains[:, :n_clusters], search.step[shared[:, :n_clusters]])
    np.testing.assert_array_equal(search.sizes[:n_clusters], np.bincount(search.labels))


def test_certain_partition_is_found_at_no_loss(rng):
    truth = rng.permutation(np.repeat([0, 1, 2, 3], [40, 30, 20, 1]))
    codes = np.array([7, -3, 120, 55], np.int8)
    found = searched(codes[truth] * np.ones((3, 20, 1), np.int8), random_seed=1)
    # Numbered by size, as the truth is.
    np.testing.assert_array_equal(found.partition, truth)
    assert found.loss == 0
    assert found.partition.dtype == np.uint8


@pytest.mark.parametrize("spread", [10, 2**62])
def test_numbering_of_clusters_does_not_matter(rng, spread):
    labels = rng.integers(0, 4, size=(2, 30, 25))
    renumbered = np.empty(labels.shape, np.int64)
    for index in np.ndindex(2, 30):
        codes = rng.choice(np.linspace(-spread, spread, 21).astype(np.int64), 4, replace=False)
        renumbered[index] = codes[labels[index]]
    one, other = (searched(of, loss="binder", random_seed=4) for of in (labels, renumbered))
    np.testing.assert_array_equal(one.partition, other.partition)
    assert one.loss == other.loss


def test_weight_moves_the_number_of_clusters(rng):
    labels = np.where(rng.random((200, 30)) < 0.3, rng.integers(0, 5, (200, 30)), np.arange(30) % 5)
    for name in LOSSES:
        found = [
            int(searched(labels, loss=name, a=a, random_seed=1).partition.max()) + 1
            for a in WEIGHTS
        ]
        assert found == sorted(found, reverse=True)
        assert (found[0], found[-1]) == (30, 1)


def test_limit_of_clusters_is_kept(rng):
    labels = np.arange(30) % 5 * np.ones((10, 1), int)
    for most in (1, 2, 3, 4, 5, 9):
        found = searched(labels, max_clusters=most, random_seed=1)
        assert int(found.partition.max()) + 1 == min(most, 5)


def test_few_draws_are_explored_and_all_refine(rng, monkeypatch):
    monkeypatch.setattr(point_partition, "_DRAWS_EXPLORED", 5)
    labels = np.where(rng.random((80, 6)) < 0.3, rng.integers(0, 3, (80, 6)), np.arange(6) % 3)
    found = searched(labels, random_seed=1)
    assert found.loss == pytest.approx(least_losses(labels)["vi", 1.0], abs=ROUNDING)


def test_names_and_coordinates_are_kept(rng):
    names = [f"row {i}" for i in range(6)]
    labels = xr.DataArray(
        rng.integers(0, 2, (2, 9, 6)), dims=("chain", "draw", "obs_id"), coords={"obs_id": names}
    )
    partition, loss = searched(labels, loss="binder", a=0.9, random_seed=1)
    assert partition.dims == ("obs_id",)
    assert list(partition["obs_id"].values) == names
    assert partition.attrs == {"loss": "binder", "a": 0.9}
    assert isinstance(loss, float)


def test_seed_fixes_the_result(rng):
    labels = rng.integers(0, 6, size=(20, 60))
    one, other = (searched(labels, random_seed=5) for _ in range(2))
    np.testing.assert_array_equal(one.partition, other.partition)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "VI"}, "loss='VI' is not known; give 'vi' or 'binder'"),
        ({"a": 2.5}, "a=2.5 must be a number from 0 to 2"),
        ({"a": "1"}, "a='1' must be a number"),
        ({"a": np.nan}, "a=nan must be a number"),
        ({"n_restarts": -1}, "n_restarts=-1 is out of range; give an integer of at least 0"),
        ({"n_restarts": True}, "n_restarts=True is out of range"),
        ({"max_clusters": 0}, "max_clusters=0 is out of range; give an integer of at least 1"),
        ({"idata": np.zeros((2, 3))}, "labels are of type float64; give integers"),
        ({"idata": np.zeros((0, 3), int)}, r"labels have shape \(0, 3\)"),
    ],
)
def test_bad_input_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        searched(**{"idata": np.zeros((2, 3), int)} | options)
