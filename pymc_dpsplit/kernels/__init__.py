"""Compiled building blocks: numba and NumPy only, arrays in and arrays out."""
