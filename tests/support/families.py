"""The table of families under test: a new family is one row here.

Each row gives the family of the package, its naive twin, the numbers of features to test and,
for a discrete family, how real rows become rows of its own and which values an entry can have.
A family whose columns depend on each other has neither missing entries nor some columns alone,
and a single column says nothing.
A composed one is made of others, so that what is not a matter of moves has tests of its own.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.components.arguments import rows_of
from pymc_dpsplit.components.declaration import Component
from pymc_dpsplit.data.blocks import column_means
from tests.reference import discrete, product, shared
from tests.reference import families as naive
from tests.support.datasets import (
    DATASETS,
    HYPERPARAMETERS,
    as_codes,
    as_counts,
    as_mixed,
    as_positive,
    as_times,
    as_zeros_and_ones,
)


def as_they_are(rows: np.ndarray) -> np.ndarray:
    """Real rows, for a family that has a density."""
    return rows


class Family(NamedTuple):
    """A family of the package and its twin."""

    component: type[Component]
    twin: Callable[..., Any]
    n_features: tuple[int, ...]
    rows_from: Callable[[np.ndarray], np.ndarray] = as_they_are
    support: tuple[int, ...] = ()
    by_column: bool = True
    is_composed: bool = False


def product_twin(**parts: Component) -> product.Product:
    """Twin of a product of parts of one column each."""
    twins = {**vars(naive), **vars(discrete)}
    of_parts = {
        name: twins[type(part).__name__](**part.hyperparameters) for name, part in parts.items()
    }
    return product.Product({name: (1, twin) for name, twin in of_parts.items()})


FAMILIES: dict[str, Family] = {
    "Normal": Family(dps.Normal, naive.Normal, (1,)),
    "NormalMean": Family(dps.NormalMean, shared.NormalMean, (1,)),
    "DiagNormal": Family(dps.DiagNormal, naive.DiagNormal, (2,)),
    "SphericalNormal": Family(dps.SphericalNormal, shared.SphericalNormal, (2,)),
    "TiedNormal": Family(dps.TiedNormal, shared.TiedNormal, (2,)),
    "MvNormal": Family(dps.MvNormal, naive.MvNormal, (1, 2, 3)),
    "Gamma": Family(dps.Gamma, shared.Gamma, (2,), as_positive),
    "Exponential": Family(dps.Exponential, shared.Exponential, (2,), as_times),
    "Poisson": Family(dps.Poisson, discrete.Poisson, (2,), as_counts, tuple(range(400))),
    "Bernoulli": Family(dps.Bernoulli, discrete.Bernoulli, (3,), as_zeros_and_ones, (0, 1)),
    "Categorical": Family(dps.Categorical, discrete.Categorical, (3,), as_codes, (0, 1, 2)),
    "Multinomial": Family(dps.Multinomial, discrete.Multinomial, (3,), as_counts, (4,), False),
    "Product": Family(dps.Product, product_twin, (3,), as_mixed, is_composed=True),
}
SINGLE = [name for name, row in FAMILIES.items() if not row.is_composed]
CONTINUOUS = [name for name in SINGLE if not FAMILIES[name].support]
GAUSSIAN = [name for name in CONTINUOUS if not FAMILIES[name].component.is_bounded]
DISCRETE = [name for name in SINGLE if FAMILIES[name].support]


def as_observed(name: str, rows: np.ndarray) -> np.ndarray:
    """Rows (n, D) as a user gives them to a family: (n,) if it is one of scalars."""
    return rows if FAMILIES[name].component.row_ndim else rows[:, 0]


def dataset_of(name: str, dataset: str, n_features: int) -> np.ndarray:
    """Rows (n, D) of a small data set, made into rows of a family."""
    return FAMILIES[name].rows_from(DATASETS[dataset](n_features))


def component_of(name: str, n_features: int) -> Component:
    """Family of the package with its test hyperparameters, as it suits a small data set."""
    component = FAMILIES[name].component(**HYPERPARAMETERS[name](n_features))
    return component.suited_to(dataset_of(name, "separated", n_features))


def twin_of(name: str, n_features: int) -> Any:
    """Naive twin with the same hyperparameters."""
    return FAMILIES[name].twin(**HYPERPARAMETERS[name](n_features))


def target_of(component: Component, rows: np.ndarray, alpha: float) -> sampler.Target:
    """Target of the sampler for rows (N, D)."""
    shift = column_means(rows)
    values = component.check(component.hyperparameters, rows.shape[1])
    data = component.arranged(rows_of(rows, 1))
    return sampler.Target(component.prior(values, shift), data, alpha)
