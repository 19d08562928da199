"""Data too large for a trace: left out of the group `observed_data`, which PyMC need not warn of.

PyMC makes arrays of all observed data when a run ends, and warns of those of which it cannot.
Sparse data above a size are such by design, see `variables.sparse_data`.
"""

import functools
import re
import warnings
from collections.abc import Callable
from typing import Any

from pymc.backends import arviz, zarr

from pymc_dpsplit.variables.sparse_data import is_too_large

_WRAPPED = "_dpsplit_wrapped"


def install() -> None:
    """Silence that warning of PyMC for sparse data of mixtures; again changes nothing."""
    find = arviz.find_observations
    if not hasattr(find, _WRAPPED):
        wrapped = functools.wraps(find)(_without_warning(find))
        setattr(wrapped, _WRAPPED, True)
        arviz.find_observations = zarr.find_observations = wrapped


def _without_warning(find: Callable[..., Any]) -> Callable[..., Any]:
    def finding(model: Any) -> Any:
        with warnings.catch_warnings():
            for rv in model.observed_RVs:
                if is_too_large(model.rvs_to_values.get(rv)):
                    message = f"Could not extract data .* {re.escape(str(rv.name))}$"
                    warnings.filterwarnings("ignore", message)
            return find(model)

    return finding
