"""Which part of the suite is quick, and what the long one has besides.

`make test` runs `tests/unit`, `tests/property`, `tests/estimates` and the files of `PLAIN_FILES` as
plain Python, without numba's compiler.  The rest it runs compiled: every move with one family on
one data set, `pm.sample` against enumeration with one family, one broken sampler of each kind, and
what takes less than five seconds of models, traces and checkpoints.  What a test compiles counts as
its time, unless others need it too: most models have a `Normal` or `DiagNormal`, which share
kernels, or an `MvNormal`.

`make test-long` runs the items marked slow, compiled:

- `pm.sample` with every family, compiled (`tests/integration/test_every_family.py`), and all
  samplers of the literature;
- every move with every family on every second data set against enumeration, 64 chains of 1000
  moves: a concentration that is wrong by a twentieth is found (`tests/exact/test_enumeration.py`);
- every move with every family by one step from 5000 exact draws: wrong by a tenth is found
  (`tests/exact/test_one_step_invariance.py`);
- numbers of clusters do not matter for any move and family (`tests/exact/test_cluster_numbers.py`);
- long runs of missing entries, latent rows, hyperparameters and finite mixtures against quadrature,
  and simulation-based calibration of `pm.sample` and of components of any density;
- hard data, float32 and the highest partition for every family and kernel;
- 10,000 cases of every property.
"""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

# A full covariance, and counts, whose operations are made from four functions of a column.
QUICK_FAMILIES = ("MvNormal", "Poisson")
# Compiling the kernels of a family takes longer than running their tests.
COMPILED_FAMILY = "MvNormal"
# The rows and the concentration of enumeration: one mistake showed at alpha = 5 alone.
QUICK_DATASET = "overlapping"
QUICK_ALPHAS = (5.0,)
# The composition that chains run by default, and broken moves of three kinds.
QUICK_MOVE = "exact kernel"
QUICK_MOVES = (QUICK_MOVE, "slice", "collapsed split/merge")
QUICK_CONTROLS = ("shifted slice", "uncompensated split", "mismatched atoms")

# By module, fixtures that sample kernels which nothing else in the quick suite compiles: what uses
# them is in the long suite.
SLOW_FIXTURES = {
    "test_tables": {"run", "idata"},
    "test_components_after_sampling": {"sampled", "regressed"},
    "test_groups_and_counts": {"idata"},
    "test_known_labels_in_models": {"idata"},
    "test_mean_of_rows": {"idata"},
    "test_regression_mixture": {"idata"},
    "test_shared_variables": {"idata"},
    "test_topic_models": {"sampled"},
    "test_hierarchical_models": {"sampled"},
    "test_compare_samplers": {"found"},
}

# Files of tests/docs and tests/integration that declare, refuse and evaluate more than they sample,
# so that PyTensor's graphs take less time as Python than to compile.  What is marked compiled in
# them, or uses one of these fixtures, which sample, runs compiled.
PLAIN_FILES: dict[str, set[str]] = {
    "test_components": set(),
    "test_declaration": set(),
    "test_docs": set(),
    "test_groups_and_counts": {"idata"},
    "test_hierarchical_models": {"sampled"},
    "test_hyperparameters": set(),
    "test_initial_values": set(),
    "test_latent_models": {"idata"},
    "test_latent_rows_in_groups": {"sampled", "with_known_gamma"},
    "test_laws_in_models": {"fitted"},
    "test_mfm_in_models": {"fitted"},
    "test_predictive": set(),
    "test_pymc_dims": set(),
    "test_refusals": set(),
}


def slow_unless(is_quick: Callable[..., bool], values: Iterable[Any]) -> list[Any]:
    """Values for `pytest.mark.parametrize`, marked slow where `is_quick(value)` is false."""
    return [
        value
        if is_quick(value)
        else pytest.param(
            *(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.slow
        )
        for value in values
    ]


def is_quick_family(family: str) -> bool:
    """Whether products run for a family in the quick suite."""
    return family in QUICK_FAMILIES


def over_compiled(families: Iterable[str]) -> list[Any]:
    """Families for `pytest.mark.parametrize`, slow where other kernels would be compiled."""
    return slow_unless(COMPILED_FAMILY.__eq__, families)


def over_families(families: Iterable[str]) -> list[Any]:
    """Families for `pytest.mark.parametrize`, slow where they are not quick."""
    return slow_unless(is_quick_family, families)


def over_cases(cases: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Tuples that begin with a family, each the value of one argument, slow as families are."""
    marked = []
    for case in cases:
        marks = () if is_quick_family(case[0]) else pytest.mark.slow
        marked.append(pytest.param(case, marks=marks))
    return marked
