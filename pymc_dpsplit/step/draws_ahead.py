"""Draws that a step makes in one call of a kernel, and gives to PyMC one at a time.

PyMC's part of a draw and that of the step in Python take as long as many sweeps of few
observations.  Where nothing between two draws changes what the next one depends on, the chain is
ahead of the draws that PyMC has.  Draws are the same as if they were made one by one: the state of
the chain after those that were given is found by making these again.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from pymc.model import Model

from pymc_dpsplit import sampler
from pymc_dpsplit.components.nonconjugate.family import NonconjugateFamily
from pymc_dpsplit.moves.successive_draws import (
    LOG_REST,
    OF_PARTITION,
    STRENGTH_VARIABLE,
    DrawRecord,
)
from pymc_dpsplit.step.sampler_stats import plan_of, stats_of
from pymc_dpsplit.step.schedule import cost_of_iteration
from pymc_dpsplit.variables import MixtureVariables
from pymc_dpsplit.variables.concentration import ConcentrationPrior
from pymc_dpsplit.variables.conditioning import Conditioning

# Number of draws ahead; nanoseconds that they take, so that an interrupt is not noticed late; and
# bytes of their record.
_MOST_DRAWS, _MOST_TIME, _MOST_BYTES = 50, 2e7, 4e6


def moved_alone(
    mixture: MixtureVariables,
    model: Model,
    kernel: str,
    moved: Sequence[Any],
    concentrations: Sequence[ConcentrationPrior],
) -> tuple[str, ...] | None:
    """Return what the next draw depends on beside the chain, if kernels move that too.

    Parameters
    ----------
    mixture : MixtureVariables
    model : pymc.Model
    kernel : str
        One of `sampler.KERNELS`.
    moved : sequence of TensorVariable
        Values that the step moves.
    concentrations : sequence of ConcentrationPrior
        Of the variables behind the law that the step moves.

    Returns
    -------
    tuple of str or None
        Name of the value behind alpha, if that is a variable.  None if draws cannot be ahead: if
        other steps move anything, if the kernel makes draws one by one, or if a draw in Python
        draws more than kernels do, as missing entries, latent rows, labels that are variables, a
        discount, or a number of components.
    """
    is_open = isinstance(mixture.component, NonconjugateFamily)
    if not sampler.can_advance_several(kernel, is_conjugate=not is_open):
        return None
    is_plain = mixture.unobserved is None and mixture.n_components is None
    is_plain = is_plain and not (mixture.is_latent or mixture.is_labelled)
    by_kernels = [of for concentration in concentrations for of in concentration.moved_by_kernels]
    # The law of the partition was rounded to the type of its variable draw by draw.
    are_numbers = all(of.type.dtype == "float64" for of in by_kernels)
    if not (is_plain and are_numbers and len(by_kernels) == len(concentrations)):
        return None
    if "log_weights" in mixture.measure or set(model.value_vars) != set(moved):
        return None
    return tuple(of.value_name for of in concentrations)


class Beginning(NamedTuple):
    """What draws ahead are made from.

    Attributes
    ----------
    kernel : str
    target : Target
    state : ChainState
    schedule : Schedule
    generator : dict
        State of the generator.
    present : ndarray of float64, shape (2,)
        Variable behind the strength, and the strength, see `moves.strength.StrengthPrior`.
    """

    kernel: str
    target: sampler.Target
    state: sampler.ChainState
    schedule: sampler.Schedule
    generator: Mapping[str, Any]
    present: np.ndarray

    def after(self, n_draws: int, rng: np.random.Generator) -> sampler.ChainState:
        """Return the state of the chain after so many draws, and set the generator to that."""
        rng.bit_generator.state = self.generator
        if n_draws == 0:
            return self.state
        self.schedule.strength.present[:] = self.present
        given = self.kernel, self.target, self.state, rng, self.schedule
        return sampler.advance_several(*given, n_draws, 1)[0]


def begin(
    kernel: str,
    target: sampler.Target,
    state: sampler.ChainState,
    schedule: sampler.Schedule,
    rng: np.random.Generator,
) -> Beginning:
    """Keep what draws ahead are made from; the state of a chain is not modified by draws."""
    present = schedule.strength.present.copy()
    return Beginning(kernel, target, state, schedule, rng.bit_generator.state, present)


@dataclass
class DrawsAhead:
    """Draws that were made, of which `n_given` were given.

    Attributes
    ----------
    beginning : Beginning
    end : ChainState
        After the last draw.
    labels : ndarray of int32, shape (n, N)
    values : dict
        Name to ndarray, shape (n, ...): what the draws change in a point.
    stats : list of dict
        Statistics of each draw, without labels.
    moved : tuple of str
        Names of those of `values` that the next draw depends on.
    n_given : int
    """

    beginning: Beginning
    end: sampler.ChainState
    labels: np.ndarray
    values: dict[str, np.ndarray]
    stats: list[dict[str, Any]]
    moved: tuple[str, ...]
    n_given: int = 0

    @property
    def is_over(self) -> bool:
        """Return whether all were given."""
        return self.n_given == len(self.stats)

    def goes_on_from(self, point: Mapping[str, np.ndarray]) -> bool:
        """Return whether a point has the values of the last draw that was given."""
        return all(point[name] == self.values[name][self.n_given - 1] for name in self.moved)

    def give(self) -> tuple[dict[str, np.ndarray], dict[str, Any], np.ndarray]:
        """Return values, statistics and labels of the next draw."""
        i = self.n_given
        self.n_given += 1
        # With an ellipsis numbers are arrays, too.
        values = {name: of[i, ...] for name, of in self.values.items()}
        return values, self.stats[i], self.labels[i]


def draw_ahead(
    mixture: MixtureVariables,
    beginning: Beginning,
    conditioning: Conditioning,
    shift: np.ndarray,
    moved: tuple[str, ...],
    rng: np.random.Generator,
    most: float,
) -> DrawsAhead | None:
    """Make draws ahead, as many as take a fiftieth of a second.

    Parameters
    ----------
    mixture : MixtureVariables
        One for which `moved_alone` is not None.
    beginning : Beginning
    conditioning : Conditioning
        What the model gives the mixture.
    shift : ndarray of float64, shape (D,)
        Subtracted from the observations of the target.
    moved : tuple of str
        Result of `moved_alone`.
    rng : numpy.random.Generator
        Advanced.
    most : float
        Number of draws, at most.

    Returns
    -------
    DrawsAhead or None
        None if it would be a single draw.
    """
    n_draws = int(min(most, _n_affordable(mixture, beginning)))
    if n_draws < 2:
        return None
    began = time.perf_counter()
    kernel, target, state, schedule = beginning[:4]
    size = n_draws, mixture.max_clusters
    end, record = sampler.advance_several(kernel, target, state, rng, schedule, *size)
    values = _values(mixture, record, conditioning.values, shift)
    values |= dict.fromkeys(moved, record.numbers[:, STRENGTH_VARIABLE])
    stats = _stats(mixture.name, target, record, plan_of(kernel, target, schedule))
    seconds = {f"{mixture.name}_seconds": (time.perf_counter() - began) / n_draws}
    return DrawsAhead(beginning, end, record.labels, values, [of | seconds for of in stats], moved)


def _n_affordable(mixture: MixtureVariables, beginning: Beginning) -> int:
    kernel, target, state, schedule = beginning[:4]
    of_draw = schedule.n_iterations * cost_of_iteration(kernel, target, state, schedule)
    n_obs, n_features = target.data.shape
    n_bytes = 4.0 * n_obs + 8.0 * mixture.max_clusters * (2.0 + 2.0 * n_features * n_features)
    return int(min(_MOST_TIME / of_draw, _MOST_BYTES / n_bytes, _MOST_DRAWS))


def _stats(
    name: str, target: sampler.Target, record: DrawRecord, plan: dict[str, Any]
) -> list[dict[str, Any]]:
    """Statistics of each draw, without seconds and labels."""
    counts, summaries = record.acceptance_counts, record.numbers[:, OF_PARTITION].tolist()
    return [
        stats_of(name, target, n_clusters, summary, counts[i], plan, 0)
        for i, (n_clusters, summary) in enumerate(
            zip(record.n_clusters.tolist(), summaries, strict=True)
        )
    ]


def _values(
    mixture: MixtureVariables,
    record: DrawRecord,
    hyperparameters: Mapping[str, np.ndarray],
    shift: np.ndarray,
) -> dict[str, np.ndarray]:
    """Entries of points, each (n, ...); `MixtureVariables.point_values` gives those of one."""
    log_rest = record.numbers[:, LOG_REST]
    is_exponential = not mixture.log_new_weight
    values = {
        "n_clusters": record.n_clusters,
        "new_weight": np.array([*map(math.exp, log_rest)]) if is_exponential else log_rest,
        "weights": record.weights,
    }
    n_rows = record.weights.shape[1]
    is_kept = np.arange(n_rows) < record.n_clusters[:, None]
    drawn = mixture.items.unpack(record.params[is_kept], hyperparameters, shift)
    for name, parameter in drawn.items():
        values[name] = np.full((*is_kept.shape, *parameter.shape[1:]), np.nan)
        values[name][is_kept] = parameter
    return {mixture.value_names[role]: value for role, value in values.items()}
