"""Topics of a trace from which draws were removed, where a record is spread over three draws."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_dpsplit as dps
from pymc_dpsplit.topic_model.record import TopicRecord

COUNTS = np.array([[4, 0, 1, 0], [0, 5, 1, 0], [0, 0, 2, 3]])
N_TOPICS, N_PARTS, N_DRAWS = 6, 3, 20

READERS: dict[str, Callable[[xr.DataTree], Any]] = {
    "topic_words": dps.topic_words,
    "top_words": lambda idata: dps.top_words(idata, n=2).to_array(),
    "topic_coherence": lambda idata: dps.topic_coherence(idata, COUNTS, n=2),
    "topic_perplexity": lambda idata: dps.topic_perplexity(idata, COUNTS, random_seed=1),
    "document_topics": lambda idata: dps.document_topics(idata, COUNTS, random_seed=1).to_array(),
}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pymc_dpsplit.topic_model.record._BYTES_PER_DRAW", 32)
    assert TopicRecord(N_TOPICS, COUNTS.shape[1]).n_parts == N_PARTS


@pytest.fixture(scope="module")
def idata() -> xr.DataTree:
    with pytest.MonkeyPatch.context() as patch, pm.Model():
        patch.setattr("pymc_dpsplit.topic_model.record._BYTES_PER_DRAW", 32)
        gamma = pm.Gamma("gamma", 4, 3)
        dps.HDPTopics("w", 1.0, gamma, 0.5, observed=COUNTS, max_topics=N_TOPICS)
        return pm.sample(
            draws=N_DRAWS,
            tune=5,
            chains=2,
            cores=1,
            random_seed=3,
            progressbar=False,
            compute_convergence_checks=False,
        )


def without_numbers(idata: xr.DataTree) -> xr.DataTree:
    """The trace as earlier versions recorded it."""
    groups = {name: of.to_dataset() for name, of in idata.children.items()}
    groups["sample_stats"] = groups["sample_stats"].drop_vars("w_topic_draw")
    return xr.DataTree.from_dict(groups)


def renumbered(idata: xr.DataTree) -> xr.DataTree:
    n_draws = idata["posterior"].sizes["draw"]
    return idata.map_over_datasets(
        lambda of: of.assign_coords(draw=np.arange(n_draws)) if "draw" in of.dims else of
    )


def joined(dim: str, *traces: xr.DataTree) -> xr.DataTree:
    """Traces one after the other, along chains or draws, whose numbers are those of the first."""
    groups = {name: of.to_dataset() for name, of in traces[0].children.items()}
    for name in ("posterior", "sample_stats"):
        own: list[xr.Dataset] = [of[name].to_dataset() for of in traces]
        groups[name] = xr.concat(own, dim=dim, join="override")
    return xr.DataTree.from_dict(groups)


def selected(idata: xr.DataTree, draws: Any) -> xr.DataTree:
    return idata.map_over_datasets(lambda of: of.isel(draw=draws) if "draw" in of.dims else of)


@pytest.mark.parametrize("is_old", [False, True], ids=["recorded", "earlier"])
@pytest.mark.parametrize("first", [1, 2, 3, 4, 10])
@pytest.mark.parametrize("reader", READERS)
def test_burn_in_is_removed(idata: xr.DataTree, reader: str, first: int, is_old: bool) -> None:
    """What is read is as if whole records had been removed."""
    given = without_numbers(idata) if is_old else idata
    read, whole = READERS[reader], -(-first // N_PARTS) * N_PARTS
    expected = read(selected(idata, slice(whole, None)))
    assert np.array_equal(read(selected(given, slice(first, None))), expected)
    if not is_old:
        assert np.array_equal(read(renumbered(selected(given, slice(first, None)))), expected)


def test_whole_records_are_those_of_the_draws(idata: xr.DataTree) -> None:
    topics = dps.topic_words(idata)
    assert topics["draw"].values.tolist() == [0, 3, 6, 9, 12, 15]
    assert np.allclose(
        topics.sum(topics.dims[-1]), idata["posterior"]["w_weights"].sel(draw=topics.draw) > 0
    )
    for draws in (slice(4, 13), [6, 7, 8, 9, 11, 13, 14, 15, 16, 17], slice(None, None, -1)):
        found = dps.topic_words(selected(idata, draws))
        assert set(found["draw"].values) <= set(topics["draw"].values)
        assert np.array_equal(found, topics.sel(draw=found["draw"]))
    assert dps.topic_words(selected(idata, slice(4, 13)))["draw"].values.tolist() == [6, 9]
    assert dps.topic_words(selected(idata, slice(None, None, -1)))["draw"].values[0] == 15


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("step", [2, N_PARTS, N_PARTS + 1])
def test_thinned_draws_are_refused(idata: xr.DataTree, reader: str, step: int) -> None:
    """With a step of four, parts 0, 1, 2 follow each other, but are of different records."""
    thinned = selected(idata, slice(None, None, step))
    message = "idata holds the topics of w of no draw whole, as they are spread over 3 draws in"
    for given in (thinned, renumbered(thinned), without_numbers(thinned)):
        with pytest.raises(ValueError, match=message):
            READERS[reader](given)
    with pytest.raises(ValueError, match="the topics of w in idata do not sum to one, as if"):
        READERS[reader](without_numbers(renumbered(thinned)))
    with pytest.raises(ValueError, match="idata has 2 draws, but the topics of w take 3 draws"):
        READERS[reader](selected(idata, slice(0, 2)))


@pytest.mark.parametrize("is_renumbered", [False, True])
def test_runs_joined_along_draws(idata: xr.DataTree, is_renumbered: bool) -> None:
    """The second run begins at a draw that is no multiple of three; draws have equal numbers."""
    first, second = selected(idata, slice(1, 20)), selected(idata, slice(5, 20))
    both = joined("draw", first, second)
    both = renumbered(both) if is_renumbered else both
    topics, own = dps.topic_words(both), dps.topic_words(idata)
    positions = [*range(1, 6), *range(2, 6)]
    assert np.array_equal(topics, own.isel(draw=positions))
    found = dps.document_topics(both, COUNTS, draw=6, random_seed=1)
    expected = dps.document_topics(idata, COUNTS, draw=3, random_seed=1)
    assert found.equals(expected)


def test_chains_from_which_other_draws_were_removed(idata: xr.DataTree) -> None:
    """Records are read at the positions where all chains have them."""
    one, two = idata.isel(chain=[0]), idata.isel(chain=[1])
    both = joined("chain", selected(one, slice(1, 17)), selected(two, slice(4, 20)))
    topics, own = dps.topic_words(both), dps.topic_words(idata)
    assert np.array_equal(topics[0], own[0].sel(draw=[3, 6, 9, 12]))
    assert np.array_equal(topics[1], own[1].sel(draw=[6, 9, 12, 15]))
    apart = joined("chain", selected(one, slice(1, 17)), selected(two, slice(3, 19)))
    with pytest.raises(ValueError, match="idata holds the topics of w of no draw whole"):
        dps.topic_words(apart)


def test_topics_and_weights_are_of_the_same_draws(idata: xr.DataTree) -> None:
    groups = {name: of.to_dataset() for name, of in idata.children.items()}
    groups["posterior"] = groups["posterior"].isel(draw=slice(3, None))
    other = xr.DataTree.from_dict(groups)
    with pytest.raises(ValueError, match="sample_stats of idata has other values of draw than"):
        dps.top_words(other)
    named = idata.map_over_datasets(
        lambda of: (
            of.assign_coords(draw=[f"d{i}" for i in range(N_DRAWS)]) if "draw" in of.dims else of
        )
    )
    assert np.array_equal(dps.topic_words(named), dps.topic_words(idata))
    with pytest.raises(ValueError, match="the draws of idata have no whole numbers, which tell"):
        dps.topic_words(without_numbers(named))


@pytest.mark.parametrize("reader", READERS)
def test_one_chain_is_read(idata: xr.DataTree, reader: str) -> None:
    read = READERS[reader]
    expected = read(idata.map_over_datasets(lambda of: of.isel(chain=[1], missing_dims="ignore")))
    one = idata.map_over_datasets(lambda of: of.isel(chain=1, missing_dims="ignore"))
    assert np.array_equal(read(one), expected)
    bare = one.map_over_datasets(lambda of: of.drop_vars("chain", errors="ignore"))
    with pytest.raises(ValueError, match="posterior of idata has no dimension chain; give the tr"):
        read(bare)
