"""Classes of seven UCI data sets recovered by MAP-DPM, DP-means and the sampler (Raykov 2014)."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import arviz as az
import numpy as np
import pymc as pm
from sklearn.metrics import normalized_mutual_info_score

import pymc_dpsplit as dps
from benchmarks.map_dpm import best_alpha
from benchmarks.row import Row

FOLDER_VARIABLE = "DPSPLIT_UCI"
_ALPHAS = np.geomspace(0.1, 100.0, 13)
_RESTARTS = 20
_PENALTIES = 100  # tried between one cluster and many
_CHAINS, _DRAWS = 4, 500


class Published(NamedTuple):
    """NMI of the paper's table 2, and sweeps of its table 3."""

    file: str
    dp_means: float
    gibbs: str
    map_dpm: float
    sweeps: int


PUBLISHED = {
    "wine": Published("wine", 0.42, "0.72 (0.06)", 0.86, 11),
    "iris": Published("iris", 0.76, "0.75 (0.06)", 0.76, 5),
    "breast cancer": Published("breast_cancer_wbc_original", 0.75, "0.70 (0.01)", 0.71, 8),
    "soybean": Published("soybean_266", 0.36, "0.49 (0.00)", 0.40, 9),
    "parkinsons": Published("parkinsons", 0.02, "0.13 (0.02)", 0.12, 13),
    "pima": Published("pima_diabetes", 0.03, "0.07 (0.01)", 0.07, 17),
    "vehicle": Published("vehicle", 0.21, "0.15 (0.02)", 0.15, 9),
}


def _load(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Complete rows, columns that vary, and classes."""
    with np.load(path) as data:
        rows, classes = data["X"].astype(np.float64), data["y"]
    is_complete = ~np.isnan(rows).any(1)
    rows, classes = rows[is_complete], classes[is_complete]
    return np.ascontiguousarray(rows[:, np.ptp(rows, axis=0) > 0.0]), classes


def _nmi(classes: np.ndarray, labels: np.ndarray) -> float:
    return float(normalized_mutual_info_score(classes, labels))


def _dp_means(name: str, rows: np.ndarray, classes: np.ndarray) -> Row:
    """With a penalty that gives as many clusters as there are classes, or nearly."""
    wanted = len(np.unique(classes))
    highest = dps.dp_means_penalty(rows, 1)
    found = [
        dps.dp_means(rows, penalty, n_restarts=1)
        for penalty in highest * np.geomspace(1.0, 1e-4, _PENALTIES)
    ]
    gaps = np.array([abs(one.n_clusters - wanted) for one in found])
    nearest = np.flatnonzero(gaps == gaps.min())
    chosen = found[nearest[len(nearest) // 2]]
    return Row(
        name=f"{name}: DP-means",
        measured=_nmi(classes, chosen.labels),
        rivals=f"published {PUBLISHED[name].dp_means}",
        note=f"K = {chosen.n_clusters}, {wanted} classes",
    )


def _from_random_labels(name: str, rows: np.ndarray, classes: np.ndarray) -> Row:
    """The published algorithm from as many clusters as there are classes, drawn at random."""
    rng, n_classes = np.random.default_rng(1), len(np.unique(classes))
    modes = []
    for _ in range(_RESTARTS):
        start = np.unique(rng.integers(n_classes, size=len(rows)), return_inverse=True)[1]
        modes.append(best_alpha(start, rows, _component_of(rows), _ALPHAS))
    agreement = np.array([_nmi(classes, mode.labels) for mode in modes])
    n_clusters = [int(mode.labels.max()) + 1 for mode in modes]
    sweeps = np.mean([mode.n_sweeps for mode in modes])
    highest = int(np.argmax([mode.log_joint for mode in modes]))
    return Row(
        name=f"{name}: MAP-DPM, random labels",
        measured=float(agreement.mean()),
        rivals=f"published {PUBLISHED[name].map_dpm}, {PUBLISHED[name].sweeps} sweeps",
        note=f"{_RESTARTS} starts with {n_classes} clusters: {agreement.min():.2f} to "
        f"{agreement.max():.2f}, median {np.median(agreement):.2f}, "
        f"{agreement[highest]:.2f} at the highest log joint, {modes[highest].log_joint:.1f}; "
        f"K = {min(n_clusters)} to {max(n_clusters)}; {sweeps:.1f} sweeps",
    )


def _map_dpm(name: str, model: pm.Model, classes: np.ndarray, n_restarts: int) -> tuple[Row, Any]:
    with model:
        found = dps.find_map(alpha=_ALPHAS, n_restarts=n_restarts, random_seed=1)
    starts = "one start" if n_restarts == 1 else f"best of {n_restarts} starts"
    row = Row(
        name=f"{name}: MAP-DPM, {starts}",
        measured=_nmi(classes, found.labels),
        rivals=f"published {PUBLISHED[name].map_dpm}, {PUBLISHED[name].sweeps} sweeps",
        note=f"K = {found.n_clusters}, alpha = {found.alpha:.2g}, log joint {found.log_joint:.1f}, "
        f"{found.n_iterations} sweeps",
    )
    return row, found


def _least_binder(labels: np.ndarray) -> np.ndarray:
    """The draw (N,) of labels (S, N) with the least expected Binder loss."""
    together = [one[:, None] == one for one in labels]
    mean = sum(np.asarray(one, np.float32) for one in together) / len(labels)
    losses = [float(np.square(one - mean).sum()) for one in together]
    return labels[int(np.argmin(losses))]


def _sampler(name: str, model: pm.Model, classes: np.ndarray, alpha: float) -> Row:
    """Mean over draws, as published, and the partition that represents them."""
    with model:
        idata = pm.sample(
            _DRAWS,
            tune=_DRAWS,
            chains=_CHAINS,
            cores=1,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
            dpsplit={"keep_labels": True},
        )
    stats = idata["sample_stats"]
    labels = stats["x_labels"].to_numpy()[:, ::2].reshape(-1, len(classes))
    agreement = np.array([_nmi(classes, one) for one in labels])
    r_hat = float(az.rhat(stats["x_log_joint"]))
    clusters = float(idata["posterior"]["x_n_clusters"].mean())
    return Row(
        name=f"{name}: sampler",
        measured=float(agreement.mean()),
        rivals=f"published {PUBLISHED[name].gibbs} (Gibbs)",
        note=f"two standard deviations {2.0 * agreement.std():.2f}; of the draw of least expected "
        f"Binder loss {_nmi(classes, _least_binder(labels)):.2f}; E[K] = {clusters:.1f}, "
        f"alpha = {alpha:.2g}, highest log joint {float(stats['x_log_joint'].max()):.1f}, "
        f"R-hat {r_hat:.2f}",
    )


def _component_of(rows: np.ndarray) -> Any:
    """The paper's prior: centred on the data, and as wide."""
    return dps.DiagNormal(rows.mean(0), 10.0 / len(rows), 1.0, rows.var(0))


def _model_of(rows: np.ndarray, alpha: float) -> pm.Model:
    with pm.Model() as model:
        dps.DPMixture("x", alpha, _component_of(rows), observed=rows)
    return model


def run() -> Iterator[Row]:
    """Data set by data set."""
    folder = os.environ.get(FOLDER_VARIABLE)
    for name, published in PUBLISHED.items():
        path = None if folder is None else Path(folder) / f"{published.file}.npz"
        if path is None or not path.exists():
            where = f"the folder in {FOLDER_VARIABLE} holds no {published.file}.npz with X and y"
            yield Row(name=name, measured=None, note=where)
            continue
        rows, classes = _load(path)
        yield _dp_means(name, rows, classes)
        model = _model_of(rows, 1.0)
        yield _map_dpm(name, model, classes, 1)[0]
        yield _from_random_labels(name, rows, classes)
        row, found = _map_dpm(name, model, classes, _RESTARTS)
        yield row
        yield _sampler(name, _model_of(rows, found.alpha), classes, found.alpha)
