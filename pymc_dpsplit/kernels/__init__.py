"""Compiled building blocks that depend on numba and NumPy only, from arrays to arrays."""
