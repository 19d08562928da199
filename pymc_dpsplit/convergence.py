"""What PyMC says after sampling: convergence, and draws with clusters that were not recorded.

`pm.sample` computes R-hat and ESS of every element of every free variable.  Row k of the weights
or of a parameter is whichever cluster is k-th largest in that draw: its R-hat says nothing
about convergence, and there may be thousands of such elements.  The numbers of clusters and
the new weight do not depend on the numbering and stay checked.

The checks run once, in the main process, and PyMC prints what they find: so this is also where
it is said that draws had more clusters than rows to record them.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from pymc.model import Model
from pymc.sampling import mcmc
from pymc.stats.convergence import SamplerWarning, WarningType

from pymc_dpsplit.variables import find_mixtures, is_owned

_WRAPPED = "_dpsplit_wrapped"
# Missing entries do not depend on numbering, but PyMC takes about a millisecond for each.
_MOST_ENTRIES = 1000


def install() -> None:
    """Let `pm.sample` check only what can be checked; calling it again changes nothing."""
    if not hasattr(mcmc.run_convergence_checks, _WRAPPED):
        mcmc.run_convergence_checks = _wrap(mcmc.run_convergence_checks)


def _wrap(check: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    @functools.wraps(check)
    def checked(idata: xr.DataTree, model: Model) -> list[Any]:
        uncheckable = _uncheckable(idata, model)
        if not uncheckable:
            return check(idata, model)
        dropped = _dropped_rows(idata, model)
        # PyMC fails where there is nothing to check, as when alpha is so small that K = 1 always.
        left = [rv for rv in model.free_RVs if rv.name not in uncheckable]
        return dropped + (check(_without(idata, uncheckable), model) if left else [])

    setattr(checked, _WRAPPED, True)
    return checked


def _uncheckable(idata: xr.DataTree, model: Model) -> list[str]:
    """Names of mixture variables not to check: by cluster, constant, or too many entries."""
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


def _dropped_rows(idata: xr.DataTree, model: Model) -> list[SamplerWarning]:
    """Warn of each mixture that had more clusters than rows to record them."""
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


def _is_constant(idata: xr.DataTree, name: str) -> bool:
    return bool(np.ptp(idata["posterior"][name].to_numpy()) == 0)


def _without(idata: xr.DataTree, names: list[str]) -> xr.DataTree:
    """Shallow copy of a trace without some variables of the posterior."""
    copied = idata.copy()
    copied["posterior"] = xr.DataTree(idata["posterior"].to_dataset().drop_vars(names))
    return copied
