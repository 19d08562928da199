"""The random variables of a mixture: their draws and their log-probabilities."""

from pymc_dpsplit.variables.lookup import MixtureVariables, find_mixtures, is_owned
from pymc_dpsplit.variables.measure import RandomMeasure
from pymc_dpsplit.variables.ownership import mixtures_of, refuse_dependents
from pymc_dpsplit.variables.rows import MixtureRows

__all__ = [
    "MixtureRows",
    "MixtureVariables",
    "RandomMeasure",
    "find_mixtures",
    "is_owned",
    "mixtures_of",
    "refuse_dependents",
]
