"""Rows of a product whose responses are unknown: profiles, with the covariates of a regression.

docs/method.md, eqs. (11.14) and (11.15).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from pymc.model import Model

from pymc_dpsplit.components.arguments import array_of, is_integer
from pymc_dpsplit.components.columns import is_table, names_of
from pymc_dpsplit.components.independent_parts import IndependentParts
from pymc_dpsplit.components.linear_regression.family import LinearRegression
from pymc_dpsplit.components.parts import Part
from pymc_dpsplit.data.blocks import column_centres
from pymc_dpsplit.moves.patterns import patterns_of
from pymc_dpsplit.posterior.prediction.new_rows import NewRows, read_new
from pymc_dpsplit.posterior.prediction.row_masses import Group, masses_of
from pymc_dpsplit.posterior.trace.draws import MixtureDraw
from pymc_dpsplit.variables import MixtureVariables


class Profiles(NamedTuple):
    """Rows whose responses are to be predicted.

    Attributes
    ----------
    regression : LinearRegression
        The family of the responses to the covariates of the rows.
    part : Part
        The same in the product.
    rows : NewRows
        The rows without covariates and responses.
    patterns : list of tuple
        For each pattern of missing entries the features present, the indices of its rows, and all
        rows (M, D).
    """

    regression: LinearRegression
    part: Part
    rows: NewRows
    patterns: list[Group]

    def log_masses(self, draw: MixtureDraw) -> np.ndarray:
        """Return the log masses (K + 1, M) of a draw at the rows."""
        log_masses = np.empty((len(draw.weights) + 1, len(self.rows.values)))
        centre = column_centres(draw.rows)
        for where, masses in masses_of(draw, self.rows.component, self.patterns, centre):
            log_masses[:, where] = masses
        return log_masses

    def of_regression(self, draw: MixtureDraw) -> MixtureDraw:
        """Return a draw of the regression alone."""
        family = self.part.family
        return draw._replace(
            parameters=self.part.own(draw.parameters, family.parameters),
            values=self.part.own(draw.values, family.hyperparameter_ndims()),
        )


def regressions_in(component: Any) -> list[str]:
    """Return the names of the parts of a product that are regressions."""
    families = component.families if isinstance(component, IndependentParts) else {}
    return [name for name, of in families.items() if isinstance(of, LinearRegression)]


def number_of_rows(covariates: Any) -> int:
    """Return the number of rows of a frame, an array, or a dict of columns."""
    is_columns = isinstance(covariates, Mapping)
    return len(next(iter(covariates.values())) if is_columns else covariates)


def read_profiles(given: Any, mixture: MixtureVariables, model: Model) -> Profiles:
    """Check rows of a product without their responses.

    Parameters
    ----------
    given : frame, mapping or array-like, shape (M, D - 1)
        Columns of the data by name, of which the response is not read; or an array of all columns
        but the response, in their order.
    mixture : MixtureVariables
        Of a product with one regression.
    model : pymc.Model

    Returns
    -------
    Profiles

    Raises
    ------
    ValueError
        With one sentence that names the fault and the remedy.
    """
    component: Any = mixture.component
    names = regressions_in(component)
    if len(names) > 1:
        raise ValueError(
            f"covariates are given, but {mixture.name} has {len(names)} regressions, "
            f"{' and '.join(map(repr, names))}, of which one could be predicted; give new rows, "
            "with missing responses."
        )
    (name,) = names
    family, at = component.families[name], component.columns_in_data(mixture.n_features)[name]
    table = _without_response(given, component.columns, name, at[-1], mixture.n_features)
    try:
        rows = read_new(table, mixture, model, None)
        x = np.asarray(component.read_table(table)[1], np.float64)[:, at[:-1]]
        regression = family.with_covariates(x, None)
    except ValueError as error:
        # The checks are those of new rows and of `observed`, whose names are in their messages.
        message = str(error).replace("observed has", "covariates have")
        raise ValueError(message.replace("new has", "covariates have")) from None
    values = rows.values
    patterns = [(present, where, values) for present, where in patterns_of(np.isnan(values))]
    return Profiles(regression, Part(name, family, 0, 0), rows, patterns)


def _without_response(given: Any, columns: Any, name: str, at: int, n_features: int) -> Any:
    """Return rows of all columns, in which the response is missing."""
    keys = [] if columns is None else [key for of in columns.values() for key in of]
    dims: Any = getattr(given, "dims", ())
    if len(dims) == 2 and dims[1] in given.coords:
        given = dict(zip(given.coords[dims[1]].values.tolist(), given.to_numpy().T, strict=True))
    if is_table(given) and keys and not all(is_integer(key) for key in keys):
        response, known = columns[name][-1], names_of(given)
        absent = [key for key in keys if key not in known and key != response]
        if absent:
            raise ValueError(
                f"covariates have no column {absent[0]!r}, which the model has; give a frame with "
                f"the columns {[key for key in keys if key != response]}."
            )
        table = {key: given[key] for key in keys if key != response}
        return {key: table.get(key, np.full(number_of_rows(given), np.nan)) for key in keys}
    array, _ = array_of(given)
    array = np.asarray(array)
    if array.ndim != 2 or array.shape[1] != n_features - 1:
        raise ValueError(
            f"covariates have shape {array.shape}, but the data have {n_features - 1} columns "
            f"beside the response; give shape (M, {n_features - 1})."
        )
    return np.insert(array.astype(np.float64), at, np.nan, axis=1)
