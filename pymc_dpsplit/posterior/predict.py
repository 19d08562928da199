"""Prediction of new rows, averaged over draws; docs/method.md, eqs. (110) to (113)."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.components.given import given
from pymc_dpsplit.data.blocks import blocks_of
from pymc_dpsplit.moves.patterns import patterns_of
from pymc_dpsplit.posterior.density import spread_places
from pymc_dpsplit.posterior.given_partition import labels_of_partition, refuse_other_rows
from pymc_dpsplit.posterior.labels import mixture_in, model_given, observations_in, redraw
from pymc_dpsplit.posterior.measures import Measure, measures_of, recorded_posterior
from pymc_dpsplit.posterior.new_rows import NewRows, read_new
from pymc_dpsplit.posterior.readings import readings_of
from pymc_dpsplit.posterior.running_average import RunningAverage
from pymc_dpsplit.variables import MixtureVariables
from pymc_dpsplit.variables.log_density import log_masses
from pymc_dpsplit.variables.reading import Reading

# Numbers in the table of masses of a block of rows.
_BLOCK = 2**18


class Reference(NamedTuple):
    """A partition of the observations, by position in `names`.

    Attributes
    ----------
    labels : ndarray of int64, shape (N,)
    names : ndarray of int, shape (R,)
        The labels as the user gave them, ascending.
    """

    labels: np.ndarray
    names: np.ndarray


def predict(
    idata: xr.DataTree,
    new: Any,
    model: Model | None = None,
    *,
    var_name: str | None = None,
    partition: Any = None,
    num_samples: int | None = None,
    random_seed: Any = None,
) -> xr.Dataset:
    """Predict new rows: their density, how novel they are, and the clusters they belong to.

    Each draw of a trace is a mixture with a remainder, of which the density of a row is known
    in closed form.  Averages over draws are those of the posterior given the data and the new
    row itself, one row at a time [1]_.

    Parameters
    ----------
    idata : DataTree
        What ``pm.sample`` returned, or loaded from disk.
    new : array-like or frame, shape (M,) or (M, D)
        Rows as they were observed: numbers, NaN where an entry is missing, which is then
        integrated out.  Columns of frames and labels of xarray are put in the order of the
        model where its features have coordinates.  If the mixture is that of ``y - mean``,
        give rows less their mean.
    model : pymc.Model, optional
        The model sampled; by default the one of the context.
    var_name : str, optional
        Name of the mixture; needed when the model has several.
    partition : PointPartition, DataArray or array_like of int, shape (N,), optional
        Reference clusters of the observations, as from `point_partition`, `find_map` or
        `dp_means`.
    num_samples : int, optional
        Most draws to use, evenly spread over all chains; by default all.
    random_seed : int or numpy.random.Generator, optional
        Of the labels that are redrawn where `partition` is given.

    Returns
    -------
    Dataset
        Over the new rows, float64:

        ``log_predictive_density``
            Logarithm of the density of the row given the data.
        ``new_cluster_probability``
            Probability that the row shares its cluster with none of the observations.
        ``membership_probability``, also over ``{name}_reference_cluster``
            Probability that the row shares its cluster with observations, and one chosen at
            random among these is in the reference cluster.  Sums to one less the probability
            of a new cluster.
        ``effective_draws``
            The number of equally weighted draws that average as well; small where few draws
            know anything like the row.

    Raises
    ------
    ValueError
        If there is no model, the rows or the partition do not suit it, the mixture is not in the
        trace, or draws have more clusters than rows were kept.

    Notes
    -----
    Costs what as many rows of data cost in a sweep, once for each draw; with `partition` also
    one sweep over the data for each draw.  Memory grows with the rows, not with the draws.

    References
    ----------
    .. [1] docs/method.md, eqs. (110) to (113).

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_dpsplit as dps
    >>> with pm.Model() as model:
    ...     _ = dps.DPMixture("x", 1.0, dps.Normal(0, 0.1, 2, 1), observed=[0.0, 0.1, 0.2, 9.0])
    ...     idata = pm.sample(
    ...         draws=50, tune=50, chains=2, random_seed=1, progressbar=False,
    ...         compute_convergence_checks=False,
    ...     )
    >>> found = dps.predict(idata, [0.1, -40.0], model, partition=[0, 0, 0, 1], random_seed=1)
    >>> (found["new_cluster_probability"] > 0.5).values
    array([False,  True])
    >>> found["membership_probability"].dims
    ('new_row', 'x_reference_cluster')
    """
    model = model_given(model)
    mixture = mixture_in(model, var_name)
    posterior = recorded_posterior(idata, mixture)
    rows = read_new(new, mixture, model)
    reference = (
        None if partition is None else _reference_of(partition, *observations_in(model, mixture))
    )
    places = _places(posterior, num_samples)
    average = RunningAverage(len(rows.values), 0 if reference is None else len(reference.names))
    groups = [
        (present, where, rows.values) for present, where in patterns_of(np.isnan(rows.values))
    ]
    rng = np.random.default_rng(random_seed)
    measures = measures_of(posterior, mixture, places)
    readings = readings_of(posterior, mixture, model, places)
    for measure, (place, reading) in zip(measures, readings, strict=True):
        shares = np.zeros((len(measure.weights), 0))
        n_recorded = len(measure.weights)
        if reference is not None:
            kept = _recorded_labels(posterior, mixture, place)
            measure, shares = _shares_of(measure, mixture, reading, reference, kept, rng)
        for where, log_mass in _masses(measure, mixture, reading, groups):
            average.add(where, log_mass, n_recorded, shares)
    return _as_dataset(average, rows, reference, mixture.name)


def _places(posterior: xr.Dataset, num_samples: int | None) -> list[tuple[int, ...]]:
    """Chain and draw of those to use."""
    n_all = posterior.sizes["chain"] * posterior.sizes["draw"]
    if num_samples is None:
        num_samples = n_all
    if isinstance(num_samples, bool) or not isinstance(num_samples, int) or num_samples < 1:
        raise ValueError(f"num_samples={num_samples!r} must be an integer of at least 1.")
    return spread_places(posterior, num_samples)


def _reference_of(partition: Any, dim: str, coord: np.ndarray | None) -> Reference:
    given_labels = labels_of_partition(partition)
    labels = np.asarray(given_labels)
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise ValueError(
            f"partition has shape {labels.shape} and type {labels.dtype}; give one integer for "
            "each observation, the number of its cluster."
        )
    refuse_other_rows(given_labels, dim, coord)
    names, positions = np.unique(labels, return_inverse=True)
    return Reference(positions, names)


def _recorded_labels(
    posterior: xr.Dataset, mixture: MixtureVariables, place: tuple[int, ...]
) -> np.ndarray | None:
    """Labels of a draw where they are variables of the model, which number its clusters."""
    if not mixture.is_labelled:
        return None
    return posterior[f"{mixture.name}_labels"].to_numpy()[place]


def _shares_of(
    measure: Measure,
    mixture: MixtureVariables,
    reading: Reading,
    reference: Reference,
    labels: np.ndarray | None,
    rng: np.random.Generator,
) -> tuple[Measure, np.ndarray]:
    """Share (A, R) of each reference cluster in the atoms of a draw, and all atoms that have any.

    Labels that are redrawn may be of atoms that the trace does not record.
    """
    if len(reference.labels) != reading.rows.shape[0]:
        raise ValueError(
            f"partition has {len(reference.labels)} labels, but {mixture.name} has "
            f"{reading.rows.shape[0]} observations; give one integer for each."
        )
    if labels is None:
        component = given(mixture.component, reading.values)
        redrawn = redraw(measure, mixture, reading, rng)
        used = np.unique(redrawn.labels)
        beyond = used[used >= len(measure.weights)]
        measure = _with_atoms(
            measure,
            np.exp(redrawn.log_weights[beyond]),
            component.unpack(redrawn.params[beyond], redrawn.shift),
        )
        number = np.arange(len(redrawn.log_weights))
        number[beyond] = len(measure.weights) - len(beyond) + np.arange(len(beyond))
        labels = number[redrawn.labels]
    shape = len(measure.weights), len(reference.names)
    flat = labels.astype(np.int64) * shape[1] + reference.labels
    counts = np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape)
    return measure, counts / np.maximum(counts.sum(1, keepdims=True), 1)


def _with_atoms(
    measure: Measure, weights: np.ndarray, parameters: Mapping[str, np.ndarray]
) -> Measure:
    """Add atoms; what they take of the remainder is left there, see `RunningAverage.add`."""
    joined = {
        name: np.concatenate([of, parameters[name]]) for name, of in measure.parameters.items()
    }
    return Measure(np.concatenate([measure.weights, weights]), measure.remainder, joined)


def _masses(
    measure: Measure,
    mixture: MixtureVariables,
    reading: Reading,
    groups: list[tuple[np.ndarray, np.ndarray, np.ndarray]],
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Log masses (A + 1, m) of all atoms and of the remainder, for blocks (m,) of the new rows."""
    component, values, parameters = mixture.component, reading.values, measure.parameters
    n_atoms = len(measure.weights)
    for present, where, rows in groups:
        if len(present) == 0:
            # Without any entry the density is one under every atom.
            with np.errstate(divide="ignore"):
                weights = np.log([*measure.weights, measure.remainder])
            yield where, np.repeat(weights[:, None], len(where), axis=1)
            continue
        law = measure.weights, measure.remainder, parameters, values
        if len(present) < rows.shape[1]:
            restricted = component.restrict_parameters(parameters, present)
            law = (*law[:2], restricted, component.restrict(values, present))
        for block in blocks_of((len(where), n_atoms + 1)):
            part = np.ascontiguousarray(rows[np.ix_(where[block], present)])
            yield where[block], log_masses(component, part, *law)


def _as_dataset(
    average: RunningAverage, rows: NewRows, reference: Reference | None, name: str
) -> xr.Dataset:
    found: dict[str, Any] = {
        "log_predictive_density": (rows.dim, average.log_density),
        "new_cluster_probability": (rows.dim, average.new_probability),
        "effective_draws": (rows.dim, average.effective_draws),
    }
    coords = dict(rows.coords)
    if reference is not None:
        cluster = f"{name}_reference_cluster"
        found["membership_probability"] = ((rows.dim, cluster), average.membership)
        coords[cluster] = reference.names
    return xr.Dataset(found, coords=coords)
