"""The demo: real data through `pm.sample`, to a summary, a verdict, a trace and figures."""

import os
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import arviz as az
import numpy as np
import pymc as pm
import xarray as xr
from matplotlib.figure import Figure

import pymc_dpsplit as dps

_SEED = 20_260
_CHAINS = 4


@dataclass(frozen=True)
class DataSet:
    """Data that ship with the package; ``data/README.md`` there names the sources.

    Attributes
    ----------
    file : str
        Name of the csv file, with one header row.
    title : str
        What the data are.
    scale : float
        By what the numbers of the file are divided.
    component : type
        Family of the clusters.
    """

    file: str
    title: str
    scale: float
    component: Any

    def load(self) -> tuple[np.ndarray, list[str]]:
        """Return the data (N, D), or (N,) if there is one column, and the names of columns."""
        text = (files("pymc_dpsplit") / "data" / self.file).read_text(encoding="ascii")
        header, *rows = text.splitlines()
        return np.loadtxt(rows, delimiter=",") / self.scale, header.split(",")


DATA_SETS = {
    "faithful": DataSet(
        "old_faithful.csv",
        "Old Faithful geyser: minutes of eruption and of waiting (Azzalini and Bowman 1990)",
        1.0,
        dps.MvNormal,
    ),
    "galaxies": DataSet(
        "galaxies.csv",
        "Velocities of galaxies in 1000 km/s (Postman, Huchra and Geller 1986; Roeder 1990)",
        1000.0,
        dps.Normal,
    ),
}


def run(data: str, draws: int, out: Path) -> None:
    """Fit a data set, print what was found and write it to a folder.

    Parameters
    ----------
    data : str
        Key of `DATA_SETS`.
    draws : int
        Draws per chain, after as many of tuning.
    out : Path
        Folder to write to; made if needed.
    """
    out.mkdir(parents=True, exist_ok=True)
    observed, columns = DATA_SETS[data].load()
    print(f"{DATA_SETS[data].title}: {' x '.join(map(str, observed.shape))}", flush=True)
    model = build(observed, columns, DATA_SETS[data].component)
    with model:
        settings: Any = {"chains": _CHAINS, "cores": _cores(), "random_seed": _SEED}
        # Recorded labels need not be drawn from the trace, by kernels that take seconds to compile.
        idata = pm.sample(draws=draws, tune=draws, dpsplit={"keep_labels": True}, **settings)
    labels = dps.sample_labels(idata, model=model, random_seed=_SEED)
    report(idata)
    trace = out / f"{data}.nc"
    idata.to_netcdf(trace)
    written = [trace, *write_figures(idata, labels, out, data)]
    print(f"\nWritten to {out.resolve()}: " + ", ".join(path.name for path in written))


def _cores() -> int:
    """Return how many chains to run at once; PyMC's default leaves half the cores idle."""
    return min(_CHAINS, os.cpu_count() or 1)


def build(observed: np.ndarray, columns: list[str], component: Any) -> pm.Model:
    """Declare the mixture.

    Parameters
    ----------
    observed : ndarray, shape (N, D) or (N,)
    columns : list of str
        Names of the D features.
    component : type
        Family of the clusters.

    Returns
    -------
    pymc.Model
    """
    coords = {"obs_id": np.arange(len(observed)), "feature": columns}
    with pm.Model(coords=coords) as model:
        alpha = pm.Gamma("alpha", 2, 4)
        dps.DPMixture(
            "x",
            alpha=alpha,
            component=component.from_data(observed),
            observed=observed,
            dims=("obs_id", "feature")[: observed.ndim],
        )
    return model


def report(idata: xr.DataTree) -> None:
    """Print the ArviZ summary of what does not depend on cluster numbering, and the verdict.

    Parameters
    ----------
    idata : DataTree
        As returned by `pm.sample`.
    """
    print("\nposterior")
    print(az.summary(idata, var_names=["alpha", "x_n_clusters", "x_new_weight"]))
    print("\nsample_stats")
    print(az.summary(idata, group="sample_stats", var_names=["x_entropy", "x_log_joint"]))
    print(f"\n{dps.diagnose(idata)}")


def write_figures(idata: xr.DataTree, labels: xr.DataArray, out: Path, data: str) -> list[Path]:
    """Write the figures as PNG.

    Parameters
    ----------
    idata : DataTree
        As returned by `pm.sample`.
    labels : DataArray, shape (chain, draw, obs)
        From `sample_labels`.
    out : Path
        Folder to write to.
    data : str
        What file names start with.

    Returns
    -------
    list of Path
    """
    figures = {name: Figure(layout="constrained") for name in ("density", "clusters", "similarity")}
    dps.plot_density(idata, ax=figures["density"].subplots())
    dps.plot_n_clusters(idata, ax=figures["clusters"].subplots())
    dps.plot_similarity(dps.similarity_matrix(labels), ax=figures["similarity"].subplots())
    figures["trace"] = trace_figure(idata)
    written = []
    for name, figure in figures.items():
        written.append(out / f"{data}_{name}.png")
        figure.savefig(written[-1], dpi=150)
    return written


def trace_figure(idata: xr.DataTree) -> Figure:
    """Draw the path of every chain, in what does not depend on cluster numbering.

    Parameters
    ----------
    idata : DataTree
        As returned by `pm.sample`.

    Returns
    -------
    matplotlib Figure
    """
    shown = {"alpha": "posterior", "x_n_clusters": "posterior"}
    shown |= {"x_log_joint": "sample_stats", "x_entropy": "sample_stats"}
    figure = Figure(figsize=(8, 8), layout="constrained")
    rows = figure.subplots(len(shown), 1, sharex=True)
    for ax, (name, group) in zip(rows, shown.items(), strict=True):
        for chain in idata[group][name].transpose("chain", "draw"):
            ax.plot(chain["draw"], chain, linewidth=0.4, label=f"chain {int(chain['chain'])}")
        ax.set_ylabel(name)
    rows[-1].set_xlabel("draw")
    handles, names = rows[0].get_legend_handles_labels()
    legend = figure.legend(handles, names, loc="outside upper center", ncols=len(names))
    for line in legend.get_lines():
        line.set_linewidth(2.0)
    return figure
