"""Record of a sampler of the literature: its forms as a kernel, its source, if it is exact."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from pymc_dpsplit.components.arguments import array_of, check_integer, shown
from pymc_dpsplit.moves.family_moves import KernelForm
from pymc_dpsplit.moves.target import Target


class SamplerOption(NamedTuple):
    """An option that one sampler has, beside those of every kernel.

    Attributes
    ----------
    name : str
    default : int, bool or empty tuple
        An option whose default is True or False takes these, one whose default is an empty tuple
        takes a sequence of positive numbers; any other takes integers.
    least : int
        Least integer.
    is_exact_if_true : bool or None
        Whether the sampler is exact with this option; None if the option does not matter to it.
    not_beside : tuple of str
        Options that have no meaning with this one.
    """

    name: str
    default: int | bool | tuple[float, ...]
    least: int = 0
    is_exact_if_true: bool | None = None
    not_beside: tuple[str, ...] = ()

    def check(self, value: Any) -> None:
        """Raise ValueError for a value of another type, or out of range."""
        if self.is_sequence:
            self._check_numbers(value)
        elif not isinstance(self.default, bool):
            check_integer(self.name, value, self.least)
        elif not isinstance(value, bool | np.bool_):
            raise ValueError(f"{self.name}={shown(value)} is neither; give True or False.")

    @property
    def is_sequence(self) -> bool:
        """Whether the option takes several numbers."""
        return isinstance(self.default, tuple)

    def _check_numbers(self, value: Any) -> None:
        numbers, fault = array_of(value)
        is_vector = not fault and numbers.ndim == 1 and numbers.dtype.kind in "iuf"
        if not is_vector or not len(numbers) or not (np.isfinite(numbers) & (numbers > 0)).all():
            raise ValueError(
                f"{self.name}={shown(value)} is not a sequence of positive numbers; give some, "
                f"such as {self.name}=[2, 1, 1], or leave {self.name} out."
            )

    def refuse_others(self, given: Mapping[str, Any]) -> None:
        """Raise ValueError if options are given that have no meaning with this one.

        Parameters
        ----------
        given : mapping of str to object
            Options of the sampler, this one among them or not.
        """
        value = given.get(self.name, False)
        if not np.any(value):
            return
        for name in self.not_beside:
            if name in given:
                raise ValueError(
                    f"{name} has no meaning with {self.name}={shown(value)}; leave one of them out."
                )


class PublishedSampler(NamedTuple):
    """A sampler of the literature as a kernel of the chain.

    Attributes
    ----------
    name : str
        What users give as ``kernel=``.
    source : str
        Authors, year and place of the description that is followed, one line.
    is_exact : bool
        Whether it leaves the posterior of the partition invariant, without options.
    conjugate : KernelForm
    nonconjugate : KernelForm or None
        None for a sampler that needs parameters integrated out.
    attempts : int
        Split/merge attempts in an iteration as published.
    cost : callable
        ``(target, n_clusters, attempts, settings) -> float``: nanoseconds of an iteration,
        approximately.
    is_collapsed : bool
        Whether an iteration visits every observation by collapsed Gibbs.
    takes_any_law : bool
        Whether it is for all laws of the partition, not for Dirichlet processes only.
    most_strength : float
        Concentration above which an iteration takes minutes and gigabytes.
    options : tuple of SamplerOption
        Kernels find their values in ``schedule.settings``, in this order, with an option that takes
        a sequence at the end.
    """

    name: str
    source: str
    is_exact: bool
    conjugate: KernelForm
    nonconjugate: KernelForm | None
    attempts: int
    cost: Callable[[Target, int, float, np.ndarray], float]
    is_collapsed: bool
    takes_any_law: bool = True
    most_strength: float = math.inf
    options: tuple[SamplerOption, ...] = ()

    def settings(self, given: Mapping[str, Any]) -> np.ndarray:
        """Values of the options one after the other, defaults where none is given, shape (n,)."""
        values = [given.get(option.name, option.default) for option in self.options]
        return np.concatenate([np.ravel(np.asarray(value, float)) for value in [*values, ()]])

    def is_exact_with(self, given: Mapping[str, Any]) -> bool:
        """Whether the sampler is exact with these options."""
        is_exact = self.is_exact
        for option in self.options:
            if option.is_exact_if_true is not None and given.get(option.name, option.default):
                is_exact = option.is_exact_if_true
        return is_exact
