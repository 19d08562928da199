"""Observations as arrays: read in blocks, kept where they are, never written to."""
