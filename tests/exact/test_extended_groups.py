"""Chains of rows in groups that go on from the last draws of a trace, against enumeration."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_dpsplit as dps
from pymc_dpsplit.kernels.jit import COMPILES
from pymc_dpsplit.posterior.extension.last_draws import last_draws, last_draws_in_groups
from tests.support.corpora import Draws, p_value_of
from tests.support.exact_traces import exact_grouped_trace
from tests.support.families import as_observed, component_of
from tests.support.grouped_rows import CASES, ROWS, truth_of_rows
from tests.support.partitions import partition_index
from tests.support.statistics import LEVEL

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Found chain dimension to be longer"),
]

CASE = CASES["42"]
N_CHAINS = 3000 if COMPILES else 400


def declared(family: str) -> pm.Model:
    with pm.Model() as model:
        dps.HDPMixture(
            "x", CASE.alpha, CASE.gamma, component_of(family, 1), groups=CASE.groups,
            observed=as_observed(family, ROWS[family]),
        )  # fmt: skip
    return model


def trace_of(family: str, n_chains: int) -> xr.DataTree:
    """One exact draw of each of many chains."""
    given = ROWS[family], np.array(CASE.groups), CASE.alpha, CASE.gamma
    return exact_grouped_trace(family, *given, (n_chains, 1), seed=8)


def p_value(family: str, shift: int = 0, n_chains: int = N_CHAINS) -> float:
    """Continue each chain by one draw; `shift` gives chains the labels of others."""
    model, idata = declared(family), trace_of(family, n_chains)
    last = last_draws_in_groups(idata, model)
    last["x"] = last["x"]._replace(labels=np.roll(last["x"].labels, shift, axis=0))
    # With more iterations a draw forgets where it went on from.
    work = {"iterations": 1, "attempts": 0}
    step = dps.HDPMixtureStep(
        model.free_RVs, model=model, rng=np.random.default_rng(4), **work, continues=last
    )
    labels, n_tables, rest = [], [], []
    for start in last_draws(idata, model):
        point = {**start, "x_new_weight_log__": np.log(start["x_new_weight"])}
        step.setup_chain(np.random.default_rng(len(labels)), 0, 1)
        after, (found,) = step.step({name: point[name] for name in step_values(model)})
        labels.append(found["x_labels"])
        n_tables.append(int(after["x_n_tables"]))
        rest.append(float(np.exp(after["x_new_weight_log__"])))
    partitions = np.array(labels).astype(int).reshape(20, -1, len(CASE.groups))
    shape = partitions.shape[:2]
    draws = Draws(
        partition_index(partitions), partitions.max(axis=2) + 1,
        np.reshape(n_tables, shape), np.reshape(rest, shape),
    )  # fmt: skip
    return p_value_of(draws, truth_of_rows(family, CASE))


def step_values(model: pm.Model) -> list[str]:
    return [str(value.name) for value in model.value_vars]


@pytest.mark.parametrize("family", ROWS)
def test_continued_chains_follow_the_posterior(family):
    assert p_value(family) > LEVEL


@pytest.mark.control
def test_labels_of_another_chain_are_caught():
    """A sweep repairs most of it, so that it takes many chains."""
    assert p_value("Poisson", shift=1, n_chains=8 * N_CHAINS) < LEVEL
