"""Rows that no step method but that of the mixture can move."""

from pymc_dpsplit.components.component_family import ComponentFamily


def what_no_step_moves(component: ComponentFamily) -> str:
    """Return what keeps rows of a family from being latent or having a mean; "" if nothing does."""
    if component.is_discrete:
        return "whole numbers"
    return "bounded numbers" if component.is_bounded else "covariates" * component.holds_covariates
