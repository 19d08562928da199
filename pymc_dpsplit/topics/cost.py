"""What a sweep over all tokens costs."""

from pymc_dpsplit.topics.state import TopicState

# Nanoseconds of a sweep, of each token, and of each word in each topic.
_SWEEP, _TOKEN, _CELL = 1.3e5, 40.0, 8.0


def cost_of_sweep(state: TopicState) -> float:
    """Approximate cost of a sweep in nanoseconds.

    Parameters
    ----------
    state : TopicState

    Returns
    -------
    float
    """
    return _SWEEP + _TOKEN * len(state.labels) + _CELL * state.word_counts.size
