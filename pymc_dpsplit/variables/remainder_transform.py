"""Transform of the weight of the remainder."""

from typing import Any, override

import pytensor.tensor as pt
from pymc.distributions.transforms import log
from pymc.logprob.transforms import LogTransform, Transform


class LogUnlessFull(LogTransform):
    """Logarithm, with no term in the density.

    A finite mixture of which every component is occupied has no remainder.  Its logarithm, which
    PyMC adds to the density, would make that of the whole model minus infinity.  The step alone
    moves the remainder, and draws it exactly, so for others the term is a constant.
    """

    @override
    def log_jac_det(self, value: Any, *inputs: Any) -> Any:
        return pt.zeros_like(value)


_log_unless_full = LogUnlessFull()


def remainder_transform(is_finite: bool) -> Transform:
    """Return the transform of the weight of the remainder, which underflows if alpha is small.

    Parameters
    ----------
    is_finite : bool
        Whether the number of components is finite, so that the weight may be zero.

    Returns
    -------
    Transform
    """
    return _log_unless_full if is_finite else log
