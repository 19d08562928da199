"""`DPMixture`: declare a mixture under a Dirichlet or Pitman-Yor process in a PyMC model."""

from collections.abc import Sequence
from typing import Any

from pytensor.graph.basic import Variable

from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.mixture.declaration import declare_mixture
from pymc_dpsplit.mixture.law_arguments import process_law


def DPMixture(  # noqa: N802  (used like the distributions of PyMC)
    name: str,
    alpha: Any,
    component: ComponentFamily,
    *,
    discount: Any = 0.0,
    observed: Any = None,
    groups: Any = None,
    counts: Any = None,
    labels: Any = None,
    dims: str | Sequence[str] | None = None,
    shape: int | Sequence[int] | None = None,
    max_clusters: int | None = None,
) -> Variable:
    """Declare a mixture under a Dirichlet process, or a Pitman-Yor process, in the current model.

    The function adds the free variables ``{name}_n_clusters``, ``{name}_new_weight``,
    ``{name}_weights`` and one for each cluster parameter, such as ``{name}_mu``; `DPSplitMerge`
    samples them.  It also adds the variable ``{name}``.  With `observed` this is an observed
    variable, whose density has the labels summed out.  Without `observed` it is latent, and other
    parts of the model may depend on it.

    Parameters
    ----------
    name : str
        Name of the mixture in the model.
    alpha : float or PyMC variable
        Concentration, above minus the discount; a variable or expression is sampled with the rest
        of the model.
    component : ComponentFamily
        Component family with the hyperparameters of its base measure, for instance `MvNormal`.
        Hyperparameters that are PyMC variables or expressions are sampled with the rest of the
        model.
    discount : float or PyMC variable
        Discount of a Pitman-Yor process, from 0 to below 1.  With a positive discount d the number
        of clusters grows like N^d, with many small ones; 0 is the Dirichlet process.  If it is a
        variable, the model also has ``{name}_log_weights``, see the notes.
    observed : array-like, pm.Data, pymc.dims.Data or expression, optional
        One observation per row: shape (N,) for a family of scalars such as `Normal`, otherwise
        (N, D); counts and codes are whole numbers, converted to floats.  NumPy, pandas, polars,
        xarray or nested lists; `numpy.memmap`, Zarr and HDF5, see the notes; a SciPy sparse matrix
        of counts for `Multinomial`; a data frame with strings and categories for `Product`.
        Entries that are NaN or masked are missing: the step imputes them as
        ``{name}_unobserved``, ordered by row and then by feature.  If a mean that depends on other
        variables is subtracted, as in ``y - X @ beta``, the mixture models the errors of a
        regression, and the model also has ``{name}_labels``.  It has them too if the density of a
        row depends on a variable (`sigma` of `NormalKnownSigma`).  Without `observed` the mixture
        is latent.
    groups : array-like of int or str, shape (N,), optional
        Group of each row, such as a subject with several rows: rows with equal ids have one label,
        and given it they are independent.  A group is one item of the process, of which cluster
        sizes, weights and ``{name}_labels`` are; these have the dimension ``{name}_group``.
    counts : array-like of int, shape (N,), optional
        Whole numbers from 1: row i stands for ``counts[i]`` equal rows with one label.
    labels : array-like of int, shape (N,), optional
        Known labels, -1 where unknown: rows with the same known label are in one cluster in every
        draw.  Rows with different known labels may be in one cluster too; nothing keeps them apart.
        Unlike with `groups`, every row is an observation of the process.
    dims : str or sequence of str, optional
        Names of the dimensions of `observed`, or of the latent variable.  Parameters share the
        dimension of features; by default it is ``{name}_feature``.  Names of the columns and rows
        of a frame, and coordinates of a DataArray, become coordinates of the model, unless it has
        other ones; the dimensions are then by default those of the DataArray, or ``{name}_row``
        and ``{name}_feature``.
    shape : int or sequence of int, optional
        Shape of the latent variable, if `dims` does not determine it.  With `observed` it must
        equal the shape of the data.
    max_clusters : int, optional
        Number of rows recorded per draw in the weights and parameters, largest clusters first.
        The chain is not truncated: ``{name}_n_clusters`` is exact, and `pm.sample` reports at the
        end if draws had more clusters than rows.  The default is as many rows as fit in 256 KiB
        per draw, but at least 10, at most 64 and at most N.  If other variables depend on every
        cluster (latent mixtures, means and hyperparameters that are variables) a draw with more
        clusters is an error; the default is then as many rows as fit in 32 KiB, but at least 128
        and at most N.

    Returns
    -------
    TensorVariable
        The observed or latent variable.

    Raises
    ------
    ValueError
        With one sentence that names the argument, the fault and the remedy.

    Warns
    -----
    UserWarning
        If ties in `observed` make the posterior improper under the base measure of a `Component`.

    Notes
    -----
    The step of a latent mixture also moves an intercept beside it, as in ``b0 + b[group]``, where
    the likelihood determines only the sum; the prior of the intercept must be on the real line.

    Under a Pitman-Yor process a sweep of the kernel "exact" needs the more atoms the larger the
    discount is: some 200 for N = 1000 and discount 0.2, 3000 for 0.3, millions for 0.5.  Where they
    might be too many, it visits rows one by one instead, as the kernel "collapsed" does.  A
    `Component` whose parameters cannot be integrated out has no such sweep, and ends with an error
    that names the discount beyond 100,000 atoms.  ``{name}_log_weights`` is the sum of the log
    weights of all clusters, on which the density of a discount that is a variable depends.

    NUTS samples a latent mixture; it may need ``pm.sample(target_accept=0.95)``, because the number
    of clusters changes.  To draw values for new groups, change the dimension and call
    ``pm.sample_posterior_predictive(idata, sample_vars=["b"], predictions=True)``.
    ``{name}_labels`` contains N integers per draw; use `var_names` of `pm.sample` to omit it.

    Groups and counts need a conjugate family, and complete data that are no variable; the trace
    holds them in ``constant_data``.  `loo` and `pm.compute_log_likelihood` give one value for each
    group.  New rows of `predict` and `density` are each a group of their own.  See docs/method.md,
    eq. (7.47)-(7.50).

    With `labels` the posterior is that of the mixture of all rows, given that rows of a known label
    are together; that they are is evidence on alpha.  `sample_labels` gives labels of rows.  `loo`
    and `pm.compute_log_likelihood` give one value for the rows of a label, and one for each other
    row.  What groups need, labels need; rows cannot be drawn, see `predict`.

    For leave-one-out cross-validation see `loo`.  `pm.compute_log_likelihood` computes one value
    for each row that has an observed entry, and leaves other rows out.  The checks of ArviZ that
    compare single entries, such as `az.loo_pit`, take one feature at a time, and the rows that
    have it: ``az.loo_pit(idata.sel(feature="a", obs_id=rows))``.

    Large data.  float32 halves the memory: the data stay float32, all arithmetic is in float64,
    and draws equal those for the same numbers given as float64.  Other types become float64.
    (`pm.Data` converts to PyTensor's ``floatX``.)  A C-contiguous array of 16 MiB or more is used
    without a copy: do not modify it while the model is in use.  The same holds for a
    `numpy.memmap` of any size, which a sweep reads sequentially; a pickled model, and so a process
    that samples a chain, opens its file by name.  A memory map of another type or layout, and a
    chunked array of Zarr or HDF5, are read once and converted to a temporary file in the
    folder of Python's `tempfile`; the file is deleted with the model.  Data with missing entries
    are kept in memory.  Sparse data stay sparse; the group `observed_data` contains them only if
    they take at most 64 MiB as an array.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_dpsplit as dps
    >>> with pm.Model() as model:
    ...     alpha = pm.Gamma("alpha", 2, 4)
    ...     x = dps.DPMixture("x", alpha, dps.Normal(0, 0.1, 2, 1), observed=[0.0, 0.1, 5.0])
    >>> [rv.name for rv in model.free_RVs]
    ['alpha', 'x_n_clusters', 'x_new_weight', 'x_weights', 'x_mu', 'x_sigma']

    The first and the last row are known to belong together:

    >>> with pm.Model() as model:
    ...     rows, known = [0.0, 0.1, 5.0], [0, -1, 0]
    ...     x = dps.DPMixture("x", 1.0, dps.Normal(0, 0.1, 2, 1), observed=rows, labels=known)
    >>> dps.find_map(model, random_seed=1).labels
    array([0, 0, 0])
    """
    return declare_mixture(
        "DPMixture",
        name,
        lambda model: process_law(alpha, discount, model),
        component,
        observed=observed,
        groups=groups,
        counts=counts,
        labels=labels,
        dims=dims,
        shape=shape,
        max_clusters=max_clusters,
    )
