"""A family with the present values of those hyperparameters that the density of rows holds.

Most densities hold the parameters of a cluster and nothing else.  Where they hold more, such as
a standard deviation that all clusters share, that may be a variable of the model, and differ
from draw to draw: then what a family was declared with is not what its methods must read.
"""

from pymc_dpsplit.components.declaration import Component, Values


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
        A copy that reads its `likelihood_arguments` off `values`; `component` itself if there
        are none.
    """
    held = {key: values[key] for key in component.likelihood_arguments if key in values}
    return (
        component.with_hyperparameters({**component.hyperparameters, **held}) if held else component
    )
