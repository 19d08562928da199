"""The page `docs/performance.md`, made of results, `catalogue` and two lists."""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.catalogue import ROOT, SUBJECTS, Subject
from benchmarks.results import Result, load
from benchmarks.row import Row, figure

PAGE = ROOT / "docs" / "performance.md"
LIMITS = Path(__file__).with_name("limits.toml")
_ELSEWHERE = Path(__file__).with_name("elsewhere.toml")

Limits = Mapping[str, Mapping[str, str]]

_OPENING = """# Performance

Written by `make benchmarks` from what it measured; not edited by hand. One thread, float64, CPU
time and medians where nothing else is said; ratios are of times taken in one process. "Must hold"
is what a release needs, "aim" what is wanted; "reached" says which of the two is. One subject is
measured again by `python -m benchmarks.run NAME`, the long ones with `--long`.
"""


def read_limits(path: Path = LIMITS) -> Limits:
    """What limits a row: by subject, then by name of the row."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def write_page() -> None:
    """Write the page from the results on disk."""
    PAGE.write_text(page_of(load(list(SUBJECTS)), read_limits()), encoding="utf-8")


def page_of(results: Mapping[str, Result], limits: Limits) -> str:
    """Text of the page.

    Parameters
    ----------
    results : dict of Result
        By key of `catalogue.SUBJECTS`.
    limits : dict of dict of str
        See `read_limits`.

    Returns
    -------
    str
    """
    places = _distinct(results)
    parts = [_OPENING, *_machines(places)]
    for name, result in results.items():
        place = places.index((result.machine, result.versions)) + 1
        where = f", machine {place}" if len(places) > 1 else ""
        subject = SUBJECTS[name]
        parts.append(f"## {subject.title}\n\n{subject.about}\n")
        parts.append(f"`{name}`, {result.date}{where}.\n")
        parts.append(_table(result.rows))
        parts.extend(_missed(result.rows, limits.get(name, {})))
    parts.extend(_elsewhere(_ELSEWHERE))
    parts.extend(_absent([subject for name, subject in SUBJECTS.items() if name not in results]))
    return "\n".join(parts)


def _distinct(results: Mapping[str, Result]) -> list[tuple[dict[str, str], dict[str, str]]]:
    """Machines with versions, each once."""
    found: list[tuple[dict[str, str], dict[str, str]]] = []
    for result in results.values():
        if (result.machine, result.versions) not in found:
            found.append((result.machine, result.versions))
    return found


def _machines(places: list[tuple[dict[str, str], dict[str, str]]]) -> Iterator[str]:
    for number, (machine, versions) in enumerate(places, start=1):
        yield f"## Machine{f' {number}' if len(places) > 1 else ''}\n"
        yield _grid(["", ""], [[name, value] for name, value in (machine | versions).items()])


def _table(rows: tuple[Row, ...]) -> str:
    """Columns that are empty in all rows are left out."""
    heads = ["what", "measured", "must hold", "aim", "reached", "others", "notes"]
    lines = []
    for row in rows:
        sign = ">=" if row.larger_is_better else "<="
        targets = [
            "" if target is None else f"{sign} {figure(target, row.unit)}"
            for target in (row.must, row.aim)
        ]
        measured = figure(row.measured, row.unit)
        lines.append([row.name, measured, *targets, row.verdict, row.rivals, row.note])
    keep = [i for i in range(len(heads)) if any(line[i] for line in lines)]
    return _grid([heads[i] for i in keep], [[line[i] for i in keep] for line in lines])


def _grid(heads: list[str], lines: list[list[str]]) -> str:
    """A table in Markdown."""
    ruled = [heads, ["---"] * len(heads), *lines]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in ruled) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def missed(rows: tuple[Row, ...]) -> list[Row]:
    """Rows that miss a target of theirs."""
    return [row for row in rows if row.misses(row.must) or row.misses(row.aim)]


def _missed(rows: tuple[Row, ...], limits: Mapping[str, str]) -> Iterator[str]:
    """What limits the rows that miss a target."""
    lines = [f"- {row.name}: {limits[row.name]}" for row in missed(rows) if row.name in limits]
    if lines:
        yield "What limits the rest:\n"
        yield "\n".join(lines) + "\n"


def _elsewhere(path: Path) -> Iterator[str]:
    """Figures of other systems that were not measured beside ours."""
    figures = tomllib.loads(path.read_text(encoding="utf-8"))["figures"]
    yield "## Measured on another machine\n"
    yield (
        "Effective draws per CPU second of a published sampler that is exact, by the estimator of "
        "Mixing, on two shared cores of an AMD EPYC and with another seed of the workload. They "
        "are no figures to divide those above by.\n"
    )
    heads = ["workload", "system", "K", "log joint", "predictive density, worst of three points"]
    lines = [
        [one["workload"], one["system"], *(f"{rate:g}" for rate in one["rates"])] for one in figures
    ]
    yield _grid(heads, lines)


def _absent(subjects: list[Subject]) -> Iterator[str]:
    if subjects:
        yield "## Not measured\n"
        yield "\n".join(f"- {subject.title}" for subject in subjects) + "\n"
