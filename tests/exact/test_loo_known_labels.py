"""Leave-one-out of rows with known labels under every law, against all partitions enumerated.

The mean over the posterior of 1 / p(x_i | what the others of a draw know) is 1 / p(x_i | others).
Every partition has as many draws, weighted by its probability, so that rare ones are not missed.
"""

from functools import cache
from typing import Any

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import stats
from scipy.special import logsumexp

import pymc_dpsplit as dps
from pymc_dpsplit.moves.partition_law import PartitionLaw, finite_mixture
from pymc_dpsplit.posterior.prediction import loo
from pymc_dpsplit.variables import find_mixtures
from tests.support.exact_traces import trace_of_partitions
from tests.support.families import component_of, twin_of
from tests.support.partition_laws import LogPrior, assigned, seated
from tests.support.partitions import enumerate_partitions
from tests.support.shared_labels import keeps_together, known_labels
from tests.support.statistics import LEVEL, combine

pytestmark = pytest.mark.slow

# No row is so far from the others that 1 / p has a heavy tail.
ROWS = np.array([0.8, -0.3, 1.2, 0.3])[:, None]
KNOWN = np.array([4, -1, 4, -1])
N, N_ITEMS, N_DRAWS = 4, 3, 2000

LAWS: dict[str, tuple[PartitionLaw, LogPrior]] = {
    "Dirichlet process": (PartitionLaw(0.0, 1.3), seated(1.3, 0.0)),
    "Pitman-Yor": (PartitionLaw(0.1, 0.5), seated(0.5, 0.1)),
    "finite": (finite_mixture(0.7, 4), assigned(0.7, 4)),
    "finite, often full": (finite_mixture(1.5, 2), assigned(1.5, 2)),
}
# Labels given the recorded atoms need too many others to be redrawn.
HEAVY: dict[str, tuple[PartitionLaw, LogPrior]] = {
    "Pitman-Yor, heavy": (PartitionLaw(0.6, 0.5), seated(0.5, 0.6))
}
EVERY = LAWS | HEAVY
CASES = [(name, keeps) for name in EVERY for keeps in (True, False) if keeps or name in LAWS]


def log_joint_of(log_prior: LogPrior, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Partitions of some of the rows that respect known labels, and their log joint densities."""
    rows, twin = ROWS[chosen], twin_of("Normal", 1)
    partitions = enumerate_partitions(len(rows))[keeps_together(KNOWN[chosen])].astype(int)
    found = [
        log_prior(z) + sum(twin.log_marginal(rows[z == k]) for k in range(z.max() + 1))
        for z in partitions
    ]
    return partitions, np.array(found)


@cache
def sampled(name: str, keeps: bool) -> tuple[pm.Model, xr.DataTree, np.ndarray]:
    """Model, trace with a chain for each partition, and the law of partitions."""
    law, log_prior = EVERY[name]
    with pm.Model() as model:
        component = component_of("Normal", 1)
        data: dict[str, Any] = {"observed": ROWS[:, 0], "labels": KNOWN}
        if law.discount < 0:
            number = round(-law.strength / law.discount)
            dps.FiniteMixture("x", -law.discount, component, n_components=number, **data)
        else:
            dps.DPMixture("x", law.strength, component, discount=law.discount, **data)
    partitions, log_joint = log_joint_of(log_prior, np.arange(N))
    possible = np.isfinite(log_joint)
    partitions, log_joint = partitions[possible], log_joint[possible]
    # The numbers of labels mean nothing.
    numbered = partitions.max(1, keepdims=True) - partitions
    chosen = np.repeat(numbered[:, None], N_DRAWS, axis=1)
    rng = np.random.default_rng(3)
    idata = trace_of_partitions("Normal", ROWS, chosen, law, rng, N if keeps else None)
    return model, idata, np.exp(log_joint - logsumexp(log_joint))


def exact(name: str) -> np.ndarray:
    """Log density (N_ITEMS,) of the rows of each item, and that they are together, given others."""
    log_prior, items = EVERY[name][1], known_labels(KNOWN).group_of_row

    def log_total(chosen: np.ndarray) -> float:
        return float(logsumexp(log_joint_of(log_prior, chosen)[1]))

    others = [log_total(np.flatnonzero(items != item)) for item in range(N_ITEMS)]
    return log_total(np.arange(N)) - np.array(others)


def p_value(name: str, keeps: bool) -> float:
    """P-value of the mean of 1 / p, relative to what it should be, of each item."""
    model, idata, law = sampled(name, keeps)
    mixture = find_mixtures(model)["x"]
    found = loo.left_out_likelihood(idata, model, mixture, None, np.random.default_rng(5))
    of_draws = np.tensordot(law, np.exp(exact(name) - found.to_numpy()), axes=1)
    return combine(*stats.ttest_1samp(of_draws, 1.0).pvalue)


@pytest.mark.parametrize(("name", "keeps"), CASES)
def test_left_out_likelihood_is_exact(name: str, keeps: bool) -> None:
    assert p_value(name, keeps) > LEVEL


@pytest.mark.control
@pytest.mark.parametrize(
    ("name", "keeps"), [case for case in CASES if case[0].startswith("finite") or case[0] in HEAVY]
)
def test_remainder_beside_all_clusters_is_caught(
    name: str, keeps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also beside the cluster that only the rows left out have."""

    def beside_all(mixture: Any, law: PartitionLaw, n_members: Any, labels: Any) -> Any:
        strength = max(law.strength + (n_members > 0).sum() * law.discount, 0.0)
        return mixture.items.shared.log_together(strength, law.discount)

    monkeypatch.setattr(loo, "_log_together_beside_others", beside_all)
    assert p_value(name, keeps) < LEVEL


@pytest.mark.control
def test_kept_labels_as_numbers_of_recorded_clusters_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    labels = sampled("Pitman-Yor, heavy", True)[1]["sample_stats"]["x_labels"].to_numpy()

    def as_recorded(self: Any, place: Any, draw: Any, rng: Any) -> Any:
        return draw, labels[place]

    monkeypatch.setattr(loo.Members, "at", as_recorded)
    assert p_value("Pitman-Yor, heavy", True) < LEVEL


def test_a_large_discount_needs_kept_labels() -> None:
    model, idata, _ = sampled("Pitman-Yor, heavy", False)
    with pytest.raises(ValueError, match=r"need too many other atoms"):
        dps.loo(idata, model=model, random_seed=1)
