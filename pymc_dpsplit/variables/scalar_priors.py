"""Scalar variables behind the concentrations of a hierarchical model, which its step moves."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc.model import Model
from pytensor.graph.basic import Variable

from pymc_dpsplit.moves.slice import slice_draw
from pymc_dpsplit.variables.concentration import ConcentrationPrior, roots_of
from pymc_dpsplit.variables.dependence import variables_read
from pymc_dpsplit.variables.lookup import is_owned

Point = dict[str, np.ndarray]


def priors_to_move(
    concentrations: Mapping[str, Variable],
    own: set[Variable],
    model: Model,
    point: Point,
    elsewhere: Iterable[Variable] = (),
) -> dict[str, ConcentrationPrior]:
    """Return the priors of the concentrations that depend on a scalar variable of their own.

    Parameters
    ----------
    concentrations : mapping
        Name to TensorVariable.
    own : set of TensorVariable
        Variables that only the step moves, and the observations.
    model : pymc.Model
    point : dict
        Any point of the model.
    elsewhere : iterable of TensorVariable
        What else the step conditions on; a variable behind it is left to other steps, and so is one
        that a mixture declared before depends on: its step comes before in a draw, so that its
        statistics would be those of another value.

    Returns
    -------
    dict
        Name to `ConcentrationPrior`, without those of other concentrations.
    """
    roots = {key: roots_of(graph, model) for key, graph in concentrations.items()}
    taken = variables_read([*elsewhere, *_read_before(own, model)], model)
    read = {key: variables_read([graph], model) for key, graph in concentrations.items()}
    priors = {}
    for key, graph in concentrations.items():
        others = taken.union(*(of for other, of in read.items() if other != key))
        if len(roots[key]) != 1 or roots[key] & others:
            continue
        (root,) = roots[key]
        if not root.ndim and root.dtype.startswith("float"):
            law = pt.constant(0.0), graph
            priors[key] = prior = ConcentrationPrior(law, own, model, root, point)
            # Compiles it, once for all chains.
            prior.given(point)(float(point[prior.value_name]))
    return priors


def _read_before(own: set[Variable], model: Model) -> list[Variable]:
    """Return what variables of steps of this package that come before `own` are made of."""
    free = model.free_RVs
    first = min(place for place, rv in enumerate(free) if rv in own)
    return [graph for rv in free[:first] if is_owned(rv) for graph in rv.owner.inputs]


def moved_alone(priors: Mapping[str, ConcentrationPrior]) -> list[Variable]:
    """Return the value variables that no other step has to move."""
    return [of for prior in priors.values() for of in prior.moved_alone]


def move_scalars(
    priors: Mapping[str, ConcentrationPrior],
    factors: Mapping[str, Callable[[float], float]],
    point: Point,
    rng: np.random.Generator,
) -> Point:
    """Slice-sample the variables behind concentrations, one after the other.

    Parameters
    ----------
    priors : mapping
        Result of `priors_to_move`.
    factors : mapping
        Name to the log probability of the state as a function of the concentration.
    point : dict
        Not modified.
    rng : numpy.random.Generator

    Returns
    -------
    dict
        A new point.
    """
    for key, prior in priors.items():
        evaluate, name, log_factor = prior.given(point), prior.value_name, factors[key]

        def log_density(value: float, evaluate: Any = evaluate, of: Any = log_factor) -> float:
            log_prior, law = evaluate(value)
            if not (np.isfinite(log_prior) and 0.0 < law.strength < np.inf):
                return -np.inf
            return float(log_prior + of(law.strength))

        value = slice_draw(log_density, float(point[name]), 1.0, rng)
        point = {**point, name: np.asarray(value, point[name].dtype)}
    return point
