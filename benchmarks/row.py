"""One row of a table: what was measured, and what was wanted."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Row:
    """One figure.

    Attributes
    ----------
    name : str
        What was measured; each name once in a subject.
    measured : float or None
        None if it could not be measured here, and `note` then says why; NaN for the time to
        something that did not happen.
    unit : str
        "x" for a ratio; may be empty.
    must, aim : float or None
        What must hold, and what is aimed at.
    larger_is_better : bool
    rivals : str
        Figures of other programs, or of a reference.
    note : str
        What else belongs to the figure.
    """

    name: str
    measured: float | None
    unit: str = ""
    must: float | None = None
    aim: float | None = None
    larger_is_better: bool = True
    rivals: str = ""
    note: str = ""

    def reaches(self, target: float | None) -> bool:
        """Whether there is such a target and the measured figure is as good or better."""
        if self.measured is None or target is None:
            return False
        better = self.measured - target if self.larger_is_better else target - self.measured
        return better >= 0.0

    def misses(self, target: float | None) -> bool:
        """Whether there is such a target and a figure, and the figure is worse (or NaN)."""
        return self.measured is not None and target is not None and not self.reaches(target)

    @property
    def verdict(self) -> str:
        """What of the targets is reached, in a word or two; empty without targets."""
        if self.measured is None:
            return "not measured"
        if self.reaches(self.aim):
            return "aim"
        if self.reaches(self.must):
            return "must hold" if self.aim is not None else "yes"
        return "no" if self.misses(self.must) or self.misses(self.aim) else ""


def figure(value: float | None, unit: str = "") -> str:
    """A figure to three digits, with its unit; a dash for None, words for NaN."""
    if value is None:
        return "-"
    if math.isnan(value):
        return "not reached"
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return text + unit if unit in ("", "x") else f"{text} {unit}"


def line_of(row: Row) -> str:
    """One line for the terminal."""
    wanted = [
        f"{kind} {figure(target, row.unit)}"
        for kind, target in (("must hold", row.must), ("aim", row.aim))
        if target is not None
    ]
    verdict = f" [{row.verdict}]" if row.verdict else ""
    facts = "; ".join(part for part in (*wanted, row.rivals, row.note) if part)
    told = f" ({facts})" if facts else ""
    return f"  {row.name}: {figure(row.measured, row.unit)}{verdict}{told}"
