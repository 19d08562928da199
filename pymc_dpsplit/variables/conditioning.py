"""Evaluation of law, hyperparameters and observations at a point of PyMC or a stored draw."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from pymc.model import Model
from pymc.pytensorf import compile as compile_function
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors, explicit_graph_inputs, walk

from pymc_dpsplit.components.arguments import rows_of
from pymc_dpsplit.data.fixed_rows import FixedRows, fixed
from pymc_dpsplit.data.sparse_rows import Rows, SparseRows
from pymc_dpsplit.moves.partition_law import PartitionLaw
from pymc_dpsplit.variables.law import checked_law
from pymc_dpsplit.variables.lookup import MixtureVariables
from pymc_dpsplit.variables.observed import values_of

# Number and spread of random points at which the law and the hyperparameters are checked before
# sampling, and number of failures allowed: positive definite matrices may be singular by rounding.
_N_PROBES, _PROBE_SPREAD, _MOST_FAULTS = 32, 1.0, 3


class Conditioning(NamedTuple):
    """Values that the step of a mixture conditions on.

    Attributes
    ----------
    law : PartitionLaw
    values : dict
        Checked hyperparameters; always the same object if they cannot change.
    rows : SparseRows, or ndarray of float64 or float32, shape (N, D)
        Observations without missing entries; must not be modified.
    """

    law: PartitionLaw
    values: dict[str, np.ndarray]
    rows: Any


class PointEvaluator:
    """Compiled functions from values of variables to a `Conditioning`.

    Parameters
    ----------
    mixture : MixtureVariables
    outputs : sequence of TensorVariable
        Discount and strength, the hyperparameters and the observations.
    inputs : sequence of TensorVariable
        Variables that `outputs` depend on, except shared variables.
    compile_kwargs : dict
        Options of `pymc.pytensorf.compile`.
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
        self._fixed_rows: Rows | None = None
        if not _depend(data, inputs):
            self._fixed_rows = self._fixed(values_of(data))
            outputs = numbers
        # Constant outputs are evaluated once: in most models only the strength varies.
        self._moving = [at for at, output in enumerate(outputs) if _depend(output, inputs)]
        self._outputs: list[Any] = [
            None if at in self._moving else output.eval() for at, output in enumerate(outputs)
        ]
        self._fixed_values: dict[str, np.ndarray] | None = None
        if all(at in (0, 1, len(numbers)) for at in self._moving):
            self._fixed_values = self._checked_values(self._outputs[2 : len(numbers)])
        options = {"on_unused_input": "ignore", "trust_input": True, **compile_kwargs}
        moving = [outputs[at] for at in self._moving]
        self._function = compile_function(list(inputs), moving, **options) if moving else None
        self._names = [str(variable.name) for variable in inputs]
        # If nothing varies, it is read once, in the first draw.
        self._unvarying: Conditioning | None = None

    @property
    def rows_are_fixed(self) -> bool:
        """Return whether the observations are the same in every draw."""
        return self._fixed_rows is not None

    @property
    def inputs(self) -> list[str]:
        """Return the names of the values that `read` looks up."""
        return self._names

    def read(self, values: Mapping[str, np.ndarray]) -> Conditioning:
        """Evaluate the outputs at a point or draw.

        Parameters
        ----------
        values : mapping
            Name to ndarray.

        Returns
        -------
        Conditioning

        Raises
        ------
        ValueError
            If the law, a hyperparameter or an observation is out of range.
        """
        if self._unvarying is not None:
            return self._unvarying
        outputs = list(self._outputs)
        if self._function is not None:
            moved = self._function(*(values[name] for name in self._names))
            for at, value in zip(self._moving, moved, strict=True):
                outputs[at] = value
        discount, strength, *rest = outputs
        with faults_of(self._mixture.name):
            varies = not {0, 1}.isdisjoint(self._moving)
            law = checked_law(discount, strength, self._mixture.is_finite, varies)
        checked = self._fixed_values
        if checked is None:
            checked = self._checked_values(rest[: len(self._mixture.hyperparameters)])
        rows = self._checked(rest[-1]) if self._fixed_rows is None else self._fixed_rows
        conditioning = Conditioning(law, checked, rows)
        if self._function is None and self.rows_are_fixed:
            self._unvarying = conditioning
        return conditioning

    def _fixed(self, values: Rows) -> Rows:
        """Return constant rows, checked unless declaring the mixture did so for good."""
        if isinstance(values, SparseRows):
            return values
        if not isinstance(values, FixedRows):
            rows = self._checked(values)
            with faults_of(self._mixture.name):
                # It refuses columns whose squares float64 does not hold; the rest was told once.
                self._mixture.component.warning_for(rows)
            return fixed(rows)
        # The array of the graph itself, if possible, so that both are pickled as one object.
        return values if values.ndim == 2 else fixed(values[:, None])

    def _checked_values(self, numbers: Sequence[Any]) -> dict[str, np.ndarray]:
        mixture = self._mixture
        hyperparameters = dict(zip(mixture.hyperparameters, numbers, strict=True))
        with faults_of(mixture.name):
            return mixture.component.check(hyperparameters, mixture.n_features)

    def _checked(self, data: np.ndarray) -> np.ndarray:
        """Check rows that vary, or that `pm.set_data` may have replaced."""
        mixture, component = self._mixture, self._mixture.component
        with faults_of(mixture.name):
            rows = rows_of(data, component.row_ndim)
            n_rows, n_features = rows.shape
            if n_features != mixture.n_features:
                raise ValueError(
                    f"observed has {n_features} features but was declared with "
                    f"{mixture.n_features}; declare the mixture anew."
                )
            # Incomplete data cannot be replaced.
            if mixture.unobserved is None:
                component.validate_rows(rows)
            n_labels = mixture.measure["labels"].type.shape[0] if mixture.is_labelled else n_rows
            if n_rows != n_labels:
                raise ValueError(
                    f"observed has {n_rows} rows but was declared with {n_labels}, each of which "
                    "has a label; declare the mixture anew."
                )
        return rows


@contextmanager
def faults_of(name: str) -> Iterator[None]:
    """Name a mixture in the message of a ValueError.

    Parameters
    ----------
    name : str
        Name of the mixture.
    """
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _depend(output: Variable, inputs: Sequence[Variable]) -> bool:
    return bool(set(inputs).intersection(ancestors([output], blockers=inputs)))


def _wanted(mixture: MixtureVariables) -> list[Variable]:
    return [*mixture.law, *mixture.hyperparameters.values(), mixture.data]


def evaluator_of_points(
    mixture: MixtureVariables, model: Model, compile_kwargs: dict[str, Any]
) -> PointEvaluator:
    """Return an evaluator at points, which contain transformed values.

    Parameters
    ----------
    mixture : MixtureVariables
    model : pymc.Model
    compile_kwargs : dict
        Options of `pymc.pytensorf.compile`.

    Returns
    -------
    PointEvaluator
    """
    outputs = model.replace_rvs_by_values(_wanted(mixture))
    values = set(model.value_vars)
    inputs = [var for var in explicit_graph_inputs(outputs) if var in values]
    return PointEvaluator(mixture, outputs, inputs, compile_kwargs)


def evaluator_of_draws(
    mixture: MixtureVariables, model: Model, recorded: Sequence[str]
) -> PointEvaluator:
    """Return an evaluator at draws, which contain untransformed variables.

    Parameters
    ----------
    mixture : MixtureVariables
    model : pymc.Model
    recorded : sequence of str
        Names of the variables in the trace.

    Returns
    -------
    PointEvaluator

    Raises
    ------
    ValueError
        If the mixture depends on a variable that is not in the trace.
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
    return PointEvaluator(mixture, outputs, inputs, {})


def refuse_impossible(
    evaluator: PointEvaluator, model: Model, point: Mapping[str, np.ndarray]
) -> None:
    """Refuse priors that allow illegal values, by a check of random points near the origin.

    A step method such as NUTS moves on the unconstrained scale and can reach any value there.

    Parameters
    ----------
    evaluator : PointEvaluator
        From `evaluator_of_points`.
    model : pymc.Model
    point : mapping
        The initial point.

    Raises
    ------
    ValueError
        If more than a few of the values are out of range.
    """
    rng = np.random.default_rng(0)
    faults = []
    for _ in range(_N_PROBES):
        tried = dict(point)
        for name in evaluator.inputs:
            value = np.asarray(point[name])
            if value.dtype.kind == "f":
                tried[name] = rng.normal(0.0, _PROBE_SPREAD, value.shape).astype(value.dtype)
        try:
            evaluator.read(tried)
        except ValueError as error:
            faults.append((error, tried))
    if len(faults) <= _MOST_FAULTS:
        return
    # Values outside the support of a prior without a transform do not count: NUTS rejects them.
    values = {str(value.name): value for value in model.value_vars}
    variables = [model.values_to_rvs[values[name]] for name in evaluator.inputs]
    log_prior = model.compile_logp(vars=[rv for rv in variables if rv in model.free_RVs])
    allowed = [error for error, tried in faults if np.isfinite(log_prior(tried))]
    if len(allowed) > _MOST_FAULTS:
        raise allowed[0]
