"""What `predict` averages, draw by draw."""

from typing import Any

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_dpsplit as dps
from pymc_dpsplit.posterior.prediction import predict as predict_module
from pymc_dpsplit.posterior.prediction.running_average import RunningAverage


class _Recorded(RunningAverage):
    """Keeps the parts of each draw: density, that of a new cluster and of reference clusters."""

    def __init__(self, n_rows: int, n_reference: int) -> None:
        super().__init__(n_rows, n_reference)
        self.parts: dict[int, list[np.ndarray]] = {i: [] for i in range(n_rows)}

    def add(
        self, where: np.ndarray, log_mass: np.ndarray, n_recorded: int, shares: np.ndarray
    ) -> None:
        super().add(where, log_mass, n_recorded, shares)
        mass = np.exp(log_mass)
        total = mass[:n_recorded].sum(0) + mass[-1]
        shared = mass[:-1].T @ shares
        for j, i in enumerate(where):
            self.parts[i].append(np.array([total[j], mass[-1, j], *shared[j]]))


def predicted_parts(
    idata: xr.DataTree,
    new: np.ndarray,
    model: pm.Model,
    reference: np.ndarray,
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[xr.Dataset, np.ndarray]:
    """The prediction of new rows, and the parts that it averages: (row, chain, draw, 2 + R)."""
    kept: list[_Recorded] = []

    def recorded(*arguments: Any) -> _Recorded:
        kept.append(_Recorded(*arguments))
        return kept[0]

    monkeypatch.setattr(predict_module, "RunningAverage", recorded)
    found = dps.predict(idata, new, model=model, partition=reference, random_seed=2)
    shape = [idata["posterior"].sizes[dim] for dim in ("chain", "draw")]
    every = [np.reshape(parts, (*shape, -1)) for parts in kept[0].parts.values()]
    return found, np.array(every)
