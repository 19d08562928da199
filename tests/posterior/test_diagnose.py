import re

import arviz as az
import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import stats
from scipy.special import gammaln
from sklearn.metrics import mutual_info_score

import pymc_dpsplit as dps
from pymc_dpsplit.posterior.diagnostics import likelier_partition
from pymc_dpsplit.posterior.diagnostics.agreement import agreement_of
from pymc_dpsplit.posterior.diagnostics.diagnose import diagnose
from pymc_dpsplit.posterior.diagnostics.doubts import doubts_of
from pymc_dpsplit.posterior.diagnostics.probes import probe_densities
from tests.support.families import FAMILIES

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
    dims = ("chain", "draw", "row")
    idata["sample_stats"]["x_labels"] = xr.DataArray(np.zeros((4, 1000, 2), int), dims=dims)
    assert "give max_clusters=" in words(diagnose(idata))  # the family may not be conjugate
    flags = xr.DataArray(np.ones((4, 1000), bool), dims=dims[:2])
    idata["sample_stats"]["x_is_conjugate"] = flags
    assert "draw the clusters of these draws anew" in words(diagnose(idata))


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
    judged = diagnose(idata, var_name="x").table["quantity"].values
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


# --- partitions of the chains -------------------------------------------------------------


def labels_of(rng, share_merged, n_draws=1000):
    """Labels (4, S, 30) of three groups, the first two merged in a share of each chain's draws."""
    is_merged = rng.random((4, n_draws)) < np.asarray(share_merged)[:, None]
    apart = np.repeat([2, 0, 1], 10)
    return np.where(is_merged[..., None], np.minimum(apart, 1), apart)


def test_chains_with_the_same_partitions_agree(make_trace, rng):
    labels = labels_of(rng, [0.5] * 4)
    # How a chain numbers its clusters does not matter.
    labels[1] = 7 - labels[1]
    found = diagnose(with_vector(make_trace(), "x_labels", labels, np.arange(30)))
    assert found.converged
    assert found.agreement.r_hat == pytest.approx(1.0, abs=0.03)
    assert found.agreement.between == pytest.approx(found.agreement.within, rel=0.06)
    assert "Partitions agree: two draws differ by" in words(found)


@pytest.mark.control
def test_chain_with_other_partitions_is_named(make_trace, rng):
    # Nothing else that is judged shows it.
    labels = labels_of(rng, [0.5, 0.5, 1.0, 0.5])
    found = diagnose(with_vector(make_trace(), "x_labels", labels, np.arange(30)))
    assert not found.converged
    assert "the chains hold different partitions" in words(found)
    assert "chain 2 most: give tune=1000" in words(found)
    assert "Partitions agree" not in words(found)


@pytest.mark.control
def test_chains_that_never_move_disagree(make_trace, rng):
    labels = labels_of(rng, [0.0, 1.0, 0.0, 0.0])
    found = diagnose(with_vector(make_trace(), "x_labels", labels, np.arange(30)))
    assert found.agreement.r_hat == np.inf
    assert found.agreement.within == 0
    assert not found.converged
    same = diagnose(with_vector(make_trace(), "x_labels", 0 * labels, np.arange(30)))
    assert same.agreement.r_hat == 1
    assert same.converged


def test_distances_are_those_of_the_definitions(rng):
    labels = rng.integers(0, 4, (2, 3, 25))
    found = agreement_of(labels, np.array([5, 6]))
    flat = labels.reshape(6, -1)
    squares = [[np.mean((a[:, None] == a) != (b[:, None] == b)) for b in flat] for a in flat]
    information = [
        [mutual_info_score(a, a) + mutual_info_score(b, b) - 2 * mutual_info_score(a, b)
         for b in flat]
        for a in flat
    ]  # fmt: skip
    squares, information = np.array(squares), np.array(information)
    own = np.kron(np.eye(2), np.ones((3, 3))).astype(bool)
    within = own & ~np.eye(6, dtype=bool)
    assert found.r_hat == pytest.approx(np.sqrt(squares[~own].mean() / squares[within].mean()))
    assert found.between == pytest.approx(information[~own].mean())
    assert found.within == pytest.approx(information[within].mean())


# --- predictive density at probe points ---------------------------------------------------


def gaussian_trace(make_trace, rng, shift):
    """A trace of one Gaussian cluster at zero, by `shift` elsewhere in the last chain."""
    mu = np.full((4, 1000, 12), np.nan)
    mu[..., 0] = 0.05 * rng.normal(size=(4, 1000))
    mu[-1, :, 0] += shift
    weights = np.zeros((4, 1000, 12))
    weights[..., 0] = 0.99
    idata = make_trace(x_mu=mu, x_sigma=np.where(np.isnan(mu), np.nan, 1.0), x_weights=weights)
    idata["observed_data"] = xr.DataTree(xr.Dataset({"x": ("i", rng.normal(size=200))}))
    return idata


def probes_of(diagnosis):
    return [str(q) for q in diagnosis.table["quantity"].values if str(q).startswith("log_den")]


def test_density_at_probe_points_is_judged(make_trace, rng):
    found = diagnose(gaussian_trace(make_trace, rng, 0.0))
    assert probes_of(found) == [f"log_density[{level} %]" for level in (5, 25, 50, 75, 95)]
    means = found.table["mean"].sel(quantity=probes_of(found)).values
    assert (np.diff(means) > 0).all()
    # The weight of the one cluster, and the mode of its density.
    assert means[-1] == pytest.approx(np.log(0.99) - 0.5 * np.log(2 * np.pi), abs=0.02)
    assert found.converged


@pytest.mark.control
def test_chain_with_another_density_is_named(make_trace, rng):
    found = diagnose(gaussian_trace(make_trace, rng, 0.5))
    assert not found.converged
    assert "log_density[5 %]" in words(found)
    assert "chain 3 stands apart" in words(found)


def test_without_data_no_density_is_judged(make_trace):
    found = diagnose(make_trace())
    assert probes_of(found) == []
    assert found.agreement is None
    assert "Give model= to judge more" in words(found)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["Normal", "DiagNormal", "MvNormal", "Poisson"])
def test_the_model_gives_all_there_is(family, rng):
    rows = rng.poisson(3.0, (30, 2)).astype(float)
    with pm.Model() as model:
        component = getattr(dps, family).from_data(rows[:, 0] if family == "Normal" else rows)
        dps.DPMixture("x", 1.0, component, observed=rows[:, 0] if family == "Normal" else rows)
        idata = pm.sample(
            draws=600, tune=60, chains=2, cores=1, random_seed=1, progressbar=False,
            compute_convergence_checks=False,
        )  # fmt: skip
    found = diagnose(idata, model=model)
    assert len(probes_of(found)) == 5
    assert found.agreement.r_hat < 1.2
    assert "Give model=" not in words(found)
    with model:
        assert str(diagnose(idata)) == str(found)
    without = diagnose(idata)
    assert "Give model=" in words(without)
    if family == "Poisson":
        assert probes_of(without) == []
        return
    # The trace alone lacks what is not yet seen, which matters where there are few rows.
    names = probes_of(found)
    whole, occupied = (of.table["mean"].sel(quantity=names).values for of in (found, without))
    assert (occupied < whole).all()
    np.testing.assert_allclose(occupied[1:], whole[1:], atol=0.1)


def test_rows_judged_are_the_same_with_the_model_and_without():
    # What is not yet seen changes the order of the second and the third row.
    rows = np.array([0.0, -1.0, 1.01, 2.5, -2.4])
    shape = 2, 10, 1
    drawn = {"x_n_clusters": np.ones(shape[:2], int), "x_new_weight": np.full(shape[:2], 0.5)}
    drawn |= {"x_weights": np.full(shape, 0.5), "x_mu": np.zeros(shape), "x_sigma": np.ones(shape)}
    idata = az.from_dict({"posterior": drawn, "observed_data": {"x": rows}})
    with pm.Model() as model:
        dps.DPMixture("x", 1.0, dps.Normal(3.0, 1.0, 2.0, 1.0), observed=rows, max_clusters=1)
    found = [probe_densities(idata, "x", of) for of in (None, model)]
    occupied, whole = (np.exp([of[0, 0] for of in one.data_vars.values()]) for one in found)
    ascending = rows[np.argsort(stats.norm.logpdf(rows))]
    new = stats.t.pdf(ascending, 4.0, loc=3.0, scale=1.0)
    np.testing.assert_allclose(occupied, 0.5 * stats.norm.pdf(ascending))
    np.testing.assert_allclose(whole, occupied + 0.5 * new)
    # The case tells the orders apart.
    assert (np.diff(occupied) > 0).all()
    assert (np.diff(whole) < 0).any()


def test_rare_moves_of_chains_apart_have_a_remedy(make_trace):
    none = np.zeros((4, 1000), int)
    found = diagnose(make_trace(shift=2.0, x_splits_accepted=none))
    assert 'give pm.sample(dpsplit={"attempts": 4})' in words(found)
    assert "attempts" not in words(diagnose(make_trace(x_splits_accepted=none)))


# --- what is said ----------------------------------------------------------------------------


def test_only_the_three_worst_are_named(make_trace, rng):
    slow = make_trace(correlation=0.95)
    said = words(diagnose(slow))
    (listed,) = [part for part in said.split(" - ") if part.startswith("bulk ESS is 400 or less")]
    assert len(re.findall(r"\w+ \(\d+\)", listed.partition(":")[0])) == 3
    assert " and 1 more" in listed
    table = diagnose(slow).table
    worst = str(table["quantity"].values[int(table["ess_bulk"].to_numpy().argmin())])
    assert f"less for {worst} (" in listed


def test_what_another_step_moves_is_said_to_be_its(make_trace, rng):
    walk = np.cumsum(rng.normal(size=(4, 1000)), axis=1)
    idata = make_trace()
    idata["posterior"] = (
        idata["posterior"]
        .to_dataset()
        .assign(slope=(("chain", "draw"), 0.01 * (walk - walk.mean(1, keepdims=True))))
    )
    found = diagnose(idata)
    (said,) = [problem for problem in found.problems if problem.startswith("bulk ESS")]
    assert said.startswith("bulk ESS is 400 or less for slope (")
    assert "which the step of the mixture does not move" in said


def test_chains_apart_are_not_said_to_agree(make_trace):
    assert "agree:" not in words(diagnose(make_trace(shift=5.0)))


# --- doubts ----------------------------------------------------------------------------------


def doubts_with(observed, component, n_clusters=2, alpha=1.0):
    with pm.Model() as model:
        dps.DPMixture("x", alpha, component, observed=observed)
    shape = (1, 20)
    posterior = {"x_n_clusters": np.full(shape, n_clusters)}
    posterior = {key: xr.DataArray(of, dims=("chain", "draw")) for key, of in posterior.items()}
    names = [str(d) for d in range(observed.shape[1])]
    coords = {"column": names}
    data = {"x": xr.DataArray(observed, dims=("row", "column"), coords=coords)}
    idata = xr.DataTree.from_dict(
        {"posterior": xr.Dataset(posterior), "observed_data": xr.Dataset(data)}
    )
    return " ".join(doubts_of(idata, idata["posterior"].to_dataset(), "x", model))


def test_many_times_the_clusters_of_the_prior_are_doubtful(rng):
    observed, family = rng.normal(size=(60, 2)), dps.DiagNormal(0.0, 0.1, 2.0, 1.0)
    said = doubts_with(observed, family, n_clusters=40)
    assert said.startswith("40 clusters, where the prior of alpha expects 4 (its mode;")
    assert doubts_with(observed, family, n_clusters=9) == ""
    assert doubts_with(observed, family, n_clusters=40, alpha=50.0) == ""


CASES = {"DiagNormal": {"mu0": 0.0, "kappa0": 0.1, "a0": 2.0, "b0": 1.0}}
CASES["Poisson"] = {"a0": 1.0, "b0": 0.1}


@pytest.mark.parametrize("name", CASES)
def test_one_cluster_where_several_are_likelier_is_doubtful(name, rng):
    observed = rng.poisson(np.repeat([[2.0, 3.0], [40.0, 30.0]], 20, axis=0)).astype(float)
    family = getattr(dps, name)(**CASES[name])
    said = doubts_with(observed, family, n_clusters=1)
    assert said.startswith("one cluster in most draws, but a partition by k-means into 2 clusters")
    assert doubts_with(observed, family, n_clusters=1) == said
    assert doubts_with(observed, family, n_clusters=2) == ""
    # By how much, cluster by cluster, with alpha = 1.
    twin = FAMILIES[name].twin(**{key: np.full(2, of) for key, of in CASES[name].items()})
    whole, *halves = (twin.log_marginal(of) for of in (observed, observed[:20], observed[20:]))
    gain = sum(halves) + 2 * gammaln(20) - whole - gammaln(40)
    (shown,) = re.findall(r"is higher by ([\d.e+]+),", said)
    assert float(shown) == pytest.approx(gain, rel=1e-2)


def test_one_cluster_of_one_group_is_not_doubtful(rng, monkeypatch):
    family = dps.DiagNormal(**CASES["DiagNormal"])
    observed = rng.normal(size=(60, 2))
    assert doubts_with(observed, family, n_clusters=1) == ""
    apart = observed + np.repeat([[0.0], [20.0]], 30, axis=0)
    assert "by k-means into 2 clusters" in doubts_with(apart, family, n_clusters=1)
    # Many rows are not looked at.
    monkeypatch.setattr(likelier_partition, "_MOST_ENTRIES", 100)
    assert doubts_with(apart, family, n_clusters=1) == ""


def test_scales_that_the_base_measure_does_not_expect_are_doubtful(rng):
    observed = rng.normal(size=(60, 2)) * [1.0, 1e5]
    for family in (dps.DiagNormal(0.0, 0.1, 2.0, 1.0), dps.MvNormal(0.0, 0.1, 4.0, np.eye(2))):
        assert doubts_with(observed, family).startswith("columns 1 and 0 have standard deviations")
    assert doubts_with(observed, dps.DiagNormal.from_data(observed)) == ""
    assert "columns 1 and 0" in doubts_with(observed, dps.SphericalNormal.from_data(observed))


def test_counts_too_dispersed_for_their_family_are_named(rng):
    counts = rng.poisson(5.0, (60, 2)).astype(float)
    wild = rng.negative_binomial(0.3, 0.02, 60).astype(float)
    observed = np.column_stack([wild, rng.normal(size=60), counts])
    parts = {"a": dps.Normal(0.0, 0.1, 2.0, 1.0), "b": dps.Poisson(1.0, 0.2)}
    said = doubts_with(observed, dps.Product({"a": [1], "b": [2, 0, 3]}, **parts))
    assert said.startswith("column 0 is taken for Poisson counts, but its variance is")
    assert 'kinds={"0": "overdispersed"}' in said
    tame = np.column_stack([counts, rng.normal(size=60)])
    assert doubts_with(tame, dps.Product({"a": [2], "b": [0, 1]}, **parts)) == ""


def test_chains_may_have_names(make_trace, rng):
    labels = labels_of(rng, [0.5, 0.5, 1.0, 0.5])
    for trace, said in (
        (with_vector(make_trace(), "x_labels", labels, np.arange(30)), "chain c most: give tune"),
        (make_trace(shift=2.0), "chain d stands apart"),
        (make_trace(), "the mean"),
    ):
        named = trace.map_over_datasets(
            lambda of: of.assign_coords(chain=list("abcd")) if "chain" in of.dims else of
        )
        assert said in words(diagnose(named))
