"""Results of `find_map`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import override

import numpy as np

from pymc_dpsplit.moves.partition_law import PartitionLaw, opening_mass, total_mass


@dataclass(frozen=True, eq=False)
class MapPartition:
    """Result of `find_map`; clusters by decreasing size.

    Attributes
    ----------
    var_name : str
        Name of the mixture.
    labels : ndarray of int64, shape (N,)
        Cluster of each observation, or of each group of rows; cluster 0 is the largest.
    alpha : float
        The concentration, given or at its mode; of a finite mixture gamma times the number of
        components.
    log_joint : float
        Log density of data and partition given alpha, which the sampler records as
        ``{name}_log_joint``.  Its negative is the NLL of the reference.
    weights : ndarray of float64, shape (K,)
        Posterior means of the weights given the partition; they sum to 1 - `new_weight`.
    parameters : dict of ndarray, each (K, ...)
        Plug-in estimates given the partition: posterior means of ``mu``, ``rate`` and ``p``; scales
        are those whose inverse square, or inverse matrix, is the posterior mean precision.
    n_iterations : int
        Number of sweeps in the best restart.
    log_joints : ndarray of float64, shape (n_restarts,)
        Final value of each restart; if few are near the highest, more restarts may find a higher
        one.
    discount : float
        That of the law of the partition: 0 for a Dirichlet process, -gamma for a finite mixture.
    """

    var_name: str
    labels: np.ndarray
    alpha: float
    log_joint: float
    weights: np.ndarray
    parameters: Mapping[str, np.ndarray]
    n_iterations: int
    log_joints: np.ndarray
    discount: float = 0.0

    @property
    def n_clusters(self) -> int:
        """Number of clusters K."""
        return len(self.weights)

    @property
    def new_weight(self) -> float:
        """Posterior mean of the weight of the remainder."""
        law = PartitionLaw(self.discount, self.alpha)
        return float(opening_mass(law, self.n_clusters) / total_mass(law, len(self.labels)))


@dataclass(frozen=True, eq=False)
class GroupedMapPartition(MapPartition):
    """Result of `find_map` for rows in groups; clusters by decreasing size.

    It has the attributes of `MapPartition`, of which `weights` are the means of the global weights
    given the partition, and these.

    Attributes
    ----------
    gamma : float
        Concentration of the global measure, given or at its mode.
    group_weights : ndarray of float64, shape (J, K)
        Means of the weights of each group given the partition, in the order of the groups in the
        model.
    """

    gamma: float = np.nan
    group_weights: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))

    @property
    @override
    def new_weight(self) -> float:
        """Mean of the global weight of the remainder."""
        return 1.0 - float(self.weights.sum())
