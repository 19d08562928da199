"""Results of `find_map`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, override

import numpy as np

from pymc_dpsplit.estimates.map_prediction import MIXTURE, PartitionPredictive
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
    predictive : PartitionPredictive, optional
        What `log_predictive` and `likeliest_clusters` need.
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
    predictive: PartitionPredictive | None = field(default=None, repr=False)

    @property
    def n_clusters(self) -> int:
        """Number of clusters K."""
        return len(self.weights)

    @property
    def new_weight(self) -> float:
        """Posterior mean of the weight of the remainder."""
        law = PartitionLaw(self.discount, self.alpha)
        return float(opening_mass(law, self.n_clusters) / total_mass(law, len(self.labels)))

    def log_predictive(self, new: Any, *, how: str = MIXTURE) -> np.ndarray:
        """Return the log predictive density of each new row given data and partition [1]_.

        Parameters of clusters are integrated out.

        Parameters
        ----------
        new : array-like or frame, shape (M,) or (M, D)
            Rows on the scale of the observations, with their columns in the same order, without
            missing entries.
        how : {"mixture", "cluster"}
            ``"mixture"``: the mixture over all clusters and a new one, with their expected weights.
            ``"cluster"``: the density in the likeliest of them alone, without its weight.

        Returns
        -------
        ndarray of float64, shape (M,)

        Raises
        ------
        ValueError
            If the rows do not suit the mixture, if it has covariates, or if it is an `HDPMixture`.

        Notes
        -----
        This is the density under one partition.  `predict` averages over those of a trace.

        References
        ----------
        .. [1] Raykov, Boukouvalas & Little (2014), Simple approximate MAP inference for Dirichlet
           processes, arXiv 1411.0939, section 3.3; docs/method.md, eqs. (12.4) and (12.5).

        Examples
        --------
        >>> import pymc as pm
        >>> import pymc_dpsplit as dps
        >>> with pm.Model() as model:
        ...     _ = dps.DPMixture("x", 1.0, dps.Normal(0, 0.1, 2, 1), observed=[0.0, 0.1, 5.0])
        >>> found = dps.find_map(model, random_seed=1)
        >>> found.log_predictive([0.1, 4.8]).round(1)
        array([-1.4, -2.9])
        """
        rule = self._rule()
        return rule.log_density_of(rule.checked(new), how)

    def likeliest_clusters(self, new: Any) -> np.ndarray:
        """Return the cluster that each new row joins most likely, eq. (12.5) of docs/method.md.

        Parameters
        ----------
        new : array-like or frame, shape (M,) or (M, D)
            As for `log_predictive`.

        Returns
        -------
        ndarray of int64, shape (M,)
            Numbers as in `labels`, and `n_clusters` for a new cluster.
        """
        rule = self._rule()
        log_weights, log_densities = rule.log_masses(rule.checked(new))
        return (log_weights[:, None] + log_densities).argmax(axis=0)

    def _rule(self) -> PartitionPredictive:
        if self.predictive is None:
            raise ValueError(
                f"{self.var_name} is an HDPMixture, whose new rows a partition does not predict; "
                "sample, and use predict."
            )
        return self.predictive


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
