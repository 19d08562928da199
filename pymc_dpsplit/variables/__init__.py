"""The random variables of a mixture: their draws and their log-probabilities."""

from pymc_dpsplit.variables.concentration import concentration_prior
from pymc_dpsplit.variables.likelihood import row_likelihood
from pymc_dpsplit.variables.lookup import MixtureVariables, find_mixtures, is_owned
from pymc_dpsplit.variables.measure import RandomMeasure
from pymc_dpsplit.variables.missing import MissingEntries
from pymc_dpsplit.variables.ownership import mixtures_of, refuse_dependents
from pymc_dpsplit.variables.reading import (
    Reader,
    reader_of_draws,
    reader_of_points,
    refuse_impossible,
)
from pymc_dpsplit.variables.rows import MixtureRows

__all__ = [
    "MissingEntries",
    "MixtureRows",
    "MixtureVariables",
    "RandomMeasure",
    "Reader",
    "concentration_prior",
    "find_mixtures",
    "is_owned",
    "mixtures_of",
    "reader_of_draws",
    "reader_of_points",
    "refuse_dependents",
    "refuse_impossible",
    "row_likelihood",
]
