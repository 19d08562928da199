"""Exact Dirichlet-process mixtures in PyMC models."""

from pymc_dpsplit import convergence, refusals, step, trace_data
from pymc_dpsplit.checkpoint import Checkpoint
from pymc_dpsplit.components.bernoulli import Bernoulli
from pymc_dpsplit.components.categorical import Categorical
from pymc_dpsplit.components.diag_normal import DiagNormal
from pymc_dpsplit.components.exponential import Exponential
from pymc_dpsplit.components.gamma import Gamma
from pymc_dpsplit.components.multinomial import Multinomial
from pymc_dpsplit.components.mv_normal import MvNormal
from pymc_dpsplit.components.normal import Normal
from pymc_dpsplit.components.normal_mean import NormalMean
from pymc_dpsplit.components.poisson import Poisson
from pymc_dpsplit.components.product import Product
from pymc_dpsplit.components.spherical_normal import SphericalNormal
from pymc_dpsplit.components.tied_normal import TiedNormal
from pymc_dpsplit.estimates.dp_means import dp_means, dp_means_penalty
from pymc_dpsplit.estimates.map_partition import find_map
from pymc_dpsplit.finite.finite_mixture import finite_mixture
from pymc_dpsplit.generic.component import Component
from pymc_dpsplit.mixture import DPMixture
from pymc_dpsplit.posterior.compare_samplers import compare_samplers
from pymc_dpsplit.posterior.credible_ball import credible_ball
from pymc_dpsplit.posterior.diagnose import diagnose
from pymc_dpsplit.posterior.labels import sample_labels
from pymc_dpsplit.posterior.partition_uncertainty import partition_uncertainty
from pymc_dpsplit.posterior.plot_clusters import plot_clusters
from pymc_dpsplit.posterior.plot_density import plot_density
from pymc_dpsplit.posterior.plot_n_clusters import plot_n_clusters, plot_prior_n_clusters
from pymc_dpsplit.posterior.plot_partition_uncertainty import plot_partition_uncertainty
from pymc_dpsplit.posterior.plot_similarity import plot_similarity
from pymc_dpsplit.posterior.point_partition import point_partition
from pymc_dpsplit.posterior.predict import predict
from pymc_dpsplit.posterior.similarity import similarity_matrix
from pymc_dpsplit.prior.elicit import elicit_alpha
from pymc_dpsplit.prior.n_clusters import prior_n_clusters
from pymc_dpsplit.step import DPSplitMerge

__version__ = "0.1.0"
__all__ = [
    "Bernoulli",
    "Categorical",
    "Checkpoint",
    "Component",
    "DPMixture",
    "DPSplitMerge",
    "DiagNormal",
    "Exponential",
    "Gamma",
    "Multinomial",
    "MvNormal",
    "Normal",
    "NormalMean",
    "Poisson",
    "Product",
    "SphericalNormal",
    "TiedNormal",
    "compare_samplers",
    "credible_ball",
    "diagnose",
    "dp_means",
    "dp_means_penalty",
    "elicit_alpha",
    "find_map",
    "finite_mixture",
    "partition_uncertainty",
    "plot_clusters",
    "plot_density",
    "plot_n_clusters",
    "plot_partition_uncertainty",
    "plot_prior_n_clusters",
    "plot_similarity",
    "point_partition",
    "predict",
    "prior_n_clusters",
    "sample_labels",
    "similarity_matrix",
]

step.register()
convergence.install()
refusals.install()
trace_data.install()
