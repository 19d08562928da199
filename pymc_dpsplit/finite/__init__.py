"""Finite mixtures in plain PyMC: the same component and prior, for NUTS, labels summed out."""
