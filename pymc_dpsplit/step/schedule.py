"""Schedule of a draw: the number of iterations and of attempts, and the scan list.

Schedules are adapted during tuning and frozen before the first draw that is kept.  Work is
estimated from counts and not timed, so that a random seed determines the draws.
"""

import math

import numpy as np

from pymc_dpsplit.kernels.tiles import TILE
from pymc_dpsplit.moves.collapsed.scan_list import (
    choose_scan_list,
    expected_births_in_sweeps,
    founding_probabilities,
    likeliest_founders,
    log_founding_odds,
    members_of_tiny_clusters,
)
from pymc_dpsplit.moves.conjugate import GREEDY_ATTEMPTS
from pymc_dpsplit.moves.cost import is_sparse, regrouping_cost, visit_cost
from pymc_dpsplit.moves.partition_law import (
    PartitionLaw,
    breaks_sticks,
    opening_mass,
    sticks_below,
)
from pymc_dpsplit.sampler import GREEDY, SAMPLERS, ChainState, Schedule, Target, moves_of
from pymc_dpsplit.step.kernel_choice import COLLAPSED
from pymc_dpsplit.tuning.iterations import (
    draws_wanted,
    iterations_of_fast_chain,
    iterations_wanted,
    most_iterations,
)

# Nanoseconds of a draw with collapsed sweeps of few rows.  They take less than others, and those of
# a chain that mixes slowly are multiplied.
_LEAST_OF_COLLAPSED = 1e5
# Collapsed sweeps cost less than PyMC's part of a draw, so that chains of few rows gain little by
# more draws per autocorrelation time, unless these are made ahead.
_PER_TIME_OF_COLLAPSED, _PER_TIME_AHEAD = 2.0, 3.0
# Collapsed sweeps, or windows, are multiplied by no more than this.  They take four fifths of the
# time then, so that more would gain little per second, and an autocorrelation time estimated too
# long costs most.
_MOST_TIMES_OF_COLLAPSED = 4
# Time for split/merge attempts, as a multiple of that of the sweep.
_ATTEMPTS_SHARE = 0.15
# After convergence the sweep does most of the mixing, and attempts let the chain leave local modes.
# Where clusters have many members, fewer of them leave more time for sweeps.  With few features
# clusters overlap more often, and attempts are then finished, which takes longer than estimated.
_SETTLED_ATTEMPTS_SHARE, _SHARE_OF_FEW_FEATURES = 0.05, 0.02
# Time for the collapsed scan, as a multiple of that of the sweep: sqrt(_SCAN_ROWS / N) with N rows,
# at most _SCAN_SHARE.  The scan is sequential, so with many rows it is _SCAN_ROWS_OF_MANY / N.
_SCAN_ROWS, _SCAN_SHARE, _SCAN_ROWS_OF_MANY = 1e4, 1.25, 3e4
# Share of the expected births that the observations cover that are visited repeatedly.
_COVERED = 0.99
_MOST_ATTEMPTS = 2.0
# Attempts per collapsed sweep, which let the chain leave local modes.  One takes as long as a sweep
# or two, and births and deaths by sweeps mix the number of clusters as well.
_ATTEMPTS_OF_COLLAPSED = 0.03
# With fewer features the births of the sweep often succeed.  The scan pays where they do not and a
# few observations, as outliers, could found clusters: the sweep has at most this share of the
# births of the scan, and the list at least this one of all that are expected.  The scan takes
# this multiple of the time of the sweep.
_FEW_FEATURES = 5
_MOST_BORN, _LEAST_COVERED, _SCAN_SHARE_OF_FEW = 0.3, 0.5, 0.1
_COVERED_OF_FEW, _ATOMS_DRAWN = 0.95, 500
# A scan of a window takes this multiple of the time of the sweep; of few rows it is several passes.
_WINDOW_SHARE = 4.0
# Clusters are small if they have fewer members than this multiple of their number of statistics.
_SMALL = 1.5
# Sweeps between regroupings let the sides that have changed place settle.  A regrouping that costs
# as much as hundreds of iterations would be noticed.
_MOST_REGROUPINGS, _LEAST_REGROUPINGS = 0.5, 0.01


def _sweep_cost(target: Target, state: ChainState) -> float:
    moves, n_obs = moves_of(target.prior), target.data.shape[0]
    n_clusters, n_statistics = state.stats.shape
    if moves.is_conjugate and not breaks_sticks(target.law, n_obs):
        return n_obs * visit_cost(target, n_clusters)
    n_sticks = _n_sticks(target.law, n_clusters, n_obs)
    # Only some of the new atoms are in reach of a tile.
    n_evaluated = n_clusters + min(n_sticks, 5.0 * opening_mass(target.law, n_clusters))
    return moves.sweep_cost(target, n_clusters, n_statistics, n_sticks, n_evaluated)


def _n_sticks(law: PartitionLaw, n_clusters: int, n_obs: int) -> float:
    """Approximate number of sticks that a sweep breaks."""
    if law.discount == 0.0:
        return law.strength * math.log1p(n_obs)
    rest = opening_mass(law, n_clusters)
    if law.discount < 0.0:
        return -rest / law.discount
    return float(sticks_below(law.discount, rest, n_obs))


def cost_of_iteration(
    kernel_name: str, target: Target, state: ChainState, schedule: Schedule
) -> float:
    """Approximate cost of an iteration on the reference machine, in nanoseconds.

    Parameters
    ----------
    kernel_name : str
        One of `sampler.KERNELS`, or `GREEDY`.
    target : Target
    state : ChainState
    schedule : Schedule

    Returns
    -------
    float
    """
    n_obs, n_clusters = target.data.shape[0], len(state.stats)
    if kernel_name in SAMPLERS:
        return SAMPLERS[kernel_name].cost(target, n_clusters, schedule.attempts, schedule.settings)
    visit = visit_cost(target, n_clusters)
    if kernel_name == "collapsed":
        return n_obs * visit
    attempts = schedule.attempts * moves_of(target.prior).attempt_cost(target, n_clusters)
    if kernel_name == COLLAPSED:
        return n_obs * visit + attempts
    if kernel_name == GREEDY:
        attempts = GREEDY_ATTEMPTS * moves_of(target.prior).attempt_cost(target, n_clusters)
        # Neighbourhoods divide twice as many observations again.
        regroupings = 3.0 * schedule.regroupings * regrouping_cost(target, n_clusters)
        return _sweep_cost(target, state) + attempts + regroupings
    return _sweep_cost(target, state) + attempts + schedule.n_scanned * visit


def _scan_list(target: Target, state: ChainState, most: int) -> np.ndarray:
    """Observations likely to found a cluster, with members of tiny clusters.

    Half of the visits are to different observations, and the rest repeat the likeliest of these.
    Without the first half, small clusters between others would last for long: they appear and
    dissolve only if all of their members are visited.
    """
    half = most // 2
    tiny = members_of_tiny_clusters(state.labels, state.stats, target.data.shape[1], half)
    odds = log_founding_odds(target, state.stats)
    odds[tiny] = -np.inf
    likeliest = np.union1d(tiny, choose_scan_list(odds, half - len(tiny), _COVERED))
    odds[tiny] = np.inf
    once = likeliest_founders(odds, half)
    times = (most - len(once)) // max(1, len(likeliest))
    return np.concatenate([once, np.tile(likeliest, times)])


def _scan_list_of_few_features(target: Target, state: ChainState, most: int) -> np.ndarray:
    """Observations likely to found a cluster, if these are few and sweeps do not let them."""
    nobody = np.empty(0, np.int64)
    if most == 0:
        return nobody
    odds = log_founding_odds(target, state.stats)
    likeliest = choose_scan_list(odds, min(most, TILE), _COVERED_OF_FEW)
    expected = founding_probabilities(odds)
    of_list = expected[likeliest].sum()
    # A generator of its own: the number of draws from that of the chain would vary by schedule.
    # Estimated even if the list does not cover enough, so that it is compiled before sampling.
    atoms = _ATOMS_DRAWN, np.random.default_rng(0)
    born = expected_births_in_sweeps(target, odds, likeliest, *atoms)
    is_worth_it = of_list > _LEAST_COVERED * expected.sum() and born < _MOST_BORN * of_list
    return likeliest if is_worth_it else nobody


def make_schedule(
    kernel_name: str,
    target: Target,
    state: ChainState,
    attempts: int | None = None,
    settings: np.ndarray | None = None,
    is_settled: bool = True,
) -> Schedule:
    """Make a schedule for the present state, with as many iterations as cost little.

    Parameters
    ----------
    kernel_name : str
        One of `sampler.KERNELS`.
    target : Target
    state : ChainState
        Taken as typical of the chain.
    attempts : int, optional
        Split/merge attempts per iteration; by default as many as cost 5 % of the sweep, 2 at most,
        2 % with fewer than five features, 15 % if the chain is not settled, the family not
        conjugate or clusters have few members, and those of a sampler of the literature as
        published.
    settings : ndarray of float64, optional
        Values of the options of a sampler of the literature; by default its defaults.
    is_settled : bool
        Whether the chain is taken to have reached the posterior.

    Returns
    -------
    Schedule
    """
    scan_list, n_clusters = np.empty(0, np.int64), len(state.stats)
    if kernel_name in SAMPLERS:
        published = SAMPLERS[kernel_name]
        wanted = float(published.attempts if attempts is None else attempts)
        settings = published.settings({}) if settings is None else settings
        schedule = Schedule(1, wanted, scan_list, settings=settings)
        return _with_iterations(schedule, kernel_name, target, state)
    if kernel_name == COLLAPSED:
        wanted = _ATTEMPTS_OF_COLLAPSED if attempts is None else float(attempts)
        return _with_iterations(Schedule(1, wanted, scan_list), kernel_name, target, state)
    spent, window = _sweep_cost(target, state), 0
    if _may_scan(kernel_name, target):
        visit = visit_cost(target, n_clusters)
        scan_list, window = _scanned(target, state, spent / visit)
        spent += window * visit
    wanted = float(attempts or 0)
    if attempts is None:
        moves = moves_of(target.prior)
        is_easy = is_settled and moves.is_conjugate and window == 0
        share = _settled_share(target) if is_easy else _ATTEMPTS_SHARE
        wanted = min(_MOST_ATTEMPTS, share * spent / moves.attempt_cost(target, n_clusters))
    schedule = Schedule(
        1, wanted, scan_list, window=window, regroupings=_regroupings(target, n_clusters, spent)
    )
    return _with_iterations(schedule, kernel_name, target, state)


def _scanned(target: Target, state: ChainState, visits: float) -> tuple[np.ndarray, int]:
    """Choose a scan list or a window; a sweep takes as long as `visits` of single observations."""
    has_few, nobody = _has_few_features(target), np.empty(0, np.int64)
    if not has_few and _has_small_clusters(target, state):
        return nobody, max(1, int(_WINDOW_SHARE * visits))
    if is_sparse(target.data):
        return nobody, 0
    if has_few:
        return _scan_list_of_few_features(target, state, int(_SCAN_SHARE_OF_FEW * visits)), 0
    return _scan_list(target, state, int(_scan_share(target.data.shape[0]) * visits)), 0


def _has_few_features(target: Target) -> bool:
    return target.data.shape[1] < _FEW_FEATURES


def _scan_share(n_obs: int) -> float:
    """Time for the collapsed scan, as a multiple of that of the sweep."""
    return min(_SCAN_SHARE, math.sqrt(_SCAN_ROWS / n_obs), _SCAN_ROWS_OF_MANY / n_obs)


def _settled_share(target: Target) -> float:
    """Time for attempts of a chain that is settled, as a multiple of that of the sweep."""
    return _SHARE_OF_FEW_FEATURES if _has_few_features(target) else _SETTLED_ATTEMPTS_SHARE


def _regroupings(target: Target, n_clusters: int, spent: float) -> float:
    """Mean number of regroupings per iteration, for as much time as the sweep and its scan take.

    Neighbourhoods are not counted: without them chains that hold groups in pairs stay apart.
    """
    if not moves_of(target.prior).is_conjugate:
        return 0.0
    affordable = spent / regrouping_cost(target, n_clusters)
    return min(_MOST_REGROUPINGS, affordable) if affordable > _LEAST_REGROUPINGS else 0.0


def _may_scan(kernel_name: str, target: Target) -> bool:
    """Whether iterations may have a collapsed scan; without sticks their sweep is one already."""
    is_open = breaks_sticks(target.law, target.data.shape[0])
    return kernel_name != "collapsed" and is_open and moves_of(target.prior).is_conjugate


def _has_small_clusters(target: Target, state: ChainState) -> bool:
    """Whether clusters have few members on average, compared with their number of statistics.

    Parameters that are drawn given so few fit them alone, and slices hardly move an observation.
    """
    return target.data.shape[0] < _SMALL * state.stats.size


def _with_iterations(
    schedule: Schedule, kernel_name: str, target: Target, state: ChainState
) -> Schedule:
    """Give a schedule as many iterations as cost little beside PyMC's part of a draw."""
    cost = cost_of_iteration(kernel_name, target, state, schedule)
    few = {"beside": _LEAST_OF_COLLAPSED} if kernel_name == COLLAPSED else {}
    n_iterations = iterations_of_fast_chain(cost, target.data.shape[0], **few)
    return schedule._replace(n_iterations=n_iterations)


def _draws_wanted(kernel_name: str, draws_per_time: float, n_draws: int, is_ahead: bool) -> float:
    """Target number of draws per autocorrelation time, which was estimated from `n_draws`."""
    if kernel_name == COLLAPSED:
        return _PER_TIME_AHEAD if is_ahead else _PER_TIME_OF_COLLAPSED
    return draws_wanted(draws_per_time, n_draws)


def adapted_iterations(
    schedule: Schedule,
    least: int,
    kernel_name: str,
    target: Target,
    state: ChainState,
    draws_per_time: float,
    n_draws: int,
    is_ahead: bool = False,
) -> int:
    """Return the iterations of a draw, more of them if the chain mixes slowly.

    Parameters
    ----------
    schedule : Schedule
    least : int
        Number of iterations of a chain that mixes fast.
    kernel_name : str
        One of `sampler.KERNELS`.
    target : Target
    state : ChainState
    draws_per_time : float
        Autocorrelation time observed under `schedule`, in draws.
    n_draws : int
        Number of draws from which it was estimated.
    is_ahead : bool
        Whether the draws that follow are made ahead, see `draws_ahead`, which takes half of the
        time outside the iterations; only ``"collapsed-split-merge"`` then needs fewer of these.

    Returns
    -------
    int
        For about four draws per autocorrelation time if it was estimated from forty effective
        draws or more, one and a half if from fifteen or fewer, and in any case of
        ``"collapsed-split-merge"`` two, or three ahead; if that costs at most 50 ms per draw, and
        with no fewer iterations than `least`, or half of it ahead.  ``"collapsed-split-merge"``, or
        a schedule with a window, gets at most four times `least`.
    """
    per_time = _draws_wanted(kernel_name, draws_per_time, n_draws, is_ahead)
    fewest = (least + 1) // 2 if is_ahead and kernel_name == COLLAPSED else least
    wanted = iterations_wanted(schedule.n_iterations, draws_per_time, per_time)
    allowed = most_iterations(cost_of_iteration(kernel_name, target, state, schedule))
    if kernel_name == COLLAPSED or schedule.window > 0:
        allowed = min(allowed, _MOST_TIMES_OF_COLLAPSED * least)
    return max(fewest, min(wanted, allowed))
