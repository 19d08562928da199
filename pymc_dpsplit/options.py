"""Options of the step, as given in ``pm.sample(dpsplit={...})``, and their checks."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dpsplit import sampler

# What PyMC gives to every step method, besides the options.
_ARGUMENTS_OF_PYMC = ("model", "rng", "initial_point", "compile_kwargs", "blocked")


@dataclass(frozen=True)
class Options:
    """Options of one mixture; see `DPSplitMerge` for their meaning."""

    kernel: str
    threads: int
    attempts: int | None
    iterations: int | None
    start_clusters: int | None
    start_labels: np.ndarray | None
    exchanges: int
    keep_labels: bool

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, str) or self.kernel not in sampler.KERNELS:
            known = ", ".join(repr(name) for name in sampler.KERNELS)
            raise ValueError(f"kernel={self.kernel!r} is not known; choose one of {known}.")
        for name, least in {"threads": 1, "exchanges": 0}.items():
            check_integer(name, getattr(self, name), least)
        for name, least in {"attempts": 0, "iterations": 1, "start_clusters": 1}.items():
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), least)
        if self.start_labels is not None:
            labels = np.asarray(self.start_labels)
            if labels.ndim != 1 or labels.dtype.kind not in "iu":
                raise ValueError(
                    "start_labels is not a vector of integers; give a cluster for each observation."
                )
        if not isinstance(self.keep_labels, bool | np.bool_):
            raise ValueError(f"keep_labels={self.keep_labels!r} is neither; give True or False.")

    def refuse_start_of_other_length(self, name: str, n_obs: int) -> None:
        """Raise ValueError if `start_labels` are not those of a mixture's `n_obs` observations."""
        if self.start_labels is not None and len(self.start_labels) != n_obs:
            raise ValueError(
                f"start_labels has {len(self.start_labels)} labels, but {name} has {n_obs} "
                "observations; give one for each."
            )


def check_integer(name: str, value: Any, least: int) -> None:
    """Raise ValueError if an argument is no integer or too small."""
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_integer or value < least:
        raise ValueError(f"{name}={value!r} is out of range; give an integer of at least {least}.")


def refuse_collapsed(kernel: str, name: str, keeps_parameters: bool) -> None:
    """Refuse the collapsed kernel for a mixture whose parameters cannot be integrated out."""
    if kernel == "collapsed" and keeps_parameters:
        raise ValueError(
            "kernel='collapsed' needs a family whose parameters can be integrated out, which that "
            f"of {name} is not; leave kernel= out."
        )


def refuse_unknown(given: Any) -> None:
    """Refuse keywords that are neither options nor what PyMC gives to every step.

    Parameters
    ----------
    given : iterable of str

    Raises
    ------
    ValueError
        If one is not known.
    """
    options = tuple(Options.__dataclass_fields__)
    for name in given:
        if name not in (*options, *_ARGUMENTS_OF_PYMC):
            raise ValueError(
                f"{name!r} is not an option of dpsplit; choose among {', '.join(options)}."
            )
