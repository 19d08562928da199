"""Draws made ahead are those made one by one, and what a user sees between them is of each draw."""

import cloudpickle
import numpy as np
import pymc as pm
import pytest
from pymc.step_methods.state import equal_dataclass_values

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.step import draws_ahead

ROWS = np.random.default_rng(5).normal(size=(30, 2)) + np.repeat([[-4.0], [0.0], [4.0]], 10, axis=0)
COUNTS = np.random.default_rng(6).poisson(np.repeat([[2.0], [9.0]], 15, axis=0), size=(30, 2))
SHORT = {
    "draws": 40, "tune": 15, "chains": 1, "cores": 1, "random_seed": 3, "progressbar": False,
    "quiet": True, "compute_convergence_checks": False,
}  # fmt: skip


def normal():
    return dps.DiagNormal.from_data(ROWS)


def model_of(alpha=1.0, component=None, rows=ROWS, **arguments):
    """A model of one mixture, with its alpha fixed or (None) sampled."""
    with pm.Model() as model:
        concentration = pm.Gamma("alpha", 2, 4) if alpha is None else alpha
        dps.DPMixture("x", concentration, component or normal(), observed=rows, **arguments)
    return model


def step_of(model, **options):
    with model:
        return dps.DPSplitMerge(**options)


def begun(model, n_steps, **options):
    """A step with a chain begun, and the point it reached."""
    step = step_of(model, **options)
    step.setup_chain(np.random.default_rng(8), 9, 200)
    return step, advanced(step, model.initial_point(), n_steps)


def advanced(step, point, n_steps):
    for _ in range(n_steps):
        point, _ = step.step(point)
    return point


def singly(make, *arguments, **options):
    """Call `make` while draws are made one by one, with the schedules of those made ahead."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(draws_ahead, "draw_ahead", lambda *_: None)
        return make(*arguments, **options)


def assert_same_point(one, other):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])
        assert np.asarray(one[name]).dtype == np.asarray(other[name]).dtype


def sampled(model, **options):
    step = step_of(model, keep_labels=True, **options)
    with model:
        return pm.sample(step=step, **SHORT)


def finite():
    with pm.Model() as model:
        dps.FiniteMixture("x", 1.0, normal(), n_components=4, observed=ROWS)
    return model


def regression():
    """Its constants are sums over columns, which a matrix product would round by rows."""
    covariates = ROWS + np.array([3.0, 5.0])
    component = dps.LinearRegression.from_data(ROWS[:, 0], covariates)
    return model_of(component=component, rows=ROWS[:, 0])


def of_two_kinds():
    component = dps.Product(places=dps.MvNormal.from_data(ROWS), visits=dps.Poisson(2.0, 0.5))
    return model_of(None, component, np.hstack([ROWS, COUNTS]))


MODELS = {
    "finite": finite,
    "alpha": lambda: model_of(None),
    "counts": lambda: model_of(component=dps.Poisson(2.0, 0.5), rows=COUNTS),
    "groups": lambda: model_of(None, groups=np.repeat(np.arange(10), 3)),
    "known labels": lambda: model_of(None, labels=np.repeat([0, -1, 1], 10)),
    "fixed discount": lambda: model_of(None, discount=0.2),
    "few rows recorded": lambda: model_of(20.0, max_clusters=3),
}
COMPILED_LONG = {
    "known covariance": lambda: model_of(component=dps.MvNormalKnownCov.from_data(ROWS)),
    "regression": regression,
    "columns of two kinds": of_two_kinds,
}


@pytest.fixture
def sizes(monkeypatch):
    """Numbers of draws of the calls that make several."""
    made, make = [], sampler.advance_several
    monkeypatch.setattr(
        sampler, "advance_several", lambda *given: made.append(given[5]) or make(*given)
    )
    return made


@pytest.mark.parametrize(
    ("model", "kernel"),
    [
        *((name, "auto") for name in MODELS),
        *(pytest.param(name, "auto", marks=pytest.mark.slow) for name in COMPILED_LONG),
        ("alpha", "exact"),
        ("few rows recorded", "exact"),
    ],
)
def test_draws_are_those_made_one_by_one(model, kernel, sizes):
    make = {**MODELS, **COMPILED_LONG}[model]
    ahead = sampled(make(), kernel=kernel)
    assert sum(sizes) >= SHORT["draws"]
    sizes.clear()
    single = singly(sampled, make(), kernel=kernel)
    assert not sizes
    for group in "posterior", "sample_stats":
        assert set(ahead[group].data_vars) == set(single[group].data_vars)
        for name, values in ahead[group].data_vars.items():
            if name != "x_seconds":
                np.testing.assert_array_equal(values, single[group][name], err_msg=name)
                assert values.dtype == single[group][name].dtype


def test_several_draws_take_one_call(sizes):
    with model_of(None):
        idata = pm.sample(**{**SHORT, "draws": 130})
    # The first three draws are those of compilation.
    assert sizes[-3:] == [50, 50, 30]
    assert (idata["sample_stats"]["x_seconds"] > 0).all()


def with_hyperparameter():
    with pm.Model() as model:
        mean = pm.Normal("m")
        dps.DPMixture("x", 1.0, dps.Normal(mean, 0.1, 2.0, 1.0), observed=ROWS[:, 0])
    return model


def with_another_variable():
    with model_of() as model:
        pm.Normal("z")
    return model


def with_number_of_components():
    with pm.Model() as model:
        dps.MFMixture("x", 1.0, normal(), n_components=pm.Geometric.dist(0.3), observed=ROWS)
    return model


def with_discount():
    with pm.Model() as model:
        dps.DPMixture("x", 1.0, normal(), discount=pm.Beta("d", 1.0, 1.0), observed=ROWS)
    return model


def with_missing_entry():
    return model_of(rows=np.where(np.arange(60).reshape(30, 2) == 7, np.nan, ROWS))


def latent():
    with pm.Model() as model:
        z = dps.DPMixture("x", 1.0, dps.Normal(0.0, 0.1, 2.0, 1.0), shape=30)
        pm.Normal("y", z, 1.0, observed=ROWS[:, 0])
    return model


def with_alpha_of_two():
    """Alpha depends on two variables, which NUTS moves."""
    with pm.Model() as model:
        alpha = pm.Gamma("a", 2, 4) + pm.Gamma("b", 2, 4)
        dps.DPMixture("x", alpha, normal(), observed=ROWS)
    return model


@pytest.mark.parametrize(
    "model",
    [
        with_hyperparameter, with_another_variable, with_number_of_components, with_discount,
        with_missing_entry, latent, with_alpha_of_two,
    ],
)  # fmt: skip
def test_what_other_steps_or_python_draw_is_not_made_ahead(model):
    assert step_of(model())._compared is None
    assert step_of(model_of())._compared == ()
    assert step_of(model_of(None))._compared == ("alpha_log__",)


@pytest.mark.parametrize("kernel", ["exact", "collapsed-split-merge"])
@pytest.mark.parametrize("n_given", [1, 7, 50, 53])
def test_state_is_that_after_the_draws_that_were_given(kernel, n_given):
    """Read or pickled in the middle of draws ahead, at their end, and after more of them."""
    model = model_of(None)
    step, point = begun(model, 9 + n_given, kernel=kernel)
    single, expected = singly(begun, model, 9 + n_given, kernel=kernel)
    assert_same_point(point, expected)
    np.testing.assert_array_equal(step.labels, single.labels)
    pickled = cloudpickle.loads(cloudpickle.dumps(step))
    assert equal_dataclass_values(step.sampling_state, single.sampling_state)
    other = step_of(model, kernel=kernel)
    other.sampling_state = step.sampling_state
    expected = singly(advanced, single, point, 5)
    for again in step, pickled, other:
        assert_same_point(advanced(again, point, 5), expected)
        assert equal_dataclass_values(again.sampling_state, single.sampling_state)


def test_labels_of_a_draw_are_seen_between_draws():
    model, seen = model_of(None), []
    step = step_of(model, keep_labels=True)
    with model:
        idata = pm.sample(
            step=step, callback=lambda trace, draw: seen.append(step.labels.copy()), **SHORT
        )
    kept = idata["sample_stats"]["x_labels"][0]
    np.testing.assert_array_equal(seen[-len(kept) :], kept)
    assert len(np.unique(seen[-len(kept) :], axis=0)) > 10


def changed(point):
    return {**point, "alpha_log__": np.asarray(2.5)}


def test_a_value_changed_by_another_step_counts():
    model = model_of(None)
    step, point = begun(model, 12)
    single, _ = singly(begun, model, 12)
    assert_same_point(
        advanced(step, changed(point), 3), singly(advanced, single, changed(point), 3)
    )


def test_control_a_changed_value_that_is_not_looked_at(monkeypatch):
    monkeypatch.setattr(draws_ahead.DrawsAhead, "goes_on_from", lambda self, point: True)
    model = model_of(None)
    step, point = begun(model, 12)
    single, _ = singly(begun, model, 12)
    ours = advanced(step, changed(point), 3)["alpha_log__"]
    assert ours != singly(advanced, single, changed(point), 3)["alpha_log__"]


def test_a_point_changed_in_place_counts():
    model = model_of(None)
    step, point = begun(model, 12)
    single, _ = singly(begun, model, 12)
    point["alpha_log__"][...] = 2.5
    assert_same_point(advanced(step, point, 3), singly(advanced, single, changed(point), 3))


HONEST = draws_ahead.Beginning.after


def with_the_later_generator(self, n_draws, rng):
    after = rng.bit_generator.state
    state = HONEST(self, n_draws, rng)
    rng.bit_generator.state = after
    return state


def after_one_draw_more(self, n_draws, rng):
    return HONEST(self, n_draws + 1, rng)


@pytest.mark.parametrize("broken", [with_the_later_generator, after_one_draw_more])
def test_control_another_state_than_that_after_the_draws_given(monkeypatch, broken):
    monkeypatch.setattr(draws_ahead.Beginning, "after", broken)
    model = model_of(None)
    step, _ = begun(model, 12)
    single, _ = singly(begun, model, 12)
    assert not equal_dataclass_values(step.sampling_state, single.sampling_state)


def test_a_step_can_be_used_again_after_a_callback_failed():
    def fail(trace, draw):
        if not draw.tuning and draw.draw_idx == 20:
            raise ValueError("not today")

    model = model_of(None)
    step = step_of(model)
    with model:
        with pytest.raises(ValueError, match="not today"):
            pm.sample(step=step, callback=fail, **SHORT)
        again = pm.sample(step=step, **SHORT)
        fresh = pm.sample(step=step_of(model), **SHORT)
    np.testing.assert_array_equal(again["posterior"]["alpha"], fresh["posterior"]["alpha"])


def test_reading_the_state_does_not_make_draws_twice_for_ever(sizes):
    """As a checkpoint does every so many draws."""
    step, point = begun(model_of(None), 9)
    for _ in range(5):
        point = advanced(step, point, 7)
        assert step.sampling_state.n_done > 9
    # Six draws of tuning are given before the first look; from the third on none is made twice.
    assert sizes == [2, 2, 2, 50, 7, 16, 7, 7, 7, 7]


def test_after_the_last_look_more_draws_are_made_at_a_time(sizes):
    step, point = begun(model_of(None), 12)
    assert step.sampling_state.n_done == 12
    sizes.clear()
    advanced(step, point, 150)
    assert sizes == [12, 12, 24, 48, 50, 46]


def test_wide_parameters_are_made_few_at_a_time(sizes):
    rows = np.random.default_rng(2).integers(0, 3000, size=(20, 1))
    step, _ = begun(model_of(component=dps.Categorical(np.full(3000, 0.1)), rows=rows), 20)
    n_numbers = 3000 * step.mixture.max_clusters
    assert 2 <= sizes[-1] <= draws_ahead._MOST_BYTES / (16.0 * n_numbers)
