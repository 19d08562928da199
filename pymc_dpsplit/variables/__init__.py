"""Random variables of a mixture: forward draws and log-probabilities."""

from pymc_dpsplit.variables.concentration import concentration_prior, concentrations_to_move
from pymc_dpsplit.variables.conditioning import (
    PointEvaluator,
    evaluator_of_draws,
    evaluator_of_points,
    refuse_impossible,
)
from pymc_dpsplit.variables.data_read import DataRead, graphs_read
from pymc_dpsplit.variables.initial_values import refuse_initial_values
from pymc_dpsplit.variables.intercepts import intercepts_of
from pymc_dpsplit.variables.likelihood import row_likelihood
from pymc_dpsplit.variables.lookup import (
    MixtureVariables,
    find_mixtures,
    is_owned,
    model_of_context,
)
from pymc_dpsplit.variables.measure import RandomMeasure
from pymc_dpsplit.variables.missing import MissingEntries
from pymc_dpsplit.variables.n_components import number_of_components
from pymc_dpsplit.variables.ownership import mixtures_of, refuse_dependents
from pymc_dpsplit.variables.rows import MixtureRows

__all__ = [
    "DataRead",
    "MissingEntries",
    "MixtureRows",
    "MixtureVariables",
    "PointEvaluator",
    "RandomMeasure",
    "concentration_prior",
    "concentrations_to_move",
    "evaluator_of_draws",
    "evaluator_of_points",
    "find_mixtures",
    "graphs_read",
    "intercepts_of",
    "is_owned",
    "mixtures_of",
    "model_of_context",
    "number_of_components",
    "refuse_dependents",
    "refuse_impossible",
    "refuse_initial_values",
    "row_likelihood",
]
