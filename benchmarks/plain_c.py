"""The full Gaussian sweep against the same work in plain C, compiled for this processor.

The source is `plain_c.c`: densities, log-sum-exp, a label from a given uniform number, sufficient
statistics.  It is handed its parameters and uniform numbers, our sweep makes its own.  Before it
is timed, its labels and statistics are compared with those of NumPy.
"""

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import pymc_dpsplit as dps
from benchmarks.row import Row
from benchmarks.subject import Chain, evaluate_all, make_target
from benchmarks.timing import median_seconds
from benchmarks.workloads import spheres

FLAGS = ("-O3", "-march=native", "-ffast-math")
_SOURCE = Path(__file__).with_name("plain_c.c")
# N, D, K, spread of the centres.
_CASES = ((100_000, 8, 30, 4.0), (100_000, 32, 30, 2.0), (100_000, 50, 40, 2.0))


class PlainSweep:
    """The sweep in C on given rows, with parameters drawn near the true ones."""

    def __init__(
        self, function: Callable[..., None], rows: np.ndarray, centres: np.ndarray, seed: int = 0
    ) -> None:
        rng = np.random.default_rng(seed)
        n_clusters, d = centres.shape
        self.function, self.rows, self.mean = function, rows, centres
        self.whitening = np.tril(0.1 / d * rng.standard_normal((n_clusters, d, d)))
        self.whitening += np.eye(d)
        diagonal = np.diagonal(self.whitening, axis1=1, axis2=2)
        self.log_weight = np.log(rng.dirichlet(np.full(n_clusters, 50.0)))
        self.log_weight += np.log(diagonal).sum(1)
        self.uniform = rng.random(len(rows))
        self.labels = np.empty(len(rows), np.int32)
        self.stats = np.zeros((n_clusters, 1 + d + d * (d + 1) // 2))
        self._mass, self._gap = np.empty(n_clusters), np.empty(d)

    def __call__(self) -> None:
        """Run it."""
        self.stats[:] = 0.0
        arrays = (
            self.rows, self.mean, self.whitening, self.log_weight, self.uniform,
            self.labels, self.stats, self._mass, self._gap,
        )  # fmt: skip
        sizes = (len(self.rows), *self.mean.shape[::-1])
        self.function(*map(ctypes.c_long, sizes), *(_address(array) for array in arrays))

    def expected(self) -> tuple[np.ndarray, np.ndarray]:
        """Labels and statistics by NumPy."""
        gap = self.rows[:, None] - self.mean
        white = np.einsum("kab,nkb->nka", self.whitening, gap)
        log_mass = self.log_weight - 0.5 * (white**2).sum(-1)
        running = np.exp(log_mass - log_mass.max(1, keepdims=True)).cumsum(1)
        labels = (running[:, :-1] <= (self.uniform * running[:, -1])[:, None]).sum(1)
        a, b = np.tril_indices(self.mean.shape[1])
        every = np.column_stack(
            [np.ones(len(self.rows)), self.rows, self.rows[:, a] * self.rows[:, b]]
        )
        stats = np.zeros_like(self.stats)
        np.add.at(stats, labels, every)
        return labels, stats


def _address(array: np.ndarray) -> ctypes.c_void_p:
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)


def compile_sweep(compiler: str, folder: Path) -> Callable[..., None]:
    """Compile the source into a folder and load it."""
    library = folder / "plain_c.so"
    command = [compiler, *FLAGS, "-shared", "-fPIC", str(_SOURCE), "-o", str(library), "-lm"]
    subprocess.run(command, check=True)
    function = ctypes.CDLL(str(library)).sweep
    function.restype = None
    return function


def check(function: Callable[..., None]) -> None:
    """Compare C with NumPy on a small overlapping case.

    Raises
    ------
    RuntimeError
        If a label or a statistic differs.
    """
    rows, _, centres = spheres(2000, 5, 7, 0.5)
    plain = PlainSweep(function, rows, centres)
    plain()
    labels, stats = plain.expected()
    if not (np.array_equal(plain.labels, labels) and np.allclose(plain.stats, stats, rtol=1e-10)):
        raise RuntimeError("plain_c.c computes other labels or statistics than NumPy.")


def run() -> Iterator[Row]:
    """One row for each size."""
    compiler = shutil.which("cc")
    with tempfile.TemporaryDirectory() as folder:
        function = None if compiler is None else compile_sweep(compiler, Path(folder))
        if function is not None:
            check(function)
        for n_obs, n_features, n_clusters, spread in _CASES:
            name = f"D = {n_features}, K = {n_clusters}"
            if function is None:
                yield Row(name=name, measured=None, unit="x", note="there is no C compiler here")
                continue
            rows, labels, centres = spheres(n_obs, n_features, n_clusters, spread)
            theirs = median_seconds(PlainSweep(function, rows, centres))
            target = evaluate_all(make_target(rows, dps.MvNormal.from_data(rows)))
            ours = median_seconds(Chain(target, labels).sweep)
            yield Row(
                name=name,
                measured=theirs / ours,
                unit="x",
                must=3.5,
                aim=5.0,
                note=f"{1e9 * ours / n_obs:.0f} ns per point, C {1e9 * theirs / n_obs:.0f}",
            )
