"""Fourteen real tables under the priors of `from_data`: density of new rows, K, and classes."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pymc as pm
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

import pymc_dpsplit as dps
from benchmarks.data_folder import path_of, why_not
from benchmarks.row import Row

# Tables with more columns are fitted under the chosen prior alone.
_MOST_COLUMNS = 40
_NEW_SHARE = 0.2
_MOST_COMPONENTS = 15
# Predictions need the parameters of all clusters of a draw.
_MOST_CLUSTERS = 100
_CHAINS, _DRAWS = 2, 300
# Of the split too; the rule was chosen with others.
_SEED = 3


class Table(NamedTuple):
    """A file, the key of its rows, whether `y` holds classes, and how many rows are taken."""

    file: str
    key: str = "X"
    has_classes: bool = True
    most_rows: int = 2000


TABLES = {
    "wine": Table("wine.npz"),
    "iris": Table("iris.npz"),
    "wdbc": Table("breast_cancer_wdbc.npz"),
    "wbc": Table("breast_cancer_wbc_original.npz"),
    "vehicle": Table("vehicle.npz"),
    "pima": Table("pima_diabetes.npz"),
    "parkinsons": Table("parkinsons.npz"),
    "soybean": Table("soybean_266.npz"),
    "faithful": Table("old_faithful.csv", has_classes=False),
    "galaxies": Table("galaxies.csv", has_classes=False),
    "gvhd": Table("gvhd_flow.npz", "X_pos", has_classes=False),
    "pbmc68k": Table("pbmc68k_reduced_pca50.npz"),
    "pbmc_facs": Table("pbmc_facs_pca50.npz"),
    "mnist": Table("mnist_pca50.npz", most_rows=1000),
}


class Split(NamedTuple):
    """Rows to fit and new rows, in units of the former, and classes of the former or None."""

    rows: np.ndarray
    new: np.ndarray
    classes: np.ndarray | None


class Fit(NamedTuple):
    """Log densities of the new rows (M,), labels of the others, and a name with K."""

    title: str
    log_density: np.ndarray
    labels: np.ndarray


def _read(path: Path, table: Table) -> tuple[np.ndarray, np.ndarray | None]:
    """Complete rows and their classes."""
    if path.suffix == ".csv":
        rows = np.loadtxt(path, delimiter=",", skiprows=1)
        return (rows[:, :1] if "galaxies" in path.name else rows), None
    with np.load(path) as data:
        rows = data[table.key].astype(np.float64)
        classes = data["y"] if table.has_classes else None
    is_complete = ~np.isnan(rows).any(1)
    return rows[is_complete], None if classes is None else classes[is_complete]


def _split(path: Path, table: Table) -> Split:
    """Some rows at random, a fifth of them new; standardised by the others."""
    rng = np.random.default_rng(_SEED)
    rows, classes = _read(path, table)
    order = rng.permutation(len(rows))[: table.most_rows]
    rows = rows[order]
    # The density of numbers on a lattice is unbounded: any spike on a value is a better one.
    is_whole = (rows == np.rint(rows)).all(0)
    rows = rows + is_whole * rng.uniform(-0.5, 0.5, rows.shape)
    n_new = int(_NEW_SHARE * len(rows))
    fitted = rows[n_new:]
    scaled = (rows - fitted.mean(0)) / fitted.std(0)
    own = None if classes is None else classes[order][n_new:]
    return Split(np.ascontiguousarray(scaled[n_new:]), scaled[:n_new], own)


def _finite_mixtures(split: Split) -> list[Fit]:
    """The mixture of the least BIC, and the variational one."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of starts that have not converged
        candidates = [
            GaussianMixture(k, covariance_type=kind, n_init=2, random_state=_SEED).fit(split.rows)
            for kind in ("full", "tied", "diag", "spherical")
            for k in range(1, _MOST_COMPONENTS + 1)
        ]
        best = min(candidates, key=lambda fit: float(fit.bic(split.rows)))
        variational = BayesianGaussianMixture(
            n_components=_MOST_COMPONENTS, n_init=2, max_iter=500, random_state=_SEED
        ).fit(split.rows)
    for name, fit in (("GaussianMixture", best), ("BayesianGaussianMixture", variational)):
        labels = fit.predict(split.rows)
        title = f"{name} K = {len(np.unique(labels))}"
        kind = f" {best.covariance_type}" if fit is best else ""
        found.append(Fit(title + kind, fit.score_samples(split.new), labels))
    return found


def weak(rows: np.ndarray) -> dps.MvNormal:
    """The fixed rule that `from_data` followed before, and follows without evidence."""
    n_features = rows.shape[1]
    return dps.MvNormal(rows.mean(0), 0.1, n_features + 2.0, np.diag(0.1 * rows.var(0)))


def _mixture(split: Split, component: dps.MvNormal, name: str) -> Fit:
    """`pm.sample` with a sampled alpha, the partition of least expected VI, and `predict`."""
    with pm.Model() as model:
        dps.DPMixture(
            "x",
            pm.Gamma("alpha", 2, 4),
            component,
            observed=split.rows,
            max_clusters=_MOST_CLUSTERS,
        )
        idata = pm.sample(
            _DRAWS,
            tune=_DRAWS,
            chains=_CHAINS,
            cores=1,
            random_seed=_SEED,
            progressbar=False,
            compute_convergence_checks=False,
            dpsplit={"keep_labels": True},
        )
        partition = dps.point_partition(idata, model=model, random_seed=_SEED)
        predicted = dps.predict(idata, split.new, model=model, num_samples=200)
    labels = np.asarray(partition.labels)
    clusters = float(idata["posterior"]["x_n_clusters"].mean())
    title = f"{name} K = {len(np.unique(labels))}, E[K] = {clusters:.1f}"
    return Fit(title, predicted["log_predictive_density"].to_numpy(), labels)


def _said(fit: Fit, classes: np.ndarray | None) -> str:
    agreement = ""
    if classes is not None:
        ari = adjusted_rand_score(classes, fit.labels)
        nmi = normalized_mutual_info_score(classes, fit.labels)
        agreement = f", ARI {ari:.2f}, NMI {nmi:.2f}"
    return f"{fit.title}, density {fit.log_density.mean():.2f}{agreement}"


def _row(name: str, split: Split) -> Row:
    rivals = _finite_mixtures(split)
    ours = _mixture(split, dps.MvNormal.from_data(split.rows), "from_data")
    fits = [ours]
    if split.rows.shape[1] <= _MOST_COLUMNS:
        fits.append(_mixture(split, weak(split.rows), "fixed rule"))
    best = max(rivals, key=lambda fit: float(fit.log_density.mean()))
    gain = ours.log_density - best.log_density
    error = float(gain.std() / np.sqrt(len(gain)))
    notes = [_said(fit, split.classes) for fit in fits]
    classes = "" if split.classes is None else f"{len(np.unique(split.classes))} classes; "
    return Row(
        name=f"{name}, {len(split.rows)} x {split.rows.shape[1]}",
        measured=float(gain.mean()),
        unit="nats",
        must=-error,
        aim=0.0,
        rivals="; ".join(_said(fit, split.classes) for fit in rivals),
        note=f"{classes}standard error {error:.2f}; {'; '.join(notes)}",
    )


def run() -> Iterator[Row]:
    """Table by table."""
    for name, table in TABLES.items():
        path = path_of(table.file)
        if path is None:
            yield Row(name=name, measured=None, note=why_not(table.file))
            continue
        yield _row(name, _split(path, table))
