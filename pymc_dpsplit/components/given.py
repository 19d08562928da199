"""A family with the present values of those hyperparameters that the density of rows holds.

Most densities hold the parameters of a cluster and nothing else.  Where they hold more, such as
a standard deviation that all clusters share, that may be a variable of the model, and differ
from draw to draw: then what a family was declared with is not what its methods must read.
"""

import copy

from pymc_dpsplit.components.base import Component, Values


def given(component: Component, values: Values) -> Component:
    """Return a family that may be asked for densities, draws of rows and packed parameters.

    Kernels need no such thing: they find all hyperparameters in the prior.

    Parameters
    ----------
    component : Component
    values : mapping
        Name to ndarray, as `check` or `restrict` return it, or to symbolic tensor.

    Returns
    -------
    Component
        A copy that reads its `likelihood_arguments` off `values`; `component` itself if it has
        none.
    """
    names = component.likelihood_arguments
    if not names:
        return component
    held = copy.copy(component)
    held.hyperparameters = {**component.hyperparameters, **{key: values[key] for key in names}}
    return held
