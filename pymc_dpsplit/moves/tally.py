"""Positions in the array (4,) of int64 in which split/merge moves count what they did.

What was accepted is counted next to what was proposed.
"""

NOTHING_PROPOSED = -1
SPLITS_PROPOSED = 0
SPLITS_ACCEPTED = SPLITS_PROPOSED + 1
MERGES_PROPOSED = 2
MERGES_ACCEPTED = MERGES_PROPOSED + 1
