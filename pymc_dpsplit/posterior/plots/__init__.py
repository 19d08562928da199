"""Figures of the posterior of a mixture."""
