"""Law of the partition in the graph of a model: its numbers checked, and its log-probability."""

from typing import Any, NamedTuple

import pytensor.tensor as pt
from pytensor.graph.basic import Constant, Variable

from pymc_dpsplit.moves.partition_law import FULL_BELOW, PartitionLaw, is_possible
from pymc_dpsplit.variables.rising import log_rising


class LawTerms(NamedTuple):
    """Log density of a random measure given the sizes of its clusters, in three terms.

    Attributes
    ----------
    n_clusters, new_weight, log_weights : symbolic scalar
        Terms of the number of clusters, of the weight of the remainder, and of the sum of the
        logarithms of the other weights.
    """

    n_clusters: Any
    new_weight: Any
    log_weights: Any


def is_dirichlet(discount: Variable) -> bool:
    """Return whether a discount is the number 0, so that the law is that of a DP."""
    return isinstance(discount, Constant) and float(discount.data) == 0.0


def fault_of_concentration(name: str, value: float, varies: bool) -> str:
    """Return the sentence about a concentration that is not a positive number.

    Parameters
    ----------
    name : str
        Name of the argument.
    value : float
    varies : bool
        Whether it depends on variables of the model, so that it has a prior.

    Returns
    -------
    str
    """
    if not varies:
        return f"{name} is {value:g}, but must be positive and finite; give such a number."
    return (
        f"{name} is {value:g} at a point that its prior allows; give it a prior on the positive "
        "numbers, for instance pm.Gamma or pm.HalfNormal."
    )


def checked_law(discount: Any, strength: Any, is_finite: bool, varies: bool = True) -> PartitionLaw:
    """Return the law of the partition at a point.

    Parameters
    ----------
    discount, strength : float
    is_finite : bool
        Whether the mixture is declared with a finite number of components.
    varies : bool
        Whether discount or strength depends on variables of the model.

    Returns
    -------
    PartitionLaw

    Raises
    ------
    ValueError
        If there is no such law.
    """
    law = PartitionLaw(float(discount), float(strength))
    if is_possible(law) and is_finite == (law.discount < 0.0):
        return law
    if is_finite:
        raise ValueError(fault_of_concentration("gamma", -law.discount, varies))
    if law.discount == 0.0:
        raise ValueError(fault_of_concentration("alpha", law.strength, varies))
    numbers = f"alpha is {law.strength:g} and discount {law.discount:g}"
    if not varies:
        raise ValueError(
            f"{numbers}, which are those of no law; give discount from 0 to below 1, and alpha "
            "above -discount."
        )
    raise ValueError(
        f"{numbers} at a point that their priors allow; give discount a prior on 0 to 1, such as "
        "pm.Beta, and alpha one above -discount, such as pm.Gamma."
    )


def law_terms(
    discount: Any, strength: Any, n_clusters: Any, new_weight: Any, log_weights: Any
) -> LawTerms:
    """Return the terms of docs/method.md, eq. (14.5), as graphs.

    The factors of each cluster that do not depend on the law are omitted, because the step draws
    the measure exactly.  For a Dirichlet process the terms are those of eq. (1.5).

    Parameters
    ----------
    discount, strength : symbolic scalar
    n_clusters : symbolic int
        Number of clusters K; 0 at an initial point, where there is no measure yet.
    new_weight : symbolic scalar
        Weight of the remainder; 0 only if a finite mixture has no other component.
    log_weights : symbolic scalar
        Sum of the logarithms of the weights of all K clusters; not read if `discount` is a number.

    Returns
    -------
    LawTerms
    """
    zero: Any = pt.zeros((), dtype="float64")
    if is_dirichlet(discount):
        terms = n_clusters * pt.log(strength), (strength - 1.0) * pt.log(new_weight)
        return LawTerms(*terms, zero)
    count: Any = pt.maximum(n_clusters, 1)
    opened = strength + pt.arange(1, count) * discount
    of_clusters: Any = pt.log(opened).sum()
    of_clusters -= count * pt.gammaln(1.0 - discount)
    rest, log_rest = strength + count * discount, pt.log(new_weight)
    # A full finite mixture has no remainder.  Both branches are made finite, as the gradient of the
    # one that is not chosen is multiplied by zero.
    is_full = rest <= FULL_BELOW * pt.abs(strength)
    safe_rest: Any = pt.switch(is_full, 1.0, rest)
    of_clusters += pt.switch(
        is_full, pt.gammaln(strength + 1.0), log_rising(safe_rest, 1.0 - count * discount)
    )
    of_rest = (safe_rest - 1.0) * pt.switch(is_full, 0.0, log_rest)
    of_weights = zero if isinstance(discount, Constant) else -discount * log_weights
    return LawTerms(of_clusters, of_rest, of_weights)
