"""Figures of the curves that subjects keep: python -m benchmarks.figures [SUBJECT ..]."""

import sys
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot as plt

from benchmarks.catalogue import ROOT
from benchmarks.held_out_curves import LINES, NEAR, Curve, read_curves

FOLDER = ROOT / "docs" / "figures"
WITH_CURVES = ("chang_fisher_synthetic",)
_COLUMNS = 3
# Distances from the level below which all are drawn alike.
_LEAST = 1e-4


def draw(subject: str) -> None:
    """Draw the curves of a subject, a panel for each setting, and write docs/figures."""
    matplotlib.use("Agg")
    level, curves = read_curves(subject)
    n_rows = -(-len(curves) // _COLUMNS)
    size = 11.0, 2.9 * n_rows + 0.7
    figure, axes = plt.subplots(n_rows, _COLUMNS, figsize=size, squeeze=False, layout="constrained")
    for axis, (setting, of) in zip(axes.ravel(), curves.items(), strict=False):
        _draw_panel(axis, setting, of, level)
    for axis in axes.ravel()[len(curves) :]:
        axis.set_visible(False)
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    FOLDER.mkdir(exist_ok=True)
    figure.savefig(FOLDER / f"{subject}.png", dpi=80)
    plt.close(figure)


def _draw_panel(axis: Any, setting: str, curves: list[Curve], level: float) -> None:
    """Distance of the score from the level against CPU seconds, a line for each kernel."""
    by_name = {curve.name: curve for curve in curves}
    for number, line in enumerate(LINES):
        curve = by_name[line.name]
        gap = np.maximum(level - np.array(curve.score), _LEAST)
        style = "--" if number > len(LINES) // 2 else "-"
        axis.plot(curve.seconds[1:], gap[1:], style, color=f"C{number}", label=line.name, lw=1.4)
    axis.axhline(NEAR, color="0.6", lw=0.8, zorder=0)
    axis.set(xscale="log", yscale="log", xlabel="CPU seconds", ylabel="held-out nats below truth")
    axis.set_title(setting, fontsize=10)


def main(subjects: list[str]) -> None:
    """Draw the figures of these subjects, by default of all that keep curves."""
    for subject in subjects or WITH_CURVES:
        draw(subject)
        print(f"written: docs/figures/{subject}.png")


if __name__ == "__main__":
    main(sys.argv[1:])
