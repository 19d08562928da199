"""Results on disk: one JSON file for each subject, with the machine and versions it was run on."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.row import Row

FOLDER = Path(__file__).resolve().parent / "results"


@dataclass(frozen=True)
class Result:
    """All rows of one subject from one run.

    Attributes
    ----------
    date : str
        ISO date of the run.
    machine, versions : dict of str
        See `environment`.
    rows : tuple of Row
    is_complete : bool
        False if the run was stopped before its last row.
    """

    date: str
    machine: dict[str, str]
    versions: dict[str, str]
    rows: tuple[Row, ...]
    is_complete: bool = True


def save(subject: str, result: Result, folder: Path = FOLDER) -> None:
    """Write the result of a subject over that of its last run.

    Parameters
    ----------
    subject : str
        Key of `catalogue.SUBJECTS`.
    result : Result
    folder : Path

    Raises
    ------
    ValueError
        If two rows have one name: notes on rows go by it.
    """
    names = [row.name for row in result.rows]
    if len(set(names)) < len(names):
        raise ValueError(f"two rows of {subject} have one name; give each its own.")
    text = json.dumps(asdict(result), indent=1)
    folder.mkdir(exist_ok=True)
    (folder / f"{subject}.json").write_text(text + "\n", encoding="ascii")


def load(subjects: Sequence[str], folder: Path = FOLDER) -> dict[str, Result]:
    """Read the results of those subjects that have been run, in the order given."""
    found = {}
    for subject in subjects:
        path = folder / f"{subject}.json"
        if path.exists():
            read = json.loads(path.read_text(encoding="ascii"))
            rows = tuple(Row(**row) for row in read.pop("rows"))
            found[subject] = Result(**read, rows=rows)
    return found
