"""Positions in the array (4,) of int64 in which split/merge moves count what they did."""

SPLITS_PROPOSED = 0
SPLITS_ACCEPTED = 1
MERGES_PROPOSED = 2
MERGES_ACCEPTED = 3
