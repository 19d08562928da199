"""Print the bytes that sampling the topics of a file of documents takes; in a process of its own.

    python -m benchmarks.topic_memory FILE

Prints the peak beyond imports and data, the bytes of the data, the tokens and the topics at the
end.  Linux only, like `memory.py`.
"""

import sys
from pathlib import Path

import pymc as pm
from scipy import sparse

import pymc_dpsplit as dps
from benchmarks.memory import forget_peak, resident

_DRAWS = 5


def main(path: Path) -> None:
    """Sample a few draws and print the numbers."""
    counts = sparse.load_npz(path).tocsr()
    n_bytes = counts.data.nbytes + counts.indices.nbytes + counts.indptr.nbytes
    before = resident("VmRSS")
    forget_peak()
    with pm.Model():
        alpha, gamma = pm.Gamma("alpha", 2.0, 2.0), pm.Gamma("gamma", 2.0, 2.0)
        dps.HDPTopics("w", alpha, gamma, 0.1, observed=counts)
        idata = pm.sample(
            draws=_DRAWS, tune=_DRAWS, chains=1, cores=1, random_seed=1, progressbar=False,
            quiet=True, compute_convergence_checks=False,
        )  # fmt: skip
    n_topics = int(idata["posterior"]["w_n_topics"][0, -1])
    print(resident("VmHWM") - before, n_bytes, counts.sum(), n_topics)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
