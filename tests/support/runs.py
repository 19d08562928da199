"""Short runs of `pm.sample`, and what tests read off them."""

from typing import Any

import numpy as np
import pymc as pm

from tests.support.partitions import n_clusters_law, n_clusters_of, partition_index
from tests.support.quadrature import moments
from tests.support.statistics import combine, count_test, mean_test, partition_test

_SAMPLING: dict[str, Any] = {
    "chains": 4,
    "cores": 1,
    "progressbar": False,
    "compute_convergence_checks": False,
    "random_seed": 11,
}


def run(n_draws: int = 1500, **options: Any) -> Any:
    """Sample the model of the context, labels kept; `options` are those of the step."""
    options = {"keep_labels": True, **options}
    return pm.sample(draws=n_draws, tune=300, dpsplit=options, **_SAMPLING)


def run_in_groups(n_draws: int) -> Any:
    """Sample the hierarchical mixtures of the context, labels kept."""
    return pm.sample(draws=n_draws, tune=300, hdp={"keep_labels": True}, **_SAMPLING)


def draws_of(idata: Any, name: str) -> np.ndarray:
    """Draws (chains, draws, ...) of a variable."""
    return idata["posterior"][name].to_numpy()


def labels_test(idata: Any, name: str, probabilities: np.ndarray) -> float:
    """P-value of the partitions of a mixture and of its number of clusters."""
    labels = idata["sample_stats"][f"{name}_labels"].to_numpy()
    n = labels.shape[-1]
    law = n_clusters_law(probabilities, n)
    index = partition_index(labels)
    n_clusters = draws_of(idata, f"{name}_n_clusters")
    np.testing.assert_array_equal(n_clusters_of(n)[index], n_clusters)
    if f"{name}_labels" in idata["posterior"]:
        np.testing.assert_array_equal(partition_index(draws_of(idata, f"{name}_labels")), index)
    return combine(partition_test(index, probabilities), count_test(n_clusters, law))


def scalar_test(idata: Any, name: str, law: np.ndarray, nodes: np.ndarray) -> float:
    """P-value of the first two moments of a variable whose law (G,) on a grid is known."""
    draws = draws_of(idata, name)
    return mean_test(np.stack([draws, draws**2], axis=-1), *moments(law, nodes))
