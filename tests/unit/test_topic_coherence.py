"""Coherence of topics against sums over pairs, written out."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import pymc_dpsplit as dps
from tests.support.traces_of_topics import trace_of

DOCUMENTS = np.array([[2, 1, 0, 0], [1, 3, 1, 0], [0, 1, 4, 0], [5, 0, 0, 1], [0, 1, 1, 0]])
TOPICS = [[0.5, 0.3, 0.2, 0.0], [0.1, 0.2, 0.7, 0.0]]


def written_out(words: list[int], measure: str) -> float:
    """Mean over pairs, the likelier word first."""
    occurs = DOCUMENTS > 0
    values = []
    for j, i in combinations(words, 2):
        both, one, other = (
            (occurs[:, i] & occurs[:, j]).sum(),
            occurs[:, i].sum(),
            occurs[:, j].sum(),
        )
        if measure == "umass":
            values.append(np.log((both + 1) / other))
        elif both == 0:
            values.append(-1.0)
        else:
            p, p_one, p_other = both / 5, one / 5, other / 5
            values.append(np.log(p / (p_one * p_other)) / -np.log(p))
    return float(np.mean(values))


@pytest.mark.parametrize("measure", ["npmi", "umass"])
def test_coherence_is_the_mean_over_pairs(measure: str) -> None:
    idata = trace_of(TOPICS, [0.6, 0.3])
    found = dps.topic_coherence(idata, csr_matrix(DOCUMENTS), n=3, measure=measure)
    assert found.dims == ("topic",)
    assert np.allclose(found, [written_out([0, 1, 2], measure), written_out([2, 1, 0], measure)])
    fewer = dps.topic_coherence(idata, DOCUMENTS, n=2, measure=measure)
    assert np.allclose(fewer, [written_out([0, 1], measure), written_out([2, 1], measure)])


def test_npmi_has_its_bounds() -> None:
    idata = trace_of(TOPICS, [0.6, 0.3])
    always = dps.topic_coherence(idata, np.ones((4, 4), int), n=3)
    never = dps.topic_coherence(idata, np.eye(4, dtype=int), n=3)
    pairs = dps.topic_coherence(idata, [[1, 1, 1, 0], [0, 0, 0, 1]], n=3)
    assert np.allclose(always, 1.0)
    assert np.allclose(never, -1.0)
    assert np.allclose(pairs, 1.0)


@pytest.mark.parametrize(
    ("documents", "options", "message"),
    [
        ([[1, 2]], {}, "documents has 2 words, but w has 4; give one column"),
        (DOCUMENTS, {"n": 1}, "n=1 is out of range"),
        (DOCUMENTS, {"measure": "c_v"}, "measure='c_v' is unknown; give 'npmi' or 'umass'"),
        (DOCUMENTS, {"draw": 9}, "draw=9 is out of range"),
        ([[1, 1, 0, 1]], {"measure": "umass"}, "documents has no word 2, which measure='umass'"),
    ],
)
def test_what_has_no_coherence_is_refused(
    documents: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        dps.topic_coherence(trace_of(TOPICS, [0.6, 0.3]), documents, **options)
