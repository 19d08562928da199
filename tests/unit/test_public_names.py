"""Public names: all are there, and what reads a trace is imported when it is first used."""

import subprocess
import sys

import pymc as pm
import pytest

import pymc_dpsplit as dps


@pytest.mark.parametrize("name", dps.__all__)
def test_public_name_is_found(name: str) -> None:
    assert getattr(dps, name).__name__ == name
    assert name in dir(dps)


COMMON = {"from_data", "hyperparameters", "parameters"}
LISTED = [
    (dps.Normal(0.0, 0.1, 2.0, 1.0), COMMON),
    (dps.Poisson(1.0, 1.0), COMMON),
    (dps.Product(visits=dps.Poisson(1.0, 1.0)), COMMON | {"categories", "columns", "families"}),
]


@pytest.mark.parametrize(("component", "listed"), LISTED)
def test_components_list_what_users_call(component: dps.Normal, listed: set[str]) -> None:
    assert {name for name in dir(component) if not name.startswith("_")} == listed
    assert all(hasattr(component, name) for name in dir(component))
    # The interface for samplers is there, and not listed.
    assert component.row_ndim in (0, 1)


def test_a_component_of_pymc_lists_no_from_data() -> None:
    component = dps.Component(pm.StudentT, nu=4, mu=pm.Normal.dist(), sigma=1.0)
    listed = {name for name in dir(component) if not name.startswith("_")}
    assert listed == {"hyperparameters", "parameters"}


def test_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Norma'"):
        dps.Norma  # noqa: B018


def loaded_by(program: str) -> set[str]:
    """Modules that a new process has after it has run a program."""
    program = f"{program}; import sys; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_import_loads_little() -> None:
    ours = loaded_by("import pymc_dpsplit") - loaded_by("import pymc")
    assert {name.split(".")[0] for name in ours} == {"pymc_dpsplit"}
    assert not any(name.startswith("pymc_dpsplit.kernels") for name in ours)


def test_a_mixture_loads_no_more_than_sampling_needs() -> None:
    ours = loaded_by("import pymc_dpsplit; pymc_dpsplit.DPMixture, pymc_dpsplit.DPSplitMerge")
    assert "pymc_dpsplit.mixture" in ours
    assert not any(name.startswith("pymc_dpsplit.posterior") for name in ours)
    slow = {
        "arviz_stats",
        "arviz_plots",
        "matplotlib",
        "scipy.stats",
        "scipy.special",
        "xarray",
        "pandas",
        "zarr",
    }
    assert slow.isdisjoint(ours - loaded_by("import pymc"))


@pytest.mark.parametrize("first", ["pymc_dpsplit", "pymc.backends.zarr"])
def test_traces_in_zarr_leave_out_what_is_too_large_too(first: str) -> None:
    program = (
        f"import {first}, pymc_dpsplit; from pymc.backends import arviz, zarr;"
        "print(zarr.find_observations is arviz.find_observations,"
        "zarr.find_observations.__wrapped__.__module__)"
    )
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert found == "True pymc.backends.arviz\n"
