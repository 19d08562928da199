"""Suppression of a warning of PyMC about sparse data that are too large for a trace.

At the end of a run PyMC converts all observed data to arrays, and warns if that fails.  It fails by
design for large sparse data, see `variables.sparse_data`, which the group `observed_data` omits.
"""

import re
import warnings
from collections.abc import Callable
from typing import Any

from pymc_dpsplit.variables.sparse_data import is_too_large


def without_warning(find: Callable[..., Any]) -> Callable[..., Any]:
    """Suppress the warning of PyMC for sparse data of mixtures."""

    def finding(model: Any) -> Any:
        with warnings.catch_warnings():
            for rv in model.observed_RVs:
                if is_too_large(model.rvs_to_values.get(rv)):
                    message = f"Could not extract data .* {re.escape(str(rv.name))}$"
                    warnings.filterwarnings("ignore", message)
            return find(model)

    return finding
