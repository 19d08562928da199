"""Names of the codes of categories, which a model knows and a trace does not."""

from collections.abc import Sequence
from typing import Any

from pymc.model import Model

from pymc_dpsplit.components.product import Product
from pymc_dpsplit.posterior.trace.hierarchical import hierarchical_in
from pymc_dpsplit.variables import find_mixtures


def names_of_codes(name: str, model: Model | None) -> dict[int, Sequence[str]]:
    """Return the names of the codes of the features of a mixture that have categories.

    Parameters
    ----------
    name : str
        Name of the mixture.
    model : pymc.Model, optional

    Returns
    -------
    dict
        Position of the feature to the names of 0, 1, ...; empty without a model.
    """
    mixture: Any = None if model is None else find_mixtures(model).get(name)
    if model is not None and mixture is None:
        mixture = hierarchical_in(model, name)
    component = None if mixture is None else mixture.component
    return component.names_of_codes() if isinstance(component, Product) else {}
