"""Where the data of benchmarks are that the package does not ship."""

import os
from pathlib import Path

DATA_VARIABLE = "DPSPLIT_DATA"


def path_of(file: str) -> Path | None:
    """Path of a file in the folder of `DPSPLIT_DATA`, or beside the file that it names, or None."""
    if DATA_VARIABLE not in os.environ:
        return None
    given = Path(os.environ[DATA_VARIABLE])
    path = (given if given.is_dir() else given.parent) / file
    return path if path.exists() else None


def why_not(file: str) -> str:
    """Note of a row that could not be measured without this file."""
    return f"the variable {DATA_VARIABLE} names no folder with {file}"
