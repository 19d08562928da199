"""State of a chain, and its draws by kernels composed of moves.  Does not depend on PyMC.

The compositions are in `moves.conjugate` and `moves.nonconjugate.iterations`, one record each, and
those of the literature in `samplers.catalogue`.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from pymc_dpsplit.components.nonconjugate.compiled_prior import CompiledPrior
from pymc_dpsplit.kernels.generators import address_of
from pymc_dpsplit.kernels.jit import compile_beside
from pymc_dpsplit.moves.collapsed.scan import collapsed_sweep
from pymc_dpsplit.moves.conjugate import CONJUGATE
from pymc_dpsplit.moves.end_of_draw import end_draw
from pymc_dpsplit.moves.family_moves import FamilyMoves, KernelForm
from pymc_dpsplit.moves.measure import no_atoms
from pymc_dpsplit.moves.nonconjugate.iterations import NONCONJUGATE
from pymc_dpsplit.moves.partition_law import PartitionLaw, breaks_sticks, most_clusters
from pymc_dpsplit.moves.start import draw_n_start
from pymc_dpsplit.moves.strength import StrengthPrior, fixed_strength, move_strength
from pymc_dpsplit.moves.successive_draws import DrawRecord
from pymc_dpsplit.moves.sweep.assignment import strip_count
from pymc_dpsplit.moves.sweep.threaded_sweep import threaded_sweep
from pymc_dpsplit.moves.target import Target as Target
from pymc_dpsplit.samplers.catalogue import SAMPLERS as SAMPLERS

# Kernels that users can choose by name, and the kernel of early tuning.
KERNELS = ("exact", "collapsed", "collapsed-split-merge", *SAMPLERS)
GREEDY = "greedy"

_MOVES_OF: dict[type, FamilyMoves] = {CompiledPrior: NONCONJUGATE}


def moves_of(prior: Any) -> FamilyMoves:
    """Return the moves of a family, by the type of its prior."""
    return _MOVES_OF.get(type(prior), CONJUGATE)


def form_of(kernel_name: str, is_conjugate: bool) -> KernelForm | None:
    """Return a kernel, or None if it cannot treat families that are not conjugate.

    Parameters
    ----------
    kernel_name : str
        One of `KERNELS`, or `GREEDY`.
    is_conjugate : bool
        Whether the parameters of the family can be integrated out.

    Returns
    -------
    KernelForm or None
    """
    published = SAMPLERS.get(kernel_name)
    if published is None:
        return (CONJUGATE if is_conjugate else NONCONJUGATE).kernels.get(kernel_name)
    return published.conjugate if is_conjugate else published.nonconjugate


# What most kernels keep beside the partition: nothing.
NOTHING_KEPT = np.empty(0, np.int8), np.empty((0, 0))


class ChainState(NamedTuple):
    """Partition of one chain, and what its kernel keeps beside it.

    Attributes
    ----------
    labels : ndarray of int32, shape (N,)
        Cluster 0 .. K - 1 of each observation.
    stats : ndarray of float64, shape (K, S)
        Sufficient statistics of each cluster; element 0 is its size.
    of_rows : ndarray of int8, shape (N,) or (0,)
        Auxiliary variables of the observations.
    of_clusters : ndarray of float64, shape (K, C) or (0, 0)
        Auxiliary variables of the clusters.  Both are empty for most kernels, and where a kernel
        that has them draws them anew.
    """

    labels: np.ndarray
    stats: np.ndarray
    of_rows: np.ndarray = NOTHING_KEPT[0]
    of_clusters: np.ndarray = NOTHING_KEPT[1]

    @property
    def n_observations(self) -> int:
        """Number of observations of the process, of which a label may stand for several."""
        return int(self.stats[:, 0].sum())


class Measure(NamedTuple):
    """Occupied part of the random measure, clusters by decreasing weight, and its partition.

    Attributes
    ----------
    weights : ndarray of float64, shape (K,)
    log_rest : float
        Log weight of the remainder.
    params : ndarray of float64, shape (K, P)
    rank : ndarray of int64, shape (K,)
        Row of each cluster of the chain in this order.
    sum_log_weights : float
        Finite also where weights underflow.
    log_joint, entropy, largest_share : float
        Of the partition, see `moves.end_of_draw`.
    """

    weights: np.ndarray
    log_rest: float
    params: np.ndarray
    rank: np.ndarray
    sum_log_weights: float
    log_joint: float
    entropy: float
    largest_share: float


def start(target: Target, rng: np.random.Generator, n_start: int | None = None) -> ChainState:
    """Draw an over-dispersed starting partition.

    Parameters
    ----------
    target : Target
    rng : numpy.random.Generator
    n_start : int, optional
        Number of clusters to start from; by default drawn log-uniformly from 1 .. min(50, N).

    Returns
    -------
    ChainState
        With at most `n_start` clusters.
    """
    n_obs = target.data.shape[0]
    n_centres = draw_n_start(rng, n_obs) if n_start is None else n_start
    n_centres = min(n_centres, most_clusters(target.law, n_obs))
    centres = rng.choice(n_obs, n_centres, replace=False)
    return resume(target, moves_of(target.prior).label_by_centres(target, centres))


def resume(target: Target, labels: np.ndarray) -> ChainState:
    """Compute the state of a chain from its labels.

    Parameters
    ----------
    target : Target
    labels : ndarray of int, shape (N,)
        Clusters 0 .. K - 1, none empty.

    Returns
    -------
    ChainState
    """
    own = np.ascontiguousarray(labels, dtype=np.int32)
    return ChainState(own, moves_of(target.prior).gather(target, own, int(own.max()) + 1))


def resume_with_atoms(target: Target, labels: np.ndarray, params: np.ndarray) -> ChainState:
    """Compute the state of a chain from its labels and the atoms that these refer to.

    Parameters
    ----------
    target : Target
    labels : ndarray of int, shape (N,)
        Rows of `params`.
    params : ndarray of float64, shape (A, P)
        Kept by families that are not conjugate; others draw their parameters anew.

    Returns
    -------
    ChainState
    """
    used, inverse = np.unique(labels, return_inverse=True)
    own = np.ascontiguousarray(inverse, dtype=np.int32)
    return ChainState(own, moves_of(target.prior).gather_with_atoms(target, own, params[used]))


def start_from_measure(
    target: Target,
    rng: np.random.Generator,
    log_alone: np.ndarray,
    log_weights: np.ndarray,
    log_rest: float,
    params: np.ndarray,
) -> ChainState:
    """Draw the labels of all observations given a random measure, docs/method.md, section 5.

    Parameters
    ----------
    target : Target
    rng : numpy.random.Generator
    log_alone : ndarray of float64, shape (N,)
        Log prior predictive densities, see `moves.sweep.density.log_density_alone`.
    log_weights : ndarray of float64, shape (K,)
    log_rest : float
        Log weight of the remainder.
    params : ndarray of float64, shape (K, P)

    Returns
    -------
    ChainState
    """
    labels = np.empty(target.data.shape[0], np.int32)
    moves = moves_of(target.prior)
    moves.prepare(target)
    known = log_alone, log_weights, log_rest, params
    _, atoms = moves.redraw_labels(target, labels, rng, *known)
    return resume_with_atoms(target, labels, atoms)


class Schedule(NamedTuple):
    """Work of a draw; adapted during tuning, then frozen.

    Attributes
    ----------
    n_iterations : int
        Iterations per draw.
    attempts : float
        Mean number of split/merge attempts per iteration.
    scan_list : ndarray of int64, shape (M,)
        Observations that get a collapsed Gibbs update in every iteration, or several if repeated.
    strength : StrengthPrior
        What kernels need to move alpha after every iteration, whose value they overwrite.
    settings : ndarray of float64, shape (n_options,)
        Values of the options of a sampler of the literature; if empty, its defaults.
    window : int
        If positive, an iteration scans as many successive observations, from a random one on, in
        place of those of the list.
    regroupings : float
        Mean number of regroupings in an iteration of early tuning, at most 1.
    """

    n_iterations: int
    attempts: float
    scan_list: np.ndarray
    strength: StrengthPrior = fixed_strength()
    settings: np.ndarray = np.empty(0)
    window: int = 0
    regroupings: float = 0.5

    @property
    def n_scanned(self) -> int:
        """Number of observations that an iteration with a sweep by slices scans."""
        return self.window or len(self.scan_list)


def begin_to_compile(kernel_name: str, target: Target, rng: np.random.Generator) -> None:
    """Let another process compile a part of what a draw calls, see `kernels.beside`.

    Parameters
    ----------
    kernel_name : str
        One of `KERNELS`, or `GREEDY`.
    target : Target
    rng : numpy.random.Generator
        For its type.
    """
    form = form_of(kernel_name, moves_of(target.prior).is_conjugate)
    arguments = {
        "target": target,
        "labels": np.empty(0, np.int32),
        "stats": np.empty((0, 0)),
        "rng": rng,
        "generator": address_of(rng),
        "acceptance_counts": np.empty(0, np.int64),
    }
    if form is not None and form.parts:
        compile_beside(form.parts, (end_draw,), arguments)


def _has_shared_sweep(law: PartitionLaw, n_obs: int) -> bool:
    """Whether threads could share a sweep; not asked without threads, as each call takes time."""
    return bool(strip_count(n_obs) > 1 and breaks_sticks(law, n_obs))


def _refuse_too_many_sticks(kernel_name: str, strength: float) -> None:
    published = SAMPLERS.get(kernel_name)
    if published is not None and strength > published.most_strength:
        raise ValueError(
            f"alpha is {strength:g}, for which kernel={kernel_name!r} breaks more than a million "
            "sticks in a sweep; leave kernel= out, or give alpha a prior with a lighter tail."
        )


def advance(
    kernel_name: str,
    target: Target,
    state: ChainState,
    rng: np.random.Generator,
    schedule: Schedule,
    pool: ThreadPoolExecutor | None = None,
) -> tuple[ChainState, np.ndarray]:
    """Run the iterations of one draw.

    Parameters
    ----------
    kernel_name : str
        One of `KERNELS`, or `GREEDY`.
    target : Target
    state : ChainState
        Not modified.
    rng : numpy.random.Generator
        Advanced.
    schedule : Schedule
    pool : ThreadPoolExecutor, optional
        Threads for the sweep; the draws do not depend on it.

    Returns
    -------
    state : ChainState
    acceptance_counts : ndarray of int64, shape (4,)
        Numbers of proposals and acceptances, see `moves.acceptance_counts`.
    """
    labels, stats = state.labels.copy(), state.stats
    acceptance_counts = np.zeros(4, np.int64)
    moves = moves_of(target.prior)
    form = form_of(kernel_name, moves.is_conjugate)
    # Declaration refuses kernels that a family does not have.
    assert form is not None
    moves.prepare(target)
    _refuse_too_many_sticks(kernel_name, target.law.strength)
    if kernel_name in SAMPLERS and not schedule.settings.size:
        schedule = schedule._replace(settings=SAMPLERS[kernel_name].settings({}))
    given = target, labels, stats, address_of(rng), schedule, acceptance_counts
    if form.keeps:
        found = form.iterate(*given, state.of_rows, state.of_clusters)
        return ChainState(labels, *found), acceptance_counts
    if pool is None or form.finish is None or not _has_shared_sweep(target.law, len(labels)):
        stats = form.iterate(*given)
        return ChainState(labels, stats), acceptance_counts
    atoms = no_atoms(target.prior)
    for _ in range(1 if kernel_name == GREEDY else schedule.n_iterations):
        if moves.is_conjugate and not breaks_sticks(target.law, len(labels)):
            stats = collapsed_sweep(target, labels, stats, rng)
        else:
            stats, atoms = threaded_sweep(target, labels, stats, rng, atoms, pool)
        stats = form.finish(target, labels, stats, rng, schedule, acceptance_counts)
        if schedule.strength.address != 0:
            # No sweep follows a greedy iteration.
            followed = no_atoms(target.prior) if kernel_name == GREEDY else atoms
            target = move_strength(target, stats, followed, schedule.strength, rng)
    return ChainState(labels, stats), acceptance_counts


def can_advance_several(kernel_name: str, is_conjugate: bool) -> bool:
    """Return whether a kernel makes several draws in one call, see `advance_several`."""
    form = form_of(kernel_name, is_conjugate)
    return form is not None and form.draw_several is not None


def advance_several(
    kernel_name: str,
    target: Target,
    state: ChainState,
    rng: np.random.Generator,
    schedule: Schedule,
    n_draws: int,
    n_rows: int,
) -> tuple[ChainState, DrawRecord]:
    """Make several draws with one schedule, on one thread; the same as one by one.

    Parameters
    ----------
    kernel_name : str
        One for which `can_advance_several` is true.
    target : Target
    state : ChainState
        Not modified.
    rng : numpy.random.Generator
        Advanced.
    schedule : Schedule
    n_draws : int
    n_rows : int
        Number of clusters whose weights and parameters are recorded, at most.

    Returns
    -------
    state : ChainState
        After the last draw.
    record : DrawRecord
    """
    form = form_of(kernel_name, moves_of(target.prior).is_conjugate)
    assert form is not None
    assert form.draw_several is not None
    labels = state.labels.copy()
    given = target, labels, state.stats, address_of(rng), schedule
    stats, record = form.draw_several(*given, n_draws, n_rows)
    return ChainState(labels, stats), record


def measure(target: Target, state: ChainState, rng: np.random.Generator) -> Measure:
    """Draw weights and parameters given the partition, and summarise the partition.

    Parameters
    ----------
    target : Target
    state : ChainState
    rng : numpy.random.Generator

    Returns
    -------
    Measure
    """
    return Measure(*end_draw(target, state.labels, state.stats, address_of(rng)))
