"""PyMC's convergence checks after sampling, kept to what does not depend on cluster numbering.

`pm.sample` computes R-hat and ESS of every element of every free variable.  Row k of the weights
or of a parameter is whichever cluster is k-th largest in that draw: its R-hat says nothing
about convergence, and there may be thousands of such elements.  The numbers of clusters and
the new weight do not depend on the numbering and stay checked.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from pymc.model import Model
from pymc.sampling import mcmc

from pymc_dpsplit.variables import is_owned

_WRAPPED = "_dpsplit_wrapped"


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
        # PyMC fails where there is nothing to check, as when alpha is so small that K = 1 always.
        left = [rv for rv in model.free_RVs if rv.name not in uncheckable]
        return check(_without(idata, uncheckable), model) if left else []

    setattr(checked, _WRAPPED, True)
    return checked


def _uncheckable(idata: xr.DataTree, model: Model) -> list[str]:
    """Names of mixture variables whose diagnostics mean nothing: by cluster, or constant."""
    if "posterior" not in idata.children:
        return []
    owned = [rv for rv in model.free_RVs if is_owned(rv) and rv.name in idata["posterior"]]
    return [str(rv.name) for rv in owned if rv.ndim > 0 or _is_constant(idata, rv.name)]


def _is_constant(idata: xr.DataTree, name: str) -> bool:
    return bool(np.ptp(idata["posterior"][name].to_numpy()) == 0)


def _without(idata: xr.DataTree, names: list[str]) -> xr.DataTree:
    """Shallow copy of a trace without some variables of the posterior."""
    copied = idata.copy()
    copied["posterior"] = xr.DataTree(idata["posterior"].to_dataset().drop_vars(names))
    return copied
