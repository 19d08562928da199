"""Marginals of components of which nothing can be integrated out, by sums over a grid.

Written with SciPy alone: densities, base measures and Jacobians are those of textbooks, and owe
nothing to what the package makes of a declaration.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
from scipy import stats
from scipy.special import logsumexp

import pymc_dpsplit as dps
from tests.reference import discrete, families, regression
from tests.support.partitions import HasMarginal


class GridFamily(NamedTuple):
    """A component, and its twin as a density over nodes of a grid.

    Attributes
    ----------
    component : callable
        Makes the component as a user declares it.
    nodes : ndarray, shape (G, P)
        Parameters on the scale of the user.
    log_weights : ndarray, shape (G,)
        Base density and volume of each node.
    log_density : callable
        From a row and the nodes to the log density (G,).
    rows : ndarray, shape (n,)
        Small data.
    """

    component: Callable[[], Any]
    nodes: np.ndarray
    log_weights: np.ndarray
    log_density: Callable[[float, np.ndarray], np.ndarray]
    rows: np.ndarray

    def log_marginal(self, rows: np.ndarray) -> float:
        """Log marginal likelihood of rows (n, 1)."""
        total = self.log_weights + sum(self.log_density(row, self.nodes) for row in rows[:, 0])
        return float(logsumexp(total))


def _axis(prior: Any, n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes of one parameter, equal steps on the line or in the logarithm, and log weights."""
    low, high = prior.ppf(1e-9), prior.isf(1e-9)
    if prior.support()[0] < 0.0:
        nodes = np.linspace(low, high, n_nodes)
        return nodes, prior.logpdf(nodes) + np.log(nodes[1] - nodes[0])
    logs = np.linspace(np.log(max(low, 1e-7)), np.log(high), n_nodes)
    return np.exp(logs), prior.logpdf(np.exp(logs)) + logs + np.log(logs[1] - logs[0])


def _axis_around(prior: Any, rows: np.ndarray, n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes of a location, ever closer towards the rows, and log weights by the trapezoid rule.

    Where a scale is small the density of a row is a peak at the row, which equal steps would miss
    or count too often: the marginal of a single row was wrong by a percent.
    """
    steps = np.geomspace(1e-7, 1.0, 120)
    close = rows[:, None] + np.concatenate((-steps, [0.0], steps))
    even = np.linspace(prior.ppf(1e-9), prior.isf(1e-9), n_nodes)
    nodes = np.unique(np.concatenate((even, close.ravel())))
    return nodes, prior.logpdf(nodes) + np.log(np.gradient(nodes))


def _remembered(
    log_density: Callable[[float, np.ndarray], np.ndarray],
) -> Callable[[float, np.ndarray], np.ndarray]:
    """Evaluate a density once for each row: its nodes are always the same."""
    found: dict[float, np.ndarray] = {}

    def evaluate(row: float, nodes: np.ndarray) -> np.ndarray:
        if row not in found:
            found[row] = log_density(row, nodes)
        return found[row]

    return evaluate


def grid(*priors: Any, n_nodes: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (G, P) of independent parameters, and log weights (G,)."""
    return _product(*(_axis(prior, n_nodes) for prior in priors))


def _product(*axes: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    mesh = np.meshgrid(*(nodes for nodes, _ in axes), indexing="ij")
    weights = np.meshgrid(*(log_weights for _, log_weights in axes), indexing="ij")
    return np.stack([m.ravel() for m in mesh], 1), sum(w.ravel() for w in weights)


def _student_t() -> Any:
    return dps.Component(
        pm.StudentT, nu=4.0, mu=pm.Normal.dist(0.0, 2.0), sigma=pm.HalfNormal.dist(1.0)
    )


def _laplace() -> Any:
    return dps.Component(pm.Laplace, mu=pm.Normal.dist(0.5, 2.0), b=0.7)


def _negative_binomial() -> Any:
    return dps.Component(
        pm.NegativeBinomial, mu=pm.Gamma.dist(2.0, 0.4), alpha=pm.Exponential.dist(0.5)
    )


def _log_negative_binomial(row: float, nodes: np.ndarray) -> np.ndarray:
    mu, alpha = nodes.T
    log_p: np.ndarray = stats.nbinom.logpmf(row, alpha, alpha / (alpha + mu))
    return log_p


class MixedFamily(NamedTuple):
    """A product of families, of which at least one has no marginal in closed form.

    Attributes
    ----------
    component : callable
        Makes the product as a user declares it.
    parts : tuple of HasMarginal
        Twins.
    widths : tuple of int
        Numbers of columns of the parts.
    rows : ndarray, shape (n, D)
        Small data.
    """

    component: Callable[[], Any]
    parts: tuple[HasMarginal, ...]
    widths: tuple[int, ...]
    rows: np.ndarray

    def log_marginal(self, rows: np.ndarray) -> float:
        """Log marginal likelihood of rows (n, D)."""
        pieces = np.split(rows, np.cumsum(self.widths)[:-1], axis=1)
        return sum(part.log_marginal(piece) for part, piece in zip(self.parts, pieces, strict=True))


_NORMAL = {"mu0": 0.3, "kappa0": 0.4, "a0": 1.2, "b0": 0.5}


_MV_NORMAL = {
    "mu0": np.array([0.2, -0.1]), "kappa0": 0.5, "nu0": 4.5,
    "psi0": np.array([[1.5, 0.4], [0.4, 0.8]]),
}  # fmt: skip
_COUNTS = {"a0": np.array([0.7, 1.6])}
_LINE = {"mu0": np.array([0.1, 0.4]), "lambda0": np.diag([0.5, 0.8]), "a0": 1.4, "b0": 0.6}


def _of_vectors() -> Any:
    return dps.Product(
        place=dps.MvNormal(**_MV_NORMAL),
        words=dps.Multinomial(**_COUNTS),
        line=dps.LinearRegression(**_LINE),
        time=_laplace(),
    )


def _mixed() -> Any:
    return dps.Product(height=dps.Normal(**_NORMAL), sex=dps.Bernoulli(0.8, 1.4), time=_laplace())


_T_ROWS = np.array([-2.0, -1.5, -0.2, 0.1, 1.8, 2.4])

FAMILIES: dict[str, Any] = {
    "StudentT": GridFamily(
        _student_t,
        *_product(
            _axis_around(stats.norm(0.0, 2.0), _T_ROWS, 300),
            _axis(stats.halfnorm(scale=1.0), 150),
        ),
        _remembered(lambda row, nodes: stats.t.logpdf(row, 4.0, nodes[:, 0], nodes[:, 1])),
        _T_ROWS,
    ),
    "Laplace": GridFamily(
        _laplace,
        *grid(stats.norm(0.5, 2.0), n_nodes=4000),
        _remembered(lambda row, nodes: stats.laplace.logpdf(row, nodes[:, 0], 0.7)),
        np.array([-1.5, -1.1, 0.1, 0.4, 1.9, 3.0]),
    ),
    "NegativeBinomial": GridFamily(
        _negative_binomial,
        *grid(stats.gamma(2.0, scale=1 / 0.4), stats.expon(scale=2.0)),
        _remembered(_log_negative_binomial),
        np.array([0.0, 1.0, 2.0, 6.0, 9.0, 14.0]),
    ),
}
FAMILIES["Product"] = MixedFamily(
    _mixed,
    (families.Normal(**_NORMAL), discrete.Bernoulli(0.8, 1.4), FAMILIES["Laplace"]),
    (1, 1, 1),
    np.column_stack(
        [
            [-0.9, -0.4, 0.3, 0.5, 1.4, 2.2],
            [0.0, 1.0, 0.0, 1.0, 1.0, 1.0],
            FAMILIES["Laplace"].rows[[3, 0, 1, 5, 2, 4]],
        ]
    ),
)
FAMILIES["ProductOfVectors"] = MixedFamily(
    _of_vectors,
    (
        families.MvNormal(**_MV_NORMAL),
        discrete.Multinomial(**_COUNTS),
        regression.LinearRegression(**_LINE),
        FAMILIES["Laplace"],
    ),
    (2, 2, 2, 1),
    np.column_stack(
        [
            [-0.6, -0.2, 0.3, 0.5, 1.1, 0.9],
            [0.4, -0.7, 0.1, 0.6, 0.2, 1.0],
            [1.0, 0.0, 2.0, 1.0, 3.0, 0.0],
            [1.0, 2.0, 0.0, 1.0, 1.0, 2.0],
            [-1.0, 0.5, 0.2, -0.4, 1.2, 0.8],
            [-0.3, 0.6, 0.1, 0.5, 0.2, 1.4],
            FAMILIES["Laplace"].rows[[3, 0, 2, 4, 1, 5]],
        ]
    ),
)
