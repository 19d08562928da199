"""Pools of threads that share a sweep, at most one thread per core."""

import os
from concurrent.futures import ThreadPoolExecutor


def n_cores() -> int:
    """Count the cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def new_pool(wanted: int) -> ThreadPoolExecutor | None:
    """Make a pool of `wanted` threads, at most one per core.

    Python threads run kernels that release the interpreter lock.  Unlike numba's default threading
    layer they are safe in a forked process.

    Parameters
    ----------
    wanted : int
        At least 1.

    Returns
    -------
    ThreadPoolExecutor or None
        None if there would be one thread only.
    """
    # Counting cores is a system call, and chains without a pool ask in every draw.
    n_threads = min(wanted, n_cores()) if wanted > 1 else 1
    return ThreadPoolExecutor(n_threads) if n_threads > 1 else None
