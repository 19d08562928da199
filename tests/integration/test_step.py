"""The step method: its options, its state, its statistics, and the models it refuses."""

import logging
from dataclasses import replace
from io import StringIO

import cloudpickle
import numpy as np
import pymc as pm
import pytest
from pymc.progress_bar import MCMCProgressBarManager
from pymc.step_methods.compound import CompoundStep
from pymc.step_methods.state import equal_dataclass_values
from rich.console import Console

import pymc_dpsplit as dps
from pymc_dpsplit.moves.partition import entropy
from pymc_dpsplit.step import early_tuning

ROWS = np.random.default_rng(5).normal(size=(30, 2)) + np.repeat([[-4.0], [0.0], [4.0]], 10, axis=0)
NORMAL = dps.Normal(0.0, 0.1, 2.0, 1.0)
QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
SHORT = {"draws": 15, "tune": 15, "chains": 1, "random_seed": 3, **QUIET}


def model_of(alpha=1.0, **arguments):
    """A model of one mixture, with its alpha fixed or (None) sampled."""
    with pm.Model() as model:
        concentration = pm.Gamma("alpha", 2, 4) if alpha is None else alpha
        component = dps.DiagNormal.from_data(ROWS)
        dps.DPMixture("x", concentration, component, observed=ROWS, **arguments)
    return model


def sampled(model, **arguments):
    with model:
        return pm.sample(**{**SHORT, **arguments})


# --- assignment ---------------------------------------------------------------------------


def test_the_step_assigns_itself_beside_another():
    model = model_of(None)
    with model:
        provided, selected = pm.sampling.mcmc.assign_step_methods(model)
    assert not provided
    names = {step.__name__: [var.name for var in of] for step, of in selected.items()}
    assert names["NUTS"] == ["alpha_log__"]
    assert len(names["DPSplitMerge"]) == 5


@pytest.mark.parametrize("form", ["nothing", "variables", "values", "tuple"])
def test_variables_are_given_in_several_forms(form):
    model = model_of(None)
    owned = model.free_RVs[1:]
    values = [model.rvs_to_values[rv] for rv in owned]
    arguments = {
        "nothing": (),
        "variables": (owned,),
        "values": (values,),
        "tuple": (tuple(owned),),
    }
    with model:
        step = dps.DPSplitMerge(*arguments[form])
    # It moves alpha as well, which then needs no other step.
    assert step.vars == [*values, model.rvs_to_values[model["alpha"]]]


@pytest.mark.slow
def test_other_steps_do_not_move_alpha_if_the_kernels_do():
    idata = sampled(model_of(None), target_accept=0.9)
    assert "step_size" not in idata["sample_stats"]
    assert (idata["posterior"]["alpha"].std("draw") > 0).all()
    with pm.Model():
        alpha = pm.Gamma("alpha", 2, 4)
        dps.DPMixture("x", alpha, dps.DiagNormal.from_data(ROWS), observed=ROWS)
        pm.Normal("seen", alpha, 1.0, observed=1.0)
        steps = pm.sample(**SHORT)["sample_stats"]
    assert "step_size" in steps


def test_explicit_step_gives_the_draws_of_the_assigned_one():
    model = model_of()
    assigned = sampled(model, dpsplit={"kernel": "collapsed"})
    with model:
        explicit = sampled(model, step=[dps.DPSplitMerge(model.free_RVs, kernel="collapsed")])
    for name, values in assigned["posterior"].items():
        np.testing.assert_array_equal(values, explicit["posterior"][name])


def two_mixtures():
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", 2, 4)
        dps.DPMixture("x", alpha, dps.DiagNormal.from_data(ROWS), observed=ROWS)
        dps.DPMixture("y", 2.0 * alpha, NORMAL, observed=ROWS[:20, 0])
    return model


@pytest.mark.slow
def test_two_mixtures_share_alpha():
    idata = sampled(two_mixtures(), dpsplit={"keep_labels": True})
    for name, size in [("x", 30), ("y", 20)]:
        assert np.isfinite(idata["sample_stats"][f"{name}_log_joint"]).all()
        assert idata["sample_stats"][f"{name}_labels"].shape == (1, 15, size)
    assert idata["posterior"]["alpha"].std() > 0


def test_two_mixtures_get_a_step_each():
    model = two_mixtures()
    with model:
        both = dps.DPSplitMerge()
        one = dps.DPSplitMerge([rv for rv in model.free_RVs if rv.name.startswith("y_")])
    assert isinstance(both, CompoundStep)
    assert [step.mixture.name for step in both.methods] == ["x", "y"]
    assert both.methods[0].rng.random() != both.methods[1].rng.random()
    assert one.mixture.name == "y"


# --- what is refused ----------------------------------------------------------------------


def assert_refused(message, build):
    with pytest.raises(ValueError, match=message) as raised:
        build()
    text = str(raised.value)
    assert text.endswith(".")
    assert "\n" not in text
    assert "; " in text  # the remedy


def test_part_of_a_mixture_is_refused():
    model = model_of(None)
    with model:
        assert_refused("add x_n_clusters, x_new_weight", lambda: dps.DPSplitMerge(model["x_mu"]))
        assert_refused(
            "leave out alpha", lambda: dps.DPSplitMerge([*model.free_RVs[1:], model["alpha"]])
        )
        assert_refused("leave out alpha", lambda: dps.DPSplitMerge([model["alpha"]]))


def test_model_without_a_mixture_is_refused():
    with pm.Model() as model:
        pm.Normal("z")
        assert_refused("no mixture", dps.DPSplitMerge)
        assert_refused("no mixture", lambda: dps.DPSplitMerge(model.free_RVs))


def test_mixture_that_is_observed_in_part_is_refused():
    model = pm.observe(model_of(max_clusters=3), {"x_n_clusters": 3})
    assert_refused("every variable is free", lambda: sampled(model))


OPTIONS = {
    "unknown": ({"kernal": "exact"}, "'kernal' is not an option of dpsplit; choose among kernel"),
    "kernel": ({"kernel": "chang"}, "kernel='chang' is not known; choose one of 'auto', 'exact'"),
    "kernel of another type": ({"kernel": ["exact"]}, "kernel="),
    "no threads": ({"threads": 0}, "threads=0 is out of range; give an integer of at least 1"),
    "threads string": ({"threads": "2"}, "threads='2'"),
    "threads truth": ({"threads": True}, "threads=True"),
    "attempts": ({"attempts": -1}, "attempts=-1 is out of range; give an integer of at least 0"),
    "attempts float": ({"attempts": 1.0}, "attempts=1.0"),
    "attempts of a kernel without": (
        {"kernel": "neal8", "attempts": 5},
        "attempts=5 is given, but kernel='neal8' attempts no splits and merges; leave attempts or",
    ),
    "attempts of collapsed sweeps": ({"kernel": "collapsed", "attempts": 1}, "attempts=1 is given"),
    "iterations": ({"iterations": 0}, "iterations=0"),
    "iterations string": ({"iterations": "many"}, "iterations='many'"),
    "start_clusters": ({"start_clusters": 0}, "start_clusters=0"),
    "keep_labels": ({"keep_labels": "yes"}, "keep_labels='yes' is neither; give True or False"),
    "keep_labels number": ({"keep_labels": 1}, "keep_labels=1"),
    "option of another kernel": (
        {"truncation": 9},
        "truncation is an option of kernel='truncated'; give that kernel, or leave truncation out",
    ),
    "truncation": ({"kernel": "truncated", "truncation": 1}, "truncation=1 is out of range"),
    "processors": ({"kernel": "av-parallel", "processors": 0}, "processors=0 is out of range"),
    "published": (
        {"kernel": "av-parallel", "published": 1},
        "published=1 is neither; give True",
    ),
    "super-clusters": (
        {"kernel": "chang-fisher", "super_clusters": "yes"},
        "super_clusters='yes' is neither; give True or False",
    ),
    "shares": (
        {"kernel": "av-parallel", "shares": [1, 0]},
        r"shares=\[1, 0\] is not a sequence of positive numbers; give some, such as shares=\[2",
    ),
    "share": ({"kernel": "av-parallel", "shares": 3}, "shares=3 is not a sequence of positive"),
    "shares and processors": (
        {"kernel": "av-parallel", "shares": [1, 2], "processors": 2},
        r"processors has no meaning with shares=\[1, 2\]; leave one of them out",
    ),
    "shares and published": (
        {"kernel": "av-parallel", "shares": np.array([1, 2]), "published": True},
        "published has no meaning with shares=",
    ),
    "values": ({"kernel": "ics", "m": 2.5}, "m=2.5"),
}


@pytest.mark.parametrize("fault", OPTIONS)
def test_bad_option_is_one_sentence_before_sampling(fault):
    options, message = OPTIONS[fault]
    assert_refused(message, lambda: sampled(model_of(), dpsplit=options))


def test_numpy_numbers_are_options():
    with model_of():
        options = {"threads": np.int64(1), "attempts": np.int8(0), "keep_labels": np.True_}
        step = dps.DPSplitMerge(**options, start_clusters=None)
    assert step.options.attempts == 0


def potential(model):
    pm.Potential("pull", -((model["x_mu"][0, 0] - 5.0) ** 2))


def likelihood_by_way_of_a_deterministic(model):
    pull = pm.Deterministic("pull", 2.0 * model["x_weights"][0])
    pm.Normal("y", pull, observed=0.3)


def free_variable(model):
    pm.Normal("z", model["x_n_clusters"])


def mixture_below_the_mixture(model):
    dps.DPMixture("y", model["x_n_clusters"] + 1.0, NORMAL, observed=[0.0, 1.0])


DEPENDENTS = {
    potential: "pull depends on x_mu",
    likelihood_by_way_of_a_deterministic: "y depends on x_weights",
    free_variable: "z depends on x_n_clusters",
    mixture_below_the_mixture: "y_n_clusters depends on x_n_clusters",
}


@pytest.mark.parametrize("add", DEPENDENTS, ids=lambda add: add.__name__)
def test_what_depends_on_the_mixture_is_refused(add):
    """The step would ignore it, and the draws would be wrong in silence."""
    model = model_of()
    with model:
        add(model)
    assert_refused(DEPENDENTS[add], lambda: sampled(model))


def test_what_depends_on_the_observations_alone_is_accepted():
    """In the density of `y` the observations are data."""
    with model_of() as model:
        pm.Normal("y", model["x"][:, 0], observed=np.zeros(30))
        pm.Normal("z", pm.Normal("w"))
    sampled(model, draws=2)


def test_deterministic_of_the_mixture_is_recorded():
    model = model_of()
    with model:
        pm.Deterministic("twice", 2.0 * model["x_mu"])
        pm.Normal("z")
    posterior = sampled(model)["posterior"]
    np.testing.assert_array_equal(posterior["twice"], 2.0 * posterior["x_mu"])


# --- state --------------------------------------------------------------------------------


def begun(model, n_steps, seed=8, tune=9, **options):
    """A step with a chain begun, and the point it reached."""
    with model:
        step = dps.DPSplitMerge(model.free_RVs, **options)
    step.setup_chain(np.random.default_rng(seed), tune, 20)
    return step, advanced(step, model.initial_point(), n_steps)


def advanced(step, point, n_steps):
    for _ in range(n_steps):
        point, _ = step.step(point)
    return point


def assert_same_chain(step, other, point):
    one, two = advanced(step, point, 5), advanced(other, point, 5)
    assert one.keys() == two.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], two[name])
    assert equal_dataclass_values(step.sampling_state, other.sampling_state)


@pytest.mark.parametrize("kernel", ["exact", "collapsed"])
@pytest.mark.parametrize("n_steps", [0, 2, 9, 12])
def test_restored_step_goes_on_identically(kernel, n_steps):
    """From before the start, within and at the end of tuning, and after it."""
    model = model_of()
    step, point = begun(model, n_steps, kernel=kernel)
    state = step.sampling_state
    before = cloudpickle.loads(cloudpickle.dumps(state))
    with model:
        other = dps.DPSplitMerge(model.free_RVs, kernel=kernel)
    other.sampling_state = state
    assert equal_dataclass_values(other.sampling_state, before)
    assert_same_chain(step, other, point)
    assert equal_dataclass_values(state, before)  # what was saved is a copy


def test_restored_step_has_the_same_new_starts():
    model = model_of()
    step, point = begun(model, 8, tune=60)
    other, _ = begun(model, 0, seed=9, tune=60)
    other.sampling_state = step.sampling_state
    assert_same_chain(step, other, point)
    assert step.n_done > 10  # the second start was after the eighth draw


def test_restored_step_goes_on_with_its_window():
    counts = np.random.default_rng(4).poisson(2.0, size=(80, 40))
    with pm.Model() as model:
        dps.DPMixture("x", 1.0, dps.Multinomial(0.5), observed=counts)
        step, other, forgetful = (
            dps.DPSplitMerge(model.free_RVs, kernel="exact", start_clusters=8, iterations=2)
            for _ in range(3)
        )
    step.setup_chain(np.random.default_rng(8), 0, 9)
    point = advanced(step, model.initial_point(), 3)
    state = step.sampling_state
    assert 0 < state.window < len(counts)
    other.sampling_state = state
    assert_same_chain(step, other, point)
    forgetful.sampling_state = replace(state, window=0)
    advanced(forgetful, point, 5)
    assert not np.array_equal(forgetful.labels, step.labels)


@pytest.mark.parametrize("threads", [1, 2])
def test_pickled_step_goes_on_identically(threads):
    step, point = begun(model_of(), 12, threads=threads)
    assert_same_chain(step, cloudpickle.loads(cloudpickle.dumps(step)), point)


def test_step_is_taken_back_to_an_earlier_state():
    step, point = begun(model_of(), 12)
    state = step.sampling_state
    expected = advanced(step, point, 3)
    step.sampling_state = state
    again = advanced(step, point, 3)
    np.testing.assert_array_equal(expected["x_mu"], again["x_mu"])


def test_a_new_chain_forgets_the_one_before():
    model = model_of()
    step, point = begun(model, 12)
    step.setup_chain(np.random.default_rng(8), 9, 20)
    again = advanced(step, model.initial_point(), 12)
    np.testing.assert_array_equal(point["x_mu"], again["x_mu"])


def test_the_point_given_is_left_alone():
    step, point = begun(model_of(), 3)
    before = {name: value.copy() for name, value in point.items()}
    step.step(point)
    for name, value in before.items():
        np.testing.assert_array_equal(point[name], value)


# --- statistics and labels ----------------------------------------------------------------


def test_statistics_have_names_and_types():
    stats = sampled(model_of())["sample_stats"]
    floats = {"log_joint", "entropy", "largest_share", "attempts", "seconds"}
    counts = {"occupied", "iterations", "scanned", "exchanged"}
    counts |= {f"{of}_{what}" for of in ("splits", "merges") for what in ("proposed", "accepted")}
    names = {name for name in stats.data_vars if name.startswith("x_")}
    assert names == {f"x_{name}" for name in floats | counts | {"is_conjugate", "sliced"}}
    assert stats["x_is_conjugate"].all()
    for name in floats | counts:
        values = stats[f"x_{name}"]
        assert values.shape == (1, 15)
        assert values.dtype == (np.float64 if name in floats else np.int64)
        assert np.isfinite(values).all()
    assert (stats["x_splits_accepted"] <= stats["x_splits_proposed"]).all()
    assert (stats["x_seconds"] > 0).all()


@pytest.mark.parametrize("kernel", ["exact", "collapsed"])
def test_kept_labels_agree_with_everything_else(kernel):
    model = model_of(alpha=5.0)
    idata = sampled(model, dpsplit={"keep_labels": True, "kernel": kernel})
    labels = idata["sample_stats"]["x_labels"]
    assert labels.dtype == np.uint8
    np.testing.assert_array_equal(dps.sample_labels(idata, model=model), labels)
    for draw in range(15):
        sizes = np.bincount(labels[0, draw])
        assert (sizes > 0).all()
        assert len(sizes) == idata["posterior"]["x_n_clusters"][0, draw]
        expected = entropy(sizes[:, None].astype(float))
        np.testing.assert_allclose(idata["sample_stats"]["x_entropy"][0, draw], expected)
        largest = idata["sample_stats"]["x_largest_share"][0, draw]
        np.testing.assert_allclose(largest, sizes.max() / 30)
    np.testing.assert_array_equal(
        idata["sample_stats"]["x_occupied"], idata["posterior"]["x_n_clusters"]
    )


# Whether an iteration begins with slices, the rows that collapsed Gibbs visits, and attempts.
PLANS = {
    "auto": (False, 30, 0.03),
    "collapsed": (False, 30, 0.0),
    "collapsed-split-merge": (False, 30, 0.03),
    "exact": (True, 0, None),
}


@pytest.mark.parametrize("kernel", PLANS)
def test_plan_of_an_iteration_is_recorded(kernel):
    stats = sampled(model_of(), dpsplit={"kernel": kernel})["sample_stats"]
    found = [stats[f"x_{key}"].to_numpy() for key in ("sliced", "scanned", "attempts")]
    for values, planned in zip(found, PLANS[kernel], strict=True):
        assert (values == values[0, 0]).all()
        assert planned is None or values[0, 0] == planned


def test_default_draws_what_the_kernel_that_it_chooses_draws():
    model = model_of()
    chosen = sampled(model, dpsplit={"kernel": "collapsed-split-merge"})
    np.testing.assert_array_equal(sampled(model)["posterior"]["x_mu"], chosen["posterior"]["x_mu"])


def test_attempts_are_more_frequent_in_early_tuning():
    step, point = begun(model_of(), 0)
    attempts = []
    for _ in range(9):
        point, (stats,) = step.step(point)
        attempts.append(stats["x_attempts"])
    assert attempts == [1.0] * 3 + [0.03] * 6


@pytest.mark.parametrize("kernel", ["auto", "exact"])
def test_new_starts_are_crossed_in_early_tuning_alone(kernel, monkeypatch):
    crossed = []
    monkeypatch.setattr(
        early_tuning, "best_of", lambda *given: crossed.append(step.n_done) or given[1]
    )
    step, point = begun(model_of(), 0, tune=60, kernel=kernel)
    for _ in range(70):
        point, _ = step.step(point)
    assert crossed == [5, 10, 15]


def test_attempts_after_slices_are_fewer_from_the_second_half_of_tuning_on():
    step, point = begun(model_of(), 0, kernel="exact")
    attempts = []
    for _ in range(step.n_tune + 3):
        point, (stats,) = step.step(point)
        attempts.append(stats["x_attempts"])
    first_half = step.n_tune - step.n_tune // 2
    assert len(set(attempts[first_half:])) == 1
    assert 0.0 < attempts[-1] < min(attempts[:first_half])


def slow_model():
    """A model whose chain mixes slowly: heavy tails, covered by normal clusters."""
    rows = np.random.default_rng(5).standard_t(3, size=300)
    with pm.Model() as model:
        dps.DPMixture("x", 1.0, NORMAL, observed=rows)
    return model


SLOW = {"seed": 22, "tune": 400, "kernel": "exact"}


def iterations_made(step, point, n_steps):
    made = []
    for _ in range(n_steps):
        point, (stats,) = step.step(point)
        made.append(stats["x_iterations"])
    return point, np.array(made)


def test_slow_chains_get_more_iterations_in_late_tuning_and_as_many_as_they_need():
    model = slow_model()
    _, made = iterations_made(*begun(model, 0, **SLOW), 405)
    second_half = np.flatnonzero(np.diff(made[200:])) + 201
    np.testing.assert_array_equal(second_half, [300, 350, 400])
    assert made[300] >= 2 * made[299]
    assert made[350] <= made[349] / 2  # they proved nearly independent
    assert made[299] < made[400] < made[350]
    _, made = iterations_made(*begun(model, 0, iterations=2, **SLOW), 405)
    assert (made == 2).all()


def test_restored_step_goes_on_with_its_iterations():
    model = slow_model()
    step, point = begun(model, 350, **SLOW)
    other, _ = begun(model, 0, **SLOW)
    other.sampling_state = step.sampling_state
    assert len(other.history) == 100
    (point, made), (same, again) = (iterations_made(each, point, 55) for each in (step, other))
    np.testing.assert_array_equal(made, again)
    np.testing.assert_array_equal(point["x_mu"], same["x_mu"])


def test_options_take_effect():
    options = {"iterations": 3, "attempts": 4, "start_clusters": 1}
    stats = sampled(model_of(), dpsplit=options)["sample_stats"]
    assert (stats["x_iterations"] == 3).all()
    assert (stats["x_splits_proposed"] + stats["x_merges_proposed"] == 12).all()
    no_attempts = sampled(model_of(), dpsplit={"attempts": 0})["sample_stats"]
    assert (no_attempts["x_splits_proposed"] + no_attempts["x_merges_proposed"] == 0).all()


def test_draws_do_not_depend_on_keeping_labels():
    model = model_of()
    plain, kept = sampled(model), sampled(model, dpsplit={"keep_labels": True})
    np.testing.assert_array_equal(plain["posterior"]["x_mu"], kept["posterior"]["x_mu"])


# --- rows that are kept -------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [5.0, None], ids=["fixed", "sampled"])
def test_the_chain_does_not_know_max_clusters(alpha):
    few, many = (
        sampled(model_of(alpha, max_clusters=n), draws=40, dpsplit={"keep_labels": True})
        for n in (2, 30)
    )
    assert few["posterior"]["x_n_clusters"].max() > 2
    for name in ("x_n_clusters", "x_new_weight", *(["alpha"] if alpha is None else [])):
        np.testing.assert_array_equal(few["posterior"][name], many["posterior"][name])
    for name in ("x_labels", "x_entropy", "x_log_joint"):
        np.testing.assert_array_equal(few["sample_stats"][name], many["sample_stats"][name])
    for name in ("x_weights", "x_mu", "x_sigma"):
        recorded = many["posterior"][name].isel(x_cluster=slice(2))
        np.testing.assert_array_equal(few["posterior"][name], recorded)


def messages_of(caplog, model, **arguments):
    checked = {"compute_convergence_checks": True, "quiet": False}
    with caplog.at_level(logging.WARNING):
        sampled(model, **checked, **arguments)
    return [r.getMessage() for r in caplog.records if "max_clusters" in r.getMessage()]


@pytest.mark.parametrize("cores", [1, 2])
def test_rows_that_were_not_kept_are_reported_once(cores, caplog):
    model = model_of(5.0, max_clusters=2)
    (message,) = messages_of(caplog, model, chains=2, cores=cores)
    assert message.endswith("set max_clusters= higher in DPMixture to record all.")
    assert "draws of x had up to" in message


def test_nothing_is_reported_when_all_rows_are_kept(caplog):
    assert not messages_of(caplog, model_of(5.0, max_clusters=30))


# --- progress -----------------------------------------------------------------------------


def progress_shown(step, stats):
    """What the progress bar of PyMC prints, with a step of two chains."""
    bar = MCMCProgressBarManager(step, chains=2, draws=5, tune=5, progressbar=True)
    console = Console(file=StringIO(), width=200, force_terminal=True)
    progress = bar._backend._progress
    progress.live.console = console
    with bar:
        bar.update(chain_idx=1, is_last=False, draw=7, tuning=False, stats=stats)
        console.print(progress.make_tasks_table(progress.tasks))
    return console.file.getvalue()


def test_progress_shows_the_number_of_clusters():
    model = model_of()
    step, point = begun(model, 4)
    _, stats = step.step(point)
    stats[0]["x_occupied"] = 7654
    shown = progress_shown(step, stats)
    assert "K[x]" in shown
    assert "7654" in shown


def test_progress_of_two_mixtures():
    with two_mixtures():
        step = dps.DPSplitMerge()
    point = two_mixtures().initial_point()
    step.setup_chain(np.random.default_rng(8), 9, 20)
    shown = progress_shown(step, step.step(point)[1])
    assert "K[x]" in shown
    assert "K[y]" in shown


@pytest.mark.parametrize("progressbar", [True, "combined+stats"])
def test_sampling_with_a_progress_bar(progressbar, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with pm.Model(name="inner") as model:
        dps.DPMixture("x", pm.Gamma("alpha", 2, 4), NORMAL, observed=ROWS[:, 0])
    sampled(model, progressbar=progressbar, quiet=False, chains=2, cores=1)
    assert "K[inner::x]" in capsys.readouterr().out


def wide_model(n_features, **arguments):
    """A model of 40 rows with as many features."""
    rows = np.random.default_rng(2).normal(size=(40, n_features))
    with pm.Model() as model:
        component = dps.MvNormal.from_data(rows)
        dps.DPMixture("x", 20.0, component, observed=rows, max_clusters=6, **arguments)
    return model


def test_small_labels_are_kept_unless_the_user_says_no():
    def keeps(n_features, **options):
        with wide_model(n_features):
            return "x_labels" in dps.DPSplitMerge(**options).stats_dtypes_shapes

    assert keeps(8)
    assert not keeps(2)
    assert keeps(2, keep_labels=True)
    assert not keeps(8, keep_labels=False)
    with pm.Model():
        dps.DPMixture("z", 1.0, dps.MvNormal(np.zeros(8), 1.0, 10.0, np.eye(8)), shape=(9, 8))
        labels_are_variables = dps.DPSplitMerge()
    assert "z_labels" not in labels_are_variables.stats_dtypes_shapes


def test_partition_is_known_though_clusters_are_left_out():
    model = wide_model(8)
    idata = sampled(model, draws=10, tune=10)
    counts = idata["posterior"]["x_n_clusters"].to_numpy()
    assert (counts > 6).any()
    labels = dps.sample_labels(idata, model=model).to_numpy()
    assert [len(np.unique(of)) for of in labels[0]] == counts[0].tolist()
