"""Conjugate parts beside others: graphs of their densities on an unconstrained scale."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose

from pymc_dpsplit.components.parts import Part
from pymc_dpsplit.pymc_component.free_part import FreePart, counts_in, scales_of
from pymc_dpsplit.pymc_component.recognition import conjugate_family
from pymc_dpsplit.pymc_component.unconstrained import Simplexes
from tests.support.families import FAMILIES, SINGLE, component_of
from tests.support.family_cases import Case, case_of, rows_of

PLAIN = pytensor.compile.Mode("py", optimizer=None)
WITH_SCALES = {
    "Normal", "DiagNormal", "SphericalNormal", "NormalKnownSigma", "Poisson", "NegativeBinomial",
    "Bernoulli", "Binomial", "Categorical", "Exponential", "Gamma", "InverseGamma", "MvNormal",
    "MvNormalKnownCov", "Multinomial", "LinearRegression",
}  # fmt: skip


def test_families_of_one_number_for_each_column_have_scales() -> None:
    found = {name for name in SINGLE if scales_of(component_of(name, FAMILIES[name].n_features[0]))}
    assert found == WITH_SCALES


def part_of(case: Case) -> FreePart:
    """Part of a product with all columns of a case."""
    n_features = case.rows.shape[1]
    counts = counts_in(case.component, None, n_features)
    return FreePart(Part("a", case.component, 0, n_features), counts)


def coordinates(named: dict[str, np.ndarray]) -> np.ndarray:
    """Parameters (K, P) that the base measure is a density of: not the last of a simplex."""
    flat = []
    for name, value in named.items():
        if name == "cov":
            flat.append(value[:, *np.tril_indices(value.shape[-1])])
        elif name == "p" and value.ndim == 2 and np.allclose(value.sum(1), 1.0):  # multinomial
            flat.append(value[:, :-1])
        elif value.ndim == 3:  # probabilities of categories, 0 where a column lacks one
            counts = np.count_nonzero(value[0], axis=1)
            flat += [value[:, d, : count - 1] for d, count in enumerate(counts)]
        else:
            flat.append(value.reshape(len(value), -1))
    return np.concatenate(flat, axis=1)


def log_volume(part: FreePart, free: np.ndarray) -> float:
    """Log of the absolute Jacobian at real numbers (P,), by central differences."""
    steps = 1e-5 * np.eye(len(free))
    above, below = (coordinates(part.named(free + sign * steps)) for sign in (1.0, -1.0))
    return float(np.linalg.slogdet((above - below) / 2e-5)[1])


@pytest.mark.parametrize("name", sorted(WITH_SCALES))
def test_graphs_are_those_of_the_twin(name: str, rng: np.random.Generator) -> None:
    case = case_of(name, rows_of("overlapping", FAMILIES[name].n_features[0]))
    part, drawn = part_of(case), case.component.draw_base(rng, case.values, 3)
    free = part.free(drawn)
    assert free.shape == (3, part.n_parameters)
    for key, value in part.named(free).items():
        assert_allclose(value, drawn[key], rtol=1e-9)
    theta = pt.vector("theta", dtype="float64")
    densities = pytensor.function(
        [theta],
        [
            part.log_prior(theta, case.values),
            part.log_density(pt.constant(case.rows.T), theta, case.values),
        ],
        mode=PLAIN,
    )
    for k in range(3):
        log_prior, log_density = densities(free[k])
        own = {key: value[k] for key, value in drawn.items()}
        assert_allclose(log_density, case.twin.log_density(case.rows, own), rtol=1e-8)
        expected = case.twin.log_prior(own) + log_volume(part, free[k])
        assert_allclose(log_prior, expected, rtol=1e-5, atol=1e-5)


def test_columns_may_have_different_categories() -> None:
    scale, p = Simplexes((3, 1, 2)), np.zeros((2, 3, 3))
    p[:, 0], p[:, 1, 0], p[:, 2, :2] = [0.2, 0.5, 0.3], 1.0, [[0.9, 0.1], [0.4, 0.6]]
    free = scale.free(p)
    assert free.shape == (2, 3)
    assert_allclose(scale.values(free, (3, 3)), p)
    symbolic = scale.graph(pt.constant(free[1]), (3, 3)).eval(mode=PLAIN)
    assert_allclose(symbolic, p[1:])
    # All but the last probability of a column, in terms of the logs less their mean.
    expected = np.log(3.0) + np.log([0.2, 0.5, 0.3]).sum() + np.log(2.0) + np.log([0.4, 0.6]).sum()
    assert scale.log_jacobian(pt.constant(free[1]), (3, 3)).eval(mode=PLAIN) == pytest.approx(
        expected
    )


def test_a_renamed_family_is_a_part_too() -> None:
    with_names = conjugate_family(pm.Categorical, {"p": pm.Dirichlet.dist([1.0, 2.0, 0.5])})
    assert with_names is not None
    part = FreePart(Part("a", with_names, 0, 1), counts_in(with_names, None, 1))
    values = with_names.check(with_names.hyperparameters, 1)
    drawn = with_names.draw_base(np.random.default_rng(1), values, 2)
    free = part.free(drawn)
    assert_allclose(part.named(free)["p"], drawn["p"])
    block = pt.constant(np.array([[0.0, 2.0, 1.0, 1.0]]))
    found = part.log_density(block, pt.constant(free[1]), values).eval(mode=PLAIN)
    assert_allclose(found, np.log(drawn["p"][1, [0, 2, 1, 1]]))
