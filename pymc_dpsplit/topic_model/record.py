"""Record of topics: the probabilities of all words, spread over several draws.

Topics by words in every draw would fill the memory.  So T consecutive draws hold the topics of the
first one, each a part of them, where T is as small as 256 KiB per draw allow.
"""

from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

_BYTES_PER_DRAW = 2**18
# Suffix of the statistic that holds the part of a draw.
TOPIC_PART = "topic_part"
# Suffix of the statistic with the number of a draw among those kept, from 0; below 0 in tuning.
TOPIC_DRAW = "topic_draw"
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

    def whole_records(self, numbers: np.ndarray) -> np.ndarray:
        """Return where the records are of which all parts are present.

        Parameters
        ----------
        numbers : ndarray of int, shape (C, S)
            Number of each draw of C chains among those kept.  A record begins at a multiple of T.

        Returns
        -------
        ndarray of int64, shape (n, T)
            Positions of the parts of each record that every chain has there, in their order.
        """
        n_draws = numbers.shape[1]
        if n_draws < self.n_parts:
            return np.empty((0, self.n_parts), np.int64)
        order = np.arange(n_draws)
        if len(np.unique(numbers[0])) == n_draws:
            order = np.argsort(numbers[0])
        runs = sliding_window_view(numbers[:, order], self.n_parts, axis=1)
        first = runs[..., :1]
        follow = (runs == first + np.arange(self.n_parts)).all(axis=2)
        begin = (first[..., 0] >= 0) & (first[..., 0] % self.n_parts == 0)
        at = np.flatnonzero((follow & begin).all(axis=0))
        found = order[at[:, None] + np.arange(self.n_parts)]
        return found[np.argsort(found[:, 0])]

    def joined(self, parts: np.ndarray) -> np.ndarray:
        """Return the topics (.., n, L, V) of the parts (.., n, T, P) of n records."""
        whole = parts.reshape(*parts.shape[:-2], -1)[..., : self.n_topics * self.n_words]
        return whole.reshape(*whole.shape[:-1], self.n_topics, self.n_words)
