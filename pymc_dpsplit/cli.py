"""The command line: ``python -m pymc_dpsplit``."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from pymc_dpsplit import __version__
from pymc_dpsplit.demo import DATA_SETS, run


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    top = argparse.ArgumentParser(
        prog="python -m pymc_dpsplit",
        description="Exact Dirichlet-process mixtures in PyMC models.",
    )
    top.add_argument("--version", action="version", version=f"pymc_dpsplit {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="command")
    demo = commands.add_parser(
        "demo",
        help="fit real data and write a trace and figures to a folder",
        description="Fit real data by a Dirichlet-process mixture through pm.sample; print the "
        "ArviZ summary and a verdict on convergence; write the trace (netCDF) and figures (PNG).",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    demo.add_argument(
        "--data",
        choices=list(DATA_SETS),
        default="faithful",
        help="eruptions of the Old Faithful geyser (272 x 2), or velocities of 82 galaxies",
    )
    demo.add_argument(
        "--draws", type=_positive, default=1000, help="draws per chain, after as many of tuning"
    )
    demo.add_argument(
        "--out", type=Path, default=Path("dpsplit_demo"), help="folder to write to, made if needed"
    )
    return top


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number of at least 1")
    return int(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those the program was called with.

    Returns
    -------
    int
        Exit status.
    """
    given = parser().parse_args(arguments)
    run(given.data, given.draws, given.out)
    return 0
