import arviz as az
import numpy as np
import pytest
import xarray as xr

from pymc_dpsplit.posterior.diagnose import diagnose

QUANTITIES = ["alpha", "x_n_clusters", "x_new_weight", "x_entropy", "x_log_joint"]


def words(diagnosis):
    """What is printed, on one line."""
    return " ".join(str(diagnosis).split())


def test_independent_draws_converge(make_trace):
    found = diagnose(make_trace())
    assert found.converged
    said = words(found)
    assert "Mixture x: 4 chains of 1000 draws" in said
    assert "Converged: every R-hat < 1.01 and every bulk ESS > 400." in said
    assert "Chains agree" in said
    assert "Accepted: 25.0 % of 8000 splits and 0.0 % of 8000 merges." in said


def test_table_holds_what_arviz_says(make_trace):
    idata = make_trace(correlation=0.5)
    table = diagnose(idata).table
    assert list(table["quantity"].values) == QUANTITIES
    for name in QUANTITIES:
        group = "posterior" if name in idata["posterior"] else "sample_stats"
        drawn = idata[group].to_dataset()[[name]]
        row = table.sel(quantity=name)
        assert float(row["mean"]) == pytest.approx(float(drawn[name].mean()))
        assert float(row["r_hat"]) == pytest.approx(float(az.rhat(drawn)[name]))
        for kind in ("bulk", "tail"):
            expected = float(az.ess(drawn, method=kind)[name])
            assert float(row[f"ess_{kind}"]) == pytest.approx(expected)


@pytest.mark.control
def test_chain_elsewhere_is_named(make_trace):
    found = diagnose(make_trace(shift=2.0))
    assert not found.converged
    assert "the chains are in different places" in words(found)
    assert "chain 3 stands apart" in words(found)
    assert "give tune=1000" in words(found)
    assert "Chains agree" not in words(found)


@pytest.mark.control
def test_slow_chains_are_told_how_many_draws(make_trace):
    found = diagnose(make_trace(correlation=0.9))
    assert not found.converged
    least = float(found.table["ess_bulk"].min())
    (asked,) = [int(word[6:-1]) for word in words(found).split() if word.startswith("draws=")]
    assert 1000 * 400 / least < asked < 2 * 1000 * 400 / least
    assert "iterations" in words(found)


@pytest.mark.control
def test_stuck_chains_are_not_told_to_wait(make_trace):
    stuck = np.repeat(np.arange(4.0)[:, None], 1000, axis=1)
    found = diagnose(make_trace(x_entropy=stuck))
    assert "x_entropy (4): judge it again when the chains have met" in words(found)
    assert not found.converged


def test_constant_is_no_failure(make_trace):
    found = diagnose(make_trace(x_n_clusters=np.full((4, 1000), 3)))
    assert found.converged
    assert "Constant in every draw, so without R-hat and ESS: x_n_clusters = 3." in words(found)
    row = found.table.sel(quantity="x_n_clusters")
    assert bool(row["is_constant"])
    assert np.isnan(row["r_hat"])


def test_two_values_evenly_split(make_trace):
    # Deviations from the median are constant, which rank-normalised R-hat divides by.
    alternating = np.tile([1, 2], (4, 500))
    assert diagnose(make_trace(x_n_clusters=alternating)).converged


def test_nothing_moves(make_trace):
    names = ["alpha", "x_n_clusters", "x_new_weight", "x_entropy", "x_log_joint"]
    found = diagnose(make_trace(**{name: np.ones((4, 1000)) for name in names}))
    assert found.converged
    assert "Constant in every draw" in words(found)


def test_one_chain_is_not_enough(make_trace):
    found = diagnose(make_trace(n_chains=1))
    assert not found.converged
    assert "give chains=4" in words(found)
    assert found.table["r_hat"].isnull().all()
    assert (found.table["ess_bulk"] > 400).all()


@pytest.mark.parametrize(("n_chains", "n_draws"), [(1, 1), (2, 3)])
def test_few_draws_cannot_be_judged(make_trace, n_chains, n_draws):
    found = diagnose(make_trace(n_chains, n_draws))
    assert not found.converged
    assert "cannot be judged: give draws=1000" in words(found)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_undefined_draw_is_named(make_trace, value):
    alpha = np.ones((4, 1000))
    alpha[2, 7] = value
    found = diagnose(make_trace(alpha=alpha))
    assert not found.converged
    assert "alpha is not finite in some draws" in words(found)


def test_clusters_left_out_are_counted(make_trace):
    idata = make_trace(n_rows=6)
    n_over = int((idata["posterior"]["x_n_clusters"] > 6).sum())
    assert n_over > 0
    assert f"Clusters left out: {n_over} of 4000 draws" in words(diagnose(idata))
    assert "give max_clusters=" in words(diagnose(idata))
    assert "left out" not in words(diagnose(make_trace(n_rows=30)))


def test_divergences_are_counted(make_trace):
    idata = make_trace()
    stats = idata["sample_stats"].to_dataset()
    stats["diverging"] = xr.zeros_like(stats["x_entropy"], dtype=bool)
    stats["diverging"][0, :3] = True
    idata["sample_stats"] = xr.DataTree(stats)
    assert "NUTS diverged in 3 draws" in words(diagnose(idata))


def test_of_several_mixtures_one_is_judged(make_trace):
    shape = (4, 1000)
    other = {"x_y_n_clusters": np.ones(shape), "x_y_new_weight": np.ones(shape)}
    idata = make_trace(beta=np.ones(shape), x_y_weights=np.ones((*shape, 2)), **other)
    with pytest.raises(ValueError, match="several mixtures; give var_name as one of 'x', 'x_y'"):
        diagnose(idata)
    judged = diagnose(idata, "x").table["quantity"].values
    assert list(judged) == ["alpha", "beta", *QUANTITIES[1:]]


def test_missing_parts_are_named(make_trace):
    idata = make_trace()
    stats = idata["sample_stats"].to_dataset()
    idata["sample_stats"] = xr.DataTree(stats.drop_vars("x_entropy"))
    with pytest.raises(ValueError, match="the group sample_stats of idata has no variable x_ent"):
        diagnose(idata)
    del idata["sample_stats"]
    with pytest.raises(ValueError, match="idata has no group sample_stats"):
        diagnose(idata)


def test_reads_a_trace_from_disk(make_trace, tmp_path):
    idata = make_trace()
    idata.to_netcdf(tmp_path / "trace.nc")
    assert str(diagnose(az.from_netcdf(tmp_path / "trace.nc"))) == str(diagnose(idata))


def with_vector(idata, name, values, labels):
    """A trace with one more variable, (chain, draw, group)."""
    posterior = idata["posterior"].to_dataset()
    posterior[name] = xr.DataArray(
        values, dims=("chain", "draw", "group"), coords={"group": labels}
    )
    idata["posterior"] = xr.DataTree(posterior)
    return idata


def test_worst_element_of_a_vector_is_judged(make_trace, rng):
    effects = rng.normal(size=(4, 1000, 3))
    found = diagnose(with_vector(make_trace(), "b", effects, ["north", "south", "west"]))
    assert found.converged
    (name,) = [str(q) for q in found.table["quantity"].values if str(q).startswith("b[")]
    sizes = az.ess(xr.Dataset({"b": (("chain", "draw", "group"), effects)}))["b"]
    worst = ["north", "south", "west"][int(np.argmin(sizes.values))]
    assert name == f"b[{worst}]"


@pytest.mark.control
def test_one_bad_element_of_a_vector_is_named(make_trace, rng):
    effects = rng.normal(size=(4, 1000, 3))
    effects[3, :, 1] += 2.0
    found = diagnose(with_vector(make_trace(), "b", effects, ["north", "south", "west"]))
    assert not found.converged
    assert "b[south]" in words(found)


def test_labels_are_passed_over(make_trace, rng):
    idata = with_vector(make_trace(), "x_labels", rng.integers(0, 3, (4, 1000, 2)), [0, 1])
    found = diagnose(idata)
    assert not any("x_labels" in str(q) for q in found.table["quantity"].values)
