"""The samplers of the literature, by the names that users give as ``kernel=``."""

from pymc_dpsplit.moves.cost import visit_cost
from pymc_dpsplit.moves.family_moves import KernelForm, typical_size
from pymc_dpsplit.moves.target import Target
from pymc_dpsplit.samplers.jain_neal import RESTRICTED_SCANS, iterate_jain_neal
from pymc_dpsplit.samplers.published_sampler import PublishedSampler
from pymc_dpsplit.samplers.sams import iterate_sams


def _collapsed_cost(target: Target, n_clusters: int) -> float:
    return target.data.shape[0] * visit_cost(target, n_clusters)


def _side_cost(target: Target, n_clusters: int) -> float:
    """Cost of putting each member of the clusters of an attempt on one of two sides."""
    return typical_size(target, n_clusters) * visit_cost(target, 1)


def _jain_neal_cost(target: Target, n_clusters: int, attempts: float) -> float:
    scans = (RESTRICTED_SCANS + 1) * _side_cost(target, n_clusters)
    return _collapsed_cost(target, n_clusters) + attempts * scans


def _sams_cost(target: Target, n_clusters: int, attempts: float) -> float:
    return _collapsed_cost(target, n_clusters) + attempts * _side_cost(target, n_clusters)


_ALL = (
    PublishedSampler(
        name="jain-neal",
        source="Jain & Neal (2004), J. Comput. Graph. Stat. 13, 158-182",
        is_exact=True,
        conjugate=KernelForm(iterate_jain_neal, None),
        nonconjugate=None,
        attempts=1,
        cost=_jain_neal_cost,
    ),
    PublishedSampler(
        name="sams",
        source="Dahl (2003), technical report, Dept. of Statistics, Univ. of Wisconsin - Madison",
        is_exact=True,
        conjugate=KernelForm(iterate_sams, None),
        nonconjugate=None,
        attempts=1,
        cost=_sams_cost,
    ),
)

SAMPLERS: dict[str, PublishedSampler] = {sampler.name: sampler for sampler in _ALL}
