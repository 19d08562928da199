"""Column of PyMC's progress bar that shows the number of clusters of each chain."""

from collections.abc import Callable
from typing import Any

from rich.progress import ProgressColumn, Task
from rich.table import Column
from rich.text import Text


class PlainColumn(ProgressColumn):
    """A column that shows text as it is, where rich would read markup and formats in it.

    Parameters
    ----------
    text_of : callable
        From a task to what the column shows of it.
    table_column : rich.table.Column, optional
    """

    def __init__(self, text_of: Callable[[Task], str], table_column: Column | None = None) -> None:
        super().__init__(table_column)
        self._text_of = text_of

    def render(self, task: Task) -> Text:
        """Return what the column shows of a task."""
        return Text(self._text_of(task))


def progress_columns(name: str, n_chains: int) -> tuple[list[Any], dict[str, list[Any]]]:
    """Return the progress bar column of a mixture, and its initial values.

    Parameters
    ----------
    name : str
        Name of the mixture: any string, also one with brackets or braces.
    n_chains : int
    """
    field = _field(name)
    column = Column(Text(f"K[{name}]"), ratio=1)
    shown = PlainColumn(lambda task: str(task.fields[field]), column)
    return [shown], {field: [0] * n_chains}


def progress_update(name: str) -> Callable[..., dict[str, Any]]:
    """Return a function that maps the statistics of a draw to the value of the column."""
    return lambda stats: {_field(name): stats[f"{name}_occupied"]}


def _field(name: str) -> str:
    return f"{name}_k"
