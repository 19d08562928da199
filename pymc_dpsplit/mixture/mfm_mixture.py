"""`MFMixture`: declare a mixture with a random number of components in a PyMC model."""

from collections.abc import Sequence
from typing import Any

from pytensor.graph.basic import Variable

from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.mixture.declaration import declare_mixture
from pymc_dpsplit.mixture.law_arguments import varying_finite_law


def MFMixture(  # noqa: N802  (used like the distributions of PyMC)
    name: str,
    gamma: Any,
    component: ComponentFamily,
    *,
    n_components: Any,
    observed: Any = None,
    groups: Any = None,
    counts: Any = None,
    labels: Any = None,
    dims: str | Sequence[str] | None = None,
    shape: int | Sequence[int] | None = None,
    max_clusters: int | None = None,
) -> Variable:
    """Declare a mixture of finite mixtures: the number of components M has a prior.

    Given M the weights are Dirichlet(gamma, .., gamma) [1]_.  The step of `DPMixture` samples the
    mixture, and M with it, exactly and with the same moves, and the variables have the same names.
    ``{name}_n_components`` is M, and ``{name}_n_clusters`` the number of components with
    observations.  Unlike under a Dirichlet process, the posterior of either converges to the true
    number of components as N grows, if the family is that of the data.

    Parameters
    ----------
    name : str
        Name of the mixture in the model.
    gamma : float or PyMC variable
        Parameter of the Dirichlet distribution, positive, of each component; the same for all M.
    component : ComponentFamily
        Component family with the hyperparameters of its base measure, see `DPMixture`.
    n_components : distribution
        Prior of M on the numbers 1, 2, ..: a distribution without a name, such as
        ``pm.Geometric.dist(0.3)`` or ``pm.DiscreteUniform.dist(1, 30)``, or one from 0 plus 1, such
        as ``1 + pm.Poisson.dist(3)``.  Its parameters may be variables of the model.
    observed, groups, counts, labels, dims, shape, max_clusters : optional
        As in `DPMixture`.

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
    FiniteMixture : The number of components is known.

    Notes
    -----
    The beta-negative-binomial distribution of [2]_ is a negative binomial one whose probability has
    a beta prior: ``1 + pm.NegativeBinomial.dist(n=1, p=pm.Beta("p", 4, 3))`` is BNB(1, 4, 3).

    In thousands of rows a chain rarely changes its number of clusters once it has found some: given
    K clusters, more components than K are improbable, and without one no cluster can split.
    Compare chains from several starts, or use `DPMixture`; see docs/decisions/0051.

    If `gamma` is a variable, the model also has ``{name}_log_weights``, see `FiniteMixture`.

    References
    ----------
    .. [1] Miller & Harrison (2018), Mixture models with a prior on the number of components,
       Journal of the American Statistical Association 113; docs/method.md, eq. (14.10).
    .. [2] Fruehwirth-Schnatter, Malsiner-Walli & Gruen (2021), Generalized mixtures of finite
       mixtures and telescoping sampling, Bayesian Analysis 16.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_dpsplit as dps
    >>> with pm.Model() as model:
    ...     prior = 1 + pm.Poisson.dist(3)
    ...     normal = dps.Normal(0, 0.1, 2, 1)
    ...     x = dps.MFMixture("x", 1.0, normal, n_components=prior, observed=[0.0, 0.1, 5.0])
    >>> [rv.name for rv in model.free_RVs]
    ['x_n_components', 'x_n_clusters', 'x_new_weight', 'x_weights', 'x_mu', 'x_sigma']
    """
    return declare_mixture(
        "MFMixture",
        name,
        lambda model: varying_finite_law(gamma, n_components, name, model),
        component,
        observed=observed,
        groups=groups,
        counts=counts,
        labels=labels,
        dims=dims,
        shape=shape,
        max_clusters=max_clusters,
    )
