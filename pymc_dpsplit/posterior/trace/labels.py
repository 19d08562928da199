"""`sample_labels`: labels of the observations in every draw."""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.components.arguments import generator_of
from pymc_dpsplit.data.blocks import column_centres
from pymc_dpsplit.hierarchical_model.lookup import find_hierarchical
from pymc_dpsplit.hierarchical_model.measure import HierarchicalMeasure
from pymc_dpsplit.moves.partition_law import PartitionLaw
from pymc_dpsplit.moves.sweep.density import log_density_alone
from pymc_dpsplit.moves.target import Target
from pymc_dpsplit.posterior.trace.declared import refuse_other_order
from pymc_dpsplit.posterior.trace.draws import (
    MixtureDraw,
    draws_of,
    has_dropped,
    recorded_posterior,
)
from pymc_dpsplit.posterior.trace.groups import (
    SharedInTrace,
    find_group,
    find_labels,
    find_observed,
    find_shared,
    number_of_items,
    refuse_topics,
)
from pymc_dpsplit.posterior.trace.hierarchical import hierarchical_in
from pymc_dpsplit.posterior.trace.places import all_places
from pymc_dpsplit.posterior.trace.replaced_data import (
    other_argument,
    refuse_replaced,
    values_differ,
)
from pymc_dpsplit.posterior.trace.rows_in_groups import refuse_other_groups_of_rows
from pymc_dpsplit.sampler import moves_of
from pymc_dpsplit.topic_model.lookup import find_topic_models
from pymc_dpsplit.variables import MixtureVariables, find_mixtures
from pymc_dpsplit.variables.observed import values_of

# Some thirty sticks are broken per unit of alpha.
_MOST_ALPHA = 1e5


class Redrawn(NamedTuple):
    """Labels of one draw, and the atoms that they refer to.

    Attributes
    ----------
    labels : ndarray of int32, shape (N,)
        Labels from K on refer to atoms that the trace does not record.
    log_weights : ndarray of float64, shape (A,)
        The first K are recorded in the trace.
    params : ndarray of float64, shape (A, P)
        Kernel parameters, see `ComponentFamily.unpack`.
    shift : ndarray of float64, shape (D,)
        Shift that was subtracted from the observations.
    """

    labels: np.ndarray
    log_weights: np.ndarray
    params: np.ndarray
    shift: np.ndarray


def sample_labels(
    idata: Any,
    *,
    model: Model | None = None,
    var_name: str | None = None,
    random_seed: Any = None,
) -> xr.DataArray:
    """Return labels of the observations in every draw.

    If the trace contains the labels of the chain, these are returned: labels that are variables of
    the model, were recorded by ``pm.sample(dpsplit={"keep_labels": True})``, or are of rows in
    groups (`HDPMixture`).  Otherwise labels
    are drawn from their exact conditional distribution given the recorded weights and parameters.
    Atoms of the remainder are then drawn too, so that a label may refer to a cluster that the trace
    does not record [1]_.

    Parameters
    ----------
    idata : DataTree
        As returned by ``pm.sample``, or loaded from disk.
    model : pymc.Model, optional
        The sampled model, by default that of the context.
    var_name : str, optional
        Name of the mixture; required if the model has several.
    random_seed : int or numpy.random.Generator, optional

    Returns
    -------
    DataArray of int, shape (chain, draw, N)
        Of the smallest integer dtype; (chain, draw, G) over ``{name}_group`` if the mixture has
        ``groups=``, and that of all rows if it has ``labels=``.  If labels are redrawn or
        variables of the model, label ``k`` below ``{name}_n_clusters`` refers to row ``k`` of
        weights and parameters.  The numbering of labels recorded by ``keep_labels`` is arbitrary.

    Raises
    ------
    ValueError
        If there is no model, if the trace lacks the mixture, or if draws have more clusters than
        were recorded.

    References
    ----------
    .. [1] docs/method.md, section 5.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_dpsplit as dps
    >>> with pm.Model() as model:
    ...     _ = dps.DPMixture("x", 1.0, dps.Normal(0, 0.1, 2, 1), observed=[0.0, 0.1, 5.0])
    ...     idata = pm.sample(
    ...         draws=20, tune=20, chains=2, progressbar=False, compute_convergence_checks=False
    ...     )
    >>> dps.sample_labels(idata, model=model, random_seed=1).shape
    (2, 20, 3)
    """
    rng = generator_of("random_seed", random_seed)
    model = model_given(model)
    hierarchical = hierarchical_in(model, var_name)
    mixture = mixture_in(model, var_name) if hierarchical is None else hierarchical.as_mixture
    kept = find_labels(idata, mixture.name)
    # Labels that are variables are those of the rows that were sampled, whatever the data are now.
    reads_data = kept is None or not mixture.is_labelled
    refuse_other_data(idata, mixture, kept, reads_data)
    if kept is not None:
        if (posterior := find_group(idata, "posterior")) is not None:
            refuse_other_order(posterior, model)
        return _as_labels(kept.to_numpy(), kept, mixture, model)
    if hierarchical is not None:
        raise ValueError(
            f"idata holds no {mixture.name}_labels, and those of rows in groups cannot be redrawn; "
            'sample with hdp={"keep_labels": True}.'
        )
    posterior = recorded_posterior(idata, mixture, labels_suffice=True)
    draws = draws_of(posterior, mixture, model, all_places(posterior))
    drawn = [redraw(draw, mixture, rng).labels for draw in draws]
    labels = np.reshape(drawn, (posterior.sizes["chain"], posterior.sizes["draw"], -1))
    return _as_labels(labels, posterior, mixture, model)


def model_given(model: Model | None) -> Model:
    """Return the model for a trace, by default that of the context.

    Parameters
    ----------
    model : pymc.Model, optional

    Returns
    -------
    pymc.Model

    Raises
    ------
    ValueError
        If there is no model.
    """
    model = Model.get_context(error_if_none=False) if model is None else model
    if model is None:
        raise ValueError(
            "model is not given, and there is none in the context; give model=, with which idata "
            "was sampled."
        )
    return model


def mixture_in(model: Model, var_name: str | None) -> MixtureVariables:
    """Return a mixture of a model by name.

    Parameters
    ----------
    model : pymc.Model
    var_name : str, optional
        Name of the mixture; required if the model has several.

    Returns
    -------
    MixtureVariables

    Raises
    ------
    ValueError
        If the model lacks the mixture, or has several and none is named.
    """
    mixtures = find_mixtures(model)
    grouped = list(find_hierarchical(model))
    if var_name is None and len(mixtures) == 1 and not grouped:
        return next(iter(mixtures.values()))
    if var_name is None and len(mixtures) + len(grouped) > 1:
        raise ValueError(
            f"the model has several mixtures; give var_name as one of {[*mixtures, *grouped]}."
        )
    if hierarchical_in(model, var_name) is not None:
        raise ValueError(
            f"{var_name or 'the mixture of the model'} is an HDPMixture, of whose rows in groups "
            "this function has no law; use loo, predict, describe_clusters or group_weights."
        )
    refuse_topics(find_topic_models(model), var_name, not mixtures)
    if var_name not in mixtures:
        raise ValueError(_none_of_that_name(var_name, [*mixtures, *grouped]))
    return mixtures[var_name]


def _none_of_that_name(var_name: str | None, known: list[str]) -> str:
    if known:
        return f"var_name={var_name!r} names no mixture of the model; choose one of {known}."
    return (
        "the model has no mixture of this package; give the model of a DPMixture or the like, and "
        "for a finite_mixture use functions of PyMC and ArviZ, such as arviz.loo after "
        "pm.compute_log_likelihood."
    )


def items_in(model: Model, mixture: MixtureVariables) -> tuple[str, np.ndarray | None]:
    """Return the dimension of what has a density of its own, and its coordinate or None.

    With known labels these are the rows of a label together, and each other row.
    """
    shared = mixture.items.shared
    named = None if shared is None else shared.dimension_in(mixture.name)
    return _rows_in(model, mixture) if named is None else (named[0], np.asarray(named[1]))


def observations_in(model: Model, mixture: MixtureVariables) -> tuple[str, np.ndarray | None]:
    """Return the name of the dimension of rows or groups, and its coordinate or None."""
    # Known labels are of rows.
    of = _rows_in if mixture.items.depends_on_law else items_in
    return of(model, mixture)


def _rows_in(model: Model, mixture: MixtureVariables) -> tuple[str, np.ndarray | None]:
    (dim, *_) = model.named_vars_to_dims.get(mixture.name) or (f"{mixture.name}_dim_0",)
    known = model.coords.get(dim)
    return dim, None if known is None else np.asarray(known)


def refuse_other_data(
    idata: xr.DataTree | xr.Dataset,
    mixture: MixtureVariables,
    labels: xr.DataArray | None = None,
    reads_data: bool = True,
) -> None:
    """Refuse a trace of other observations than the model has, in number, value or groups.

    Parameters
    ----------
    idata : DataTree or Dataset
    mixture : MixtureVariables
    labels : DataArray of int, shape (chain, draw, N), optional
        Those that the trace records.
    reads_data : bool
        Whether ``pm.Data`` that were replaced are refused.

    Raises
    ------
    ValueError
        If the labels, or the observed data of the trace, are of another number, or the data have
        other values, or rows are in other groups.
    """
    values = find_observed(idata, mixture.name)
    _refuse_other_groups(idata, mixture, values is not None)
    n_found = None if values is None else number_of_items(idata, mixture.name, len(values))
    n_found = n_found if labels is None else labels.shape[-1]
    read_from = mixture.read_from if reads_data else ()
    if n_found is None:
        refuse_replaced(idata, read_from)
        return
    # Labels that are variables keep the declared number of rows when the data change.
    node: Any = mixture.rv.owner
    declared = mixture.measure["labels"].type.shape[0] if mixture.is_labelled else None
    shared = mixture.items.shared
    declared = declared if shared is None else shared.n_observations
    n_rows = int(node.inputs[1].eval()) if declared is None else declared
    if n_found != n_rows:
        raise ValueError(
            f"idata is of {n_found} observations of {mixture.name}, but the model has {n_rows}; "
            "give the model with the data with which idata was sampled."
        )
    if values is not None and _differ(values.to_numpy(), mixture):
        raise ValueError(
            f"the observations of {mixture.name} have other values in idata than in the model; "
            "give the model with the data with which idata was sampled."
        )
    refuse_replaced(idata, read_from)


def recorded_measures(idata: xr.DataTree, mixture: MixtureVariables) -> xr.Dataset:
    """Return the posterior group, with what the random measures of its draws can be read from.

    Parameters
    ----------
    idata : DataTree
    mixture : MixtureVariables

    Returns
    -------
    Dataset
        From `recorded_posterior`.

    Raises
    ------
    ValueError
        As `recorded_posterior` does; and if law or hyperparameters of the model depend on data
        that were replaced, or the model has other observations than the trace and draws with more
        clusters than rows are completed from them.
    """
    posterior = recorded_posterior(idata, mixture)
    refuse_replaced(idata, [*mixture.law, *mixture.hyperparameters.values()])
    if has_dropped(posterior, mixture.name):
        refuse_other_data(idata, mixture)
    return posterior


def _refuse_other_groups(
    idata: xr.DataTree | xr.Dataset, mixture: MixtureVariables, is_whole: bool
) -> None:
    """Refuse a trace in which other rows are together than in the model, if it says which are."""
    of_measure: Any = mixture.measure["weights"].owner
    if isinstance(of_measure.op, HierarchicalMeasure):
        refuse_other_groups_of_rows(idata, mixture.name, of_measure.op.groups)
    found, shared = find_shared(idata, mixture.name), mixture.items.shared
    known: SharedInTrace = SharedInTrace(None, None)
    if shared is not None:
        group_of_row = None if shared.names is None else shared.group_of_row
        counts = shared.counts if shared.has_counts else None
        known = SharedInTrace(group_of_row, counts, shared.known)
    for argument, own, other in zip(("groups", "counts", "labels"), found, known, strict=True):
        # The group constant_data may have been dropped together with the data.
        is_absent = own is None and not is_whole
        are_equal = (own is None) == (other is None) and np.array_equal(own, other)  # type: ignore[arg-type]
        if not is_absent and not are_equal:
            raise ValueError(other_argument(argument, mixture.name))


def _differ(recorded: np.ndarray, mixture: MixtureVariables) -> bool:
    """Whether complete data without a mean are others than a trace records."""
    # Rows that hold their covariates are data as they are.
    varying = set(mixture.rv.owner.op.extras) - {"covariates"}
    is_plain = not varying and mixture.unobserved is None
    known = values_of(mixture.data) if is_plain else None
    if not isinstance(known, np.ndarray):
        return False
    if known.size != recorded.size:
        return True
    return values_differ(recorded.reshape(known.shape), known)


def redraw(
    draw: MixtureDraw,
    mixture: MixtureVariables,
    rng: np.random.Generator,
    remedy: str = 'sample with dpsplit={"keep_labels": True}',
) -> Redrawn:
    """Redraw the labels of one draw, breaking sticks of the remainder as required.

    Parameters
    ----------
    draw : MixtureDraw
    mixture : MixtureVariables
    rng : numpy.random.Generator
    remedy : str
        End of the message.

    Returns
    -------
    Redrawn

    Raises
    ------
    ValueError
        If alpha or the discount is so large that the sticks would fill the memory, or if a row
        fits none of the clusters.
    """
    refuse_too_many_atoms(draw.law, remedy)
    items = mixture.items
    shift, data = column_centres(draw.rows), items.arranged(draw.rows)
    prior = items.prior(draw.values, shift)
    labels = np.empty(data.shape[0], np.int32)
    alone = log_density_alone(items.component, prior, data, draw.rows, draw.values)
    # The remainder underflows to zero if alpha is very small.
    log_rest = np.log(max(draw.remainder, np.finfo(np.float64).tiny))
    atoms = np.log(draw.weights), log_rest, items.pack(draw.parameters, draw.values, shift)
    try:
        log_weights, params = moves_of(prior).redraw_labels(
            Target(prior, data, draw.law), labels, rng, alone, *atoms
        )
    except ValueError:  # the kernel refuses to break so many sticks
        why = "a row has hardly any density under the clusters stored in a draw of idata"
        if draw.law.discount > 0:
            why = f"discount is {draw.law.discount:g} in a draw of idata"
        raise ValueError(
            f"{why}, so labels given the stored clusters need too many other atoms; {remedy}."
        ) from None
    return Redrawn(items.recorded(labels), log_weights, params, shift)


def refuse_too_many_atoms(law: PartitionLaw, remedy: str) -> None:
    """Refuse an alpha for which the sticks of the remainder would fill the memory.

    Kernels refuse a discount for which they would.

    Parameters
    ----------
    law : PartitionLaw
    remedy : str
        End of the message.

    Raises
    ------
    ValueError
    """
    if law.discount >= 0.0 and law.strength > _MOST_ALPHA:
        raise ValueError(
            f"alpha is {law.strength:g} in a draw of idata, so labels given the stored clusters "
            f"need millions of other atoms; {remedy}."
        )


def _as_labels(
    labels: np.ndarray,
    trace: xr.DataArray | xr.Dataset,
    mixture: MixtureVariables,
    model: Model,
) -> xr.DataArray:
    """Name the dimensions as in trace and model, and convert to the smallest integer dtype."""
    dim, known = observations_in(model, mixture)
    coords: dict[Any, Any] = {key: trace.coords[key] for key in ("chain", "draw")}
    if dim in trace.coords:
        coords[dim] = trace.coords[dim]
    elif known is not None and len(known) == labels.shape[-1]:
        coords[dim] = known
    smallest = labels.astype(np.min_scalar_type(int(labels.max())))
    return xr.DataArray(
        smallest, dims=("chain", "draw", dim), coords=coords, name=f"{mixture.name}_labels"
    )
