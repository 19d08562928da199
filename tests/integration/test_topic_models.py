"""Topic models in PyMC: declaration, the step, traces."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from scipy.sparse import csr_matrix

import pymc_dpsplit as dps
from pymc_dpsplit.topic_model.record import TopicRecord

COUNTS = np.array([[2, 0, 1], [0, 2, 1], [0, 0, 0]])


def declared(**arguments) -> pm.Model:
    with pm.Model() as model:
        given = {"alpha": 1.0, "gamma": 1.0, "eta": 0.5, "observed": COUNTS} | arguments
        dps.HDPTopics("w", given.pop("alpha"), given.pop("gamma"), given.pop("eta"), **given)
    return model


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"observed": [1, 2]}, r"w: observed has shape \(2,\); give counts of shape \(J, V\)"),
        ({"observed": [[1, -1]]}, "w: observed has -1 in column 1; give counts"),
        ({"observed": [[1, 0.5]]}, "w: observed has 0.5 in column 1; give counts"),
        ({"observed": [[1, np.nan]]}, "w: observed has 1 NaN entry"),
        ({"observed": [[0, 0]]}, "w: observed has no tokens, as all counts are 0; give"),
        ({"observed": [["a", "b"]]}, "w: observed="),
        ({"alpha": 0.0}, "w: alpha=0.0 must be positive; give"),
        ({"gamma": None}, "w: gamma=None is no concentration; give"),
        ({"eta": -1.0}, "w: eta=-1.0 must be positive; give"),
        ({"eta": [0.1, 0.2]}, r"w: eta has shape \(2,\); give a single number"),
        ({"max_topics": 0}, "w: max_topics=0 is out of range; give"),
        ({"dims": "doc"}, "w: dims="),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        declared(**arguments)


def test_name_that_is_taken_is_refused():
    with declared(), pytest.raises(ValueError, match="w: name='w' is taken"):
        dps.HDPTopics("w", 1.0, 1.0, 0.5, observed=COUNTS)


def test_names_of_a_frame_become_coordinates():
    frame = pd.DataFrame(COUNTS, index=["d1", "d2", "d3"], columns=["a", "b", "c"])
    model = declared(observed=frame, dims=("doc", "word"))
    assert list(model.coords["word"]) == ["a", "b", "c"]
    assert list(model.coords["doc"]) == ["d1", "d2", "d3"]
    assert model.named_vars_to_dims["w"] == ("doc", "word")


def test_gamma_for_millions_of_topics_is_refused():
    with pm.Model() as model:
        dps.HDPTopics("w", 1.0, 1e7, 0.1, observed=[[3, 1, 0], [0, 0, 4]])
        with pytest.raises(ValueError, match="w: gamma is 1e\\+07 in a draw, for which a sweep"):
            dps.HDPTopicsStep(model.free_RVs)


@pytest.mark.parametrize("fixed", ["alpha", "gamma", "eta"])
def test_other_steps_take_a_model_with_a_concentration_of_one(fixed):
    """The terms of a concentration of one vanish, and with them what they depend on."""
    with pm.Model() as model:
        keys = ("alpha", "gamma", "eta")
        given = [1.0 if key == fixed else pm.Gamma(key, 2, 2) for key in keys]
        dps.HDPTopics("w", *given, observed=COUNTS)
    point = model.initial_point()
    moved = [rv for rv in model.free_RVs if rv.name in keys]
    step = pm.NUTS(moved, model=model, initial_point=point)
    assert {var.name for var in step.vars} == {f"{rv.name}_log__" for rv in moved}


@pytest.fixture(scope="module")
def sampled():
    with pm.Model() as model:
        alpha, gamma = pm.Gamma("alpha", 4, 2), pm.Gamma("gamma", 4, 3)
        eta = pm.Gamma("eta", 6, 10)
        dps.HDPTopics("w", alpha, gamma, eta, observed=csr_matrix(COUNTS), dims=("doc", "word"))
        idata = pm.sample(
            draws=300,
            tune=50,
            chains=2,
            cores=1,
            random_seed=3,
            progressbar=False,
            compute_convergence_checks=False,
        )
    return model, idata


@pytest.mark.slow
def test_trace_holds_what_the_model_says(sampled):
    _, idata = sampled
    draws = idata.posterior
    assert set(draws.data_vars) == {
        *("alpha", "gamma", "eta"),
        *(f"w_{role}" for role in ("n_topics", "n_tables", "new_weight", "weights", "log_words")),
    }
    assert (draws["w_n_topics"] == (draws["w_weights"] > 0).sum("w_topic")).all()
    assert np.allclose(draws["w_weights"].sum("w_topic") + draws["w_new_weight"], 1.0)
    assert (draws["w_n_tables"] >= draws["w_n_topics"]).all()
    assert (draws["w_n_topics"] == idata.sample_stats["w_occupied"]).all()
    assert np.isfinite(idata.sample_stats["w_log_joint"]).all()
    assert np.array_equal(idata.observed_data["w"], COUNTS)


def test_sweeps_are_those_of_tuning(sampled):
    """A sweep of few tokens takes less time than the rest of a draw."""
    sweeps = sampled[1].sample_stats["w_iterations"]
    assert (sweeps > 1).all()
    assert (sweeps == sweeps[:, 0]).all()


def test_topics_of_a_trace_are_laws(sampled):
    _, idata = sampled
    topics = dps.topic_words(idata)
    assert topics.dims == ("chain", "draw", "w_topic", "word")
    sums = topics.sum("word")
    assert np.allclose(sums, (idata.posterior["w_weights"] > 0).transpose(*sums.dims), atol=1e-5)


def test_top_words_are_the_likeliest(sampled):
    _, idata = sampled
    found = dps.top_words(idata, n=2, chain=1, draw=5)
    last = dps.topic_words(idata)[1, 5, 0].to_numpy()
    assert list(found["word"][0]) == list(np.argsort(-last)[:2])
    assert np.all(np.diff(found["probability"], axis=1) <= 0)
    assert np.all(np.diff(found["weight"]) <= 0)
    with pytest.raises(ValueError, match="draw=300 is out of range; give an integer from -300"):
        dps.top_words(idata, draw=300)
    with pytest.raises(ValueError, match=r"idata=.* is no trace; give one of HDPTopics, or call"):
        dps.top_words({"posterior": 1})
    with pytest.raises(ValueError, match="idata has the topic models w, and var_name='x' was"):
        dps.topic_words(idata, var_name="x")


def test_topics_spread_over_draws(monkeypatch):
    monkeypatch.setattr("pymc_dpsplit.topic_model.record._BYTES_PER_DRAW", 32)
    model = declared()
    with model:
        step = dps.HDPTopicsStep()
    step.setup_chain(np.random.default_rng(1), 2, 8)
    point, parts, numbers = model.initial_point(), [], []
    for _ in range(10):
        point, (stats,) = step.step(point)
        parts.append(stats["w_topic_part"])
        numbers.append(stats["w_topic_draw"])
    assert numbers == [-2, -1, 0, 1, 2, 3, 4, 5, 6, 7]
    record = TopicRecord(6, 3)
    assert record.n_parts == 3
    assert not np.any(parts[:2])
    places = record.whole_records(np.array([numbers]))
    assert places.tolist() == [[2, 3, 4], [5, 6, 7]]
    topics = record.joined(np.array(parts)[places])
    assert topics.shape == (2, 6, 3)
    sums = topics.sum(axis=-1)
    assert np.allclose(sums[sums > 0], 1.0, atol=1e-5)
    assert np.all(sums[:, 0] > 0)


def test_what_cannot_treat_topics_is_refused(sampled):
    model, idata = sampled
    with (
        model,
        pytest.raises(ValueError, match=r"w: the step Metropolis .* only HDPTopicsStep can"),
    ):
        pm.sample(step=pm.Metropolis([model["w_n_tables"]]), progressbar=False)
    with model, pytest.raises(ValueError, match=r"w: nuts_sampler='nutpie' .* only HDPTopicsStep"):
        pm.sample(nuts_sampler="nutpie", progressbar=False)
    with model, pytest.raises(ValueError, match=r"w: pm\.compute_log_like.*; use dps\.topic_perpl"):
        pm.compute_log_likelihood(idata)
    for reader in (dps.predict, dps.loo, dps.loo_groups, dps.sample_labels):
        with pytest.raises(ValueError, match=r"w is an HDPTopics, .* use topic_words, top_words"):
            reader(idata, model=model)
    with pytest.raises(ValueError, match=r"w is an HDPTopics, .* use topic_words, top_words"):
        dps.plot_n_clusters(idata)
    with pytest.raises(ValueError, match="w is an HDPTopics, which find_map does not take"):
        dps.find_map(model)


@pytest.mark.slow
def test_trace_is_the_same_from_disk_and_from_a_checkpoint(sampled, tmp_path):
    model, idata = sampled
    idata.to_netcdf(tmp_path / "trace.nc")
    loaded = xr.load_datatree(tmp_path / "trace.nc")
    assert np.array_equal(dps.topic_words(loaded), dps.topic_words(idata))
    for reader in (dps.topic_perplexity, dps.document_topics):
        here, there = (reader(of, COUNTS, random_seed=2) for of in (idata, loaded))
        assert np.all(here == there)
    with model:
        # The second run reads what the first one has written.
        for _ in range(2):
            kept = pm.sample(
                draws=300,
                tune=50,
                chains=2,
                cores=1,
                random_seed=3,
                progressbar=False,
                compute_convergence_checks=False,
                step=dps.Checkpoint(tmp_path / "run"),
            )
            for name in ("w_weights", "w_n_tables", "alpha", "eta"):
                assert np.array_equal(idata.posterior[name], kept.posterior[name])
            assert np.array_equal(dps.topic_words(idata), dps.topic_words(kept))


def test_step_takes_options():
    model = declared()
    with model:
        step = dps.HDPTopicsStep(threads=1, iterations=2, start_topics=3)
        point, stats = step.step(model.initial_point())
    assert point["w_n_topics"] == stats[0]["w_occupied"]
    with model, pytest.raises(ValueError, match="start_topics=0 is out of range"):
        dps.HDPTopicsStep(start_topics=0)


@pytest.mark.slow
def test_prior_of_the_measure_is_drawn():
    model = declared(alpha=2.0, gamma=1.5)
    with model:
        names = ["w_n_topics", "w_n_tables", "w_new_weight"]
        prior = pm.sample_prior_predictive(400, var_names=names, random_seed=1).prior
    # Tables of documents of three tokens: alpha / alpha + alpha / (alpha + 1) + ...
    mean = 2 * (1 + 2 / 3 + 2 / 4)
    assert abs(float(prior["w_n_tables"].mean()) - mean) < 5 * float(prior["w_n_tables"].std()) / 20
    assert abs(float((prior["w_new_weight"] - 1.5 / (1.5 + prior["w_n_tables"])).mean())) < 0.06


@pytest.mark.slow
def test_documents_are_not_drawn():
    with declared(), pytest.raises(NotImplementedError, match="Documents of w cannot be drawn"):
        pm.sample_prior_predictive(2, random_seed=1)
