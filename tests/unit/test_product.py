"""Products: their operations are those of their parts, and tables are shared out as documented."""

import datetime as dt
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import pymc_dpsplit as dps
from pymc_dpsplit.components.margins import as_new_rows
from pymc_dpsplit.data.fixed_rows import read_only
from pymc_dpsplit.moves.cost import is_sparse, work_of
from pymc_dpsplit.moves.patterns import log_density_of_present
from pymc_dpsplit.posterior.trace.draws import MixtureDraw
from pymc_dpsplit.posterior.trace.log_density import _log_margin
from pymc_dpsplit.pymc_component import nonconjugate_product
from pymc_dpsplit.variables.log_density import log_mixture_density
from tests.reference import discrete, families, product, regression
from tests.reference.example import as_codes, as_counts
from tests.support.operations import (
    cache_of,
    densities,
    draws_of,
    enter,
    leave,
    marginal_of,
    plug_in,
    predictives,
    stats_of,
)

PLAIN = pytensor.compile.Mode("py", optimizer=None)
NORMAL = {"mu0": 0.2, "kappa0": 0.3, "a0": 2.0, "b0": 0.6}
WIDE = 9  # features of a part: more than a vector has lanes


def wide_mv_normal() -> dict[str, Any]:
    return {"mu0": np.linspace(-0.3, 0.5, WIDE), "kappa0": 0.4, "nu0": WIDE + 2.5,
            "psi0": np.eye(WIDE) + 0.2}  # fmt: skip


def laplace() -> Any:
    return dps.Component(pm.Laplace, mu=pm.Normal.dist(), b=1.0)


def parts_of(kind: str) -> dict[str, tuple[int, Any, Any]]:
    """Number of columns, family and twin of each part."""
    a, b = np.array([1.3, 0.9]), np.array([0.5, 0.4])
    beta = np.array([[0.6, 0.9, 0.5]])
    number = 1, dps.Normal(**NORMAL), families.Normal(**NORMAL)
    counts = 2, dps.Poisson(a, b), discrete.Poisson(a, b)
    codes = 1, dps.Categorical(beta), discrete.Categorical(beta)
    wide = WIDE, dps.MvNormal(**wide_mv_normal()), families.MvNormal(**wide_mv_normal())
    a0 = np.array([0.6, 0.9, 0.5])
    words = 3, dps.Multinomial(a0), discrete.Multinomial(a0)
    prior = regression.EXAMPLES["LinearRegression"].hyperparameters(3)
    response = 3, dps.LinearRegression(**prior), regression.LinearRegression(**prior)
    return {
        "three kinds": {"h": number, "v": counts, "c": codes},
        "wide in the middle": {"v": counts, "w": wide, "h": number},
        "one part": {"v": counts},
        "words alone": {"t": words},
        "words first": {"t": words, "h": number, "v": counts},
        "words in the middle": {"h": number, "t": words, "v": counts, "c": codes},
        "words last": {"v": counts, "h": number, "t": words},
        "words twice": {"t": words, "h": number, "u": words},
        "a response": {"h": number, "r": response, "t": words},
    }[kind]


KINDS = (
    "three kinds", "wide in the middle", "one part", "words alone", "words first",
    "words in the middle", "words last", "words twice", "a response",
)  # fmt: skip
over_kinds = pytest.mark.parametrize("kind", KINDS)


class Case:
    """A product with rows, as declared, as kernels see it, and its twin."""

    def __init__(self, kind: str, rng: np.random.Generator, dtype: type = np.float64) -> None:
        parts = parts_of(kind)
        columns = []
        for name, (width, _, _) in parts.items():
            real = rng.standard_normal((70, width)).astype(np.float32).astype(np.float64)
            made = {"v": as_counts, "t": as_counts, "u": as_counts, "c": as_codes}
            columns.append(made.get(name, np.asarray)(real))
        self.rows = np.hstack(columns)
        families_ = {name: family for name, (_, family, _) in parts.items()}
        self.component = dps.Product(**families_).validate_rows(self.rows)
        self.data = self.component.arranged(read_only(np.ascontiguousarray(self.rows, dtype)))
        self.values = self.component.check(self.component.hyperparameters, self.rows.shape[1])
        self.shift = self.rows.mean(0)
        self.prior = self.component.prior(self.values, self.shift)
        self.twin = product.Product({name: (w, twin) for name, (w, _, twin) in parts.items()})


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [*((kind, np.float64) for kind in KINDS), *((kind, np.float32) for kind in KINDS[1::3])],
)
def test_operations_match_the_twin(kind: str, dtype: type, rng: np.random.Generator) -> None:
    case = Case(kind, rng, dtype)
    few, rows = np.array([3, 1, 8, 5]), case.rows
    marginal = marginal_of(case.prior, stats_of(case.prior, case.data, few))
    assert marginal == pytest.approx(case.twin.log_marginal(rows[few]), rel=1e-9)
    cache = cache_of(case.prior, case.data, few)
    twins = [case.twin.log_predictive(row, rows[few]) for row in rows]
    assert_allclose(predictives(case.prior, case.data, cache), twins, rtol=1e-9, atol=1e-9)
    enter(case.prior, case.data, 20, cache)
    assert leave(case.prior, case.data, 3, cache)
    moved = np.array([1, 8, 5, 20])
    twins = [case.twin.log_predictive(row, rows[moved]) for row in rows]
    assert_allclose(predictives(case.prior, case.data, cache), twins, rtol=1e-9, atol=1e-9)


@over_kinds
def test_densities_match_the_twin(kind: str, rng: np.random.Generator) -> None:
    case = Case(kind, rng)
    statistics = stats_of(case.prior, case.data, np.arange(4))
    drawn = draws_of(case.prior, statistics, 3, rng)
    params = np.vstack([drawn, plug_in(case.prior, statistics)])
    named = case.component.unpack(params, case.shift)
    assert list(named) == list(case.component.parameters)
    assert_allclose(case.component.pack(named, case.shift), params, rtol=1e-9, atol=1e-12)
    for k in range(4):
        one = {key: value[k] for key, value in named.items()}
        ours = densities(case.prior, case.data, params[k])
        assert_allclose(ours, case.twin.log_density(case.rows, one), rtol=1e-8, atol=1e-8)


@over_kinds
def test_parameters_are_drawn_part_by_part(kind: str, rng: np.random.Generator) -> None:
    """From one stream, so that the draws are those of the parts to the last bit."""
    case = Case(kind, rng)
    ours = draws_of(
        case.prior, stats_of(case.prior, case.data, np.arange(9)), 1, np.random.default_rng(5)
    )
    rng, start, alone = np.random.default_rng(5), 0, []
    for name, (width, family, _) in parts_of(kind).items():
        at = np.s_[:, start : start + width]
        family = family.validate_rows(case.rows[at])
        data = family.arranged(np.ascontiguousarray(case.rows[at]))
        values = family.check(family.hyperparameters, width)
        prior = case.component.families[name].prior(values, case.shift[at[1]])
        alone.append(draws_of(prior, stats_of(prior, data, np.arange(9)), 1, rng))
        start += width
    assert_array_equal(ours, np.hstack(alone))


@over_kinds
def test_graphs_match_the_twin(kind: str, rng: np.random.Generator) -> None:
    case = Case(kind, rng)
    parameters = case.component.draw_base(rng, case.values, 3)
    labels = rng.integers(0, 3, len(case.rows))
    graph_parameters = {
        k: pt.as_tensor(v) for k, v in case.component.graph_parameters(parameters).items()
    }
    values = {key: pt.as_tensor(value) for key, value in case.values.items()}
    at = {key: value[labels] for key, value in graph_parameters.items()}
    graphs = [case.component.log_base(graph_parameters, values, pt)]
    graphs.append(case.component.log_density(pt.as_tensor(case.rows), at, pt))
    log_base, log_density = pytensor.function([], graphs, mode=PLAIN)()
    each = [{key: value[k] for key, value in parameters.items()} for k in range(3)]
    assert_allclose(log_base, [case.twin.log_prior(one) for one in each], rtol=1e-8)
    pairs = zip(case.rows, labels, strict=True)
    twins = [case.twin.log_density(row[None], each[k])[0] for row, k in pairs]
    assert_allclose(log_density, twins, rtol=1e-8, atol=1e-8)


@over_kinds
def test_some_columns_alone_match_the_twin(kind: str, rng: np.random.Generator) -> None:
    """Also where parts are left out, whatever is left."""
    case = Case(kind, rng)
    parameters = case.component.draw_base(rng, case.values, 2)
    n_features, parts = case.rows.shape[1], case.component.columns_in_data(case.rows.shape[1])
    whole = [set(at) for name, at in parts.items() if name in "rtu"]
    of_one = [at for at in parts.values() if len(parts) > 1]
    some = [np.arange(n_features - 1), np.arange(1, n_features), np.array([n_features - 1])]
    for chosen in (*some, *of_one, *(np.setdiff1d(np.arange(n_features), at) for at in of_one)):
        # Words, and a response with its covariates, stay together.
        if not len(chosen) or any(0 < len(of & set(chosen)) < len(of) for of in whole):
            continue
        twin, rows = case.twin.restricted(chosen), case.rows[:, chosen]
        taken = case.component.restrict_parameters(parameters, chosen)
        restricted = case.component.restrict(case.values, chosen)
        few = case.component.of_features(chosen)
        ours = log_mixture_density(
            few, np.ascontiguousarray(rows), np.array([0.5, 0.2]), 0.3, taken, restricted
        )
        each = [{key: value[k] for key, value in taken.items()} for k in range(2)]
        terms = [np.log(0.3) + np.array([twin.log_predictive(x, rows[:0]) for x in rows])]
        for weight, one in zip((0.5, 0.2), each, strict=True):
            terms.append(np.log(weight) + twin.log_density(rows, one))
        assert_allclose(ours, np.logaddexp.reduce(terms, axis=0), rtol=1e-8, atol=1e-8)


def test_missing_entries_are_drawn_part_by_part(rng: np.random.Generator) -> None:
    case = Case("three kinds", rng)
    parameters = case.component.draw_base(rng, case.values, 2)
    is_missing = rng.random(case.rows.shape) < 0.4
    rows = np.where(is_missing, np.nan, case.rows)
    drawn = case.component.draw_missing(rng, rows, is_missing, parameters, np.zeros(70, int))
    assert_array_equal(drawn[~is_missing], case.rows[~is_missing])
    case.component.validate_rows(drawn)
    assert case.component.support_point(np.array([0.4, 1.4, 2.6, 0.6])).tolist() == [0.4, 1, 3, 1]


@pytest.mark.parametrize("kind", ["words in the middle", "a response"])
def test_entries_of_other_parts_may_be_missing(kind: str, rng: np.random.Generator) -> None:
    """Of a part whose columns have no laws of their own all are kept, or none."""
    case = Case(kind, rng)
    columns = case.component.columns_in_data(case.rows.shape[1])
    (number,) = columns["h"]
    parameters = case.component.draw_base(rng, case.values, 2)
    is_missing = np.zeros(case.rows.shape, bool)
    is_missing[::2, number] = True
    rows = np.where(is_missing, np.nan, case.rows)
    drawn = case.component.draw_missing(rng, rows, is_missing, parameters, np.zeros(70, int))
    assert_array_equal(drawn[~is_missing], case.rows[~is_missing])
    assert np.isfinite(drawn).all()
    found = log_density_of_present(
        case.component, rows, is_missing, parameters, case.values, np.ones(70, int)
    )
    one = {key: value[1] for key, value in parameters.items()}
    others = np.setdiff1d(np.arange(case.rows.shape[1]), number)
    few = case.twin.restricted(others).log_density(case.rows[::2][:, others], one)
    assert_allclose(found[::2], few, rtol=1e-8, atol=1e-8)
    assert_allclose(found[1::2], case.twin.log_density(case.rows[1::2], one), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("kind", "part"), [("words in the middle", "t"), ("a response", "r")])
def test_new_rows_may_lack_a_whole_part(kind: str, part: str, rng: np.random.Generator) -> None:
    case = Case(kind, rng)
    at = case.component.columns_in_data(case.rows.shape[1])[part]
    rows = case.rows[:3].copy()
    rows[1, at] = np.nan
    with pytest.raises(ValueError, match=f"part '{part}': observed has 3 missing entries"):
        case.component.validate_rows(rows)
    assert_array_equal(as_new_rows(case.component, rows), rows)
    rows[2, at[0]] = np.nan
    with pytest.raises(ValueError, match=f"part '{part}': observed has 1 missing entry, which"):
        as_new_rows(case.component, rows)


def test_covariates_without_their_response_tell_nothing(rng: np.random.Generator) -> None:
    case = Case("a response", rng)
    at = case.component.columns_in_data(case.rows.shape[1])["r"]
    rows = case.rows[:3].copy()
    rows[0, at[-1]], rows[1, at[1:]] = np.nan, np.nan
    expected = rows.copy()
    expected[np.ix_([0, 1], at)] = np.nan
    assert_array_equal(as_new_rows(case.component, rows), expected)
    assert np.isfinite(rows[0, at[0]])


def test_a_response_names_its_coefficients() -> None:
    frame = pd.DataFrame({"y": [0.1, 0.2], "age_law": [1.0, 2.0], "age": [1.0, 2.0]})
    prior = regression.EXAMPLES["LinearRegression"].hyperparameters(2)
    parts = {"outcome": dps.LinearRegression(**prior), "age": dps.Normal(**NORMAL)}
    product_ = dps.Product({"outcome": ["age", "y"], "age": "age_law"}, **parts)
    read, rows = product_.read_table(frame)
    read = read.validate_rows(rows)
    assert read.holds_covariates
    assert read.own_dims("outcome_beta") == {"outcome_coefficient": 2}
    coords = read.own_coords("outcome_beta", list(frame))
    assert coords == {"outcome_coefficient": ["intercept", "age"]}
    assert_array_equal(read.arranged(rows), [[1.0, 0.1, 1.0], [2.0, 0.2, 2.0]])


def test_the_cost_of_words_is_that_of_their_entries(rng: np.random.Generator) -> None:
    case = Case("words in the middle", rng)
    parts = Case("words alone", rng).data, np.empty((70, 1)), np.empty((70, 3))
    data = case.data
    assert is_sparse(data)
    assert data.shape == (70, 7)
    entries = [np.count_nonzero(case.rows[:, 1:4]), len(parts[0].indices)]
    expected = work_of(parts[0]) * entries[0] / entries[1] + sum(map(work_of, parts[1:]))
    assert work_of(data) == pytest.approx(expected)


# --- tables ---------------------------------------------------------------------------------


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "visits": [0, 3, 1, 2],
            "height": [1.5, np.nan, 2.5, 0.5],
            "colour": ["red", "blue", None, "red"],
            "size": pd.Categorical(["s", "l", "s", "m"], categories=["s", "m", "l"]),
        }
    )


ENCODED = {
    "visits": [0, 3, 1, 2],
    "height": [1.5, np.nan, 2.5, 0.5],
    "colour": [1, 0, np.nan, 1],  # in alphabetical order
    "size": [0, 2, 0, 1],  # in its own
}


def test_parts_take_the_columns_of_their_names(frame: pd.DataFrame) -> None:
    parts = {
        "size": dps.Categorical(1.0),
        "height": dps.Normal(**NORMAL),
        "colour": dps.Categorical(1.0),
        "visits": dps.Poisson(1.0, 1.0),
    }
    for table in (frame, frame.to_dict("series"), frame[["colour", "visits", "height", "size"]]):
        arranged, rows = dps.Product(**parts).read_table(table)
        # In the order of the table, whatever that of the parts.
        assert_array_equal(rows, np.transpose([ENCODED[name] for name in table]))
        assert arranged.categories["colour"] == ["blue", "red"]
        # The same codes in later tables, whatever these hold.
        _, later = arranged.read_table({**frame[1:2].to_dict("series"), "colour": ["red"]})
        assert later[0].tolist()[list(table).index("colour")] == 1
    with pytest.raises(ValueError, match="observed has 'green' in column 'colour'"):
        arranged.read_table(frame.assign(colour="green"))


def test_columns_may_be_named_or_numbered(frame: pd.DataFrame) -> None:
    named = dps.Product(
        {"codes": ["colour", "size"], "numbers": "height", "counts": ["visits"]},
        counts=dps.Poisson(1.0, 1.0),
        codes=dps.Categorical(1.0),
        numbers=dps.Normal(**NORMAL),
    )
    _, rows = named.read_table(frame)
    assert_array_equal(rows, np.transpose([ENCODED[name] for name in frame]))
    numbered = dps.Product(
        {"a": [2, 0], "b": 1}, a=dps.DiagNormal(0.0, 1.0, 2.0, 1.0), b=dps.Bernoulli(1.0, 1.0)
    )
    numbers = np.array([[1.0, 0.0, 5.0], [2.0, 1.0, 6.0]])
    read, rows = numbered.read_table(numbers)
    assert_array_equal(rows, numbers)
    for declared in (read, numbered):  # as arrays, and as pm.Data, which are not read as tables
        arranged = declared.validate_rows(rows).arranged(rows)
        assert_array_equal(arranged, [[5.0, 1.0, 0.0], [6.0, 2.0, 1.0]])


def test_columns_are_taken_in_order_by_width() -> None:
    mixed = dps.Product(
        a=dps.Normal(**NORMAL), b=dps.Poisson(1.0, 1.0), c=dps.DiagNormal([0.0, 1.0], 1.0, 2.0, 1.0)
    ).for_n_features(5)
    assert mixed.shape_of("b_rate", 0, 5) == (2,)
    assert mixed.shape_of("c_mu", 0, 5) == (2,)
    assert mixed.own_dims("b_rate") == {"b_feature": 2}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (dps.Product, "parts are missing"),
        (lambda: dps.Product(a=3), "a=3 is not a component"),
        (lambda: dps.Product(a=dps.Product(b=dps.Normal(**NORMAL))), "a is itself a product"),
        (
            lambda: dps.Product(a=dps.LinearRegression([0.0, 1.0], mu0=0, lambda0=1, a0=1, b0=1)),
            "a is LinearRegression with covariates of its own; leave them out",
        ),
        (
            lambda: dps.Product(a=dps.Multinomial(1.0)).validate_rows(np.array([[np.nan, 1.0]])),
            "part 'a': observed has 1 missing entry, which Multinomial does not impute; drop",
        ),
        (
            lambda: dps.Product(
                a=dps.Component(
                    lambda b, x: pm.Normal.dist(b * x), b=pm.Normal.dist(), covariates={"x": [0.0]}
                )
            ),
            "a=Component.* has covariates, which a part of a product cannot have; leave",
        ),
        (
            lambda: dps.Product(a=laplace(), b=dps.Normal(**NORMAL)).validate_rows(
                np.array([[np.nan, 0.0]])
            ),
            "part 'a': observed has no row that is not missing",
        ),
        (lambda: dps.Product({"b": 0}, a=dps.Normal(**NORMAL)), "does not name the columns"),
        (lambda: dps.Product({"a": []}, a=dps.Poisson(1.0, 1.0)), "gives a part no column"),
        (
            lambda: dps.Product(a=dps.Poisson(1.0, 1.0), b=dps.Poisson(1.0, 1.0)).for_n_features(3),
            "columns: nothing says which are those of 'a' and which of 'b'",
        ),
        (
            lambda: dps.Product(a=dps.Normal(**NORMAL)).for_n_features(2),
            "observed has 2 columns, but",
        ),
        (
            lambda: dps.Product(a=dps.Normal(0.0, -1.0, 1.0, 1.0)).check(
                {"a_mu0": 0.0, "a_kappa0": -1.0, "a_a0": 1.0, "a_b0": 1.0}, 1
            ),
            "part 'a': kappa0=-1.0 must be positive",
        ),
        (
            lambda: dps.Product(a=dps.Poisson(1.0, 1.0)).validate_rows(np.array([[0.5]])),
            "part 'a': observed has 0.5 in column 0",
        ),
        (
            lambda: dps.Product({"a": "x"}, a=dps.Poisson(1.0, 1.0)).read_table({"y": [1]}),
            "columns names 'x', which observed does not have",
        ),
        (
            lambda: dps.Product(a=dps.Poisson(1.0, 1.0)).read_table({"a": [1], "id": [7]}),
            "observed has a column 'id' that no part",
        ),
        (
            lambda: dps.Product(a=dps.Poisson(1.0, 1.0)).read_table({"a": ["x"]}),
            "observed has a column 'a' of <U1, but its part 'a' is Poisson",
        ),
        (
            lambda: dps.Product(a=dps.Poisson(1.0, 1.0), b=dps.Normal(**NORMAL)).read_table(
                {"a": [1], "b": [1.0, 2.0]}
            ),
            "observed has columns of shapes",
        ),
        (lambda: dps.Product({"a": None}, a=dps.Normal(**NORMAL)), "'a': None} gives a part no"),
        (lambda: dps.Product({"a": [[0], [1]]}, a=dps.Poisson(1.0, 1.0)), "no column or a column"),
        (lambda: dps.Product(a=pd.Series([1, 2])), "a=0 1 1 2 dtype: int64 is not a component"),
        (lambda: declare([1.0, 2.0]), r"observed has shape \(2,\), but this component takes"),
        (lambda: declare(3.0), r"observed has shape \(\), but this component takes"),
        (lambda: declare([[1.0, 2.0], [3.0]]), "observed is ragged: .*; give rows of one length"),
        (lambda: declare({1.0}), "observed is a set, whose entries have no order"),
        (lambda: declare({0: [[1], [2, 3]], 1: [0.0, 0.0]}), "column 0 that is no array"),
        (lambda: declare({0: [1j, 0.0], 1: [0.0, 0.0]}), "column 0 of complex128"),
        (lambda: declare({0: [1.0, 1.0], 1: ["u", 3]}), "values of type int, str in column .*1"),
        (lambda: declare({0: [1.0, 1.0], 1: [{}, {}]}), "values of type dict in column .*1"),
        (
            lambda: dps.Product(a=dps.DiagNormal([[1], [1, 2]], 1, 2, 1)).for_n_features(1),
            "part 'a': mu0=.* is ragged",
        ),
        (
            lambda: dps.Product(a=dps.Categorical([[1.0], [[1], [1, 2]]])).for_n_features(1),
            "part 'a': a0=.* is ragged",
        ),
        (
            lambda: dps.Product(a=dps.Categorical([])).for_n_features(1),
            "observed has 1 columns, but the parts",
        ),
    ],
)
def test_faults_are_named(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def declare(observed: Any) -> Any:
    """Read a table in which column 0 is a number, column 1 a category."""
    parts = {"a": dps.Normal(**NORMAL), "b": dps.Categorical(1.0)}
    return dps.Product({"a": 0, "b": np.int64(1)}, **parts).read_table(observed)


def test_masked_entries_are_missing() -> None:
    masks = [[True, False], [False, True]]
    for dtype in (float, int, object):
        whole = np.ma.masked_array(np.array([[1, 0], [2, 1]], dtype), masks)
        for table in (whole, {0: whole[:, 0], 1: whole[:, 1]}):
            assert_array_equal(declare(table)[1], [[np.nan, 0.0], [2.0, np.nan]])


@pytest.mark.parametrize("columns", [None, {"a": [0, 1], "b": 2}])
def test_a_hyperparameter_of_a_part_may_be_a_variable(columns: Any) -> None:
    with pm.Model() as model:
        parts = {"a": dps.DiagNormal(pm.Normal("m", shape=2), 0.1, 2.0, 1.0),
                 "b": dps.Categorical(pm.HalfNormal("w", shape=(1, 3)))}  # fmt: skip
        rows = np.array([[0.1, 0.2, 0.0], [0.3, 0.4, 2.0]])
        dps.DPMixture("x", 1.0, dps.Product(columns, **parts), observed=rows)
    assert np.isfinite(model.compile_logp()(model.initial_point()))


# --- the order of columns --------------------------------------------------------------------

# Columns of the parts h, v (two columns) and c of the case "three kinds".
AT = {"h": [2], "v": [3, 0], "c": [1]}
ORDER = np.array([2, 3, 0, 1])


class Permuted(Case):
    """The case "three kinds" with its columns in another order, and as it is."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__("three kinds", rng)
        families_ = {name: family for name, (_, family, _) in parts_of("three kinds").items()}
        self.outward = np.empty_like(self.rows)
        self.outward[:, ORDER] = self.rows
        self.permuted = dps.Product(AT, **families_).validate_rows(self.outward)


def test_permuted_columns_change_nothing(rng: np.random.Generator) -> None:
    case = Permuted(rng)
    shift = case.outward.mean(0)
    assert_array_equal(case.permuted.arranged(case.outward), case.data)
    ours, theirs = case.permuted.prior(case.values, shift), case.prior
    assert_array_equal(ours.shift, theirs.shift)
    params = draws_of(ours, stats_of(ours, case.data, np.arange(9)), 3, rng)
    named = case.permuted.unpack(params, shift)
    for key, value in case.component.unpack(params, case.shift).items():
        assert_array_equal(named[key], value)
    assert_allclose(case.permuted.pack(named, shift), params)
    labels = np.zeros(70, int)
    graph_parameters = case.permuted.graph_parameters(named)
    at = {key: pt.as_tensor(value[labels]) for key, value in graph_parameters.items()}
    both = [case.permuted.log_density(pt.as_tensor(case.outward), at, pt)]
    both.append(case.component.log_density(pt.as_tensor(case.rows), at, pt))
    assert_array_equal(*pytensor.function([], both, mode=PLAIN)())
    means = np.array([0.6, 2.6, 0.4, 1.4])
    assert case.permuted.support_point(means).tolist() == [1.0, 3.0, 0.4, 1.0]


def test_permuted_columns_change_no_random_number(rng: np.random.Generator) -> None:
    case = Permuted(rng)
    parameters = case.component.draw_base(rng, case.values, 2)
    labels = rng.integers(0, 2, 70)
    drawn = [
        component.draw_rows(np.random.default_rng(1), parameters, labels)
        for component in (case.component, case.permuted)
    ]
    assert_array_equal(drawn[1][:, ORDER], drawn[0])
    is_missing = rng.random(case.rows.shape) < 0.4
    outward = np.empty_like(is_missing)
    outward[:, ORDER] = is_missing
    known = parameters, labels
    imputed = [
        case.component.draw_missing(np.random.default_rng(2), case.rows, is_missing, *known),
        case.permuted.draw_missing(np.random.default_rng(2), case.outward, outward, *known),
    ]
    assert_array_equal(imputed[1][:, ORDER], imputed[0])


@pytest.mark.parametrize("chosen", [[0], [3], [0, 2], [1, 3], [0, 1, 2], [0, 1, 2, 3]])
def test_some_permuted_columns_are_those_of_their_parts(
    chosen: list[int], rng: np.random.Generator
) -> None:
    case, features = Permuted(rng), np.array(chosen)
    inner = np.flatnonzero(np.isin(ORDER, features))
    parameters = case.component.draw_base(rng, case.values, 2)
    found = []
    for component, rows, some in (
        (case.permuted, case.outward, features), (case.component, case.rows, inner)
    ):  # fmt: skip
        found.append(
            log_mixture_density(
                component.of_features(some),
                np.ascontiguousarray(rows[:, some]),
                np.array([0.5, 0.2]),
                0.3,
                component.restrict_parameters(parameters, some),
                component.restrict(case.values, some),
            )
        )
    assert_allclose(found[0], found[1], rtol=1e-12)


def test_the_density_of_some_columns_has_their_order(rng: np.random.Generator) -> None:
    case = Permuted(rng)
    parameters = case.component.draw_base(rng, case.values, 2)
    weights = np.array([0.5, 0.2])
    drawn = MixtureDraw(weights, 0.3, parameters, 1.0, case.values, case.outward)
    mixture: Any = SimpleNamespace(component=case.permuted)
    for some in ([0], [3], [1, 3], [0, 1, 2]):
        features = np.array(some)
        rows = np.ascontiguousarray(case.outward[:, features])
        inner = np.flatnonzero(np.isin(ORDER, features))
        law = weights, 0.3, case.component.restrict_parameters(parameters, inner)
        expected = log_mixture_density(
            case.component.of_features(inner), np.ascontiguousarray(case.rows[:, inner]), *law,
            case.component.restrict(case.values, inner)
        )  # fmt: skip
        assert_allclose(_log_margin(mixture, drawn, rows, features), expected, rtol=1e-9)


def test_the_order_is_that_of_the_first_table(frame: pd.DataFrame) -> None:
    """Whatever that of later ones, of the frame of `from_data`, and without names."""
    frame = frame.drop(columns="size")  # whose categories an array does not declare
    made = dps.Product.from_data(frame)
    other = frame[["colour", "visits", "height"]]
    read, rows = made.read_table(other)
    assert_array_equal(rows, np.transpose([ENCODED[name] for name in other]))
    suited = read.validate_rows(rows)
    assert_array_equal(suited.read_table(frame)[1], rows)
    assert_array_equal(suited.read_table(other.to_numpy())[1], rows)
    numbers = made.read_table(frame)[1]
    assert_array_equal(made.read_table(frame.to_numpy())[1], numbers)
    # As pm.Data.
    bare = made.validate_rows(numbers)
    assert_array_equal(bare.arranged(numbers)[:, 0], ENCODED["height"])
    assert_array_equal(bare.read_table(other)[1], numbers)


# --- kinds -----------------------------------------------------------------------------------


def test_defaults_follow_the_kinds_of_columns(frame: pd.DataFrame) -> None:
    found = dps.Product.from_data(frame)
    assert found.columns == {
        "numeric": ["height"], "count": ["visits"], "category": ["colour", "size"]
    }  # fmt: skip
    assert found.hyperparameters["count_a0"] == 1.0
    assert list(dps.Product.from_data(np.eye(3)).families) == ["numeric"]


def kind_of(column: Any, **options: Any) -> str:
    (kind,) = dps.Product.from_data({"x": column}, **options).families
    return kind


COUNTS = [0, 3, 1, 2, 2, 7]


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ([0, 1, 1], "binary"),
        ([0.0, 1.0], "binary"),
        ([True, False], "binary"),
        (COUNTS, "count"),
        (np.array(COUNTS, np.float32), "count"),
        ([-1, 3, 1], "numeric"),
        ([0.5, 3.0, 1.0], "numeric"),
        ([3750, 4200, 3400], "numeric"),  # large
        ([0, 90, 0, 0, 0, 0], "overdispersed"),
        (["a", "b"], "category"),
        (pd.Categorical([2007, 2008, 2007]), "category"),
    ],
)
def test_kinds_are_told_from_the_entries(column: Any, kind: str) -> None:
    assert kind_of(column) == kind
    # With an entry missing too, in whatever form.
    assert kind_of(pd.Series(column).shift(1)) == kind
    if kind not in ("category", "numeric"):
        assert kind_of(pd.Series(column).astype("Float64").shift(1)) == kind
        assert kind_of(pd.Series(column).astype("Int64").shift(1)) == kind
        assert kind_of([None, *column]) == kind
    if isinstance(column[0], bool):
        assert kind_of(pd.Series(column, dtype="boolean").shift(1)) == kind


def test_kinds_may_be_given() -> None:
    frame = pd.DataFrame({"year": [2007.0, np.nan, 2009.0], "n": [0, 1, 1]})
    product = dps.Product.from_data(frame, kinds={"year": "category", "n": "count"})
    assert product.columns == {"count": ["n"], "category": ["year"]}
    read, rows = product.read_table(frame)
    assert_array_equal(rows, [[0, 0], [np.nan, 1], [1, 1]])
    assert read.categories == {"year": [2007, 2009]}
    # Positions, for arrays.
    assert kind_of_array(np.array([[1.0, 2.0]] * 3), {1: "count"}) == ["count", "binary"]
    for kinds, message in (
        ({"month": "count"}, "kinds names 'month', which observed does not have; give a dict"),
        ({"n": "integer"}, "kinds gives 'n' the kind 'integer'; give a dict of columns to"),
        ("count", "kinds='count' is no dict; give a dict"),
        ({"year": "binary"}, "part 'binary': observed has 2007 in column 0"),
    ):
        with pytest.raises(ValueError, match=message):
            dps.Product.from_data(frame, kinds=kinds)


def kind_of_array(rows: np.ndarray, kinds: Any) -> list[str]:
    return list(dps.Product.from_data(rows, kinds=kinds).families)


def test_the_kinds_are_logged(frame: pd.DataFrame, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="pymc.dpsplit"):
        dps.Product.from_data(frame)
    (record,) = caplog.records
    assert record.getMessage() == (
        "Product.from_data: height as numeric (DiagNormal); visits as count (Poisson); colour, "
        "size as category (Categorical); kinds= makes others of them."
    )


@pytest.mark.parametrize(
    "column",
    [
        pd.to_datetime(["2020-01-01", "2020-02-01"]),
        pd.Series(pd.to_datetime(["2020-01-01", None])),
        pd.Series([None, dt.date(2020, 1, 1)]),
        pd.to_timedelta(["1h", "2h"]),
        pd.period_range("2020", periods=2, freq="M"),
    ],
)
def test_dates_are_refused(column: Any) -> None:
    with pytest.raises(ValueError, match="observed has a column 'x' of dates or durations"):
        kind_of(column)


def test_frames_of_polars_are_tables() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(
        {
            "visits": [0, None, 2],
            "sick": [True, None, False],
            "height": [1.5, 2.5, None],
            "size": polars.Series(["s", "l", None], dtype=polars.Enum(["s", "m", "l"])),
            "colour": polars.Series(["red", "blue", None], dtype=polars.Categorical),
        }
    )
    product = dps.Product.from_data(frame)
    assert product.columns == {
        "numeric": ["height"], "count": ["visits"], "binary": ["sick"],
        "category": ["size", "colour"],
    }  # fmt: skip
    read, rows = product.read_table(frame)
    nan = np.nan
    assert_array_equal(rows, [[0, 1, 1.5, 0, 1], [nan, nan, 2.5, 2, 0], [2, 0, nan, nan, nan]])
    assert read.categories["size"] == ["s", "m", "l"]


def test_a_part_without_an_unconstrained_scale_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """No family of the package lacks one, but those of users may."""
    monkeypatch.setattr(nonconjugate_product, "scales_of", lambda family: None)
    with pytest.raises(ValueError, match=r"b is Bernoulli, whose .* those of a, which is not"):
        dps.Product(a=laplace(), b=dps.Bernoulli(1.0, 1.0))
