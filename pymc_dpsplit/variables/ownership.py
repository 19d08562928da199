"""Checks that a step can move the variables that it is given."""

from typing import Any

import numpy as np
from pymc.logprob.transforms import LogTransform
from pymc.model import Model
from pytensor.graph.basic import Variable

from pymc_dpsplit.components.arguments import shown
from pymc_dpsplit.variables.dependence import dependents_of, variables_above
from pymc_dpsplit.variables.lookup import MixtureVariables, find_mixtures


def mixtures_of(vars: Any, model: Model) -> list[MixtureVariables]:
    """Return the mixtures to which variables belong.

    Parameters
    ----------
    vars : sequence of variables, or None
        Free variables or their values: all variables of one or more mixtures, and no others.  None
        selects all mixtures.
    model : pymc.Model

    Returns
    -------
    list of MixtureVariables

    Raises
    ------
    ValueError
        If a mixture is incomplete, another variable is included, or there is no mixture.
    """
    mixtures = list(find_mixtures(model).values())
    for mixture in mixtures:
        _refuse_transforms(mixture, model)
    if not mixtures:
        raise ValueError(
            "the model has no mixture of which every variable is free; declare one with DPMixture, "
            "and leave its variables to the step."
        )
    if vars is None:
        return mixtures
    listed = [vars] if isinstance(vars, Variable) else vars
    if not np.iterable(listed) or not all(isinstance(var, Variable) for var in listed):
        raise ValueError(
            f"vars={shown(vars)} are not variables; give those of the model, such as "
            "model.free_RVs, or leave vars out."
        )
    given = {model.values_to_rvs.get(var, var) for var in listed}
    chosen = [mixture for mixture in mixtures if given & set(mixture.owned)]
    owned = {rv for mixture in chosen for rv in mixture.owned}
    missing, foreign = (
        sorted(str(var.name) for var in difference) for difference in (owned - given, given - owned)
    )
    if missing or foreign:
        faults = [f"add {', '.join(missing)}"] * bool(missing)
        faults += [f"leave out {', '.join(foreign)}"] * bool(foreign)
        raise ValueError(
            "vars must be all variables of a mixture, which move together, and no others; "
            f"{' and '.join(faults)}."
        )
    return chosen


def _refuse_transforms(mixture: MixtureVariables, model: Model) -> None:
    """Refuse transforms of variables that the step does not support."""
    for role, rv in mixture.measure.items():
        transform = model.rvs_to_transforms[rv]
        is_known = isinstance(transform, LogTransform) and role == "new_weight"
        if transform is not None and not is_known:
            raise ValueError(
                f"{mixture.name}: {rv.name} has the transform {transform.name}, in which the step "
                "cannot write it; leave the transforms of a mixture as they are."
            )


def refuse_dependents(mixture: MixtureVariables, model: Model) -> None:
    """Refuse a model whose density has terms in the mixture that its step would ignore.

    Parameters
    ----------
    mixture : MixtureVariables
    model : pymc.Model

    Raises
    ------
    ValueError
        If a potential or another random variable depends on a variable of the mixture.
    """
    own: Any = mixture.rv.owner
    mean = own.op.extra(own.inputs).get("mean")
    for rv in mixture.owned:
        dependents = [term for term in dependents_of(rv, model) if term not in mixture.owned]
        # The observations of the mixture depend on the measure, but their mean must not.
        if mean is None or rv not in variables_above([mean], model):
            dependents = [term for term in dependents if term is not mixture.rv]
        if dependents:
            raise ValueError(
                f"{dependents[0].name} depends on {rv.name}, but the mixture {mixture.name} is "
                "sampled given its own observations alone; make it a Deterministic, or compute it "
                "from the posterior."
            )
