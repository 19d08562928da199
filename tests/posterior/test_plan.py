"""What an iteration was made of, as `diagnose` says it."""

import numpy as np
import pytest

from pymc_dpsplit.posterior.diagnostics.diagnose import diagnose
from pymc_dpsplit.posterior.diagnostics.plan import plan_remarks

CASES = {
    "collapsed sweeps": (
        {"sliced": False, "scanned": [82, 82], "attempts": [0.1, 0.1], "iterations": [18, 30]},
        "An iteration was made of collapsed Gibbs for 82 observations and 0.1 split/merge attempts "
        "on average; 18 to 30 iterations per draw.",
    ),
    "slices": (
        {"sliced": True, "scanned": [0, 0], "attempts": [0.0, 0.0], "iterations": [1, 1]},
        "An iteration was made of a sweep by slices; 1 iteration per draw.",
    ),
    "slices and lists": (
        {"sliced": True, "scanned": [0, 35], "attempts": [2.0, 2.0], "iterations": [4, 4]},
        "An iteration was made of a sweep by slices and collapsed Gibbs for 0 to 35 observations "
        "and 2 split/merge attempts on average; 4 iterations per draw.",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_plan_is_said_in_words(case, make_trace):
    plan, expected = CASES[case]
    idata = make_trace(n_chains=2, n_draws=10)
    stats = idata["sample_stats"].to_dataset()
    for key, values in plan.items():
        by_chain = np.broadcast_to(np.atleast_1d(values)[:, None], (2, 10))
        stats[f"x_{key}"] = (("chain", "draw"), by_chain)
    assert plan_remarks(stats, "x") == [expected]
    idata["sample_stats"] = stats
    assert expected in " ".join(str(diagnose(idata)).split())


def test_trace_that_does_not_record_it_has_no_remark(make_trace):
    assert plan_remarks(make_trace(n_draws=10)["sample_stats"].to_dataset(), "x") == []
