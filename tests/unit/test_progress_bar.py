"""Names of mixtures in progress bars, as rich shows them: any name, as it is."""

from io import StringIO
from typing import Any

import pytest
from pymc.progress_bar.rich_progress import CustomProgress
from rich.console import Console
from rich.progress import Progress

from pymc_dpsplit.step import compilation
from pymc_dpsplit.step.progress_bar import progress_columns, progress_update

NAMES = ["x", "[bold]", "x]", "[x", "[/]", "[", "]", "{x}", "{", "}", "{0}", "{task}", "%s", "100%",
         "'", '"', "it's", "a\\", "[red]\\", ":smile:", "!r", "x:>9"]  # fmt: skip


def console() -> Console:
    return Console(file=StringIO(), width=200)


def written(progress: Progress) -> str:
    """What rich writes of the tasks of a bar, on one line."""
    progress.console.print(progress.make_tasks_table(progress.tasks))
    file: Any = progress.console.file
    return " ".join(file.getvalue().split())


@pytest.mark.parametrize("name", NAMES)
def test_any_name_heads_its_column(name: str) -> None:
    columns, fields = progress_columns(name, n_chains=2)
    bar = CustomProgress(*columns, console=console(), include_headers=True, auto_refresh=False)
    task = bar.add_task("Sampling", **{key: values[1] for key, values in fields.items()})
    bar.update(task, **progress_update(name)({f"{name}_occupied": 17}))
    heading, _, number = written(bar).split(" ")
    assert (heading, number) == (f"K[{name}]", "17")


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_told_while_kernels_compile(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def progress(*columns: Any, **options: Any) -> Progress:
        made.append(Progress(*columns, console=console(), **{**options, "disable": False}))
        return made[-1]

    monkeypatch.setattr(compilation, "Progress", progress)
    with compilation._telling(f"Normal of {name}", frozenset(), shows_progress=False):
        made[0].add_task("", total=None)
        assert f"kernels for Normal of {name}, once per machine" in written(made[0])
