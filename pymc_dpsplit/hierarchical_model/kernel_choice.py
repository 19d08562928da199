"""How rows in groups are visited, by their number and family."""

from typing import Any

from pymc_dpsplit.components.arguments import check_integer
from pymc_dpsplit.hierarchical.parameters import keeps_parameters as is_kept
from pymc_dpsplit.moves.tables import MOST_GAMMA

AUTO, COLLAPSED, SLICES, ON_PROCESSORS = "auto", "collapsed", "slices", "av-parallel"
_N_PROCESSORS = 4
# Number of rows up to which rows are visited one by one.
_MOST_COLLAPSED = 20_000


def by_slices(kernel: str, n_rows: int, keeps_parameters: bool) -> bool:
    """Return whether rows are visited by slices.

    Parameters
    ----------
    kernel : str
        As the user gives it.
    n_rows : int
    keeps_parameters : bool
        Whether the parameters of the family cannot be integrated out.

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        If there is no such kernel, or not for the family.
    """
    if kernel not in (AUTO, COLLAPSED, SLICES, ON_PROCESSORS):
        raise ValueError(
            f"kernel={kernel!r} is unknown for an HDPMixture; give {AUTO!r}, {COLLAPSED!r}, "
            f"{SLICES!r} or {ON_PROCESSORS!r}."
        )
    if keeps_parameters and kernel in (COLLAPSED, ON_PROCESSORS):
        raise ValueError(
            f"kernel={kernel!r} integrates parameters out, which a Component does not allow; leave "
            "kernel out."
        )
    return kernel == SLICES or (kernel == AUTO and (keeps_parameters or n_rows > _MOST_COLLAPSED))


def n_processors_of(kernel: str, processors: int | None) -> int:
    """Return the number of processors, 0 without.

    Parameters
    ----------
    kernel : str
    processors : int, optional
        As the user gives it.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If the number is out of range, or the kernel has no processors.
    """
    if kernel == ON_PROCESSORS:
        if processors is None:
            return _N_PROCESSORS
        check_integer("processors", processors, 1)
        return processors
    if processors is not None:
        raise ValueError(
            f"processors={processors!r} is an option of kernel={ON_PROCESSORS!r}; give this kernel "
            "too, or leave processors out."
        )
    return 0


def visits_of(
    kernel: str, n_rows: int, keeps_parameters: bool, threads: int, processors: int | None
) -> tuple[int | None, int]:
    """Return the threads of a sweep by slices, None without, and the number of processors.

    Parameters
    ----------
    kernel, n_rows, keeps_parameters
        See `by_slices`.
    threads : int
    processors : int, optional
        See `n_processors_of`.

    Returns
    -------
    threads : int or None
    n_processors : int
    """
    is_by_slices = by_slices(kernel, n_rows, keeps_parameters)
    return threads if is_by_slices else None, n_processors_of(kernel, processors)


def refuse_many_clusters(name: str, prior: Any, gamma: float, is_by_slices: bool) -> None:
    """Refuse a gamma for which a sweep by slices would draw parameters of millions of clusters.

    Parameters
    ----------
    name : str
        Name of the mixture.
    prior : NamedTuple
        Of the family.
    gamma : float
    is_by_slices : bool
        Whether rows are visited by slices.

    Raises
    ------
    ValueError
    """
    if gamma > MOST_GAMMA and is_by_slices:
        remedy = "" if is_kept(prior) else f", or kernel={COLLAPSED!r}"
        raise ValueError(
            f"{name}: gamma is {gamma:g} in a draw, for which a sweep by slices draws more than a "
            "million clusters; give gamma a smaller value, or a prior with a lighter tail"
            f"{remedy}."
        )
