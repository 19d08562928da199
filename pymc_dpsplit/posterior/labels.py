"""Labels of the observations, one partition for each draw."""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.components.given import given
from pymc_dpsplit.data.blocks import column_means
from pymc_dpsplit.moves.density import log_density_alone
from pymc_dpsplit.moves.redraw import redraw_labels
from pymc_dpsplit.posterior.measures import Measure, measures_of, recorded_posterior
from pymc_dpsplit.posterior.readings import readings_of
from pymc_dpsplit.variables import MixtureVariables, find_mixtures
from pymc_dpsplit.variables.reading import Reading


class Redrawn(NamedTuple):
    """Labels of one draw, and the atoms they number.

    Attributes
    ----------
    labels : ndarray of int32, shape (N,)
        Those from K on are of atoms that the trace does not record.
    log_weights : ndarray of float64, shape (A,)
        The first K are those recorded.
    params : ndarray of float64, shape (A, P)
        As kernels see them, see `Component.unpack`.
    shift : ndarray of float64, shape (D,)
        What was subtracted from the observations.
    """

    labels: np.ndarray
    log_weights: np.ndarray
    params: np.ndarray
    shift: np.ndarray


def sample_labels(
    idata: Any,
    model: Model | None = None,
    *,
    var_name: str | None = None,
    random_seed: Any = None,
) -> xr.DataArray:
    """Labels of the observations in every draw.

    The chain's own labels where they are in the trace: always where they are variables of the
    model, and else if they were kept (``pm.sample(dpsplit={"keep_labels": True})``).  Otherwise
    they are redrawn from the recorded weights and parameters, exactly: the part of the random
    measure that is not in the trace is drawn too, so a label may be that of a cluster which the
    draw does not list [1]_.

    Parameters
    ----------
    idata : DataTree
        What ``pm.sample`` returned, or loaded from disk.
    model : pymc.Model, optional
        The model sampled; by default the one of the context.
    var_name : str, optional
        Name of the mixture; needed when the model has several.
    random_seed : int or numpy.random.Generator, optional

    Returns
    -------
    DataArray of int, shape (chain, draw, N)
        Labels ``k`` below ``{name}_n_clusters`` are rows ``k`` of the posterior's clusters where
        labels are redrawn or variables of the model; those kept by ``keep_labels`` are numbered
        arbitrarily.  Smallest integer dtype.

    Raises
    ------
    ValueError
        If there is no model, the mixture is not in the trace, or draws have more clusters than
        rows were kept.

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
    >>> dps.sample_labels(idata, model, random_seed=1).shape
    (2, 20, 3)
    """
    model = model_given(model)
    mixture = mixture_in(model, var_name)
    kept = f"{mixture.name}_labels"
    for group in ("posterior", "sample_stats"):
        if group in idata.children and kept in idata[group]:
            recorded = idata[group][kept]
            return _as_labels(recorded.to_numpy(), recorded, mixture, model)
    posterior = recorded_posterior(idata, mixture)
    rng = np.random.default_rng(random_seed)
    shape = posterior.sizes["chain"], posterior.sizes["draw"]
    places = list(np.ndindex(shape))
    readings = readings_of(posterior, mixture, model, places)
    measures = measures_of(posterior, mixture, places)
    drawn = [
        redraw(measure, mixture, reading, rng).labels
        for measure, (_, reading) in zip(measures, readings, strict=True)
    ]
    labels = np.array(drawn).reshape(*shape, -1)
    return _as_labels(labels, posterior, mixture, model)


def model_given(model: Model | None) -> Model:
    """Return the model to read a trace with, by default the one of the context.

    Raises
    ------
    ValueError
        If there is none.
    """
    model = Model.get_context(error_if_none=False) if model is None else model
    if model is None:
        raise ValueError(
            "model is not given, and there is none in the context; give model=, with which idata "
            "was sampled."
        )
    return model


def mixture_in(model: Model, var_name: str | None) -> MixtureVariables:
    """Return the mixture of a model to read.

    Parameters
    ----------
    model : pymc.Model
    var_name : str, optional
        Name of the mixture; needed when the model has several.

    Returns
    -------
    MixtureVariables

    Raises
    ------
    ValueError
        If the choice is open, or there is no such mixture.
    """
    mixtures = find_mixtures(model)
    if var_name is None and len(mixtures) == 1:
        return next(iter(mixtures.values()))
    if var_name not in mixtures:
        raise ValueError(
            f"var_name={var_name!r} names no mixture of the model; choose one of {list(mixtures)}."
        )
    return mixtures[var_name]


def observations_in(model: Model, mixture: MixtureVariables) -> tuple[str, np.ndarray | None]:
    """Return the name of the dimension of observations, and their coordinate if they have one."""
    (dim, *_) = model.named_vars_to_dims.get(mixture.name) or (f"{mixture.name}_dim_0",)
    known = model.coords.get(dim)
    return dim, None if known is None else np.asarray(known)


def redraw(
    measure: Measure, mixture: MixtureVariables, reading: Reading, rng: np.random.Generator
) -> Redrawn:
    """Redraw the labels of one draw, breaking the remainder as needed.

    Parameters
    ----------
    measure : Measure
    mixture : MixtureVariables
    reading : Reading
        Of the same draw.
    rng : numpy.random.Generator

    Returns
    -------
    Redrawn
    """
    component = mixture.component
    shift, data = column_means(reading.rows), component.arranged(reading.rows)
    prior = component.prior(reading.values, shift)
    labels = np.empty(data.shape[0], np.int32)
    alone = log_density_alone(component, prior, data, reading.rows, reading.values)
    # A weight of exactly zero comes from an alpha so small that nothing new is ever seen.
    log_rest = np.log(max(measure.remainder, np.finfo(np.float64).tiny))
    log_weights, params = redraw_labels(
        prior,
        data,
        alone,
        np.log(measure.weights),
        log_rest,
        given(component, reading.values).pack(measure.parameters, shift),
        reading.alpha,
        rng,
        labels,
    )
    return Redrawn(labels, log_weights, params, shift)


def _as_labels(
    labels: np.ndarray,
    trace: xr.DataArray | xr.Dataset,
    mixture: MixtureVariables,
    model: Model,
) -> xr.DataArray:
    """Name the dimensions as the trace and the model do, and take the smallest integer dtype."""
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
