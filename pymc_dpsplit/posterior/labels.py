"""Labels of the observations, one partition for each draw."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from pymc.model import Model, modelcontext
from pymc.pytensorf import compile as compile_function
from pytensor.graph.traversal import walk

from pymc_dpsplit.moves.redraw import log_prior_predictive, redraw_labels
from pymc_dpsplit.variables import MixtureVariables, find_mixtures


def sample_labels(
    idata: Any,
    model: Model | None = None,
    *,
    var_name: str | None = None,
    random_seed: Any = None,
) -> xr.DataArray:
    """Labels of the observations in every draw.

    The chain's own labels where they were kept (``pm.sample(dpsplit={"keep_labels": True})``).
    Otherwise they are redrawn from the recorded weights and parameters, exactly: the part of the
    random measure that is not in the trace is drawn too, so a label may be that of a cluster
    which the draw does not list [1]_.

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
        labels are redrawn; the chain's own are numbered arbitrarily.  Smallest integer dtype.

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
    if "posterior" not in idata.children or f"{mixture.name}_weights" not in idata["posterior"]:
        raise ValueError(
            f"the posterior group holds no {mixture.name}_weights; give the trace of this model, "
            "sampled without var_names=."
        )
    posterior = idata["posterior"].to_dataset()
    kept = f"{mixture.name}_labels"
    if "sample_stats" in idata.children and kept in idata["sample_stats"]:
        own = idata["sample_stats"][kept]
        return _as_labels(own.to_numpy(), posterior, mixture, model)
    _refuse_dropped_rows(posterior, mixture)
    rng = np.random.default_rng(random_seed)
    rows = mixture.rows()
    labels = np.empty((*posterior[f"{mixture.name}_n_clusters"].shape, len(rows)), np.int64)
    shift = rows.mean(0)
    for (chain, draw), alpha, values in _hyperparameters(posterior, mixture, model):
        at = posterior.isel(chain=chain, draw=draw)
        _redraw(at, mixture, values, alpha, rows - shift, shift, rng, labels[chain, draw])
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


def _hyperparameters(
    posterior: xr.Dataset, mixture: MixtureVariables, model: Model
) -> Iterator[tuple[tuple[int, int], float, dict[str, np.ndarray]]]:
    """For each draw: its place, alpha, and the checked hyperparameters."""
    names = list(mixture.hyperparameters)
    outs = [mixture.alpha, *mixture.hyperparameters.values()]
    recorded = {model.named_vars[name] for name in posterior.data_vars if name in model.named_vars}
    ins: list[Any] = []

    def expand(var: Any) -> Any:
        if var in recorded:
            ins.append(var)
            return None
        return var.owner.inputs if var.owner else None

    list(walk(outs, expand))
    function = compile_function(ins, outs, on_unused_input="ignore")
    sizes = posterior.sizes["chain"], posterior.sizes["draw"]
    columns = [posterior[var.name].to_numpy() for var in ins]
    for place in np.ndindex(*sizes):
        alpha, *numbers = function(*(column[place] for column in columns))
        values = dict(zip(names, numbers, strict=True))
        yield place, float(alpha), mixture.component.check(values, mixture.n_features)


def _redraw(
    at: xr.Dataset,
    mixture: MixtureVariables,
    values: dict[str, np.ndarray],
    alpha: float,
    data: np.ndarray,
    shift: np.ndarray,
    rng: np.random.Generator,
    labels: np.ndarray,
) -> None:
    """Redraw the labels of one draw into `labels`."""
    name, component = mixture.name, mixture.component
    n_clusters = int(at[f"{name}_n_clusters"])
    parameters = {
        parameter: at[f"{name}_{parameter}"].to_numpy()[:n_clusters]
        for parameter in component.parameters
    }
    weights = at[f"{name}_weights"].to_numpy()[:n_clusters]
    prior = component.prior(values, shift)
    # A weight of exactly zero comes from an alpha so small that nothing new is ever seen.
    log_rest = np.log(max(float(at[f"{name}_new_weight"]), np.finfo(np.float64).tiny))
    redraw_labels(
        prior,
        data,
        log_prior_predictive(prior, data),
        np.log(weights),
        log_rest,
        component.pack(parameters, shift),
        alpha,
        rng,
        labels,
    )


def _as_labels(
    labels: np.ndarray, posterior: xr.Dataset, mixture: MixtureVariables, model: Model
) -> xr.DataArray:
    """Name the dimensions and take the smallest integer dtype."""
    dims = model.named_vars_to_dims.get(mixture.name) or (f"{mixture.name}_dim_0",)
    coords: dict[Any, Any] = {dim: posterior.coords[dim] for dim in ("chain", "draw")}
    if model.coords.get(dims[0]) is not None:
        coords[dims[0]] = np.asarray(model.coords[dims[0]])
    smallest = labels.astype(np.min_scalar_type(int(labels.max())))
    return xr.DataArray(
        smallest, dims=("chain", "draw", dims[0]), coords=coords, name=f"{mixture.name}_labels"
    )
