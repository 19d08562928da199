"""Axes of a figure: those given by the user, or new ones."""

from typing import Any


def axes_or_new(ax: Any) -> Any:
    """Return `ax`, or the Axes of a new figure if it is None.

    Parameters
    ----------
    ax : matplotlib Axes or None
        As given by the user.

    Returns
    -------
    matplotlib Axes
    """
    if ax is not None:
        return ax
    # Imported here because it takes longer than the rest of the package.
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]
