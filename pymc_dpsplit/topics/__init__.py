"""Sampler of topics: a hierarchical Dirichlet process of the words of documents."""
