"""`diagnose` of topic models: traces of known content, and those of `pm.sample`."""

import arviz as az
import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_dpsplit as dps
from tests.posterior.conftest import correlated

COUNTS = np.array([[3, 1, 0], [0, 2, 2], [1, 0, 4]])


def trace_of(name="w", shift=0.0, correlation=0.0, n_rows=12, **replaced) -> xr.DataTree:
    """Four chains, of which the last is elsewhere by `shift`."""
    rng, shape = np.random.default_rng(5), (4, 1000)
    moved = np.array([0.0, 0.0, 0.0, shift])[:, None]
    values = [correlated(rng, shape, correlation) + moved for _ in range(6)]
    posterior = {
        "alpha": np.exp(values[0]),
        f"{name}_n_topics": np.clip(np.round(5 + values[1]), 1, None).astype(int),
        f"{name}_n_tables": np.round(40 + 4 * values[2]).astype(int),
        f"{name}_new_weight": rng.beta(1, 50, shape),
        f"{name}_weights": np.full((*shape, n_rows), 1 / n_rows),
    }
    stats = {
        f"{name}_entropy": 1 + 0.1 * values[3],
        f"{name}_largest_share": 0.4 + 0.02 * values[4],
        f"{name}_log_joint": -1000 + 5 * values[5],
        f"{name}_eta": np.full(shape, 0.1),
    }
    groups = {"posterior": posterior, "sample_stats": stats}
    for group in groups.values():
        group.update({key: value for key, value in replaced.items() if key in group})
    return az.from_dict(groups, dims={f"{name}_weights": [f"{name}_topic"]})


def words(diagnosis) -> str:
    """What is printed, on one line."""
    return " ".join(str(diagnosis).split())


def test_independent_draws_converge():
    found = dps.diagnose(trace_of())
    assert found.converged
    judged = {"n_topics", "n_tables", "new_weight", "entropy", "largest_share", "log_joint"}
    assert {f"w_{key}" for key in judged} <= set(found.table["quantity"].values)
    assert "Topics w: 4 chains of 1000 draws" in words(found)
    assert "Splits and merges of topics are not attempted" in words(found)
    assert "Topics left out" not in words(found)


@pytest.mark.control
def test_chain_elsewhere_is_named():
    found = dps.diagnose(trace_of(shift=2.0))
    assert not found.converged
    assert "chain 3 stands apart" in words(found)


@pytest.mark.control
def test_slow_chains_are_told_the_options_of_their_step():
    found = dps.diagnose(trace_of(correlation=0.9))
    assert not found.converged
    assert 'pm.sample(topics={"iterations": ...})' in words(found)
    assert "dpsplit=" not in words(found)


def test_topics_beyond_the_record_are_told():
    assert "draws have more topics (up to" in words(dps.diagnose(trace_of(n_rows=4)))


def test_one_of_several_is_named():
    both = trace_of()
    for group in ("posterior", "sample_stats"):
        other = trace_of("v")[group].to_dataset().drop_vars("alpha", errors="ignore")
        both[group] = xr.DataTree(both[group].to_dataset().merge(other))
    assert dps.diagnose(both, var_name="v").var_name == "v"
    with pytest.raises(ValueError, match="several topic models; give var_name as one of 'w', 'v'"):
        dps.diagnose(both)
    with pytest.raises(ValueError, match="var_name='z' is no topic model of idata; give one of"):
        dps.diagnose(both, var_name="z")


def test_bad_traces_are_refused():
    none = np.zeros((4, 1000), int)
    with pytest.raises(ValueError, match="w_n_topics is 0 in a draw of idata, but every draw has"):
        dps.diagnose(trace_of(w_n_topics=none))
    short = trace_of()
    short["sample_stats"] = xr.DataTree(short.sample_stats.to_dataset().drop_vars("w_entropy"))
    with pytest.raises(ValueError, match="w_entropy"):
        dps.diagnose(short)


def declared(counts) -> pm.Model:
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", pm.Gamma("shape", 3, 1), 2)
        dps.HDPTopics("w", alpha, 1.0, 0.5, observed=counts)
    return model


@pytest.fixture(scope="module")
def sampled():
    with declared(COUNTS) as model:
        idata = pm.sample(
            60, tune=20, chains=2, cores=1, random_seed=1, progressbar=False,
            compute_convergence_checks=False,
        )  # fmt: skip
    return model, idata


def test_trace_of_the_sampler_is_judged(sampled):
    model, idata = sampled
    assert set(dps.diagnose(idata, model=model).table["quantity"].values) == {
        *("alpha", "shape"),
        *(f"w_{key}" for key in ("n_topics", "n_tables", "new_weight")),
        *(f"w_{key}" for key in ("entropy", "largest_share", "log_joint")),
    }


def test_other_documents_are_refused(sampled):
    _, idata = sampled
    with pytest.raises(ValueError, match="the documents of w have other words in idata than in"):
        dps.diagnose(idata, model=declared(COUNTS + 1))
