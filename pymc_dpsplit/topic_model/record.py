"""Record of topics: the probabilities of all words, spread over several draws.

Topics by words in every draw would fill the memory.  So T consecutive draws hold the topics of the
first one, each a part of them, where T is as small as 256 KiB per draw allow.
"""

from typing import NamedTuple

import numpy as np

_BYTES_PER_DRAW = 2**18
# Suffix of the statistic that holds the part of a draw.
TOPIC_PART = "topic_part"
# Suffix of the constant with the number of tokens of each word.
WORD_TOTALS = "word_totals"


class TopicRecord(NamedTuple):
    """Shape of a record.

    Attributes
    ----------
    n_topics : int
        Number of topics recorded, L.
    n_words : int
        Number of words V.
    """

    n_topics: int
    n_words: int

    @property
    def n_parts(self) -> int:
        """Return the number of draws T that hold one record."""
        return -(-4 * self.n_topics * self.n_words // _BYTES_PER_DRAW)

    @property
    def part_length(self) -> int:
        """Return the number of probabilities in each draw."""
        return -(-self.n_topics * self.n_words // self.n_parts)

    def divided(self, topics: np.ndarray) -> np.ndarray:
        """Return the parts (T, P), as float32, of topics (K, V) with K <= L; others are 0."""
        flat = np.zeros(self.n_parts * self.part_length, np.float32)
        flat[: topics.size] = topics.ravel()
        return flat.reshape(self.n_parts, self.part_length)

    def joined(self, parts: np.ndarray) -> np.ndarray:
        """Return the topics (.., n, L, V) of parts (.., S, P); S // T = n records are whole."""
        *chains, n_draws, _ = parts.shape
        n_whole = n_draws // self.n_parts
        whole = parts[..., : n_whole * self.n_parts, :].reshape(*chains, n_whole, -1)
        kept = whole[..., : self.n_topics * self.n_words]
        return kept.reshape(*chains, n_whole, self.n_topics, self.n_words)
