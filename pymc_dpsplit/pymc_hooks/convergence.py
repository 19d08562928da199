"""Checks of PyMC after sampling: convergence, and draws with clusters that were not recorded.

`pm.sample` computes R-hat and ESS of every element of every free variable.  Row k of the weights
or of a parameter is the k-th largest cluster of each draw, so its R-hat does not measure
convergence, and there may be thousands of such elements.  They are excluded.  The number of
clusters and the weight of the remainder do not depend on the numbering and remain checked.

The checks run once, in the main process, and PyMC prints their warnings.  This module therefore
also adds the warning that draws had more clusters than rows to record them, and that of
`far_clusters`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from pymc.model import Model
from pymc.stats.convergence import SamplerWarning, WarningType

from pymc_dpsplit.pymc_hooks.far_clusters import far_clusters
from pymc_dpsplit.variables import find_mixtures, is_owned

if TYPE_CHECKING:
    import xarray as xr

# Missing entries do not depend on the numbering, but PyMC takes about a millisecond for each.
_MOST_ENTRIES = 1000


def checking(check: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """Exclude variables that depend on the numbering from the checks of `pm.sample`."""

    def checked(idata: "xr.DataTree", model: Model) -> list[Any]:
        uncheckable = _uncheckable(idata, model)
        if not uncheckable:
            return check(idata, model)
        dropped = _dropped_rows(idata, model) + far_clusters(idata, model)
        # PyMC fails if no variable is left to check, for instance if K = 1 in all draws.
        left = [rv for rv in model.free_RVs if rv.name not in uncheckable]
        return dropped + (check(_without(idata, uncheckable), model) if left else [])

    return checked


def _uncheckable(idata: "xr.DataTree", model: Model) -> list[str]:
    """Return mixture variables not to check: per cluster, constant, or with too many entries."""
    if "posterior" not in idata.children:
        return []
    owned = [rv for rv in model.free_RVs if is_owned(rv) and rv.name in idata["posterior"]]
    entries = [mixture.unobserved for mixture in find_mixtures(model).values()]
    return [
        str(rv.name)
        for rv in owned
        if _is_constant(idata, rv.name)
        or (rv.ndim > 0 and (rv not in entries or rv.type.shape[0] > _MOST_ENTRIES))
    ]


def _dropped_rows(idata: "xr.DataTree", model: Model) -> list[SamplerWarning]:
    """Return a warning for each mixture that had more clusters than rows to record them."""
    if "sample_stats" not in idata.children:
        return []
    warnings = []
    for name, mixture in find_mixtures(model).items():
        occupied = idata["sample_stats"].get(f"{name}_occupied")
        if occupied is None or not (occupied > mixture.max_clusters).any():
            continue
        n_draws = int((occupied > mixture.max_clusters).sum())
        message = (
            f"{n_draws} draws of {name} had up to {int(occupied.max())} clusters, of which the "
            f"largest max_clusters={mixture.max_clusters} were recorded; the chains are not "
            "affected, but set max_clusters= higher in DPMixture to record all."
        )
        warnings.append(SamplerWarning(WarningType.BAD_PARAMS, message, "warn"))
    return warnings


def _is_constant(idata: "xr.DataTree", name: str) -> bool:
    return bool(np.ptp(idata["posterior"][name].to_numpy()) == 0)


def _without(idata: "xr.DataTree", names: list[str]) -> "xr.DataTree":
    """Return a shallow copy of a trace without some variables of the posterior."""
    copied = idata.copy()
    copied["posterior"] = type(idata)(idata["posterior"].to_dataset().drop_vars(names))
    return copied
