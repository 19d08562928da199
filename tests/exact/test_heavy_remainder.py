"""Labels given the atoms of a measure under a discount, against sticks broken in plain NumPy."""

import math
from typing import Any

import numpy as np
import pytest

from pymc_dpsplit.components.base import draw_parameters
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.moves.partition_law import MOST_STICKS, PartitionLaw
from pymc_dpsplit.moves.sweep import heavy_remainder
from pymc_dpsplit.moves.sweep.density import log_prior_predictive
from pymc_dpsplit.moves.sweep.heavy_remainder import (
    log_bound_for_two,
    log_shared,
    redraw_labels_of_conjugate,
)
from pymc_dpsplit.moves.sweep.redraw import LOG_LEFT_OUT, redraw_labels
from tests.support.controls import altered
from tests.support.families import component_of, target_of, twin_of
from tests.support.statistics import LEVEL, two_sample_test

ROW = np.array([[1.5]])
KNOWN = {"mu": np.array([-1.0, 1.0]), "sigma": np.array([0.7, 0.9])}
WEIGHTS, REST = np.array([0.35, 0.25]), 0.4
LAW = PartitionLaw(0.2, 0.5)
N_DRAWS = 200_000
N_STICKS = 60  # which leave 1e-6
# The bound on labels that are wrong is far from tight, so that many draws open an atom in what is
# left and hardly any errs.
COARSE = math.log(1e-2)


@pytest.fixture(scope="module")
def exact_draws() -> np.ndarray:
    """Whether the row belongs to the remainder, and mean and log weight of its atom if it does."""
    rng, out = np.random.default_rng(20), np.zeros((N_DRAWS, 3))
    twin, nobody = twin_of("Normal", 1), np.empty((0, 1))
    strengths = LAW.strength + LAW.discount * (len(WEIGHTS) + 1 + np.arange(N_STICKS))
    for start in range(0, N_DRAWS, 10_000):
        v = rng.beta(1.0 - LAW.discount, strengths, (10_000, N_STICKS))
        log_left = np.cumsum(np.log1p(-v), axis=1)
        weights = REST * v * np.exp(np.column_stack([np.zeros(len(v)), log_left[:, :-1]]))
        atoms = twin.draw_parameters(rng, nobody, v.size)
        mu, sigma = (atoms[name].reshape(v.shape) for name in ("mu", "sigma"))
        mass = np.column_stack([np.tile(of_known(), (len(v), 1)), weights * normal(mu, sigma)])
        below = np.cumsum(mass, axis=1)
        chosen = (below < rng.random((len(v), 1)) * below[:, -1:]).sum(1) - len(WEIGHTS)
        (new,) = np.nonzero(chosen >= 0)
        at = new, chosen[new]
        out[start + new] = np.column_stack([np.ones(len(new)), mu[at], np.log(weights[at])])
    return out


def normal(mu: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * ((ROW[0, 0] - mu) / sigma) ** 2) / (sigma * math.sqrt(2.0 * math.pi))


def of_known() -> np.ndarray:
    return WEIGHTS * normal(KNOWN["mu"], KNOWN["sigma"])


def p_value(kernel: Any, exact: np.ndarray, rng: np.random.Generator) -> float:
    """P-value of labels drawn again and again from one measure, by a kernel."""

    @jitted
    def draw_again(target, alone, log_weights, log_rest, params, rng, weights, atoms):
        labels = np.empty(1, np.int64)
        for s in range(len(weights)):
            found = kernel(target, labels, rng, alone, log_weights, log_rest, params)
            weights[s], atoms[s] = found[0][labels[0]], found[1][labels[0]]
            if labels[0] < len(log_weights):
                weights[s] = 0.0

    component, shift = component_of("Normal", 1), np.zeros(1)
    target = target_of(component, ROW, 1.0, lambda rows: shift)._replace(law=LAW)
    params = component.pack(KNOWN, shift)
    alone = log_prior_predictive(target.prior, target.data)
    weights, atoms = np.empty(N_DRAWS), np.empty((N_DRAWS, params.shape[1]))
    draw_again(target, alone, np.log(WEIGHTS), math.log(REST), params, rng, weights, atoms)
    is_new = weights < 0.0
    found = np.column_stack([is_new, is_new * component.unpack(atoms, shift)["mu"], weights])
    return two_sample_test(exact, found)


@pytest.mark.slow
def test_labels_have_their_law(exact_draws: np.ndarray, rng: np.random.Generator) -> None:
    coarse = altered(redraw_labels_of_conjugate, LOG_LEFT_OUT=COARSE)
    assert p_value(coarse, exact_draws, rng) > LEVEL


@jitted
def open_none(target, labels, rng, log_alone, log_weights, log_rest, params):
    return log_weights, params


@jitted
def of_the_base(prior, stats, rng, params):
    draw_parameters(prior, np.zeros_like(stats), rng, params)


BROKEN = {
    "no atom is opened": {"open_atoms": open_none},
    "atoms that do not depend on the row": {
        "open_atoms": altered(heavy_remainder.open_atoms, draw_parameters=of_the_base)
    },
}


@pytest.mark.slow
@pytest.mark.control
@pytest.mark.parametrize("name", BROKEN)
def test_other_labels_are_caught(
    name: str, exact_draws: np.ndarray, rng: np.random.Generator
) -> None:
    broken = altered(redraw_labels_of_conjugate, LOG_LEFT_OUT=COARSE, **BROKEN[name])
    assert p_value(broken, exact_draws, rng) < LEVEL


@pytest.mark.parametrize("discount", [0.1, 0.3, 0.5])
def test_two_rows_hardly_ever_share_an_atom_of_what_is_left(
    discount: float, rng: np.random.Generator
) -> None:
    """The bound on all pairs of rows, of which some are equal, from marginals of the twin."""
    law, rows = PartitionLaw(discount, 0.7), np.repeat(rng.normal(0.0, 2.0, (6, 1)), 2, axis=0)
    target = target_of(component_of("Normal", 1), rows, 1.0)._replace(law=law)
    twin, log_density = twin_of("Normal", 1), rng.normal(-3.0, 2.0, len(rows))
    shared = (1.0 - discount) / (1.0 + 0.7 + 4 * discount)
    assert log_shared(law, 4) == pytest.approx(math.log(shared))
    bound = log_bound_for_two(target.prior, target.data, log_density, LOG_LEFT_OUT)
    log_rest = bound - 0.5 * math.log(shared)
    for i, row in enumerate(rows):
        others = [j for j in range(len(rows)) if j != i]
        pairs = np.array([twin.log_marginal(np.array([row, rows[j]])) for j in others])
        log_masses = pairs - log_density[i] - log_density[others] + 2.0 * log_rest
        assert shared * np.exp(log_masses).sum() <= 1.001e-12


@pytest.mark.parametrize("discount", [0.3, 0.5])
def test_a_few_rows_need_few_sticks(discount: float, rng: np.random.Generator) -> None:
    """Sticks that leave a negligible remainder are too many."""
    law, rows = PartitionLaw(discount, 0.7), rng.standard_normal((4, 1))
    target = target_of(component_of("Normal", 1), rows, 1.0)._replace(law=law)
    params = component_of("Normal", 1).pack(KNOWN, rows.mean(0))
    alone = log_prior_predictive(target.prior, target.data)
    known = np.empty(4, np.int64), rng, alone, np.log(WEIGHTS), math.log(REST), params
    assert len(redraw_labels_of_conjugate(target, *known)[0]) < MOST_STICKS
    with pytest.raises(ValueError, match="discount is so large"):
        redraw_labels(target, *known)


def test_draws_without_a_discount_are_those_of_all_sticks(rng: np.random.Generator) -> None:
    rows = rng.standard_normal((4, 1))
    target = target_of(component_of("Normal", 1), rows, 1.5)
    params = component_of("Normal", 1).pack(KNOWN, rows.mean(0))
    alone = log_prior_predictive(target.prior, target.data)
    found = []
    for kernel in (redraw_labels, redraw_labels_of_conjugate):
        labels = np.empty(4, np.int64)
        known = np.random.default_rng(1), alone, np.log(WEIGHTS), math.log(REST), params
        found.append([labels, *kernel(target, labels, *known)])
    for plain, conjugate in zip(*found, strict=True):
        np.testing.assert_array_equal(plain, conjugate)
