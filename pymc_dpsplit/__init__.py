"""Exact Dirichlet-process mixtures in PyMC models.

Public names are imported when they are first used, so that importing the package takes little more
than importing PyMC.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pymc_dpsplit import wrapped_functions

if TYPE_CHECKING:
    from pymc_dpsplit.checkpoint import Checkpoint
    from pymc_dpsplit.components.bernoulli import Bernoulli
    from pymc_dpsplit.components.binomial import Binomial
    from pymc_dpsplit.components.categorical import Categorical
    from pymc_dpsplit.components.diag_normal import DiagNormal
    from pymc_dpsplit.components.exponential import Exponential
    from pymc_dpsplit.components.gamma import Gamma
    from pymc_dpsplit.components.inverse_gamma import InverseGamma
    from pymc_dpsplit.components.linear_regression.family import LinearRegression
    from pymc_dpsplit.components.multinomial import Multinomial
    from pymc_dpsplit.components.mv_normal.family import MvNormal
    from pymc_dpsplit.components.mv_normal_known_cov import MvNormalKnownCov
    from pymc_dpsplit.components.negative_binomial import NegativeBinomial
    from pymc_dpsplit.components.normal import Normal
    from pymc_dpsplit.components.normal_known_sigma import NormalKnownSigma
    from pymc_dpsplit.components.poisson import Poisson
    from pymc_dpsplit.components.product import Product
    from pymc_dpsplit.components.spherical_normal import SphericalNormal
    from pymc_dpsplit.estimates.alpha_choice import choose_alpha
    from pymc_dpsplit.estimates.dp_means import dp_means, dp_means_penalty
    from pymc_dpsplit.estimates.map_partition import find_map
    from pymc_dpsplit.estimates.particle_trace import smc
    from pymc_dpsplit.finite.finite_mixture import finite_mixture
    from pymc_dpsplit.hierarchical_model.declare import HDPMixture
    from pymc_dpsplit.hierarchical_model.step import HDPMixtureStep
    from pymc_dpsplit.mixture.dp_mixture import DPMixture
    from pymc_dpsplit.mixture.finite_dirichlet import FiniteMixture
    from pymc_dpsplit.mixture.mfm_mixture import MFMixture
    from pymc_dpsplit.posterior.comparison.compare_samplers import compare_samplers
    from pymc_dpsplit.posterior.density.density import density
    from pymc_dpsplit.posterior.description.describe_clusters import describe_clusters
    from pymc_dpsplit.posterior.description.group_weights import group_weights
    from pymc_dpsplit.posterior.diagnostics.diagnose import diagnose
    from pymc_dpsplit.posterior.extension.extend import extend
    from pymc_dpsplit.posterior.partitions.credible_ball import credible_ball
    from pymc_dpsplit.posterior.partitions.partition_uncertainty import partition_uncertainty
    from pymc_dpsplit.posterior.partitions.point_partition import point_partition
    from pymc_dpsplit.posterior.partitions.similarity import similarity_matrix
    from pymc_dpsplit.posterior.plots.plot_cluster_parameters import plot_cluster_parameters
    from pymc_dpsplit.posterior.plots.plot_clusters import plot_clusters
    from pymc_dpsplit.posterior.plots.plot_density import plot_density
    from pymc_dpsplit.posterior.plots.plot_membership import plot_membership
    from pymc_dpsplit.posterior.plots.plot_n_clusters import plot_n_clusters, plot_prior_n_clusters
    from pymc_dpsplit.posterior.plots.plot_partition_uncertainty import plot_partition_uncertainty
    from pymc_dpsplit.posterior.plots.plot_similarity import plot_similarity
    from pymc_dpsplit.posterior.plots.plot_top_words import plot_top_words
    from pymc_dpsplit.posterior.plots.plot_topics import plot_topics
    from pymc_dpsplit.posterior.plots.plot_trace import plot_trace
    from pymc_dpsplit.posterior.prediction.loo import loo
    from pymc_dpsplit.posterior.prediction.loo_groups import loo_groups
    from pymc_dpsplit.posterior.prediction.predict import predict
    from pymc_dpsplit.posterior.trace.labels import sample_labels
    from pymc_dpsplit.prior.elicit import elicit_alpha
    from pymc_dpsplit.prior.elicit_gamma import elicit_gamma
    from pymc_dpsplit.prior.n_clusters import prior_n_clusters
    from pymc_dpsplit.pymc_component.component import Component
    from pymc_dpsplit.scikit_learn import DirichletProcessMixture as DirichletProcessMixture
    from pymc_dpsplit.step.dp_split_merge import DPSplitMerge
    from pymc_dpsplit.topic_model.coherence import topic_coherence
    from pymc_dpsplit.topic_model.declare import HDPTopics
    from pymc_dpsplit.topic_model.document_topics import document_topics
    from pymc_dpsplit.topic_model.perplexity import topic_perplexity
    from pymc_dpsplit.topic_model.read_topics import top_words, topic_words
    from pymc_dpsplit.topic_model.step import HDPTopicsStep

__version__ = "0.1.0"
__all__ = [
    "Bernoulli",
    "Binomial",
    "Categorical",
    "Checkpoint",
    "Component",
    "DPMixture",
    "DPSplitMerge",
    "DiagNormal",
    "Exponential",
    "FiniteMixture",
    "Gamma",
    "HDPMixture",
    "HDPMixtureStep",
    "HDPTopics",
    "HDPTopicsStep",
    "InverseGamma",
    "LinearRegression",
    "MFMixture",
    "Multinomial",
    "MvNormal",
    "MvNormalKnownCov",
    "NegativeBinomial",
    "Normal",
    "NormalKnownSigma",
    "Poisson",
    "Product",
    "SphericalNormal",
    "choose_alpha",
    "compare_samplers",
    "credible_ball",
    "density",
    "describe_clusters",
    "diagnose",
    "document_topics",
    "dp_means",
    "dp_means_penalty",
    "elicit_alpha",
    "elicit_gamma",
    "extend",
    "find_map",
    "finite_mixture",
    "group_weights",
    "loo",
    "loo_groups",
    "partition_uncertainty",
    "plot_cluster_parameters",
    "plot_clusters",
    "plot_density",
    "plot_membership",
    "plot_n_clusters",
    "plot_partition_uncertainty",
    "plot_prior_n_clusters",
    "plot_similarity",
    "plot_top_words",
    "plot_topics",
    "plot_trace",
    "point_partition",
    "predict",
    "prior_n_clusters",
    "sample_labels",
    "similarity_matrix",
    "smc",
    "top_words",
    "topic_coherence",
    "topic_perplexity",
    "topic_words",
]

# `__all__` lacks the estimator, so that `import *` works without scikit-learn.
_MODULE_OF = {
    "Bernoulli": "components.bernoulli",
    "Binomial": "components.binomial",
    "Categorical": "components.categorical",
    "Checkpoint": "checkpoint",
    "Component": "pymc_component.component",
    "DPMixture": "mixture.dp_mixture",
    "DPSplitMerge": "step.dp_split_merge",
    "DiagNormal": "components.diag_normal",
    "DirichletProcessMixture": "scikit_learn",
    "Exponential": "components.exponential",
    "FiniteMixture": "mixture.finite_dirichlet",
    "Gamma": "components.gamma",
    "HDPMixture": "hierarchical_model.declare",
    "HDPMixtureStep": "hierarchical_model.step",
    "HDPTopics": "topic_model.declare",
    "HDPTopicsStep": "topic_model.step",
    "InverseGamma": "components.inverse_gamma",
    "LinearRegression": "components.linear_regression.family",
    "MFMixture": "mixture.mfm_mixture",
    "Multinomial": "components.multinomial",
    "MvNormal": "components.mv_normal.family",
    "MvNormalKnownCov": "components.mv_normal_known_cov",
    "NegativeBinomial": "components.negative_binomial",
    "Normal": "components.normal",
    "NormalKnownSigma": "components.normal_known_sigma",
    "Poisson": "components.poisson",
    "Product": "components.product",
    "SphericalNormal": "components.spherical_normal",
    "choose_alpha": "estimates.alpha_choice",
    "compare_samplers": "posterior.comparison.compare_samplers",
    "credible_ball": "posterior.partitions.credible_ball",
    "density": "posterior.density.density",
    "describe_clusters": "posterior.description.describe_clusters",
    "diagnose": "posterior.diagnostics.diagnose",
    "document_topics": "topic_model.document_topics",
    "dp_means": "estimates.dp_means",
    "dp_means_penalty": "estimates.dp_means",
    "elicit_alpha": "prior.elicit",
    "elicit_gamma": "prior.elicit_gamma",
    "extend": "posterior.extension.extend",
    "find_map": "estimates.map_partition",
    "finite_mixture": "finite.finite_mixture",
    "group_weights": "posterior.description.group_weights",
    "loo": "posterior.prediction.loo",
    "loo_groups": "posterior.prediction.loo_groups",
    "partition_uncertainty": "posterior.partitions.partition_uncertainty",
    "plot_cluster_parameters": "posterior.plots.plot_cluster_parameters",
    "plot_clusters": "posterior.plots.plot_clusters",
    "plot_density": "posterior.plots.plot_density",
    "plot_membership": "posterior.plots.plot_membership",
    "plot_n_clusters": "posterior.plots.plot_n_clusters",
    "plot_partition_uncertainty": "posterior.plots.plot_partition_uncertainty",
    "plot_prior_n_clusters": "posterior.plots.plot_n_clusters",
    "plot_similarity": "posterior.plots.plot_similarity",
    "plot_top_words": "posterior.plots.plot_top_words",
    "plot_topics": "posterior.plots.plot_topics",
    "plot_trace": "posterior.plots.plot_trace",
    "point_partition": "posterior.partitions.point_partition",
    "predict": "posterior.prediction.predict",
    "prior_n_clusters": "prior.n_clusters",
    "sample_labels": "posterior.trace.labels",
    "similarity_matrix": "posterior.partitions.similarity",
    "smc": "estimates.particle_trace",
    "top_words": "topic_model.read_topics",
    "topic_coherence": "topic_model.coherence",
    "topic_perplexity": "topic_model.perplexity",
    "topic_words": "topic_model.read_topics",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})


wrapped_functions.install()
