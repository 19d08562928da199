"""How rows in groups are visited, by their number and family."""

from typing import Any

from pymc_dpsplit.hierarchical.parameters import keeps_parameters as is_kept

AUTO, COLLAPSED, SLICES = "auto", "collapsed", "slices"
# Number of rows up to which rows are visited one by one.
_MOST_COLLAPSED = 20_000
# A sweep breaks some ten sticks, each with parameters, per unit of gamma.
_MOST_GAMMA = 1e5


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
    if kernel not in (AUTO, COLLAPSED, SLICES):
        raise ValueError(
            f"kernel={kernel!r} is unknown for an HDPMixture; give {AUTO!r}, {COLLAPSED!r} or "
            f"{SLICES!r}."
        )
    if keeps_parameters and kernel == COLLAPSED:
        raise ValueError(
            "kernel='collapsed' integrates parameters out, which a Component does not allow; leave "
            "kernel out."
        )
    return kernel == SLICES or (kernel == AUTO and (keeps_parameters or n_rows > _MOST_COLLAPSED))


def refuse_many_clusters(name: str, prior: Any, gamma: float) -> None:
    """Refuse a gamma for which a sweep would draw parameters of millions of clusters.

    Parameters
    ----------
    name : str
        Name of the mixture.
    prior : NamedTuple
        Of the family.
    gamma : float

    Raises
    ------
    ValueError
    """
    if gamma > _MOST_GAMMA and is_kept(prior):
        raise ValueError(
            f"{name}: gamma is {gamma:g} in a draw, for which a sweep draws more than a million "
            "clusters of a family whose parameters cannot be integrated out; give gamma a smaller "
            "value, or a prior with a lighter tail."
        )
