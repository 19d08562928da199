"""`FiniteMixture`: declare a mixture with a known number of components in a PyMC model."""

from collections.abc import Sequence
from typing import Any

from pytensor.graph.basic import Variable

from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.mixture.declaration import declare_mixture
from pymc_dpsplit.mixture.law_arguments import finite_law


def FiniteMixture(  # noqa: N802  (used like the distributions of PyMC)
    name: str,
    gamma: Any,
    component: ComponentFamily,
    *,
    n_components: int,
    observed: Any = None,
    groups: Any = None,
    counts: Any = None,
    labels: Any = None,
    dims: str | Sequence[str] | None = None,
    shape: int | Sequence[int] | None = None,
    max_clusters: int | None = None,
) -> Variable:
    """Declare a mixture of M components with symmetric Dirichlet weights in the current model.

    The weights are Dirichlet(gamma, .., gamma).  The number of components is fixed, and that of
    clusters, which are the components with observations, is sampled [1]_.  The step of `DPMixture`
    samples the mixture, exactly and with the same moves, and the variables have the same names:
    ``{name}_n_clusters`` is the number of clusters, and ``{name}_new_weight`` the total weight of
    the empty components, 0 if there are none.

    Parameters
    ----------
    name : str
        Name of the mixture in the model.
    gamma : float or PyMC variable
        Parameter of the Dirichlet distribution, positive, of each component.  Small values leave
        superfluous components empty; 1 is uniform on the simplex.  Other software has gamma / M or
        alpha / M in its place.
    component : ComponentFamily
        Component family with the hyperparameters of its base measure, see `DPMixture`.
    n_components : int
        Number of components M, at least 1; may exceed the number of observations.
    observed, groups, counts, labels, dims, shape : optional
        As in `DPMixture`.
    max_clusters : int, optional
        As in `DPMixture`; at most `n_components`.

    Returns
    -------
    TensorVariable
        The observed or latent variable.

    Raises
    ------
    ValueError
        With one sentence that names the argument, the fault and the remedy.

    See Also
    --------
    finite_mixture : Ordinary PyMC model of a truncated mixture, which NUTS samples.

    Notes
    -----
    If `gamma` is a variable, the model also has ``{name}_log_weights``, the sum of the log weights
    of all clusters, on which its density depends.

    References
    ----------
    .. [1] docs/method.md, section 14.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_dpsplit as dps
    >>> with pm.Model() as model:
    ...     x = dps.FiniteMixture(
    ...         "x", 1.0, dps.Normal(0, 0.1, 2, 1), n_components=3, observed=[0.0, 0.1, 5.0]
    ...     )
    >>> [rv.name for rv in model.free_RVs]
    ['x_n_clusters', 'x_new_weight', 'x_weights', 'x_mu', 'x_sigma']
    """
    return declare_mixture(
        "FiniteMixture",
        name,
        lambda model: finite_law(gamma, n_components, model),
        component,
        observed=observed,
        groups=groups,
        counts=counts,
        labels=labels,
        dims=dims,
        shape=shape,
        max_clusters=max_clusters,
    )
