"""Run the long comparisons of whole draws with the truth, and write docs/exactness.md.

`make exactness` runs all of them; `python -m tests.exactness NAME ...` runs these, and keeps what
the last run found of the others in tests/exact/findings.json; `python -m tests.exactness page`
writes the page alone.
"""

import json
import multiprocessing
import os
import re
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

# Before NumPy is imported: the comparisons run side by side.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import numpy as np  # noqa: E402

from tests.support.compositions import (  # noqa: E402
    SETTINGS,
    Comparison,
    Kernels,
    chain_of,
    enumeration,
    geweke,
    one_step,
    two_kernels,
)
from tests.support.families import FAMILIES  # noqa: E402
from tests.support.findings import FOUND, Finding  # noqa: E402
from tests.support.statistics import LEVEL  # noqa: E402

_ROOT = Path(__file__).resolve().parent.parent
FINDINGS, PAGE = _ROOT / "tests/exact/findings.json", _ROOT / "docs/exactness.md"
_SEED = 20261122
# Draws of each kernel, as many as E[K] to 0.3 % takes, in chains of a quarter of them.
_DRAWS = dict(zip(SETTINGS, (300_000, 80_000, 60_000, 130_000), strict=True))


def compare_kernels(setting: Kernels) -> Comparison:
    """Long chains of both kernels."""
    n_draws = _DRAWS[setting] // 4
    chains = (
        np.stack([chain_of(setting, kernel, n_draws, seed) for seed in range(1, 5)])
        for kernel in ("exact", "collapsed")
    )
    return two_kernels(setting, *chains)


def comparisons() -> dict[str, Callable[[], Comparison]]:
    """Every comparison by name, the longest first."""
    cases = [(name, row.n_features[-1]) for name, row in FAMILIES.items()]
    found: dict[str, Callable[[], Comparison]] = {
        f"two kernels {setting.case} {setting.n_obs}": partial(compare_kernels, setting)
        for setting in SETTINGS
    }
    for case in (("Normal", 1), ("MvNormal", 3), ("Poisson", 2)):
        found[f"Geweke {case}"] = partial(geweke, case, 50, 12_000, _SEED)
    found |= {f"enumeration {case}": partial(enumeration, case, 6000, _SEED) for case in cases}
    found |= {f"one step {case}": partial(one_step, case, 40, 10_000, _SEED) for case in cases}
    return found


def _run(name: str) -> dict[str, Any]:
    began = time.perf_counter()
    comparison = comparisons()[name]()
    return {
        "p_value": comparison.p_value,
        "seconds": round(time.perf_counter() - began, 1),
        "findings": [finding._asdict() for finding in comparison.findings],
    }


def run(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Run comparisons side by side, and store each as it ends, beside those that do not run."""
    order, names = list(comparisons()), list(names)
    stored = json.loads(FINDINGS.read_text()) if FINDINGS.exists() else {}
    results = {name: of for name, of in stored.items() if name in order and name not in names}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(os.cpu_count() or 1, 8), context) as pool:
        futures: dict[Future[dict[str, Any]], str] = {pool.submit(_run, n): n for n in names}
        for future, name in futures.items():
            results[name] = future.result()
            print(f"{name}: p = {results[name]['p_value']:.2g}", flush=True)
            results = {each: results[each] for each in order if each in results}
            FINDINGS.write_text(json.dumps(results, indent=1) + "\n")
    return results


_HEAD = f"""# Exactness of whole draws

Written by `make exactness` from `tests/exact/findings.json`.

A draw of `pm.sample` is a composition: linked sweeps, a scan, split/merge attempts, alpha by slice,
alpha and hyperparameters by NUTS. Each move is tested on its own (`tests/exact`); here whole draws
are compared with the truth. `tests/support/compositions.py` defines the comparisons;
`tests/exact/test_compositions.py` runs short ones, with mutants that they must catch.

- **Collapsed Gibbs**: overlapping groups of rows under `kernel="exact"` and `kernel="collapsed"`.
- **Geweke**: rows are drawn anew after each draw, so that the chain samples the joint law of 50
  rows and all else.
- **Enumeration**: the posterior of eight rows over all partitions, alpha and the hyperparameter by
  quadrature.
- **One step**: alpha, a hyperparameter, partition and 40 rows are drawn from the model; one draw
  must leave their law as it was.

"rest and alpha" is the mean of log alpha times the centred quantile of the weight of all clusters
not yet seen, which is zero. Each comparison has a p-value, corrected for the number of its
statistics, among them the law of K; the level is {LEVEL:g}. *Bias* is what was found, with its
standard error. *Would be found* is a bias of {FOUND:.1f} standard errors, which a test at that
level finds nine times in ten. Both are in percent of the true mean or, where that is near zero, in
standard deviations of the statistic (sd).
"""


def page(results: dict[str, dict[str, Any]]) -> str:
    """Return the text of docs/exactness.md."""
    lines = [_HEAD]
    kinds = {"two": "collapsed Gibbs"}
    for kind, group in groupby(results.items(), lambda item: item[0].split()[0]):
        title = kinds.get(kind, kind if kind != "one" else "one step")
        lines += [
            f"## {title[0].upper() + title[1:]}\n",
            "| case | p-value | statistic | mean | bias | would be found |",
            "|---|---|---|---|---|---|",
        ]
        for _, result in group:
            findings = [Finding(**finding) for finding in result["findings"]]
            shown = [finding for finding in findings if finding.error > 0.0]
            for i, finding in enumerate(shown):
                case = re.sub(r"\('(\w+)', (\d+)\)", r"\1, D = \2", finding.case)
                first = (case, f"{result['p_value']:.2g}") if i == 0 else ("", "")
                lines.append("| " + " | ".join((*first, *_cells(finding))) + " |")
        lines.append("")
    return "\n".join(lines)


def _cells(finding: Finding) -> tuple[str, ...]:
    near_zero = abs(finding.truth) < 0.1 * finding.spread
    scale, unit = (finding.spread, " sd") if near_zero else (abs(finding.truth) / 100.0, " %")
    bias = f"{finding.bias / scale:+.3f} ± {finding.error / scale:.3f}{unit}"
    return (
        finding.statistic,
        f"{finding.truth:.4g}",
        bias,
        f"{finding.detectable / scale:.2g}{unit}",
    )


def main(arguments: list[str]) -> None:
    """Run what the arguments name, by default all, and write the page."""
    if arguments == ["page"]:
        results = json.loads(FINDINGS.read_text())
    else:
        results = run(arguments or comparisons())
    PAGE.write_text(page(results))
    wrong = [name for name, result in results.items() if result["p_value"] <= LEVEL]
    if wrong:
        raise SystemExit(f"not exact: {', '.join(wrong)}")


if __name__ == "__main__":
    main(sys.argv[1:])
