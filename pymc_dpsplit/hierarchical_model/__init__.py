"""Hierarchical mixtures of rows in groups in PyMC: declaration, random variables, the step."""
