"""Pitman-Yor processes, finite mixtures and MFMs as users declare them, through `pm.sample`.

The joint law of the partition and of what determines its law is enumerated, strength and discount
on grids; the law of each partition is that of its definition (`tests.support.partition_laws`), not
the package's formula.  Level 1e-5 each; the controls are mistakes in the terms that NUTS sees and
in the step's own moves.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats
from scipy.special import logsumexp

import pymc_dpsplit as dps
from pymc_dpsplit.moves.partition_law import PartitionLaw, log_number_factor, log_probability
from pymc_dpsplit.variables.concentration import ConcentrationPrior
from pymc_dpsplit.variables.law import LawTerms, law_terms
from tests.support.families import component_of, dataset_of, twin_of
from tests.support.partition_laws import LogPrior, assigned, seated
from tests.support.partitions import enumerate_partitions
from tests.support.quadrature import Grid, fixed, grid_of, log_joint, table_of
from tests.support.quick import slow_unless
from tests.support.runs import draws_of, labels_test, run, scalar_test
from tests.support.shared_labels import keeps_together
from tests.support.statistics import LEVEL, combine, mean_test

N = 5
# Of the geometric prior of the number of components.
_SUCCESS = 0.3
_ALPHA, _DISCOUNT = stats.gamma(2.0, scale=1.0), stats.beta(2.0, 3.0)


def share_grid(n_nodes: int = 40) -> Grid:
    """Grid of a discount, on equal steps of its log odds."""
    odds = np.linspace(-12.0, 9.0, n_nodes)
    nodes = 1.0 / (1.0 + np.exp(-odds))
    log_step = np.log(odds[1] - odds[0])
    return Grid(nodes, _DISCOUNT.logpdf(nodes) + np.log(nodes * (1.0 - nodes)) + log_step)


class Case(NamedTuple):
    """A law with grids of two numbers, how it is declared, and its definition."""

    first: tuple[str, Grid]
    second: tuple[str, Grid]
    declare: Callable[..., Any]
    log_prior: Callable[[float, float], LogPrior]


def pitman_yor(alpha: Any, discount: Any, family: Any, **options: Any) -> Any:
    return dps.DPMixture("x", alpha, family, discount=discount, **options)


def components(n_components: int) -> Callable[..., Any]:
    def declare(gamma: Any, _: Any, family: Any, **options: Any) -> Any:
        return dps.FiniteMixture("x", gamma, family, n_components=n_components, **options)

    return declare


def numbers_grid(n_nodes: int = 60) -> Grid:
    """The numbers of components with their prior, which is negligible beyond."""
    numbers = np.arange(1, n_nodes + 1)
    return Grid(numbers, stats.geom(_SUCCESS).logpmf(numbers))


def mixture_of_finite(prior: Any, gamma: Any, family: Any, **options: Any) -> Any:
    return dps.MFMixture("x", gamma, family, n_components=prior, **options)


_NOTHING = ("nothing", fixed(0.0))
_NUMBERS = ("x_n_components", numbers_grid())
CASES = {
    "Pitman-Yor": Case(
        ("alpha", grid_of(_ALPHA, 40)), ("discount", fixed(0.3)), pitman_yor, seated
    ),
    "negative strength": Case(
        ("alpha", fixed(-0.15)), ("discount", fixed(0.3)), pitman_yor, seated
    ),
    "Pitman-Yor, discount too": Case(
        ("alpha", grid_of(_ALPHA, 40)), ("discount", share_grid()), pitman_yor, seated
    ),
    "finite": Case(
        ("gamma", grid_of(_ALPHA, 40)), _NOTHING, components(3), lambda gamma, _: assigned(gamma, 3)
    ),
    "finite, gamma known": Case(
        ("gamma", fixed(0.7)), _NOTHING, components(4), lambda gamma, _: assigned(gamma, 4)
    ),
    "MFM": Case(
        _NUMBERS, ("gamma", fixed(1.2)), mixture_of_finite, lambda m, gamma: assigned(gamma, m)
    ),
    "MFM, gamma too": Case(
        _NUMBERS,
        ("gamma", grid_of(_ALPHA, 40)),
        mixture_of_finite,
        lambda m, gamma: assigned(gamma, m),
    ),
}

_QUICK = ("Pitman-Yor, discount too", "finite", "MFM")
# With a variable that NUTS can move.
_BY_NUTS = ("Pitman-Yor, discount too", "finite")


def rows_of(family: str) -> np.ndarray:
    return dataset_of(family, "overlapping", 1 if family == "Normal" else 2)[:N]


@cache
def exact_joint(name: str, family: str) -> np.ndarray:
    """Joint law (A, B, Bell(n)) of both numbers and the partition."""
    rows = rows_of(family)
    twin = twin_of(family, rows.shape[1])
    return joint_of(CASES[name], table_of(twin.log_marginal, rows), N)


def joint_of(case: Case, table: np.ndarray, n: int) -> np.ndarray:
    """Joint law (A, B, Bell(n)) given the log marginal likelihoods (2^n,) of the sets of rows."""
    # `log_joint` has the factor Gamma(n_k) of a Dirichlet process, which the prior replaces.
    of_rows = log_joint(table, n) - log_joint(np.zeros(2**n), n)
    (_, first), (_, second) = case.first, case.second
    joint = np.empty((len(first.nodes), len(second.nodes), len(of_rows)))
    for a, one in enumerate(first.nodes):
        for b, two in enumerate(second.nodes):
            log_prior = case.log_prior(one, two)
            prior = [log_prior(labels) for labels in enumerate_partitions(n)]
            joint[a, b] = prior + of_rows + first.log_weights[a] + second.log_weights[b]
    return np.exp(joint - logsumexp(joint))


def declared(name: str, grid: Grid) -> Any:
    if len(grid.nodes) == 1:
        return grid.nodes[0]
    if name == "x_n_components":
        return pm.Geometric.dist(_SUCCESS)
    return pm.Beta(name, 2.0, 3.0) if name == "discount" else pm.Gamma(name, 2.0, 1.0)


def p_value(
    name: str, family: str = "Normal", n_draws: int = 1200, known: Any = None, **options: Any
) -> float:
    """P-value of the partition and of what determines its law, if it varies."""
    case = CASES[name]
    joint = exact_joint(name, family)
    if known is not None:
        joint = joint * keeps_together(np.array(known))
        joint /= joint.sum()
    rows = rows_of(family)
    with pm.Model():
        observed = rows[:, 0] if family == "Normal" else rows
        numbers = [declared(*number) for number in (case.first, case.second)]
        component = component_of(family, rows.shape[1])
        case.declare(*numbers, component, observed=observed, labels=known)
        idata = run(n_draws, **options)
    return joint_test(idata, case, joint)


def joint_test(idata: Any, case: Case, joint: np.ndarray) -> float:
    """P-value of the partition of x and of both numbers, given their joint law."""
    found = [labels_test(idata, "x", joint.sum(axis=(0, 1)))]
    for axis, (key, grid) in enumerate((case.first, case.second)):
        if len(grid.nodes) > 1:
            found.append(scalar_test(idata, key, joint.sum(axis=(1 - axis, 2)), grid.nodes))
    return combine(*found)


@pytest.mark.slow
@pytest.mark.parametrize("name", slow_unless(_QUICK.__contains__, CASES))
def test_law_is_exact(name: str) -> None:
    assert p_value(name) > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Pitman-Yor", "finite", "MFM"])
@pytest.mark.parametrize("kernel", ["collapsed", "neal2"])
def test_law_is_exact_with_other_kernels(kernel: str, name: str) -> None:
    assert p_value(name, kernel=kernel) > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("family", ["Poisson", "MvNormal"])
def test_law_is_exact_for_vectors(family: str, name: str) -> None:
    assert p_value(name, family, 4000) > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("name", _BY_NUTS)
def test_terms_that_nuts_sees_are_exact(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Without the step's own moves NUTS alone moves strength and discount.
    monkeypatch.setattr("pymc_dpsplit.step.dp_split_merge.concentrations_to_move", nothing_to_move)
    assert p_value(name, n_draws=2500) > LEVEL


def nothing_to_move(*_: Any) -> list[Any]:
    return []


# --- with known labels ----------------------------------------------------------------------

# Labels of two rows, and of three.
_KNOWN = {"two": [4, -1, 4, -1, -1], "three": [0, 1, -1, 0, 0]}
_WITH_LABELS = ("Pitman-Yor, discount too", "finite", "MFM, gamma too")


@pytest.mark.slow
@pytest.mark.parametrize("known", _KNOWN)
@pytest.mark.parametrize("name", _WITH_LABELS)
def test_law_is_exact_with_known_labels(name: str, known: str) -> None:
    assert p_value(name, known=_KNOWN[known]) > LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_known_labels_without_the_discount_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The step takes a number in the place of the discount that the model declares."""
    honest = CASES["Pitman-Yor"]

    def declare(alpha: Any, _: Any, family: Any, **options: Any) -> Any:
        return dps.DPMixture("x", alpha, family, **options)

    monkeypatch.setitem(CASES, "Pitman-Yor", honest._replace(declare=declare))
    assert p_value("Pitman-Yor", known=_KNOWN["two"]) < LEVEL


# --- controls -----------------------------------------------------------------------------


def without_weights(*inputs: Any) -> LawTerms:
    # Not zero: PyMC refuses a function that does not depend on one of its inputs.
    return law_terms(*inputs)._replace(log_weights=1e-9 * inputs[-1])


def as_dirichlet_process(discount: Any, strength: Any, n_clusters: Any, *rest: Any) -> LawTerms:
    terms = law_terms(discount, strength, n_clusters, *rest)
    return terms._replace(n_clusters=n_clusters * pt.log(strength))


@pytest.mark.slow
@pytest.mark.control
@pytest.mark.parametrize("broken", [without_weights, as_dirichlet_process])
def test_wrong_terms_are_caught(
    broken: Callable[..., LawTerms], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pymc_dpsplit.step.dp_split_merge.concentrations_to_move", nothing_to_move)
    monkeypatch.setattr("pymc_dpsplit.variables.measure.law_terms", broken)
    assert p_value("Pitman-Yor, discount too", n_draws=2500) < LEVEL


def twice_the_rows(law: PartitionLaw, n_clusters: int, n_obs: int) -> float:
    return log_number_factor(law, n_clusters, 2 * n_obs)


def sizes_left_out(law: PartitionLaw, sizes: np.ndarray) -> float:
    return log_number_factor(law, len(sizes), int(sizes.sum()))


@pytest.mark.slow
@pytest.mark.control
@pytest.mark.parametrize(
    ("name", "function", "broken"),
    [
        pytest.param("Pitman-Yor", log_number_factor, twice_the_rows, marks=pytest.mark.slow),
        pytest.param(
            "Pitman-Yor, discount too", log_probability, sizes_left_out, marks=pytest.mark.slow
        ),
        ("finite", log_probability, sizes_left_out),
        pytest.param("MFM", log_number_factor, twice_the_rows, marks=pytest.mark.slow),
    ],
)
def test_wrong_move_is_caught(
    name: str, function: Any, broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kernels move the strength of a process otherwise, see `test_moved_strength`.
    monkeypatch.setattr("pymc_dpsplit.variables.concentration.density_by_address", lambda *_: None)
    target = f"pymc_dpsplit.step.concentration_move.{function.__name__}"
    monkeypatch.setattr(target, broken)
    assert p_value(name) < LEVEL


# --- what else reads the law --------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["finite, gamma known", "negative strength", "MFM"])
def test_labels_redrawn_from_the_trace_have_the_same_law(name: str) -> None:
    """Labels given the stored measure, and forward draws of rows given it."""
    case = CASES[name]
    rows = rows_of("Normal")
    with pm.Model() as model:
        numbers = [declared(*number) for number in (case.first, case.second)]
        case.declare(*numbers, component_of("Normal", 1), observed=rows[:, 0])
        idata = run(1500, keep_labels=False)
    labels = dps.sample_labels(idata, model=model, random_seed=1)
    together = (labels.to_numpy()[..., :, None] == labels.to_numpy()[..., None, :])[..., 0, 1:]
    every = enumerate_partitions(N)
    exact = exact_joint(name, "Normal").sum(axis=(0, 1)) @ (every[:, :1] == every[:, 1:])
    assert mean_test(together.astype(float), exact, exact * (1.0 - exact)) > LEVEL
    assert (draws_of(idata, "x_n_clusters") >= 1).all()


# --- a prior of the number of components that depends on gamma ----------------------------


def dependent_prior_p_value() -> float:
    """P-value of the partition, of the number of components and of gamma."""
    case = CASES["MFM, gamma too"]
    numbers, gammas = case.first[1].nodes, case.second[1].nodes
    log_prior = stats.poisson(3.0 * gammas).logpmf(numbers[:, None] - 1)
    joint = exact_joint("MFM, gamma too", "Normal")
    joint = joint * np.exp(log_prior - case.first[1].log_weights[:, None])[..., None]
    with pm.Model():
        gamma = pm.Gamma("gamma", 2.0, 1.0)
        prior = 1 + pm.Poisson.dist(3.0 * gamma)
        mixture_of_finite(prior, gamma, component_of("Normal", 1), observed=rows_of("Normal")[:, 0])
        idata = run(2500)
    return joint_test(idata, case, joint / joint.sum())


@pytest.mark.slow
def test_prior_of_components_that_depends_on_gamma_is_exact() -> None:
    assert dependent_prior_p_value() > LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_gamma_without_the_prior_of_components_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def without(mixture: Any, model: Any, root: Any, point: Any, *_: Any) -> ConcentrationPrior:
        own = {*mixture.owned, mixture.rv}
        return ConcentrationPrior(mixture.law, own, model, root, point, for_kernels=True)

    monkeypatch.setattr("pymc_dpsplit.variables.concentration._prior", without)
    assert dependent_prior_p_value() < LEVEL
