"""Checkpoints: chains are stored while they are drawn, and continued after a replay."""

from pymc_dpsplit.checkpoint.step import Checkpoint

__all__ = ["Checkpoint"]
