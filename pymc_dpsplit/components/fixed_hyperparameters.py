"""Bind current values to the hyperparameters on which the density of a row depends directly.

The density of a row usually depends on the parameters of its cluster alone.  In some families it
also depends on a hyperparameter, such as a standard deviation that all clusters share.  If that is
a variable of the model it changes between draws, and the methods must read its current value.
"""

from pymc_dpsplit.components.component_family import ComponentFamily, Values


def with_values(component: ComponentFamily, values: Values) -> ComponentFamily:
    """Return the family with `likelihood_arguments` set to their current values.

    The result can evaluate densities, draw rows and pack parameters.  Kernels do not need it: they
    read all hyperparameters from the prior.

    Parameters
    ----------
    component : ComponentFamily
    values : mapping
        Name to ndarray, as `check` or `restrict` return it, or to symbolic tensor.

    Returns
    -------
    ComponentFamily
        A copy with the values of its `likelihood_arguments`; `component` itself if it has none.
    """
    fixed = {key: values[key] for key in component.likelihood_arguments if key in values}
    return (
        component.with_hyperparameters({**component.hyperparameters, **fixed})
        if fixed
        else component
    )
