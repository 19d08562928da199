"""Traces of independent draws from the exact posterior of a small data set, without a sampler."""

from typing import Any

import arviz as az
import numpy as np
import xarray as xr

from pymc_dpsplit.moves.partition_law import PartitionLaw, dirichlet_process
from tests.reference.franchise import states_of_groups
from tests.support.families import twin_of
from tests.support.partitions import enumerate_partitions, exact_posterior


def exact_trace(
    family: str,
    rows: np.ndarray,
    alpha: float,
    shape: tuple[int, int],
    seed: int,
    n_kept: int | None = None,
) -> xr.DataTree:
    """A trace (chain, draw) of the mixture ``x`` of rows (n, D), as `pm.sample` writes it.

    Partitions are drawn by enumeration, weights given them from their Dirichlet law, and
    parameters by the naive twin of the family.  Clusters are in the order of their size, as the
    step records them.  The labels are in the trace, numbered arbitrarily, only if `n_kept` is
    given, the number of clusters of which it records weights and parameters.
    """
    rng = np.random.default_rng(seed)
    law = exact_posterior(twin_of(family, rows.shape[1]), rows, alpha)
    chosen = enumerate_partitions(len(rows))[rng.choice(len(law), size=shape, p=law)]
    return trace_of_partitions(family, rows, chosen, dirichlet_process(alpha), rng, n_kept)


def trace_of_partitions(
    family: str,
    rows: np.ndarray,
    chosen: np.ndarray,
    law: PartitionLaw,
    rng: np.random.Generator,
    n_kept: int | None = None,
) -> xr.DataTree:
    """A trace as that of `exact_trace`, of partitions (chain, draw, n) under a law."""
    shape, n_obs, twin = chosen.shape[:2], len(rows), twin_of(family, rows.shape[1])
    found: dict[str, Any] = {
        "x_n_clusters": chosen.max(-1) + 1,
        "x_new_weight": np.empty(shape),
        "x_weights": np.zeros((*shape, n_obs)),
    }
    for place in np.ndindex(*shape):
        labels = chosen[place]
        order = np.argsort(-np.bincount(labels), kind="stable")
        masses = np.bincount(labels)[order] - law.discount
        left = law.strength + len(order) * law.discount
        # No weight is left beside all components of a finite mixture.
        drawn = rng.dirichlet([*masses, left] if left > 1e-9 else masses)
        found["x_weights"][place][: len(order)] = drawn[: len(order)]
        found["x_new_weight"][place] = drawn[len(order) :].sum()
        for row, k in enumerate(order):
            for key, value in twin.draw_parameters(rng, rows[labels == k], 1).items():
                empty = np.full((*shape, n_obs, *value.shape[1:]), np.nan)
                found.setdefault(f"x_{key}", empty)[place][row] = value[0]
    names = [key for key in found if key not in ("x_n_clusters", "x_new_weight")]
    groups: dict[str, dict[str, Any]] = {"posterior": found}
    if n_kept is not None:
        found |= {key: found[key][:, :, :n_kept] for key in names}
        groups["sample_stats"] = {"x_labels": chosen.astype(np.uint8)}
    return az.from_dict(groups, dims={key: ["x_cluster"] for key in names})


def exact_grouped_trace(
    family: str,
    rows: np.ndarray,
    groups: np.ndarray,
    alpha: float,
    gamma: float,
    shape: tuple[int, int],
    seed: int,
) -> xr.DataTree:
    """A trace (chain, draw) of the hierarchical mixture ``x`` of rows (n, D), with its labels.

    Partitions and tables are drawn by enumeration, global weights and parameters given them.
    """
    rng = np.random.default_rng(seed)
    n_obs, twin = len(rows), twin_of(family, rows.shape[1])

    def log_likelihood(labels: np.ndarray) -> float:
        return sum(twin.log_marginal(rows[labels == k]) for k in range(labels.max() + 1))

    every = enumerate_partitions(n_obs).astype(int)
    states = list(states_of_groups(groups, log_likelihood, alpha, gamma))
    law = np.exp([log_joint for *_, log_joint in states])
    chosen = rng.choice(len(law), size=shape, p=law / law.sum())
    found: dict[str, Any] = {
        "x_n_clusters": np.empty(shape, int),
        "x_new_weight": np.empty(shape),
        "x_n_tables": np.empty(shape, int),
        "x_weights": np.zeros((*shape, n_obs)),
    }
    own = np.empty((*shape, n_obs), int)
    for place in np.ndindex(*shape):
        partition, tables, _ = states[chosen[place]]
        *weights, rest = rng.dirichlet([*tables, gamma])
        order = np.argsort(-np.array(weights), kind="stable")
        own[place] = np.argsort(order)[every[partition]]
        found["x_n_clusters"][place] = len(order)
        found["x_n_tables"][place] = tables.sum()
        found["x_weights"][place][: len(order)] = np.array(weights)[order]
        found["x_new_weight"][place] = rest
        for row in range(len(order)):
            for key, value in twin.draw_parameters(rng, rows[own[place] == row], 1).items():
                empty = np.full((*shape, n_obs, *value.shape[1:]), np.nan)
                found.setdefault(f"x_{key}", empty)[place][row] = value[0]
    stats = {"x_labels": own, "x_alpha": np.full(shape, alpha)}
    held = {"x_groups": groups, "x_group_sizes": np.bincount(groups)}
    scalars = "x_n_clusters", "x_new_weight", "x_n_tables"
    names = [key for key in found if key not in scalars]
    dims = {key: ["x_cluster"] for key in names}
    dims |= {"x_labels": ["x_dim_0"], "x_groups": ["x_dim_0"], "x_group_sizes": ["x_group"]}
    parts = {"posterior": found, "sample_stats": stats, "constant_data": held}
    coords = {"x_group": np.arange(groups.max() + 1)}
    return az.from_dict(parts, dims=dims, coords=coords)
