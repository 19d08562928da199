"""Comparison of a Dirichlet-process mixture with finite mixtures on one data set."""
