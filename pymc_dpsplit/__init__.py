"""Exact Dirichlet-process mixtures in PyMC models."""

from pymc_dpsplit import convergence, refusals, step
from pymc_dpsplit.checkpoint import Checkpoint
from pymc_dpsplit.components.bernoulli import Bernoulli
from pymc_dpsplit.components.categorical import Categorical
from pymc_dpsplit.components.diag_normal import DiagNormal
from pymc_dpsplit.components.exponential import Exponential
from pymc_dpsplit.components.gamma import Gamma
from pymc_dpsplit.components.mv_normal import MvNormal
from pymc_dpsplit.components.normal import Normal
from pymc_dpsplit.components.normal_mean import NormalMean
from pymc_dpsplit.components.poisson import Poisson
from pymc_dpsplit.components.spherical_normal import SphericalNormal
from pymc_dpsplit.components.tied_normal import TiedNormal
from pymc_dpsplit.mixture import DPMixture
from pymc_dpsplit.posterior.diagnose import diagnose
from pymc_dpsplit.posterior.labels import sample_labels
from pymc_dpsplit.posterior.plot_density import plot_density
from pymc_dpsplit.posterior.plot_n_clusters import plot_n_clusters
from pymc_dpsplit.posterior.plot_similarity import plot_similarity
from pymc_dpsplit.posterior.similarity import similarity_matrix
from pymc_dpsplit.step import DPSplitMerge

__version__ = "0.1.0"
__all__ = [
    "Bernoulli",
    "Categorical",
    "Checkpoint",
    "DPMixture",
    "DPSplitMerge",
    "DiagNormal",
    "Exponential",
    "Gamma",
    "MvNormal",
    "Normal",
    "NormalMean",
    "Poisson",
    "SphericalNormal",
    "TiedNormal",
    "diagnose",
    "plot_density",
    "plot_n_clusters",
    "plot_similarity",
    "sample_labels",
    "similarity_matrix",
]

step.register()
convergence.install()
refusals.install()
