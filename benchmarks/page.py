"""The page `docs/performance.md`, made of results, `catalogue` and three lists."""

import tomllib
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path

from benchmarks.catalogue import ROOT, SUBJECTS, Subject
from benchmarks.results import Result, load
from benchmarks.row import Row, figure

PAGE = ROOT / "docs" / "performance.md"
LIMITS = Path(__file__).with_name("limits.toml")
_ELSEWHERE = Path(__file__).with_name("elsewhere.toml")
_IN_SHORT = Path(__file__).with_name("in_short.toml")

Limits = Mapping[str, Mapping[str, str]]
Place = tuple[dict[str, str], dict[str, str]]

_OPENING = """# Performance

Written by `make benchmarks` from what it measured; not edited by hand. One thread, data of
float64, CPU time and medians where nothing else is said; ratios are of times taken in one process.
"Must hold" is what a release needs, "aim" what is wanted; "reached" says which of the two is. One
subject is measured again by `python -m benchmarks.run NAME`, the long ones with `--long`. The
machines are at the end.
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
    parts = [_OPENING, *_in_short(results)]
    for name, result in results.items():
        place = places.index((result.machine, result.versions)) + 1
        where = f", machine {place}" if len(places) > 1 else ""
        subject = SUBJECTS[name]
        parts.append(f"## {subject.title}\n\n{subject.about}\n")
        rest = "" if result.is_complete else " The run was stopped; its last rows are missing."
        parts.append(f"`{name}`, {result.date}{where}.{rest}\n")
        parts.append(_table(result.rows))
        parts.extend(_missed(result.rows, limits.get(name, {})))
    parts.extend(_elsewhere(_ELSEWHERE))
    parts.extend(_absent([subject for name, subject in SUBJECTS.items() if name not in results]))
    parts.extend(_machines(places))
    return "\n".join(parts)


def answers() -> list[dict[str, str]]:
    """What a user asks first, with subject and row of the answer."""
    found: list[dict[str, str]] = tomllib.loads(_IN_SHORT.read_text(encoding="utf-8"))["answers"]
    return found


def _in_short(results: Mapping[str, Result]) -> Iterator[str]:
    """Answers to what a user asks first, as far as they were measured."""
    measured = {(name, row.name): row for name, result in results.items() for row in result.rows}
    lines = []
    for answer in answers():
        row = measured.get((answer["subject"], answer["row"]))
        if row is not None:
            title = SUBJECTS[answer["subject"]].title
            lines.append([answer["asked"], figure(row.measured, row.unit), title])
    if lines:
        yield "## In short\n"
        yield _grid(["what", "measured", "section"], lines)


def _distinct(results: Mapping[str, Result]) -> list[Place]:
    """Machines with versions, each once."""
    found: list[Place] = []
    for result in results.values():
        if (result.machine, result.versions) not in found:
            found.append((result.machine, result.versions))
    return found


def _machines(places: list[Place]) -> Iterator[str]:
    """A table with a column for each machine."""
    if not places:
        return
    columns = [machine | versions for machine, versions in places]
    names = list(dict.fromkeys(name for column in columns for name in column))
    many = len(places) > 1
    yield f"## Machine{'s' if many else ''}\n"
    heads = [f"machine {number + 1}" if many else "" for number in range(len(places))]
    yield _grid(["", *heads], [[name, *(of.get(name, "") for of in columns)] for name in names])


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
    explained = [row.name for row in missed(rows) if row.name in limits]
    lines = [
        f"- {'; '.join(names)}: {why}"
        for why, names in groupby(explained, lambda name: limits[name])
    ]
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
