"""Options of the step, as given in ``pm.sample(dpsplit={...})``, and their checks."""

import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from pymc_dpsplit import sampler
from pymc_dpsplit.components.arguments import array_of, check_integer, shown
from pymc_dpsplit.components.shared_labels.items import Items
from pymc_dpsplit.moves.partition_law import PartitionLaw
from pymc_dpsplit.step.kernel_choice import AUTO
from pymc_dpsplit.variables import MixtureVariables

# Labels are stored by default if clusters have so many parameters, and so many times the memory of
# the labels is no more than theirs.  Then few clusters are recorded, and from draws that have more
# the labels cannot be redrawn.
_MANY_PARAMETERS, _LABELS_OF_PARAMETERS = 50, 20
# Arguments that PyMC passes to every step method, besides the options.
_ARGUMENTS_OF_PYMC = ("model", "rng", "initial_point", "compile_kwargs", "blocked")


# Options that only one sampler of the literature has, with its name.
_KERNEL_OF_OPTION = {
    option.name: name for name, row in sampler.SAMPLERS.items() for option in row.options
}


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
    keep_labels: bool | None
    continues: bool = False
    of_kernel: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kernels = AUTO, *sampler.KERNELS
        if not isinstance(self.kernel, str) or self.kernel not in kernels:
            known = ", ".join(repr(name) for name in kernels)
            raise ValueError(f"kernel={shown(self.kernel)} is not known; choose one of {known}.")
        for name, least in {"threads": 1, "exchanges": 0}.items():
            check_integer(name, getattr(self, name), least)
        for name, least in {"attempts": 0, "iterations": 1, "start_clusters": 1}.items():
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), least)
        if self.start_labels is not None:
            labels, fault = array_of(self.start_labels)
            if fault or labels.ndim != 1 or labels.dtype.kind not in "iu":
                raise ValueError(
                    "start_labels is not a vector of integers; give a cluster for each observation."
                )
        for name in ("keep_labels", "continues"):
            value = getattr(self, name)
            is_default = value is None and name == "keep_labels"
            if not is_default and not isinstance(value, bool | np.bool_):
                raise ValueError(f"{name}={shown(value)} is neither; give True or False.")
        for name in ("start_clusters", "start_labels"):
            if self.continues and getattr(self, name) is not None:
                raise ValueError(
                    f"{name} is given, but a chain that continues starts from the draw in "
                    f"initvals; leave {name} out."
                )
        self._check_those_of_kernel()

    def _check_those_of_kernel(self) -> None:
        """Raise ValueError for an option of another sampler, or a value that it does not take."""
        published = sampler.SAMPLERS.get(self.kernel)
        options = {option.name: option for option in published.options} if published else {}
        for name, value in self.of_kernel.items():
            if name not in options:
                owner = _KERNEL_OF_OPTION[name]
                raise ValueError(
                    f"{name} is an option of kernel={owner!r}; give that kernel, or leave {name} "
                    "out."
                )
            options[name].check(value)
        for option in options.values():
            option.refuse_others(self.of_kernel)
        has_none = self.kernel == "collapsed" or (published and published.attempts == 0)
        if has_none and self.attempts:
            raise ValueError(
                f"attempts={self.attempts!r} is given, but kernel={self.kernel!r} attempts no "
                "splits and merges; leave attempts or kernel out."
            )

    def settings(self) -> np.ndarray:
        """Values of the options of a sampler of the literature, as its kernel reads them."""
        published = sampler.SAMPLERS.get(self.kernel)
        return np.empty(0) if published is None else published.settings(self.of_kernel)

    def keeps_labels(self, mixture: MixtureVariables, n_labels: int) -> bool:
        """Return whether the labels of every draw are stored.

        Parameters
        ----------
        mixture : MixtureVariables
        n_labels : int
            Number of labels.

        Returns
        -------
        bool
        """
        if self.keep_labels is not None or mixture.is_labelled:
            return bool(self.keep_labels)
        shapes = [mixture.measure[name].type.shape for name in mixture.component.parameters]
        n_numbers = sum(math.prod(shape) for shape in shapes)
        n_bytes = n_labels * np.min_scalar_type(n_labels).itemsize
        has_many = n_numbers >= _MANY_PARAMETERS * mixture.max_clusters
        return has_many and _LABELS_OF_PARAMETERS * n_bytes <= 8 * n_numbers

    def refuse_start(self, name: str, n_obs: int, items: Items) -> None:
        """Raise ValueError for a start of another length, or that separates rows known together.

        Parameters
        ----------
        name : str
            Name of the mixture.
        n_obs : int
        items : Items
        """
        if self.start_labels is not None and len(self.start_labels) != n_obs:
            raise ValueError(
                f"start_labels has {len(self.start_labels)} labels, but {name} has {n_obs} "
                "observations; give one for each."
            )
        if self.start_labels is not None:
            items.of_recorded(np.asarray(self.start_labels))


def refuse_kernel(kernel: str, name: str, is_conjugate: bool) -> None:
    """Raise ValueError for a kernel that cannot treat a non-conjugate mixture.

    Parameters
    ----------
    kernel : str
        One of `sampler.KERNELS`, or `AUTO`.
    name : str
        Name of the mixture.
    is_conjugate : bool
        Whether the parameters of its family can be integrated out.
    """
    if kernel != AUTO and sampler.form_of(kernel, is_conjugate) is None:
        raise ValueError(
            f"kernel={kernel!r} needs a family whose parameters can be integrated out, which that "
            f"of {name} is not; leave kernel= out."
        )


def check_published(
    kernel: str, name: str, law: PartitionLaw, of_kernel: Mapping[str, Any] = MappingProxyType({})
) -> None:
    """Check whether a sampler of the literature is for the law of a mixture, and exact.

    Parameters
    ----------
    kernel : str
        One of `sampler.KERNELS`, or `AUTO`.
    name : str
        Name of the mixture.
    law : PartitionLaw
    of_kernel : mapping of str to object
        Options of that sampler.

    Raises
    ------
    ValueError
        If it is for Dirichlet processes only, and the mixture has another law.

    Warns
    -----
    UserWarning
        If its draws have another law than the posterior.
    """
    published = sampler.SAMPLERS.get(kernel)
    if published is None:
        return
    if not published.takes_any_law and law.discount != 0.0:
        raise ValueError(
            f"kernel={kernel!r} samples Dirichlet processes, and {name} has another law; leave "
            "kernel= out."
        )
    if not published.is_exact_with(of_kernel):
        warnings.warn(
            f"kernel={kernel!r} is here for comparison: its draws have another law than the "
            "posterior (docs/samplers.md); leave kernel= out for exact ones.",
            UserWarning,
            stacklevel=3,
        )


def refuse_options(given: Any) -> None:
    """Refuse ``pm.sample(dpsplit=...)`` that is no dict of options, before steps are made.

    Parameters
    ----------
    given : dict
        Name of option to value.

    Raises
    ------
    ValueError
        If it is none, or a key is no option.
    """
    if not isinstance(given, Mapping):
        raise ValueError(
            f"dpsplit={shown(given)} is not a dict of options; give one such as "
            'dpsplit={"threads": 2}, or leave it out.'
        )
    _refuse_other_than(given, _names())


def refuse_unknown(given: Any) -> None:
    """Refuse keywords that are neither options nor arguments that PyMC passes to every step.

    Parameters
    ----------
    given : iterable of str

    Raises
    ------
    ValueError
        If a keyword is not known.
    """
    _refuse_other_than(given, (*_names(), *_ARGUMENTS_OF_PYMC))


def _names() -> tuple[str, ...]:
    """Names of all options, those that one sampler has at the end."""
    own = tuple(name for name in Options.__dataclass_fields__ if name != "of_kernel")
    return own + tuple(_KERNEL_OF_OPTION)


def _refuse_other_than(given: Iterable[Any], known: tuple[str, ...]) -> None:
    options = ", ".join(_names())
    for name in given:
        if name not in known:
            raise ValueError(f"{name!r} is not an option of dpsplit; choose among {options}.")
