"""Parameters that no kernel can integrate out, moved at the end of an iteration.

The samplers that draw parameters given their members are the same for families that are not
conjugate, but for this: there the parameters are in the state, and draws are moves.
"""

from pymc_dpsplit.components.base import implements
from pymc_dpsplit.components.dispatch import optional_operation
from pymc_dpsplit.components.nonconjugate.compiled_prior import CompiledPrior
from pymc_dpsplit.moves.nonconjugate.parameters import update_parameters


@optional_operation
def move_free_parameters(prior, target, labels, stats, rng):
    """Move the parameters of every cluster given its members, if they are in the state.

    The default does nothing, for conjugate families.

    Parameters
    ----------
    prior : NamedTuple
        That of the target, which selects the implementation.
    target : Target
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
        Parameters are changed in place.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of float64, shape (K, S)
        The same array.
    """
    return stats


@implements(move_free_parameters, CompiledPrior)
def _move_free_parameters(prior, target, labels, stats, rng):
    return update_parameters(target, labels, stats, rng)
