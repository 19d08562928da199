"""Finite mixtures in plain PyMC for NUTS, with the labels summed out."""
