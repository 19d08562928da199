"""Reading what the chain of a mixture needs off a point of PyMC, or off a stored draw."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from pymc.model import Model
from pymc.pytensorf import compile as compile_function
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors, explicit_graph_inputs, walk

from pymc_dpsplit.components.arguments import rows_of
from pymc_dpsplit.data.fixed_rows import FixedRows, fixed
from pymc_dpsplit.variables.lookup import MixtureVariables
from pymc_dpsplit.variables.observed import values_of

# Random points at which alpha and the hyperparameters are tried before sampling, and how many may
# fail: matrices that are positive definite by construction may still be singular by rounding.
_N_PROBES, _PROBE_SPREAD, _MOST_FAULTS = 32, 1.0, 3


class Reading(NamedTuple):
    """What the chain is conditioned on.

    Attributes
    ----------
    alpha : float
    values : dict
        Hyperparameters, checked; the same object in every reading if they cannot change.
    rows : ndarray of float64 or float32, shape (N, D)
        Observations, complete; not to be written to.
    """

    alpha: float
    values: dict[str, np.ndarray]
    rows: np.ndarray


class Reader:
    """Compiled functions from values of variables to a `Reading`.

    Parameters
    ----------
    mixture : MixtureVariables
    outputs : sequence of TensorVariable
        Alpha, the hyperparameters and the observations.
    inputs : sequence of TensorVariable
        All that `outputs` depend on, besides shared variables.
    compile_kwargs : dict
    """

    def __init__(
        self,
        mixture: MixtureVariables,
        outputs: Sequence[Variable],
        inputs: Sequence[Variable],
        compile_kwargs: dict[str, Any],
    ) -> None:
        self._mixture = mixture
        *numbers, data = outputs
        self._fixed_rows: np.ndarray | None = None
        if not _depend(data, inputs):
            values = values_of(data)
            rows = self._checked(values)
            # The array of the graph itself where it will do: pickled with it, it is pickled once.
            is_same = isinstance(values, FixedRows) and values.ndim == rows.ndim
            self._fixed_rows = values if is_same else fixed(rows)
            outputs = numbers
        # What does not move is evaluated once: most models fix all but alpha.
        self._moving = [at for at, output in enumerate(outputs) if _depend(output, inputs)]
        self._outputs: list[Any] = [
            None if at in self._moving else output.eval() for at, output in enumerate(outputs)
        ]
        self._fixed_values: dict[str, np.ndarray] | None = None
        if all(at in (0, len(numbers)) for at in self._moving):
            self._fixed_values = self._checked_values(self._outputs[1 : len(numbers)])
        options = {"on_unused_input": "ignore", "trust_input": True, **compile_kwargs}
        moving = [outputs[at] for at in self._moving]
        self._function = compile_function(list(inputs), moving, **options) if moving else None
        self._names = [str(variable.name) for variable in inputs]

    @property
    def rows_are_fixed(self) -> bool:
        """Whether the observations are the same in every draw."""
        return self._fixed_rows is not None

    @property
    def inputs(self) -> list[str]:
        """Names of the values that `read` looks up."""
        return self._names

    def read(self, values: Mapping[str, np.ndarray]) -> Reading:
        """Evaluate at the values of a point or draw.

        Parameters
        ----------
        values : mapping
            Name to ndarray.

        Returns
        -------
        Reading

        Raises
        ------
        ValueError
            If alpha, a hyperparameter or an observation is out of range.
        """
        outputs = list(self._outputs)
        if self._function is not None:
            moved = self._function(*(values[name] for name in self._names))
            for at, value in zip(self._moving, moved, strict=True):
                outputs[at] = value
        alpha, *rest = outputs
        name = self._mixture.name
        if not (np.isfinite(alpha) and alpha > 0):
            raise ValueError(
                f"{name}: alpha is {float(alpha):g} at a point that its prior allows; give it a "
                "prior on the positive numbers, for instance pm.Gamma or pm.HalfNormal."
            )
        checked = self._fixed_values
        if checked is None:
            checked = self._checked_values(rest[: len(self._mixture.hyperparameters)])
        rows = self._checked(rest[-1]) if self._fixed_rows is None else self._fixed_rows
        return Reading(float(alpha), checked, rows)

    def _checked_values(self, numbers: Sequence[Any]) -> dict[str, np.ndarray]:
        mixture = self._mixture
        hyperparameters = dict(zip(mixture.hyperparameters, numbers, strict=True))
        try:
            return mixture.component.check(hyperparameters, mixture.n_features)
        except ValueError as error:
            raise ValueError(f"{mixture.name}: {error}") from None

    def _checked(self, data: np.ndarray) -> np.ndarray:
        mixture = self._mixture
        try:
            rows = rows_of(data, mixture.component.row_ndim)
        except ValueError as error:
            raise ValueError(f"{mixture.name}: {error}") from None
        if rows.shape[1] != mixture.n_features:
            raise ValueError(
                f"{mixture.name}: observed has {rows.shape[1]} features but was declared with "
                f"{mixture.n_features}; declare the mixture anew."
            )
        self._refuse_unsuited(rows)
        n_labels = mixture.measure["labels"].type.shape[0] if mixture.is_labelled else len(rows)
        if len(rows) != n_labels:
            raise ValueError(
                f"{mixture.name}: observed has {len(rows)} rows but was declared with {n_labels}, "
                "each of which has a label; declare the mixture anew."
            )
        return rows

    def _refuse_unsuited(self, rows: np.ndarray) -> None:
        """Refuse new data outside the support of the family; incomplete ones never are new."""
        mixture = self._mixture
        if mixture.unobserved is not None:
            return
        try:
            mixture.component.suited_to(rows)
        except ValueError as error:
            raise ValueError(f"{mixture.name}: {error}") from None


def _depend(output: Variable, inputs: Sequence[Variable]) -> bool:
    return bool(set(inputs).intersection(ancestors([output], blockers=inputs)))


def _wanted(mixture: MixtureVariables) -> list[Variable]:
    return [mixture.alpha, *mixture.hyperparameters.values(), mixture.data]


def reader_of_points(
    mixture: MixtureVariables, model: Model, compile_kwargs: dict[str, Any]
) -> Reader:
    """Reader of points, whose entries are values: transformed where the model says so.

    Parameters
    ----------
    mixture : MixtureVariables
    model : pymc.Model
    compile_kwargs : dict

    Returns
    -------
    Reader
    """
    outputs = model.replace_rvs_by_values(_wanted(mixture))
    values = set(model.value_vars)
    inputs = [var for var in explicit_graph_inputs(outputs) if var in values]
    return Reader(mixture, outputs, inputs, compile_kwargs)


def reader_of_draws(mixture: MixtureVariables, model: Model, recorded: Sequence[str]) -> Reader:
    """Reader of draws, whose entries are the variables themselves.

    Parameters
    ----------
    mixture : MixtureVariables
    model : pymc.Model
    recorded : sequence of str
        Names of the variables in the trace.

    Returns
    -------
    Reader

    Raises
    ------
    ValueError
        If a variable is wanted that is not in the trace.
    """
    known = {model.named_vars[name] for name in recorded if name in model.named_vars}
    inputs: list[Variable] = []

    def expand(variable: Any) -> Any:
        if variable in known:
            inputs.append(variable)
            return None
        if variable in model.basic_RVs:
            raise ValueError(
                f"the posterior group holds no {variable.name}, on which {mixture.name} depends; "
                "give the trace of this model, sampled without var_names=."
            )
        return variable.owner.inputs if variable.owner else None

    outputs = _wanted(mixture)
    list(walk(outputs, expand))
    return Reader(mixture, outputs, inputs, {})


def refuse_impossible(reader: Reader, model: Model, point: Mapping[str, np.ndarray]) -> None:
    """Refuse priors that allow values out of range, by trying values around the origin.

    A step method such as NUTS moves freely on the scale of a point, so what can be reached there
    will be reached.

    Parameters
    ----------
    reader : Reader
        Of points.
    model : pymc.Model
    point : mapping
        The initial point.

    Raises
    ------
    ValueError
        If more than a few of the values tried are out of range.
    """
    rng = np.random.default_rng(0)
    faults = []
    for _ in range(_N_PROBES):
        tried = dict(point)
        for name in reader.inputs:
            value = np.asarray(point[name])
            if value.dtype.kind == "f":
                tried[name] = rng.normal(0.0, _PROBE_SPREAD, value.shape).astype(value.dtype)
        try:
            reader.read(tried)
        except ValueError as error:
            faults.append((error, tried))
    if len(faults) <= _MOST_FAULTS:
        return
    # Without its transform a variable leaves the support of its prior, which refuses that itself.
    values = {str(value.name): value for value in model.value_vars}
    variables = [model.values_to_rvs[values[name]] for name in reader.inputs]
    log_prior = model.compile_logp(vars=[rv for rv in variables if rv in model.free_RVs])
    allowed = [error for error, tried in faults if np.isfinite(log_prior(tried))]
    if len(allowed) > _MOST_FAULTS:
        raise allowed[0]
