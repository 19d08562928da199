"""Draws of one chain: stored draws, and draws that are not stored yet."""

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
        Number of valid draws, those before the stored state.
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
        """Return the number of draws that are not stored yet."""
        return len(self._points)

    def draw(self, number: int) -> tuple[Point, Stats]:
        """Return copies of the point and statistics of a stored draw; draws are read in order.

        Parameters
        ----------
        number : int
            Number of the draw.

        Returns
        -------
        point : dict
        stats : list of dict
        """
        if number == self._last or self._chunk is None:
            length, self._chunk = self._files.chunk(number)
            self._first, self._last = number, number + length
        row = number - self._first
        point = {name: rows[row, ...].copy() for name, rows in self._chunk["points"].items()}
        return point, [_row(table, row) for table in self._chunk["stats"]]

    def methods(self) -> list[Any]:
        """Return the states of the methods after the last stored draw; can be called once."""
        methods, self._methods, self._chunk = self._methods, [], None
        return methods

    def add(self, point: Point, stats: Stats) -> None:
        """Add a copy of a draw, because PyMC may reuse the memory of a point."""
        self._points.append({name: np.array(value) for name, value in point.items()})
        self._stats.append([{key: _plain(value) for key, value in of.items()} for of in stats])

    def commit(self, methods: list[Any]) -> None:
        """Store the pending draws, and the states of the methods after them.

        Parameters
        ----------
        methods : list of plain value
            States of the methods, see `method_state.capture`.
        """
        first, last = self.n_stored, self.n_stored + self.n_pending
        points = {name: np.stack([of[name] for of in self._points]) for name in self._points[0]}
        stats = [_table(rows) for rows in zip(*self._stats, strict=True)]
        state = {"n_draws": last, "methods": methods}
        self._files.commit(first, last, {"points": points, "stats": stats}, state)
        self.n_stored, self._points, self._stats = last, [], []


def _plain(value: Any) -> np.ndarray | None:
    """Return a copy of a statistic, or None for an object, such as a warning of NUTS."""
    array = np.array(value)
    return None if array.dtype.hasobject else array


def _table(rows: Sequence[dict[str, Any]]) -> Any:
    """Return statistics of a method by column, or by row if names, shapes or dtypes differ."""
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
