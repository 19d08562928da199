"""The draws of one chain: those stored, by number, and those not stored yet."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pymc_dpsplit.checkpoint.chain_files import ChainFiles

type Point = dict[str, np.ndarray]
type Stats = list[dict[str, Any]]


class Recording:
    """Draws of one chain, stored in chunks.

    Parameters
    ----------
    files : ChainFiles

    Attributes
    ----------
    n_stored : int
        Draws that count: those before the stored state.
    """

    def __init__(self, files: ChainFiles) -> None:
        self._files = files
        state = files.state()
        self.n_stored: int = 0 if state is None else state["n_draws"]
        self._methods: list[Any] = [] if state is None else state["methods"]
        files.clean(self.n_stored)
        self._points: list[Point] = []
        self._stats: list[Stats] = []
        self._chunk: Any = None
        self._first, self._last = 0, 0

    @property
    def n_pending(self) -> int:
        """Draws that are not stored yet."""
        return len(self._points)

    def draw(self, number: int) -> tuple[Point, Stats]:
        """Copies of the point and statistics of a stored draw; draws are read in their order."""
        if number == self._last or self._chunk is None:
            length, self._chunk = self._files.chunk(number)
            self._first, self._last = number, number + length
        row = number - self._first
        point = {name: rows[row, ...].copy() for name, rows in self._chunk["points"].items()}
        return point, [_row(table, row) for table in self._chunk["stats"]]

    def methods(self) -> list[Any]:
        """States of the methods after the last stored draw, given out once."""
        methods, self._methods, self._chunk = self._methods, [], None
        return methods

    def add(self, point: Point, stats: Stats) -> None:
        """Take a draw; kept as a copy, for PyMC may share the memory of a point."""
        self._points.append({name: np.array(value) for name, value in point.items()})
        self._stats.append([{key: _plain(value) for key, value in of.items()} for of in stats])

    def commit(self, methods: list[Any]) -> None:
        """Store what is pending, and the states of the methods after it."""
        first, last = self.n_stored, self.n_stored + self.n_pending
        points = {name: np.stack([of[name] for of in self._points]) for name in self._points[0]}
        stats = [_table(rows) for rows in zip(*self._stats, strict=True)]
        state = {"n_draws": last, "methods": methods}
        self._files.commit(first, last, {"points": points, "stats": stats}, state)
        self.n_stored, self._points, self._stats = last, [], []


def _plain(value: Any) -> np.ndarray | None:
    """Return a copy of a statistic; None for an object, as the warnings of NUTS are."""
    array = np.array(value)
    return None if array.dtype.hasobject else array


def _table(rows: Sequence[dict[str, Any]]) -> Any:
    """Statistics of a method by column; by row if they differ in names, shape or dtype."""
    table: dict[str, np.ndarray | None] = {}
    for key in rows[0]:
        column = [row.get(key) for row in rows]
        kinds = {None if value is None else (value.dtype, value.shape) for value in column}
        if len(kinds) == 1 and None not in kinds:
            table[key] = np.stack(column)  # type: ignore[arg-type]
        elif kinds == {None}:
            table[key] = None
        else:
            return list(rows)
    return table if all(row.keys() == table.keys() for row in rows) else list(rows)


def _row(table: Any, row: int) -> dict[str, Any]:
    if isinstance(table, list):
        return dict(table[row])
    return {key: None if column is None else column[row].copy() for key, column in table.items()}
