"""Variables of PyMC that know where samplers start.

A start given as ``initval=`` would belong to the model, and PyMC refuses to transform
such a model: `pm.do`, `pm.observe`, ``model.copy()`` and `pm.compute_log_likelihood` would raise.
Here it is the support point of the variable, which goes with it into any other model.
"""

from collections.abc import Callable
from functools import partial
from types import MethodType
from typing import Any, NamedTuple, Self, override

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.distribution import _support_point
from pymc.printing import str_for_dist
from pytensor.graph.op import Op
from pytensor.tensor.random.basic import BetaRV, DirichletRV, GammaRV, NormalRV
from pytensor.tensor.random.op import RandomVariable


class Start(NamedTuple):
    """An array that is hashable, as PyTensor needs."""

    shape: tuple[int, ...]
    content: bytes

    @classmethod
    def of(cls, values: np.ndarray) -> Self:
        """Make one of an array of any dtype."""
        return cls(values.shape, values.astype(np.float64).tobytes())

    @property
    def values(self) -> np.ndarray:
        """The array."""
        return np.frombuffer(self.content).reshape(self.shape)

    @override
    def __repr__(self) -> str:
        # PyTensor's keys of compiled functions have it; these do not depend on the numbers.
        return f"start of shape {self.shape}"


class Started(RandomVariable):
    """A random variable that is like its base class but for its support point.

    Density, transform and random draws are those of the base class, because PyMC and PyTensor look
    them up by class and so find those of a base class.

    Parameters
    ----------
    start : Start
    **props
        As for a `RandomVariable`.
    """

    __props__ = (*RandomVariable.__props__, "start")  # type: ignore[assignment]

    def __init__(self, *, start: Start, **props: Any) -> None:
        super().__init__(**props)
        self.start = start


class StartedNormal(Started, NormalRV):
    """Normal variable with a start."""


class StartedGamma(Started, GammaRV):
    """Gamma variable with a start."""


class StartedBeta(Started, BetaRV):
    """Beta variable with a start."""


class StartedDirichlet(Started, DirichletRV):
    """Dirichlet variable with a start."""


_STARTED: dict[type[Op], type[Started]] = {
    NormalRV: StartedNormal,
    GammaRV: StartedGamma,
    BetaRV: StartedBeta,
    DirichletRV: StartedDirichlet,
}


@_support_point.register(Started)
def _start_of(op: Started, *_: Any) -> Any:
    return pt.constant(op.start.values)


def declare_started(
    name: str, dist: Any, *parameters: Any, start: np.ndarray, transform: Any = None
) -> Any:
    """Declare a variable of the shape of its start in the model of the context.

    Parameters
    ----------
    name : str
    dist : type
        `pm.Normal`, `pm.Gamma`, `pm.Beta` or `pm.Dirichlet`.
    *parameters
        Arguments of the distribution.
    start : ndarray of float
        Initial value.
    transform : Transform, optional
        Further transform, as of any variable of PyMC.

    Returns
    -------
    TensorVariable
    """
    drawn = dist.dist(*parameters, shape=start.shape).owner
    op = _STARTED[type(drawn.op)](start=Start.of(start), **drawn.op._props_dict())
    rv = op.make_node(*drawn.inputs).outputs[1]
    given = {} if transform is None else {"transform": transform}
    rv = pm.modelcontext(None).register_rv(rv, name, **given)
    # As PyMC does for its own distributions.
    rv.str_repr = MethodType(str_for_dist, rv)
    rv._repr_latex_ = MethodType(partial(str_for_dist, formatting="latex"), rv)
    return rv


def starting_at(start: np.ndarray) -> Callable[..., Any]:
    """Return a function for the argument ``support_point=`` of `pm.CustomDist`.

    Parameters
    ----------
    start : ndarray of float

    Returns
    -------
    callable
    """
    return partial(_given, start)


def _given(start: np.ndarray, *_: Any) -> Any:
    return pt.constant(start)
