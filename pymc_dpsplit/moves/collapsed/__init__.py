"""Collapsed moves of one observation at a time, weights and parameters integrated out."""
