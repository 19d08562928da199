"""Storage of observations: arrays read in blocks, not copied if possible, and read-only."""
