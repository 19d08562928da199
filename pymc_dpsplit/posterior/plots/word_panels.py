"""Panels of words with their probabilities, one for each cluster or topic."""

from typing import Any

import numpy as np

MOST_PANELS = 12
_ACROSS = 4  # panels
_WIDTH, _WORD_HEIGHT = 2.6, 0.2  # inches


def word_panels(n_panels: int, n: int) -> np.ndarray:
    """Return axes (n_panels,) of a new figure, each with room for `n` words."""
    # Imported here because it takes longer than the rest of the package.
    import matplotlib.pyplot as plt

    across = min(n_panels, _ACROSS)
    up = -(-n_panels // across)
    size = _WIDTH * across, (_WORD_HEIGHT * n + 0.9) * up
    axes = plt.subplots(up, across, figsize=size, layout="constrained", squeeze=False)[1].ravel()
    for ax in axes[n_panels:]:
        ax.set_visible(False)
    return axes[:n_panels]


def draw_words(ax: Any, words: np.ndarray, lengths: np.ndarray, **options: Any) -> None:
    """Draw one bar for each word, the first at the top."""
    ax.barh(np.arange(len(words)), lengths, **options)
    ax.set_yticks(np.arange(len(words)), words, fontsize="small")
    ax.invert_yaxis()
