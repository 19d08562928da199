"""Record of a sampler of the literature: its forms as a kernel, its source, if it is exact."""

import math
from collections.abc import Callable
from typing import NamedTuple

from pymc_dpsplit.moves.family_moves import KernelForm
from pymc_dpsplit.moves.target import Target


class PublishedSampler(NamedTuple):
    """A sampler of the literature as a kernel of the chain.

    Attributes
    ----------
    name : str
        What users give as ``kernel=``.
    source : str
        Authors, year and place of the description that is followed, one line.
    is_exact : bool
        Whether it leaves the posterior of the partition invariant.
    conjugate : KernelForm
    nonconjugate : KernelForm or None
        None for a sampler that needs parameters integrated out.
    attempts : int
        Split/merge attempts in an iteration as published.
    cost : callable
        ``(target, n_clusters, attempts) -> float``: nanoseconds of an iteration, approximately.
    is_collapsed : bool
        Whether an iteration visits every observation by collapsed Gibbs.
    takes_any_law : bool
        Whether it is for all laws of the partition, not for Dirichlet processes only.
    most_strength : float
        Concentration above which an iteration takes minutes and gigabytes.
    """

    name: str
    source: str
    is_exact: bool
    conjugate: KernelForm
    nonconjugate: KernelForm | None
    attempts: int
    cost: Callable[[Target, int, float], float]
    is_collapsed: bool
    takes_any_law: bool = True
    most_strength: float = math.inf
