"""What the labels of a mixture are conditioned on, in draws of a trace."""

from collections.abc import Iterable, Iterator

import xarray as xr
from pymc.model import Model

from pymc_dpsplit.variables import MixtureVariables, reader_of_draws
from pymc_dpsplit.variables.reading import Reading


def readings_of(
    posterior: xr.Dataset,
    mixture: MixtureVariables,
    model: Model,
    places: Iterable[tuple[int, ...]],
) -> Iterator[tuple[tuple[int, ...], Reading]]:
    """Read alpha, the hyperparameters and the observations of some draws.

    Parameters
    ----------
    posterior : Dataset
    mixture : MixtureVariables
    model : pymc.Model
    places : iterable of tuple
        Position of chain and draw of each.

    Yields
    ------
    place : tuple of int
    reading : Reading

    Raises
    ------
    ValueError
        If a variable is wanted that is not in the trace.
    """
    reader = reader_of_draws(mixture, model, [str(name) for name in posterior.data_vars])
    columns = {name: posterior[name].to_numpy() for name in reader.inputs}
    for place in places:
        yield place, reader.read({name: column[place] for name, column in columns.items()})
