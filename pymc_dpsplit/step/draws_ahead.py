"""Draws that a step makes in one call of a kernel, and gives to PyMC one at a time.

PyMC's part of a draw and that of the step in Python take as long as many sweeps of few
observations.  Where nothing between two draws changes what the next one depends on, the chain is
ahead of the draws that PyMC has.  Draws are the same as if they were made one by one: the state of
the chain after those that were given is found by making these again.
"""

import math
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

# Number of draws ahead; nanoseconds that they take by estimate, so that an interrupt is not noticed
# late; and bytes that they occupy.
_MOST_DRAWS, _MOST_TIME, _MOST_BYTES = 50, 2e7, 4e6
# Where fewer would take that time, PyMC's part is a few percent of a draw.
_LEAST_AFFORDABLE = 4


def values_to_compare(
    mixture: MixtureVariables,
    model: Model,
    kernel: str,
    moved: Sequence[Any],
    concentrations: Sequence[ConcentrationPrior],
) -> tuple[str, ...] | None:
    """Return the names of values on which the next draw depends beside the chain.

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
        Name of the value behind alpha, if that is a variable, which kernels move too.  None if
        draws cannot be ahead: if other steps move anything, if the kernel makes draws one by one,
        or if a draw in Python draws more than kernels do, as missing entries, latent rows, labels
        that are variables, a discount, or a number of components.
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
    # A discount that is a variable needs the sum of log weights, which kernels do not record.
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
        """Make draws again from the beginning, and return the state after them.

        Parameters
        ----------
        n_draws : int
        rng : numpy.random.Generator
            Its state becomes that after these draws, whatever it was.

        Returns
        -------
        ChainState
        """
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
    compared : tuple of str
        Names of those of `values` that the next draw depends on.
    seconds : float
        Time that a draw took, on average.
    n_given : int
    """

    beginning: Beginning
    end: sampler.ChainState
    labels: np.ndarray
    values: dict[str, np.ndarray]
    stats: list[dict[str, Any]]
    compared: tuple[str, ...]
    seconds: float = 0.0
    n_given: int = 0

    @property
    def all_given(self) -> bool:
        """Return whether all were given."""
        return self.n_given == len(self.stats)

    def goes_on_from(self, point: Mapping[str, np.ndarray]) -> bool:
        """Return whether a point has those values of the last draw given that the next needs."""
        return all(point[name] == self.values[name][self.n_given - 1] for name in self.compared)

    def give(self) -> tuple[dict[str, np.ndarray], dict[str, Any], np.ndarray]:
        """Return values, statistics and labels of the next draw."""
        i = self.n_given
        self.n_given += 1
        # Copies, as PyMC or a user may write into a point; an ellipsis makes arrays of numbers too.
        values = {name: of[i, ...].copy() for name, of in self.values.items()}
        return values, self.stats[i], self.labels[i]


class LooksAtState:
    """Looks at the state of the chain, before which it is not ahead if they come regularly.

    To find the state in the middle of draws that were made, some of them are made again.
    """

    def __init__(self) -> None:
        self._last, self._every = 0, math.inf

    def n_until_next(self, n_done: int) -> float:
        """Return the number of draws until the next look, after `n_done` draws."""
        since = n_done - self._last
        if since >= self._every:
            # It did not come.
            self._every = 2 * since
        return self._every - since

    def note(self, n_done: int) -> None:
        """Note a look after `n_done` draws."""
        self._last = n_done

    def note_in_the_middle(self, n_done: int) -> None:
        """Note a look after `n_done` draws, where more had been made."""
        self._every = n_done - self._last
        self._last = n_done


def draw_ahead(
    mixture: MixtureVariables,
    beginning: Beginning,
    conditioning: Conditioning,
    shift: np.ndarray,
    compared: tuple[str, ...],
    rng: np.random.Generator,
    most: float,
) -> DrawsAhead | None:
    """Make draws ahead, as many as take a fiftieth of a second by estimate, and 50 at most.

    Parameters
    ----------
    mixture : MixtureVariables
        One for which `values_to_compare` is not None.
    beginning : Beginning
    conditioning : Conditioning
        What the model gives the mixture.
    shift : ndarray of float64, shape (D,)
        Subtracted from the observations of the target.
    compared : tuple of str
        Result of `values_to_compare`.
    rng : numpy.random.Generator
        Advanced.
    most : float
        Number of draws, at most.

    Returns
    -------
    DrawsAhead or None
        None if it would be a single draw, or if draws take long.
    """
    n_affordable = _n_affordable(mixture, beginning)
    n_draws = int(min(most, n_affordable, _MOST_DRAWS))
    if n_draws < 2 or n_affordable < _LEAST_AFFORDABLE:
        return None
    kernel, target, state, schedule = beginning[:4]
    size = n_draws, mixture.max_clusters
    end, record = sampler.advance_several(kernel, target, state, rng, schedule, *size)
    values = _values(mixture, record, conditioning.values, shift)
    values |= dict.fromkeys(compared, record.numbers[:, STRENGTH_VARIABLE])
    stats = _stats(mixture.name, target, record, plan_of(kernel, target, schedule))
    return DrawsAhead(beginning, end, record.labels, values, stats, compared)


def _n_affordable(mixture: MixtureVariables, beginning: Beginning) -> float:
    kernel, target, state, schedule = beginning[:4]
    of_draw = schedule.n_iterations * cost_of_iteration(kernel, target, state, schedule)
    # The numbers of a measure are in the record of the kernel and in the values of points.
    n_numbers = sum(math.prod(of.type.shape) for of in mixture.measure.values())
    n_bytes = 4.0 * state.labels.shape[0] + 16.0 * n_numbers
    return min(_MOST_TIME / of_draw, _MOST_BYTES / n_bytes)


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
    # As in `point_values`: the exponential of NumPy may differ in the last digit.
    new_weight = log_rest if mixture.log_new_weight else np.array([*map(math.exp, log_rest)])
    values = {
        "n_clusters": record.n_clusters,
        "new_weight": new_weight,
        "weights": record.weights,
    }
    n_rows = record.weights.shape[1]
    is_kept = np.arange(n_rows) < record.n_clusters[:, None]
    drawn = mixture.items.unpack(record.params[is_kept], hyperparameters, shift)
    for name, parameter in drawn.items():
        values[name] = np.full((*is_kept.shape, *parameter.shape[1:]), np.nan)
        values[name][is_kept] = parameter
    return {mixture.value_names[role]: value for role, value in values.items()}
