"""Samplers of the literature, one per file, composed of the moves and of operations of families.

Each is an alternative to the default kernel, `kernel=` names it, and docs/samplers.md describes it.
"""
