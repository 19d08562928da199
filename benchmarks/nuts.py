"""NUTS on finite mixtures beside the mixture with any number of clusters, by `compare_samplers`."""

import logging
import warnings
from collections.abc import Iterator

import numpy as np

import pymc_dpsplit as dps
from benchmarks import workloads
from benchmarks.row import Row
from pymc_dpsplit.posterior.comparison.compare_samplers import Comparison

_CASES = ("galaxies", "faithful")
_SEEDS = (11, 12, 13)
_N_COMPONENTS = 10
_DRAWS = 1000
_RIVAL = f"nutpie K={_N_COMPONENTS}"


def _compared(name: str, seed: int) -> Comparison:
    """One run of each sampler, sticks as weights: the Dirichlet process cut off."""
    workload = workloads.load(name)
    return dps.compare_samplers(
        workload.observed,
        workload.component,
        n_components=_N_COMPONENTS,
        weights="stick",
        samplers=("dpsplit", "nutpie"),
        draws=_DRAWS,
        tune=_DRAWS,
        random_seed=seed,
    )


def row_of(name: str, found: list[Comparison]) -> Row:
    """Effective draws of the predictive density per CPU second, ours over nutpie's."""
    title, tables = f"{name}: ours over nutpie", [of.table for of in found]
    if _RIVAL not in tables[0].index:
        return Row(name=title, measured=None, note="nutpie is not installed")
    ours = np.array([table.loc["dpsplit", "ess_density_per_s"] for table in tables])
    theirs = np.array([table.loc[_RIVAL, "ess_density_per_s"] for table in tables])
    each = "; ".join(f"{a:.3g} : {b:.3g}" for a, b in zip(ours, theirs, strict=True))
    hats = [max(table.loc[of, "r_hat"] for table in tables) for of in ("dpsplit", _RIVAL)]
    ratios = ours / theirs
    return Row(
        name=title,
        measured=float(np.median(ratios)),
        unit="x",
        note=f"{ratios.min():.3g} to {ratios.max():.3g}; per s {each}; largest R-hat "
        f"{hats[0]:.3f} : {hats[1]:.3f}",
    )


def run() -> Iterator[Row]:
    """Both data sets."""
    for logger in ("pymc", "nutpie"):
        logging.getLogger(logger).setLevel(logging.ERROR)
    for name in _CASES:
        with warnings.catch_warnings():
            # Label switching, on which compare_samplers does not depend.
            warnings.simplefilter("ignore", UserWarning)
            found = [_compared(name, seed) for seed in _SEEDS]
        yield row_of(name, found)
