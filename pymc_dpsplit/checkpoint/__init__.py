"""Chains that outlive their process: stored as they are drawn, continued by replaying them."""

from pymc_dpsplit.checkpoint.step import Checkpoint

__all__ = ["Checkpoint"]
