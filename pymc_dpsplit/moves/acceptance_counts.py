"""Positions in the int64 array (4,) in which split/merge moves count proposals and acceptances.

The count of acceptances follows that of the proposals of the same kind.
"""

NOTHING_PROPOSED = -1
SPLITS_PROPOSED = 0
SPLITS_ACCEPTED = SPLITS_PROPOSED + 1
MERGES_PROPOSED = 2
MERGES_ACCEPTED = MERGES_PROPOSED + 1
