"""Data of any kind within the support: a chain keeps its books, and its log joint is right.

Ties, constant columns, fewer rows than features, one row, far and wide entries, any alpha.
"""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pymc_dpsplit import sampler
from pymc_dpsplit.moves.partition import log_joint
from pymc_dpsplit.moves.partition_law import dirichlet_process
from tests.support.families import GAUSSIAN, SINGLE
from tests.support.family_cases import Case, case_of, sizes_of
from tests.support.partition_laws import seated
from tests.support.partitions import canonical

_MOST_ROWS = 9


@st.composite
def hard_cases(draw: st.DrawFn) -> Case:
    """A family under test with rows that are legal and hard."""
    name = draw(st.sampled_from(SINGLE))
    n_features = draw(st.sampled_from([size for size in sizes_of(name) if size <= 3]))
    n_obs = draw(st.integers(1, _MOST_ROWS))
    # Few different numbers: ties, constant columns and equal rows are frequent.
    entries = st.sampled_from([0.0, 0.5, 1.0, -2.5, 1e-6, 30.0, -1e3])
    rows = draw(st.lists(entries, min_size=n_obs * n_features, max_size=n_obs * n_features))
    table = np.reshape(rows, (n_obs, n_features))
    # Rows of other families are powers of these, or counts as large.
    case = case_of(name, table if name in GAUSSIAN else np.clip(table, -9.0, 9.0))
    # The naive twin has no digits left where a density is as good as 0.
    assume(np.isfinite(case.twin.log_marginal(case.rows)))
    return case


def books_of(
    case: Case, alpha: float, kernel: str, seed: int
) -> tuple[sampler.Target, sampler.ChainState]:
    """State of a chain after some iterations."""
    law = sampler.Target(case.prior, case.data, dirichlet_process(alpha))
    rng = np.random.default_rng(seed)
    schedule = sampler.Schedule(2, 2.0, np.arange(0, len(case.rows), 2))
    return law, sampler.advance(kernel, law, sampler.start(law, rng), rng, schedule)[0]


def log_joint_of(case: Case, labels: np.ndarray, alpha: float) -> float:
    """Log density of data and partition, cluster by cluster, by the naive twin."""
    total = seated(alpha, 0.0)(canonical(labels[None])[0])
    return total + sum(case.twin.log_marginal(case.rows[labels == k]) for k in np.unique(labels))


@given(
    hard_cases(),
    st.sampled_from([1e-3, 0.7, 5.0, 1e3, 1e7]),
    st.sampled_from(sampler.KERNELS),
    st.integers(0, 2**32 - 1),
)
def test_chain_keeps_its_books(case: Case, alpha: float, kernel: str, seed: int) -> None:
    published = sampler.SAMPLERS.get(kernel)
    assume(published is None or alpha <= published.most_strength)
    target, state = books_of(case, alpha, kernel, seed)
    n_clusters = len(state.stats)
    assert set(state.labels) == set(range(n_clusters))
    fresh = sampler.resume(target, state.labels)
    np.testing.assert_allclose(state.stats, fresh.stats, rtol=1e-9, atol=1e-9)
    expected = log_joint_of(case, state.labels, alpha)
    assert log_joint(target, state.stats) == pytest.approx(expected, rel=1e-8, abs=1e-7)
    measure = sampler.measure(target, state, np.random.default_rng(seed))
    for parameter in case.component.unpack(measure.params, case.shift).values():
        assert np.isfinite(parameter).all()


@pytest.mark.control
def test_wrong_alpha_is_seen() -> None:
    case = case_of("Normal", np.array([[0.0], [1.0], [5.0]]))
    target, state = books_of(case, 1.0, "exact", 1)
    expected = log_joint_of(case, state.labels, 1.1)
    assert log_joint(target, state.stats) != pytest.approx(expected, rel=1e-8, abs=1e-7)
