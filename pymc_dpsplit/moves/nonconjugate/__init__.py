"""Moves of non-conjugate families, whose cluster parameters are part of the state of the chain."""
