"""Run benchmarks, one after another, and write the page.

python -m benchmarks.run                  # all but the long ones
python -m benchmarks.run sweep mixing     # these
python -m benchmarks.run --long           # the long ones too
python -m benchmarks.run --page           # none; write the page from what is on disk
"""

import argparse
import importlib
from datetime import date

from threadpoolctl import threadpool_limits

from benchmarks.catalogue import SUBJECTS
from benchmarks.environment import machine, versions
from benchmarks.page import PAGE, missed, read_limits, write_page
from benchmarks.results import Result, save
from benchmarks.row import Row, line_of


def measure(subject: str) -> None:
    """Run one benchmark, print its rows as they come and save them."""
    print(f"{subject}: {SUBJECTS[subject].title}", flush=True)
    module = importlib.import_module(f"benchmarks.{subject}")
    rows: list[Row] = []

    def keep(is_complete: bool) -> None:
        today = date.today().isoformat()
        save(subject, Result(today, machine(), versions(), tuple(rows), is_complete))

    # After the import, for it limits the libraries that are loaded.
    with threadpool_limits(1):
        for row in module.run():
            print(line_of(row), flush=True)
            rows.append(row)
            # A run that is stopped keeps what it has measured.
            keep(is_complete=False)
    keep(is_complete=True)
    explained = read_limits().get(subject, {})
    for row in missed(tuple(rows)):
        if row.name not in explained:
            print(f"  missed, and limits.toml does not say what limits it: {row.name}")


def main() -> None:
    """Command line; see the top of the file."""
    parser = argparse.ArgumentParser(prog="benchmarks.run", description="Time the sampler.")
    parser.add_argument("subjects", nargs="*", metavar="subject", help=", ".join(SUBJECTS))
    parser.add_argument("--long", action="store_true", help="the long ones too")
    parser.add_argument("--page", action="store_true", help="only write the page")
    given = parser.parse_args()
    for name in given.subjects:
        if name not in SUBJECTS:
            parser.error(f"there is no subject {name!r}; choose among {', '.join(SUBJECTS)}")
    chosen = given.subjects or [
        name for name, subject in SUBJECTS.items() if given.long or not subject.is_long
    ]
    for name in [] if given.page else chosen:
        measure(name)
        write_page()
    write_page()
    print(f"written: {PAGE.name}")


if __name__ == "__main__":
    main()
