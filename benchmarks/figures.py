"""Figures of the curves that subjects keep: python -m benchmarks.figures [SUBJECT ..]."""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot as plt

from benchmarks.catalogue import ROOT
from benchmarks.held_out_curves import LINES, NEAR, Curve, has_curves, read_curves

FOLDER = ROOT / "docs" / "figures"
# Five names of this length do not fit side by side.
_LONG_NAME = 20
_COLUMNS = 3
# Distances from the level below which all are drawn alike.
_LEAST = 1e-4


def draw_gaps(subject: str) -> None:
    """Distance from the truth, a panel for each setting."""
    levels, curves = read_curves(subject)
    figure, axes = _panels(len(curves), _COLUMNS)
    for axis, (setting, of) in zip(axes, curves.items(), strict=False):
        _draw_panel(axis, setting, of, levels[setting])
    _finish(figure, axes[0], subject)


def draw_scores(subject: str) -> None:
    """Scores themselves, a panel for each data set, solid from the first start."""
    _, curves = read_curves(subject)
    titles = list(dict.fromkeys(_data_of(setting) for setting in curves))
    figure, axes = _panels(len(titles), 2)
    for axis, title in zip(axes, titles, strict=False):
        settings = [setting for setting in curves if _data_of(setting) == title]
        for setting, style in zip(settings, ("-", "--"), strict=False):
            _draw_lines(axis, curves[setting], style, "" if style == "-" else "_")
        _limit_scores(axis, [curve for setting in settings for curve in curves[setting]])
        starts = " and ".join(setting.rpartition(" ")[2] for setting in settings)
        axis.set_title(f"{title}, from {starts} (dashed)", fontsize=10)
    _finish(figure, axes[0], subject)


def draw_plain(subject: str, x: str, y: str, x_scale: str) -> None:
    """Scores against seconds as they are, a panel for each setting."""
    _, curves = read_curves(subject)
    figure, axes = _panels(len(curves), min(len(curves), _COLUMNS))
    for axis, (setting, of) in zip(axes, curves.items(), strict=False):
        for curve in of:
            style = "--" if "not exact" in curve.name else "-"
            axis.plot(curve.seconds, curve.score, style, label=curve.name, lw=1.4)
        axis.set(xscale=x_scale, xlabel=x, ylabel=y)
        axis.set_title(setting, fontsize=10)
    _finish(figure, axes[0], subject)


DRAWN_BY: dict[str, Callable[[str], None]] = {
    "chang_fisher_synthetic": draw_gaps,
    "chang_fisher_real": draw_scores,
    "processors_long": partial(
        draw_plain, x="seconds with a thread for each processor", y="F1", x_scale="log"
    ),
    "marginalized": partial(draw_plain, x="CPU seconds", y="autocorrelation of K", x_scale="log"),
}


def _data_of(setting: str) -> str:
    return setting.partition(", from")[0]


def _panels(number: int, n_columns: int) -> tuple[Any, Any]:
    """A figure and its axes in a row, those that are not needed hidden."""
    matplotlib.use("Agg")
    n_rows = -(-number // n_columns)
    size = 11.0, min(2.9 * 3 / n_columns, 5.0) * n_rows + 0.7
    shape = n_rows, n_columns
    figure, axes = plt.subplots(*shape, figsize=size, squeeze=False, layout="constrained")
    for axis in axes.ravel()[number:]:
        axis.set_visible(False)
    return figure, axes.ravel()


def _finish(figure: Any, axis: Any, subject: str) -> None:
    """Add the legend of one panel below, and write docs/figures."""
    handles, names = axis.get_legend_handles_labels()
    n_columns = 5 if max(map(len, names)) < _LONG_NAME else 3
    legend = {"loc": "outside lower center", "ncols": n_columns, "frameon": False, "fontsize": 9}
    figure.legend(handles, names, **legend)
    FOLDER.mkdir(exist_ok=True)
    figure.savefig(FOLDER / f"{subject}.png", dpi=80)
    plt.close(figure)


def _draw_lines(axis: Any, curves: list[Curve], style: str, hidden: str) -> None:
    """Scores against CPU seconds; a name that begins with `_` is not in the legend."""
    colours = {line.name: f"C{number}" for number, line in enumerate(LINES)}
    for curve in curves:
        label = hidden + curve.name
        given = {"color": colours[curve.name], "label": label, "lw": 1.4}
        axis.plot(curve.seconds[1:], curve.score[1:], style, **given)
    axis.set(xscale="log", xlabel="CPU seconds", ylabel="held-out nats per word or component")


def _limit_scores(axis: Any, curves: list[Curve]) -> None:
    """Leave out what all kernels climb in their first iterations."""
    ends = [curve.score[-1] for curve in curves]
    margin = 0.5 * (max(ends) - min(ends))
    axis.set_ylim(min(ends) - margin, max(ends) + 0.3 * margin)


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
    """Draw the figures of these subjects, by default of all that have been run."""
    for subject in subjects or [name for name in DRAWN_BY if has_curves(name)]:
        DRAWN_BY[subject](subject)
        print(f"written: docs/figures/{subject}.png")


if __name__ == "__main__":
    main(sys.argv[1:])
