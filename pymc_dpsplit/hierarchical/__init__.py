"""Sampler of rows in groups: a mixture under a hierarchical Dirichlet process."""
