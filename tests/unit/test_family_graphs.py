"""Log densities of the families as graphs, and their gradients, against the naive twins."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pymc_dpsplit.components.fixed_hyperparameters import with_values
from pymc_dpsplit.variables.base_density import base_log_density
from pymc_dpsplit.variables.graph_parameters import graph_parameters_at
from tests.support.families import FAMILIES, SINGLE
from tests.support.family_cases import (
    Case,
    case_of,
    hyperparameters_of,
    over_cases,
    over_continuous,
    over_shared,
    rows_of,
)

# Interpreted: a graph is evaluated once or twice.
PLAIN = pytensor.compile.Mode("py", optimizer=None)
# The base measure need not hold what the density of a row does.
UNUSED: Any = {"on_unused_input": "ignore"}
N_ROWS, N_CLUSTERS = 5, 3  # kept per draw, and in use


def evaluate(graph: Any) -> Any:
    """Value of a graph without inputs."""
    return pytensor.function([], graph, mode=PLAIN)()


def one_of(parameters: dict[str, np.ndarray], k: int) -> dict[str, np.ndarray]:
    """Parameters of one cluster."""
    return {key: value[k] for key, value in parameters.items()}


def padded(parameters: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Parameters (L, ...) as variables hold them: NaN in the rows that are not in use."""
    rows = []
    for value in parameters.values():
        rows.append(np.full((N_ROWS, *value.shape[1:]), np.nan))
        rows[-1][: len(value)] = value
    return rows


def log_base_of(case: Case, parameters: dict[str, np.ndarray]) -> np.ndarray:
    """Evaluate the graph of the base density, (K,)."""
    graph_parameters = case.component.graph_parameters(parameters)
    symbols = {key: pt.as_tensor(value) for key, value in graph_parameters.items()}
    values = {key: pt.as_tensor(value) for key, value in case.values.items()}
    return evaluate(case.component.log_base(symbols, values, pt))


# --- parameters in the form of the graphs -------------------------------------------------


@over_cases
def test_natural_parameters_have_their_shapes(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    case = case_of(name, rows_of("overlapping", n_features))
    graph_parameters = case.component.graph_parameters(
        case.component.draw_base(rng, case.values, N_CLUSTERS)
    )
    assert list(graph_parameters) == list(case.component.graph_ndims)
    for key, ndim in case.component.graph_ndims.items():
        of_one = case.component.shape_of(key, ndim, n_features)
        assert graph_parameters[key].shape == (N_CLUSTERS, *of_one)
        assert graph_parameters[key].dtype == np.float64


@pytest.mark.parametrize("n_clusters", [0, 1, N_CLUSTERS, N_ROWS, N_ROWS + 2])
@over_cases
def test_rows_not_in_use_repeat_the_first(
    name: str, n_features: int, n_clusters: int, rng: np.random.Generator
) -> None:
    case = case_of(name, rows_of("overlapping", n_features))
    n_legal = min(max(n_clusters, 1), N_ROWS)
    drawn = case.component.draw_base(rng, case.values, n_legal)
    inputs = [pt.as_tensor(value) for value in padded(drawn)]
    graphs = graph_parameters_at(case.component, pt.as_tensor(n_clusters), inputs)
    wanted = case.component.graph_parameters(drawn)
    assert list(graphs) == list(wanted)
    source = np.where(np.arange(N_ROWS) < n_legal, np.arange(N_ROWS), 0)
    for key, graph in graphs.items():
        assert graph.type.shape == (N_ROWS, *wanted[key].shape[1:])
        np.testing.assert_array_equal(evaluate(graph), wanted[key][source])


# --- the base measure ---------------------------------------------------------------------


@over_cases
def test_log_base_matches_the_twin(name: str, n_features: int, rng: np.random.Generator) -> None:
    case = case_of(name, rows_of("overlapping", n_features))
    parameters = case.component.draw_base(rng, case.values, 5)
    twins = [case.twin.log_prior({key: value[k] for key, value in parameters.items()})
             for k in range(5)]  # fmt: skip
    np.testing.assert_allclose(log_base_of(case, parameters), twins, rtol=1e-8)


@over_cases
def test_central_parameter_is_inside_the_base_measure(name: str, n_features: int) -> None:
    case = case_of(name, rows_of("overlapping", n_features))
    central = case.component.central(case.values)
    for key, ndim in case.component.parameters.items():
        assert central[key].shape == case.component.shape_of(key, ndim, n_features)
    one = {key: np.asarray(value)[None] for key, value in central.items()}
    assert np.isfinite(log_base_of(case, one)).all()


def base_density_at(
    case: Case, drawn: dict[str, np.ndarray], n_clusters: int, values: Sequence[Any]
) -> Any:
    """Graph of the log density of the base measure over the rows in use."""
    inputs = [pt.as_tensor(value) for value in padded(drawn)]
    return base_log_density(case.component, pt.as_tensor(n_clusters), inputs, values)


@over_cases
def test_gradient_of_the_base_density_in_every_hyperparameter(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    """Along a random direction, against differences of the twin; rows not in use are NaN."""
    case = case_of(name, rows_of("overlapping", n_features))
    drawn = case.component.draw_base(rng, case.values, N_CLUSTERS)
    symbols = [pt.as_tensor(case.values[key]).type(key) for key in case.values]
    graph = base_density_at(case, drawn, N_CLUSTERS, symbols)
    gradients = pt.grad(graph, symbols, disconnected_inputs="ignore")
    function = pytensor.function(symbols, [graph, *gradients], mode=PLAIN, **UNUSED)
    value, *gradients = function(*case.values.values())
    hyperparameters = hyperparameters_of(name, n_features)

    def twin_at(key: str, hyperparameter: np.ndarray) -> float:
        twin = FAMILIES[name].twin(**{**hyperparameters, key: hyperparameter})
        return sum(twin.log_prior(one_of(drawn, k)) for k in range(N_CLUSTERS))

    for key, gradient in zip(case.values, gradients, strict=True):
        centre = hyperparameters[key]
        direction = rng.standard_normal(np.shape(centre))
        direction = direction + direction.T if key in ("psi0", "cov", "lambda0") else direction
        direction = np.where(centre == 0.0, 0.0, direction)
        step = 1e-5 * direction
        slope = (twin_at(key, centre + step) - twin_at(key, centre - step)) / 2e-5
        assert np.sum(gradient * direction) == pytest.approx(slope, rel=1e-5, abs=1e-5)
        assert value == pytest.approx(twin_at(key, centre), rel=1e-9)


@over_cases
def test_base_density_of_no_clusters_is_zero(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    case = case_of(name, rows_of("overlapping", n_features))
    drawn = case.component.draw_base(rng, case.values, 1)
    symbols = [pt.as_tensor(case.values[key]).type(key) for key in case.values]
    graph = base_density_at(case, drawn, 0, symbols)
    gradients = pt.grad(graph, symbols, disconnected_inputs="ignore")
    function = pytensor.function(symbols, [graph, *gradients], mode=PLAIN, **UNUSED)
    assert all((value == 0.0).all() for value in function(*case.values.values()))


@pytest.mark.parametrize("name", SINGLE)
def test_gradient_in_cluster_parameters_is_refused_when_it_is_computed(
    name: str, rng: np.random.Generator
) -> None:
    case = case_of(name, rows_of("overlapping", 1))
    values = padded(case.component.draw_base(rng, case.values, N_CLUSTERS))
    symbols = [pt.as_tensor(value).type() for value in values]
    graph = base_log_density(
        case.component,
        pt.as_tensor(N_CLUSTERS),
        symbols,
        [*map(pt.as_tensor, case.values.values())],
    )
    function = pytensor.function(symbols, pt.grad(graph, symbols), mode=PLAIN)
    with pytest.raises(NotImplementedError, match="DPSplitMerge"):
        function(*values)


# --- observations -------------------------------------------------------------------------


def rows_and_clusters(
    case: Case, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Rows as the family takes them, labels, cluster parameters, those as graphs read them."""
    parameters = case.component.draw_base(rng, case.values, N_CLUSTERS)
    labels = rng.integers(0, N_CLUSTERS, len(case.rows))
    graph_parameters = case.component.graph_parameters(parameters)
    rows = case.rows if case.component.row_ndim else case.rows[:, 0]
    return rows, labels, parameters, {key: value[labels] for key, value in graph_parameters.items()}


def twin_densities(
    case: Case, rows: np.ndarray, labels: np.ndarray, parameters: dict[str, np.ndarray]
) -> np.ndarray:
    """Log density (N,) of each row under its cluster."""
    pairs = zip(rows.reshape(len(rows), -1), labels, strict=True)
    return np.array([case.twin.log_density(x[None], one_of(parameters, k))[0] for x, k in pairs])


@over_cases
def test_log_density_of_rows_matches_the_twin(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    case = case_of(name, rows_of("separated", n_features))
    rows, labels, parameters, graph_parameters = rows_and_clusters(case, rng)
    twins = twin_densities(case, rows, labels, parameters)
    symbols = {key: pt.as_tensor(value) for key, value in graph_parameters.items()}
    ours = evaluate(case.component.log_density(pt.as_tensor(rows), symbols, pt))
    np.testing.assert_allclose(ours, twins, rtol=1e-9, atol=1e-9)
    # The same in numbers.
    np.testing.assert_allclose(
        case.component.log_density(rows, graph_parameters, np), ours, rtol=1e-12
    )


@pytest.mark.parametrize("wrong", [0.0, 0.3])
@over_shared
def test_density_reads_what_it_is_given(
    name: str, n_features: int, wrong: float, rng: np.random.Generator
) -> None:
    """Not what the family was declared with, which may be a variable by then."""
    case = case_of(name, rows_of("separated", n_features))
    rows, labels, parameters, graph_parameters = rows_and_clusters(case, rng)
    symbols = {key: pt.as_tensor(value) for key, value in graph_parameters.items()}
    values = {key: pt.as_tensor(value).type(key) for key, value in case.values.items()}
    bare = with_values(case.component, dict.fromkeys(values, "not a number"))
    graph = with_values(bare, values).log_density(pt.as_tensor(rows), symbols, pt)
    names = case.component.likelihood_arguments
    inputs = [values[key] for key in names]
    slopes = pt.grad(graph.sum(), inputs)
    function = pytensor.function(inputs, [graph, *slopes], mode=PLAIN)
    hyperparameters = hyperparameters_of(name, n_features)

    def twins_at(key: str, value: np.ndarray) -> np.ndarray:
        twin = FAMILIES[name].twin(**{**hyperparameters, key: value})
        return twin_densities(case._replace(twin=twin), rows, labels, parameters)

    for key, slope in zip(names, function(*(case.values[of] for of in names))[1:], strict=True):
        centre = case.values[key]
        direction = rng.standard_normal(centre.shape)
        direction = direction + direction.T if key == "cov" else direction
        step = 1e-5 * direction
        wanted = (twins_at(key, centre + step) - twins_at(key, centre - step)).sum() / 2e-5
        found = np.sum(slope * direction)
        assert (abs(found - wanted - wrong) < 1e-5 * max(1.0, abs(wanted))) == (wrong == 0.0)


@over_continuous
def test_gradient_of_log_density_in_rows(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    case = case_of(name, rows_of("separated", n_features))
    rows, labels, parameters, graph_parameters = rows_and_clusters(case, rng)
    symbol = pt.as_tensor(rows).type("rows")
    symbols = {key: pt.as_tensor(value) for key, value in graph_parameters.items()}
    graph = case.component.log_density(symbol, symbols, pt)
    gradient = pytensor.function([symbol], pt.grad(graph.sum(), symbol), mode=PLAIN)(rows)
    assert gradient.shape == rows.shape
    for j in range(n_features):
        step = 1e-5 * np.eye(n_features)[j] if rows.ndim == 2 else 1e-5
        above, below = (
            twin_densities(case, rows + sign * step, labels, parameters) for sign in (1, -1)
        )
        slopes = (above - below) / 2e-5
        ours = gradient[:, j] if rows.ndim == 2 else gradient
        np.testing.assert_allclose(ours, slopes, rtol=1e-5, atol=1e-5)
