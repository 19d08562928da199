"""Draw figure 2 of Williamson, Dubey & Xing (2013) anew: NIPS, perplexity against time.

    python -m benchmarks.topic_figure FIGURE.png SECONDS

As in the paper there are 250 test documents and 80 topics at the start, which are random here.
Time is that of the CPU, one thread; perplexity is by document completion, which is not that of the
paper, as it does not define its own.  Beside the sweeps of `HDPTopics` is tomotopy's `HDPModel`,
where it is installed.  The variable `DPSPLIT_DATA` names the folder of the documents.
"""

import sys

import matplotlib
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.ticker import ScalarFormatter
from scipy import sparse

from benchmarks.data_folder import path_of, why_not
from benchmarks.heldout import split_documents
from benchmarks.topics import Effort, Text, curve_of

_FILE, _N_TOPICS, _FIRST, _N_POINTS = "nips17_bow.npz", 80, 2.0, 8
_NAMES = {"ours": "HDPTopics", "tomotopy": "tomotopy's HDPModel"}
_STYLES = {"ours": "o-", "tomotopy": "s--"}


def draw(path: str, longest: float) -> None:
    """Run the samplers, print the perplexities and write the figure."""
    file = path_of(_FILE)
    if file is None:
        raise SystemExit(why_not(_FILE))
    seconds = np.geomspace(_FIRST, longest, _N_POINTS)
    text = Text("NIPS", _FILE, tuple(seconds), _N_TOPICS)
    effort = Effort(seeds=(1,), n_early=0, n_sweeps=1, turns=1, longest=np.inf)
    found = curve_of(split_documents(sparse.load_npz(file).tocsr()), text, 1, effort)
    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    for name, perplexities in found.items():
        ax.plot(seconds, perplexities, _STYLES[name], label=_NAMES[name])
        told = ", ".join(f"{t:.3g} s: {p:.0f}" for t, p in zip(seconds, perplexities, strict=True))
        print(f"{_NAMES[name]}: {told}")
    ax.set(xscale="log", xlabel="CPU seconds, one thread", ylabel="perplexity of held-out halves")
    for formatted in (ax.xaxis.set_major_formatter, ax.xaxis.set_minor_formatter):
        formatted(ScalarFormatter())
    ax.set_title(f"NIPS, 250 test documents, from {_N_TOPICS} topics", fontsize="medium")
    ax.legend()
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    matplotlib.use("agg")
    draw(sys.argv[1], float(sys.argv[2]))
