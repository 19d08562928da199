"""Convergence diagnostics of a trace."""
