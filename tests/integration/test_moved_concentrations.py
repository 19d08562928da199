"""Concentrations that a step moves are taken from other steps, and our steps come last."""

from typing import Any

import numpy as np
import pymc as pm
import pytest
from pymc.sampling import mcmc
from pymc.step_methods.compound import flatten_steps

import pymc_dpsplit as dps

ROWS, GROUPS = np.array([0.1, 5.2, 0.3, -0.2, 5.0, 4.8]), [0, 1, 0, 0, 1, 1]
COUNTS = np.array([[2, 0, 1], [0, 2, 1], [1, 1, 0]])
NORMAL = dps.Normal(0.0, 0.1, 2.0, 1.0)


def steps_of(model: pm.Model) -> list[tuple[str, set[str]]]:
    """Names of the steps in the order of a draw, and the names of what they move."""
    with model:
        _, selected = mcmc.assign_step_methods(model)
        point = model.initial_point()
        steps = mcmc.instantiate_steppers(model, [], selected, initial_point=point)
    steps = steps if isinstance(steps, list) else [steps]
    parts = [part for step in steps for part in flatten_steps(step)]
    return [(type(part).__name__, {of.name for of in part.vars}) for part in parts]


def gammas(*names: str) -> list[Any]:
    return [pm.Gamma(name, 2.0, 2.0) for name in names]


def grouped(alpha: Any, gamma: Any, component: Any = NORMAL, name: str = "x") -> None:
    dps.HDPMixture(name, alpha, gamma, component, groups=GROUPS, observed=ROWS)


def test_the_step_of_rows_in_groups_moves_both_concentrations_alone() -> None:
    with pm.Model() as model:
        grouped(*gammas("alpha", "gamma"))
    ((name, moved),) = steps_of(model)
    assert name == "HDPMixtureStep"
    assert {"alpha_log__", "gamma_log__"} <= moved


def test_the_step_of_topics_moves_all_concentrations_alone() -> None:
    with pm.Model() as model:
        dps.HDPTopics("w", *gammas("alpha", "gamma", "eta"), observed=COUNTS)
    ((name, moved),) = steps_of(model)
    assert name == "HDPTopicsStep"
    assert {"alpha_log__", "gamma_log__", "eta_log__"} <= moved


@pytest.mark.parametrize("case", ["child", "function of two", "parent", "used twice"])
def test_others_move_what_more_depends_on(case: str) -> None:
    with pm.Model() as model:
        alpha, other = gammas("alpha", "other")
        if case == "child":
            pm.Normal("y", alpha, 1.0, observed=[0.3])
            grouped(alpha, 1.0)
        elif case == "function of two":
            grouped(alpha * other, 1.0)
        elif case == "parent":
            grouped(pm.Gamma("given", 2.0, other), 1.0)
        else:
            grouped(alpha, alpha)
    steps = dict(steps_of(model))
    by_nuts = {"alpha_log__", "other_log__"}
    assert steps["NUTS"] == by_nuts
    has_given = "given_log__" in steps["HDPMixtureStep"]
    assert has_given == (case == "parent")
    assert not by_nuts & steps["HDPMixtureStep"]


@pytest.mark.parametrize("is_before", [False, True])
def test_only_the_first_of_the_mixtures_that_share_alpha_moves_it(is_before: bool) -> None:
    """What a mixture that comes before records would be of another alpha."""
    with pm.Model() as model:
        (alpha,) = gammas("alpha")
        if is_before:
            dps.DPMixture("d", alpha, NORMAL, observed=ROWS)
        grouped(alpha, 1.0)
        if not is_before:
            dps.DPMixture("d", alpha, NORMAL, observed=ROWS)
        step = dps.HDPMixtureStep(model=model)
    assert ("alpha" in step._priors) != is_before
    (first,) = (moved for name, moved in steps_of(model) if name == "NUTS")
    assert first == {"alpha_log__"}


def test_a_step_that_is_given_keeps_its_concentration() -> None:
    with pm.Model():
        alpha, gamma = gammas("alpha", "gamma")
        grouped(alpha, gamma)
        idata = pm.sample(
            draws=5, tune=5, chains=1, cores=1, step=pm.Metropolis([alpha]), random_seed=1,
            progressbar=False, compute_convergence_checks=False,
        )  # fmt: skip
    assert "accept" in idata["sample_stats"]
    assert idata["sample_stats"].sizes.get("tree_depth") is None
    assert np.isfinite(idata["posterior"]["gamma"]).all()


@pytest.mark.parametrize("first", ["latent", "groups"])
def test_steps_follow_the_order_of_the_declarations(first: str) -> None:
    """So that the log joint of rows in groups is that given latent rows of the same draw."""
    with pm.Model() as model:
        pm.Normal("free")
        if first == "groups":
            grouped(*gammas("alpha", "gamma"))
        latent = dps.DPMixture("b", 1.0, NORMAL, shape=3)
        pm.Normal("y", latent, 1.0, observed=ROWS[:3])
        if first == "latent":
            mu0 = latent[0]
            grouped(*gammas("alpha", "gamma"), dps.Normal(mu0, 0.1, 2.0, 1.0))
    names = [name for name, _ in steps_of(model)]
    ours = ["DPSplitMerge", "HDPMixtureStep"]
    assert names == ["NUTS", *(ours if first == "latent" else reversed(ours))]
