"""The tables of families under test, made of the examples beside the naive twins.

A new family is an entry in the `EXAMPLES` of one of the modules of `tests.reference`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.components.arguments import rows_of
from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.data.blocks import column_centres
from pymc_dpsplit.moves.partition_law import dirichlet_process
from tests.reference import discrete, product, regression, shared
from tests.reference import families as naive
from tests.reference.example import Example, as_mixed, as_profiles, as_words_and_numbers
from tests.support.datasets import DATASETS

_OF_ONE_KIND = naive.EXAMPLES | shared.EXAMPLES | discrete.EXAMPLES | regression.EXAMPLES


def _product(n_features: int) -> dict[str, Any]:
    """Parts of a product: families and their hyperparameters."""
    if n_features != 3:
        raise ValueError(f"n_features must be 3 for Product, got {n_features}.")
    return {
        "height": dps.Normal(**_OF_ONE_KIND["Normal"].hyperparameters(1)),
        "visits": dps.Poisson(**_OF_ONE_KIND["Poisson"].hyperparameters(1)),
        "colour": dps.Categorical(a0=np.array([[0.6, 0.9, 0.5]])),
    }


def _with_words(n_features: int) -> dict[str, Any]:
    """Parts of a product: counts of two words, between two numbers that are no words."""
    if n_features != 4:
        raise ValueError(f"n_features must be 4 for these parts, got {n_features}.")
    return {
        "age": dps.Normal(**_OF_ONE_KIND["Normal"].hyperparameters(1)),
        "words": dps.Multinomial(a0=np.array([0.6, 0.9])),
        "visits": dps.Poisson(**_OF_ONE_KIND["Poisson"].hyperparameters(1)),
    }


def _with_regression(n_features: int) -> dict[str, Any]:
    """Parts of a product: a covariate and its response, and a copy of the covariate."""
    if n_features != 3:
        raise ValueError(f"n_features must be 3 for these parts, got {n_features}.")
    return {
        "outcome": dps.LinearRegression(**_OF_ONE_KIND["LinearRegression"].hyperparameters(2)),
        "covariate": dps.Normal(**_OF_ONE_KIND["Normal"].hyperparameters(1)),
    }


def product_twin(**parts: ComponentFamily) -> product.Product:
    """Twin of a product of parts whose hyperparameters tell their numbers of columns."""
    twins = {
        name: (part.declared_features(), _OF_ONE_KIND[type(part).__name__].twin)
        for name, part in parts.items()
    }
    return product.Product({
        name: (width, twin(**parts[name].hyperparameters)) for name, (width, twin) in twins.items()
    })  # fmt: skip


_OF_PARTS = Example(product_twin, _product, n_features=(3,), is_composed=True)
# Families by the name of their class, and further products by that of a part.
EXAMPLES: dict[str, Example] = _OF_ONE_KIND | {
    "Product": _OF_PARTS._replace(rows_from=as_mixed),
    "ProductWithMultinomial": _OF_PARTS._replace(
        hyperparameters=_with_words, n_features=(4,), rows_from=as_words_and_numbers
    ),
    "ProductWithLinearRegression": _OF_PARTS._replace(
        hyperparameters=_with_regression, rows_from=as_profiles
    ),
}


FAMILIES = {
    name: example._replace(component=getattr(dps, "Product" if example.is_composed else name))
    for name, example in EXAMPLES.items()
}
HYPERPARAMETERS = {name: example.hyperparameters for name, example in EXAMPLES.items()}
SINGLE = [name for name, row in FAMILIES.items() if not row.is_composed]
CONTINUOUS = [name for name in SINGLE if not FAMILIES[name].support]
BOUNDED = [name for name in CONTINUOUS if FAMILIES[name].component.is_bounded]
GAUSSIAN = [
    name for name in CONTINUOUS if name not in BOUNDED and not EXAMPLES[name].is_conditional
]
DISCRETE = [name for name in SINGLE if FAMILIES[name].support]


def as_observed(name: str, rows: np.ndarray) -> np.ndarray:
    """Rows (n, D) as a user gives them to a family: (n,) if it is one of scalars."""
    return rows if FAMILIES[name].component.row_ndim else rows[:, 0]


def dataset_of(name: str, dataset: str, n_features: int) -> np.ndarray:
    """Rows (n, D) of a small data set, made into rows of a family."""
    return FAMILIES[name].rows_from(DATASETS[dataset](n_features))


def component_of(name: str, n_features: int) -> ComponentFamily:
    """Family of the package with its test hyperparameters, as it suits a small data set."""
    component = FAMILIES[name].component(**HYPERPARAMETERS[name](n_features))
    return component.validate_rows(dataset_of(name, "separated", n_features))


def twin_of(name: str, n_features: int) -> Any:
    """Naive twin with the same hyperparameters."""
    return FAMILIES[name].twin(**HYPERPARAMETERS[name](n_features))


def target_of(
    component: ComponentFamily,
    rows: np.ndarray,
    alpha: float,
    centres: Callable[[np.ndarray], np.ndarray] = column_centres,
) -> sampler.Target:
    """Target of the sampler for rows (N, D)."""
    shift = centres(rows)
    values = component.check(component.hyperparameters, rows.shape[1])
    data = component.arranged(rows_of(rows, 1))
    return sampler.Target(component.prior(values, shift), data, dirichlet_process(alpha))
