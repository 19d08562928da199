"""The prior law of the number of clusters, averages over a prior on alpha, and elicitation."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

import pymc_dpsplit as dps
from pymc_dpsplit.moves.forward import draw_seating
from pymc_dpsplit.prior import n_clusters as n_clusters_module
from pymc_dpsplit.prior.clusters_law import expected_n_clusters, law_at, laws_at
from pymc_dpsplit.prior.clusters_with_discount import expected_with_discount
from pymc_dpsplit.prior.elicit_gamma import expected_of_finite
from pymc_dpsplit.prior.gamma_prior import GammaPrior
from pymc_dpsplit.prior.quadrature import nodes_of
from tests.support.partitions import crp_n_clusters
from tests.support.statistics import LEVEL, count_test


def mean_of(law: xr.DataArray) -> float:
    return float((law * law["n_clusters"]).sum())


def recursion(alpha: float, n: int) -> np.ndarray:
    """Law (n + 1,) by convolution, row by row, without a difference of probabilities."""
    law = np.zeros(n + 1)
    law[0] = 1.0
    for i in range(n):
        new, old = alpha / (alpha + i), i / (alpha + i)
        law[1:] = old * law[1:] + new * law[:-1]
        law[0] *= old
    return law


def urn(alpha: float, discount: float, n: int) -> np.ndarray:
    """Law (n + 1,) by the urn of a Pitman-Yor process, one observation after the other."""
    law = np.zeros(n + 1)
    law[1] = 1.0
    k = np.arange(n + 1)
    for seen in range(1, n):
        law[1:] = (law * (seen - k * discount))[1:] + (law * (alpha + k * discount))[:-1]
        law /= alpha + seen
    return law


# --- the law given alpha ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alpha", "n"),
    [(0.5, 1), (2.0, 2), (1.0, 8), (3.0, 63), (3.0, 64), (0.2, 65), (1.0, 300), (50.0, 1000),
     (1e-9, 200), (1e6, 100)],
)  # fmt: skip
def test_law_is_that_of_the_recursion(alpha: float, n: int) -> None:
    law = dps.prior_n_clusters(alpha, n)
    assert law.dims == ("n_clusters",)
    assert law["n_clusters"].values.tolist() == list(range(1, n + 1))
    # Relatively: small probabilities are as good as large ones.
    exact = recursion(alpha, n)[1:]
    np.testing.assert_allclose(exact, crp_n_clusters(alpha, n)[1:], atol=1e-12)
    seen = exact > 1e-280
    np.testing.assert_allclose(law.values[seen], exact[seen], rtol=1e-11)


def test_law_of_very_many_rows() -> None:
    for alpha in (1.0, 100.0):
        first, law = law_at(alpha, 10**6)
        mean = law @ (first + np.arange(len(law)))
        assert mean == pytest.approx(float(expected_n_clusters(np.array(alpha), 10**6)), rel=1e-12)


def test_law_is_that_of_seatings(rng: np.random.Generator) -> None:
    counts = np.array([[draw_seating(rng, 1.5, 30).max() + 1 for _ in range(8000)]])
    law = np.append(0.0, dps.prior_n_clusters(1.5, 30).values)
    assert count_test(counts, law) > LEVEL
    wrong = np.append(0.0, dps.prior_n_clusters(1.65, 30).values)
    assert count_test(counts, wrong) < LEVEL  # what the test can see


@pytest.mark.parametrize("alpha", [1e-12, 1e-3, 1.0, 999.0, 1001.0, 1e5, 1e9, 1e15])
@pytest.mark.parametrize("n", [1, 2, 30, 2000])
def test_expected_number_is_the_sum_of_its_terms(alpha: float, n: int) -> None:
    exact = 1 + (alpha / (alpha + np.arange(1, n))).sum()
    assert float(expected_n_clusters(np.array(alpha), n)) == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize("n", [2, 40, 700])
def test_tilted_laws_are_those_from_the_start(n: int, rng: np.random.Generator) -> None:
    alphas = np.concatenate([rng.gamma(1.0, 3.0, 20), [1e-200, 1e-5, 80.0, 1e4, 1e8]])
    done = []
    for which, first, laws in laws_at(alphas, n):
        done += which.tolist()
        for i, law in zip(which, laws, strict=True):
            exact = recursion(alphas[i], n)[first : first + len(law)]
            np.testing.assert_allclose(law, exact, rtol=1e-9, atol=1e-25)
    assert sorted(done) == list(range(len(alphas)))


# --- averages over alpha ------------------------------------------------------------------


def test_draws_are_averaged(rng: np.random.Generator) -> None:
    draws = rng.gamma(2.0, 0.5, (2, 50))
    law = dps.prior_n_clusters(xr.DataArray(draws, dims=("chain", "draw")), 25)
    each = [dps.prior_n_clusters(float(alpha), 25).values for alpha in draws.ravel()]
    np.testing.assert_allclose(law, np.mean(each, axis=0), rtol=1e-10)


@pytest.mark.parametrize(
    "prior",
    [stats.gamma(2, scale=0.25), stats.gamma(0.3), stats.uniform(0, 5), stats.halfnorm(),
     stats.lognorm(1.5)],
)  # fmt: skip
def test_distributions_are_averaged(prior: object) -> None:
    law = dps.prior_n_clusters(prior, 40)
    for k in (1, 3, 8):
        exact = integrate.quad(
            lambda u, k=k: crp_n_clusters(max(prior.ppf(u), 1e-300), 40)[k], 0, 1, epsabs=1e-10
        )[0]
        assert float(law.sel(n_clusters=k)) == pytest.approx(exact, abs=1e-8)


def test_gamma_prior_is_no_pair_of_draws() -> None:
    prior = GammaPrior(2.0, 4.0)
    law = dps.prior_n_clusters(prior, 40)
    np.testing.assert_allclose(law, dps.prior_n_clusters(prior.frozen(), 40))
    nodes, weights = nodes_of(prior.frozen())
    assert weights @ nodes == pytest.approx(0.5, rel=1e-10)


@pytest.mark.parametrize(
    ("alpha", "n", "message"),
    [
        (0.0, 10, "alpha must be positive and finite"),
        ([1.0, np.nan], 10, "alpha must be positive and finite"),
        ([], 10, "alpha must be positive and finite"),
        ("one", 10, "alpha is a str; give a number"),
        (stats.norm(), 10, "alpha has a prior on values from -inf"),
        (1.0, 0, "n=0 is no number of observations"),
        (1.0, 10.0, "n=10.0 is no number of observations"),
        (1.0, True, "n=True is no number of observations"),
    ],
)
def test_faulty_arguments_are_named(alpha: object, n: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dps.prior_n_clusters(alpha, n)


# --- elicitation --------------------------------------------------------------------------

ASKED = [(300, 5, 20, 0.99), (300, 5, 20, 0.95), (300, 5, 10, 0.95), (20, 5.5, 15, 0.99),
         (10_000, 50, 100, 0.99), (100, 1.2, 4, 0.98)]  # fmt: skip


@pytest.mark.parametrize("discount", [1e-15, 1e-12, 1e-9, -1e-9, 1e-7, 1e-5, 1e-4])
@pytest.mark.parametrize("alpha", [0.01, 0.5, 3.0, 999.0, 1001.0])
def test_expected_number_under_a_small_discount_is_near_that_without(
    alpha: float, discount: float
) -> None:
    for n in (1, 5, 300, 100_000):
        found = float(expected_with_discount(np.array([alpha]), n, discount)[0])
        without = float(expected_n_clusters(np.array(alpha), n))
        # d times the derivative at 0, which is half of the square of the number beyond the first.
        shift = discount * (without - 1.0) * without / alpha
        assert found == pytest.approx(without + 0.5 * shift, rel=1e-6, abs=abs(shift))


@pytest.mark.parametrize(("n", "expected", "upper", "prob"), ASKED)
def test_prior_does_what_is_asked(n: int, expected: float, upper: int, prob: float) -> None:
    prior = dps.elicit_alpha(n, expected, upper, prob)
    law = dps.prior_n_clusters(prior, n)
    assert mean_of(law) == pytest.approx(expected, rel=1e-9)
    assert float(law[upper - 1 :].sum()) == pytest.approx(1 - prob, abs=1e-6)


@pytest.mark.control
def test_another_prior_does_not() -> None:
    shape, rate = dps.elicit_alpha(300, 5, 20)
    law = dps.prior_n_clusters(GammaPrior(shape, 1.01 * rate), 300)
    assert mean_of(law) != pytest.approx(5, rel=1e-9)
    assert float(law[19:].sum()) != pytest.approx(0.01, abs=1e-6)


def test_prior_goes_into_a_model() -> None:
    prior = dps.elicit_alpha(300, 5, 20)
    with pm.Model():
        by_position, by_name = pm.Gamma("p", *prior), pm.Gamma("n", **prior._asdict())
    at = np.array([0.3, 1.0, 4.0])
    for variable in (by_position, by_name):
        found = pm.logp(variable, at).eval()
        np.testing.assert_allclose(found, prior.frozen().logpdf(at), rtol=1e-10)


def test_more_certainty_is_a_more_concentrated_prior() -> None:
    shapes = [dps.elicit_alpha(300, 5, 20, prob).alpha for prob in (0.95, 0.99, 0.999)]
    assert shapes == sorted(shapes)


def test_what_cannot_be_had_is_said_with_what_can() -> None:
    certain = (
        r"even a known alpha .* give a larger upper, such as 9, or a smaller prob, such as 0\.63\."
    )
    with pytest.raises(ValueError, match=certain):
        dps.elicit_alpha(300, 5, 6, prob=0.95)
    with pytest.raises(ValueError, match=r"no gamma prior with 5 clusters .* give a smaller upper"):
        dps.elicit_alpha(300, 5, 300, prob=0.9)


def remedies_in(message: str) -> dict[str, Any]:
    """The values that a message offers."""
    found = re.findall(r"(upper|prob), such as ([\d.]*\d)", message)
    return {key: int(value) if key == "upper" else float(value) for key, value in found}


def refusal_of(*asked: Any, **named: Any) -> str:
    """The message with which a wish is refused, "" if it is not."""
    try:
        dps.elicit_alpha(*asked, **named)
    except ValueError as fault:
        return str(fault)
    return ""


@pytest.mark.parametrize(
    ("n", "expected", "upper", "prob", "offered"),
    [
        (10, 8, 10, 0.99, {"prob": 0.902}),  # more than all ten observations cannot be had
        (4, 3, 4, 0.99, {"prob": 0.712}),
        (10, 9.9999, 10, 0.99, {"prob": 9e-5}),
        (300, 5, 300, 0.9, {"upper": 14}),
        (4, 3, 4, 0.1, {"prob": 0.36}),  # four is the least above the expected number
        (2, 1.5, 2, 0.99, {}),  # half of all draws have two clusters, whatever the prior
    ],
)
def test_only_what_helps_is_offered(
    n: int, expected: float, upper: int, prob: float, offered: dict[str, Any]
) -> None:
    message = refusal_of(n, expected, upper, prob)
    assert "; give " in message
    assert remedies_in(message) == offered


@settings(max_examples=25)
@given(
    st.sampled_from([2, 3, 4, 6, 10, 40, 300]),
    st.floats(0.02, 0.98),
    st.floats(0.0, 1.0),
    st.sampled_from([0.001, 0.1, 0.5, 0.9, 0.99, 0.9999]),
    st.sampled_from([0.0, 0.0, 0.2]),
)
def test_what_is_offered_does(
    n: int, of_expected: float, of_upper: float, prob: float, discount: float
) -> None:
    expected = 1 + (n - 1) * of_expected
    least = int(expected) + 1
    asked = {"expected": expected, "upper": least + int((n - least) * of_upper), "prob": prob}
    message = refusal_of(n, **asked, discount=discount)
    offered = remedies_in(message)
    assert offered or message == "" or "; give other values" in message or "too few" in message
    for key, value in offered.items():
        changed = asked | {key: value}
        prior = dps.elicit_alpha(n, **changed, discount=discount)
        law = dps.prior_n_clusters(prior, n, discount=discount)
        below = float(law.sel(n_clusters=slice(None, changed["upper"] - 1)).sum())
        assert below == pytest.approx(changed["prob"], abs=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((300, 1, 5), "expected=1 clusters cannot be the mean among n=300"),
        ((300, 300, 300), "expected=300 clusters cannot be the mean among n=300"),
        ((300, 5, 5), "upper=5 cannot be a surprise where 5 of at most 300"),
        ((300, 5, 301), "upper=301 cannot be a surprise"),
        ((300, 5, 20.5), "upper=20.5 cannot be a surprise"),
        ((300, 5, 20, 1.0), "prob=1 is no probability"),
        ((300, np.nan, 20), "expected=nan is no number"),
        ((300, 5, "many"), "upper='many' is no number"),
        ((300, 10**400, 20), "expected=1000.* is no number"),
        ((300, 5, 10**400), "upper=1000.* is no number"),
        ((10**12, 3, 10), r"n is more than 1e\+08 observations, .*; give"),
        ((300.5, 5, 20), "n=300.5 is no number of observations"),
    ],
)
def test_faulty_wishes_are_named(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dps.elicit_alpha(*arguments)


def test_upper_may_be_a_whole_float() -> None:
    assert dps.elicit_alpha(300, 5, 20.0) == dps.elicit_alpha(300, 5, 20)


# --- with a discount ----------------------------------------------------------------------


@pytest.mark.parametrize("discount", [0.01, 0.25, 0.7])
@pytest.mark.parametrize(("alpha", "n"), [(0.5, 1), (2.0, 2), (-0.005, 30), (1.0, 200), (50.0, 80)])
def test_law_with_discount_is_that_of_the_urn(alpha: float, discount: float, n: int) -> None:
    law = dps.prior_n_clusters(alpha, n, discount=discount)
    np.testing.assert_allclose(law, urn(alpha, discount, n)[1:], rtol=1e-10, atol=1e-250)
    mean = float(expected_n_clusters(np.array(alpha), n, discount))
    assert mean == pytest.approx(mean_of(law), rel=1e-8)


@pytest.mark.control
def test_law_needs_the_discount() -> None:
    law = dps.prior_n_clusters(1.0, 200, discount=0.25)
    assert abs(law.values - urn(1.0, 0.0, 200)[1:]).max() > 0.01


@pytest.mark.parametrize("discount", [0.25, -0.5])
def test_tilted_laws_with_discount_are_those_from_the_start(discount: float) -> None:
    alphas = np.array([0.01, 0.5, 3.0, 3.3, 80.0, 1e4])
    if discount < 0.0:
        alphas = -discount * np.array([1.0, 2.0, 3.0, 10.0, 50.0, 400.0])
    done = []
    for which, first, laws in laws_at(alphas, 60, discount):
        done += which.tolist()
        for alpha, law in zip(alphas[which], laws, strict=True):
            # The urn of a full finite mixture has a mass of 0 but for rounding.
            np.testing.assert_allclose(
                law, urn(alpha, discount, 60)[first : first + len(law)], atol=1e-12
            )
    assert sorted(done) == list(range(len(alphas)))


def test_law_is_averaged_over_draws_of_the_discount(rng: np.random.Generator) -> None:
    discounts, alphas = rng.beta(1.0, 4.0, 20), rng.gamma(2.0, 1.0, 20)
    law = n_clusters_module.n_clusters_under(discounts, alphas, 40)
    expected = np.mean([urn(a, d, 40) for a, d in zip(alphas, discounts, strict=True)], axis=0)
    np.testing.assert_allclose(law, expected[1:], atol=1e-12)


@pytest.mark.parametrize("discount", [0.1, 0.3])
def test_elicited_prior_with_discount_has_the_expected_number(discount: float) -> None:
    prior = dps.elicit_alpha(100, 12, 40, 0.95, discount=discount)
    law = dps.prior_n_clusters(prior, 100, discount=discount)
    assert mean_of(law) == pytest.approx(12.0, rel=1e-6)
    assert float(law.sel(n_clusters=slice(None, 39)).sum()) == pytest.approx(0.95, abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ((100, 2, 40, 0.95, 0.5), "expected=2 clusters are too few among 100 with discount=0.5"),
        ((100, 5, 40, 0.95, 1.0), "discount=1.0 is not from 0 to below 1; give 0"),
        ((100, 5, 40, 0.95, "a"), "discount='a' is not from 0 to below 1; give 0"),
        ((10**7, 5, 40, 0.95, 0.2), "n is more than .* whose law with a discount takes long; give"),
    ],
)
def test_discount_that_cannot_be_is_refused(arguments: tuple, fault: str) -> None:
    *numbers, discount = arguments
    with pytest.raises(ValueError, match=fault):
        dps.elicit_alpha(*numbers, discount=discount)


def test_alpha_below_minus_the_discount_is_refused() -> None:
    with pytest.raises(ValueError, match=r"alpha must be above -discount = -0\.2 and finite"):
        dps.prior_n_clusters(-0.3, 10, discount=0.2)


@pytest.mark.control
def test_law_that_forgets_a_row_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(alphas: np.ndarray, n: int, discount: float) -> Iterator[tuple]:
        return laws_at(alphas, n - 1, discount)

    monkeypatch.setattr(n_clusters_module, "laws_at", forgetful)
    law = dps.prior_n_clusters(1.0, 300)
    assert abs(law.values[:-1] - crp_n_clusters(1.0, 300)[1:-1]).max() > 1e-4


# --- the parameter of a finite mixture ----------------------------------------------------


@pytest.mark.parametrize(
    ("n", "expected", "n_components"),
    [(300, 3, 10), (300, 9.9, 10), (300, 3, stats.poisson(9, loc=1)), (40, 1.5, stats.geom(0.1)),
     (2, 1.25, 7), (50, 2, [1, 3, 3, 8]), (10_000, 40, 100_000)],
)  # fmt: skip
def test_elicited_gamma_has_the_expected_number(n: int, expected: float, n_components: Any) -> None:
    gamma = dps.elicit_gamma(n, expected, n_components=n_components)
    law = dps.prior_n_clusters(n=n, gamma=gamma, n_components=n_components)
    assert mean_of(law) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("gamma", [1e-9, 0.3, 1.0, 50.0, 1e5])
def test_expected_number_of_a_finite_mixture(gamma: float) -> None:
    numbers = np.array([1.0, 2.0, 7.0, 400.0])
    found = expected_of_finite(gamma, numbers, 30)
    rows = np.arange(30)
    exact = [m * (1 - np.prod((gamma * (m - 1) + rows) / (gamma * m + rows))) for m in numbers]
    np.testing.assert_allclose(found, exact, rtol=1e-9)


@pytest.mark.control
def test_another_gamma_has_another_expected_number() -> None:
    gamma = dps.elicit_gamma(300, 3, n_components=10)
    law = dps.prior_n_clusters(n=300, gamma=1.001 * gamma, n_components=10)
    assert mean_of(law) != pytest.approx(3.0, rel=1e-7)


@pytest.mark.parametrize(
    ("n", "expected", "n_components", "fault"),
    [
        (
            300,
            5,
            4,
            r"expected=5 clusters are too many among 300 .*, as even equal .* give 4; give",
        ),
        (10, 9, 20, r"too many among 10 .* give 8\.03; give"),
        (300, 4.5, stats.poisson(3, loc=1), r"too many .* give 4; give a smaller number"),
        (300, 2, 1, r"too many .* give 1; give"),
        (300, 1, 4, "expected=1 clusters cannot be the mean among n=300 observations; give"),
        (300, "few", 4, "expected='few' clusters cannot be the mean"),
        (300, np.nan, 4, "expected=nan clusters cannot be the mean"),
        (300, 1 + 1e-15, 4, "too few for any gamma that matters; give"),
        (0, 2, 4, "n=0 is no number of observations"),
        (300, 2, 2.5, "n_components is a float that holds no whole numbers from 1"),
        (300, 2, stats.poisson(3), "n_components has a prior on numbers from 0; give"),
    ],
)
def test_gamma_that_cannot_be_had_is_refused(
    n: Any, expected: Any, n_components: Any, fault: str
) -> None:
    with pytest.raises(ValueError, match=fault):
        dps.elicit_gamma(n, expected, n_components=n_components)
