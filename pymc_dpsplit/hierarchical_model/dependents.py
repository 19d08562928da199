"""Variables that depend on those of a hierarchical mixture, which its step would ignore."""

from pymc.model import Model

from pymc_dpsplit.hierarchical_model.lookup import HierarchicalVariables
from pymc_dpsplit.variables.dependence import dependents_of


def refuse_dependents(mixture: HierarchicalVariables, model: Model) -> None:
    """Refuse a model whose density has terms in the mixture that its step would ignore.

    Parameters
    ----------
    mixture : HierarchicalVariables
    model : pymc.Model

    Raises
    ------
    ValueError
    """
    own = {*mixture.owned, mixture.rv}
    for rv in mixture.owned:
        dependents = [term for term in dependents_of(rv, model) if term not in own]
        if dependents:
            raise ValueError(
                f"{dependents[0].name} depends on {rv.name}, but the mixture {mixture.name} is "
                "sampled given its own observations alone; make it a Deterministic, or compute it "
                "from the posterior."
            )
