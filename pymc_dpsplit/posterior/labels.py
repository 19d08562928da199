"""Labels of the observations, one partition for each draw."""

from typing import Any

import numpy as np
import xarray as xr
from pymc.model import Model, modelcontext

from pymc_dpsplit.components.given import given
from pymc_dpsplit.components.non_conjugate import NonConjugate
from pymc_dpsplit.data.blocks import column_means
from pymc_dpsplit.moves.redraw import log_prior_predictive, redraw_labels
from pymc_dpsplit.posterior.readings import readings_of
from pymc_dpsplit.variables import MixtureVariables, find_mixtures
from pymc_dpsplit.variables.reading import Reading


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
        If the mixture is not in the trace, or draws have more clusters than rows were kept.

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
    model = modelcontext(model)
    mixture = _mixture_in(model, var_name)
    kept = f"{mixture.name}_labels"
    for group in ("posterior", "sample_stats"):
        if group in idata.children and kept in idata[group]:
            recorded = idata[group][kept]
            return _as_labels(recorded.to_numpy(), recorded, mixture, model)
    if "posterior" not in idata.children or f"{mixture.name}_weights" not in idata["posterior"]:
        raise ValueError(
            f"the posterior group holds no {mixture.name}_weights; give the trace of this model, "
            "sampled without var_names=."
        )
    posterior = idata["posterior"].to_dataset()
    _refuse_dropped_rows(posterior, mixture)
    rng = np.random.default_rng(random_seed)
    shape = posterior.sizes["chain"], posterior.sizes["draw"]
    drawn = []
    for place, reading in readings_of(posterior, mixture, model, np.ndindex(shape)):
        at = posterior.isel(chain=place[0], draw=place[1])
        drawn.append(_redraw(at, mixture, reading, rng))
    labels = np.array(drawn).reshape(*shape, -1)
    return _as_labels(labels, posterior, mixture, model)


def _mixture_in(model: Model, var_name: str | None) -> MixtureVariables:
    mixtures = find_mixtures(model)
    if var_name is None and len(mixtures) == 1:
        return next(iter(mixtures.values()))
    if var_name not in mixtures:
        raise ValueError(
            f"var_name={var_name!r} names no mixture of the model; choose one of {list(mixtures)}."
        )
    return mixtures[var_name]


def _refuse_dropped_rows(posterior: xr.Dataset, mixture: MixtureVariables) -> None:
    counts = posterior[f"{mixture.name}_n_clusters"]
    dropped = int((counts > mixture.max_clusters).sum())
    if dropped:
        raise ValueError(
            f"{dropped} draws of {mixture.name} have more clusters than the {mixture.max_clusters} "
            f"rows kept; sample with max_clusters={int(counts.max())} or more, or with "
            'pm.sample(dpsplit={"keep_labels": True}).'
        )


def _redraw(
    at: xr.Dataset, mixture: MixtureVariables, reading: Reading, rng: np.random.Generator
) -> np.ndarray:
    """Redraw the labels of one draw."""
    name, component = mixture.name, mixture.component
    n_clusters = int(at[f"{name}_n_clusters"])
    parameters = {
        parameter: at[f"{name}_{parameter}"].to_numpy()[:n_clusters]
        for parameter in component.parameters
    }
    weights = at[f"{name}_weights"].to_numpy()[:n_clusters]
    shift, data = column_means(reading.rows), component.arranged(reading.rows)
    prior = component.prior(reading.values, shift)
    labels = np.empty(data.shape[0], np.int32)
    if isinstance(component, NonConjugate):
        log_alone = component.log_prior_predictive(reading.rows, reading.values)
    else:
        log_alone = log_prior_predictive(prior, data)
    # A weight of exactly zero comes from an alpha so small that nothing new is ever seen.
    log_rest = np.log(max(float(at[f"{name}_new_weight"]), np.finfo(np.float64).tiny))
    redraw_labels(
        prior,
        data,
        log_alone,
        np.log(weights),
        log_rest,
        given(component, reading.values).pack(parameters, shift),
        reading.alpha,
        rng,
        labels,
    )
    return labels


def _as_labels(
    labels: np.ndarray,
    trace: xr.DataArray | xr.Dataset,
    mixture: MixtureVariables,
    model: Model,
) -> xr.DataArray:
    """Name the dimensions as the trace and the model do, and take the smallest integer dtype."""
    (dim, *_) = model.named_vars_to_dims.get(mixture.name) or (f"{mixture.name}_dim_0",)
    coords: dict[Any, Any] = {key: trace.coords[key] for key in ("chain", "draw")}
    if dim in trace.coords:
        coords[dim] = trace.coords[dim]
    elif len(model.coords.get(dim) or ()) == labels.shape[-1]:
        coords[dim] = np.asarray(model.coords[dim])
    smallest = labels.astype(np.min_scalar_type(int(labels.max())))
    return xr.DataArray(
        smallest, dims=("chain", "draw", dim), coords=coords, name=f"{mixture.name}_labels"
    )
