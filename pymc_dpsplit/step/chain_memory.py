"""State of a chain between draws, in the form that PyMC saves and restores."""

import numpy as np
from pymc.step_methods.compound import StepMethodState
from pymc.step_methods.state import dataclass_state


@dataclass_state
class DPSplitMergeState(StepMethodState):
    """State from which a chain can be continued.

    Attributes
    ----------
    labels : ndarray of int32, shape (N,), or None
        Partition; None before the first draw.
    cluster_stats : ndarray of float64, shape (K, S), or None
        Sufficient statistics of the clusters.
    n_tune, n_done : int
        Number of tuning draws, and of draws made, tuning included.
    n_iterations, attempts, scan_list, window, regroupings
        The schedule, see `sampler.Schedule`.
    least_iterations : int
        Number of iterations if the chain mixes fast.
    history : ndarray of float64, shape (T, 3)
        Statistics of the partition in the second half of tuning, or in a later part if this has
        other iterations than what went before.
    of_rows : ndarray of int8
    of_clusters : ndarray of float64
        What the kernel keeps beside the partition, see `sampler.ChainState`.
    """

    labels: np.ndarray | None = None
    cluster_stats: np.ndarray | None = None
    n_tune: int = 0
    n_done: int = 0
    n_iterations: int = 1
    attempts: float = 0.0
    scan_list: np.ndarray | None = None
    window: int = 0
    regroupings: float = 0.5
    least_iterations: int = 1
    history: np.ndarray
    of_rows: np.ndarray
    of_clusters: np.ndarray
