"""The samplers of the literature, by the names that users give as ``kernel=``."""

import math

import numpy as np

from pymc_dpsplit.components.nonconjugate.compiled_prior import CompiledPrior
from pymc_dpsplit.kernels.tiles import TILE
from pymc_dpsplit.moves.cost import visit_cost, work_of
from pymc_dpsplit.moves.family_moves import KernelForm, typical_size
from pymc_dpsplit.moves.target import Target
from pymc_dpsplit.samplers.av_parallel import N_PROCESSORS, iterate_av_parallel, shares_of
from pymc_dpsplit.samplers.chang_fisher import REPAIRED, iterate_chang_fisher
from pymc_dpsplit.samplers.importance_conditional import N_VALUES, iterate_ics
from pymc_dpsplit.samplers.jain_neal import RESTRICTED_SCANS, iterate_jain_neal
from pymc_dpsplit.samplers.neal2 import iterate_neal2
from pymc_dpsplit.samplers.neal8 import N_AUXILIARY, iterate_neal8
from pymc_dpsplit.samplers.published_sampler import PublishedSampler, SamplerOption
from pymc_dpsplit.samplers.sams import iterate_sams
from pymc_dpsplit.samplers.slice_sampler import MOST_STRENGTH, iterate_slice
from pymc_dpsplit.samplers.sub_cluster_chain import N_SUB_CLUSTERS, rows_with_sub_clusters
from pymc_dpsplit.samplers.truncated import TRUNCATION, iterate_truncated

# Nanoseconds of a density compiled by PyTensor; of another one, and per multiplication in it.
_COMPILED_DENSITY, _DENSITY, _WORK = 7.0, 0.7, 0.012
# Nanoseconds of looking up a label.
_LOOK = 0.5
# Densities of a row that slice sampling evaluates per parameter.
_STEPS_OF_SLICE = 7


def _collapsed_cost(target: Target, n_clusters: int) -> float:
    return target.data.shape[0] * visit_cost(target, n_clusters)


def _side_cost(target: Target, n_clusters: int) -> float:
    """Cost of putting each member of the clusters of an attempt on one of two sides."""
    return typical_size(target, n_clusters) * visit_cost(target, 1)


def _jain_neal_cost(
    target: Target, n_clusters: int, attempts: float, _settings: np.ndarray
) -> float:
    scans = (RESTRICTED_SCANS + 1) * _side_cost(target, n_clusters)
    return _collapsed_cost(target, n_clusters) + attempts * scans


def _av_parallel_cost(target: Target, n_clusters: int, _: float, settings: np.ndarray) -> float:
    shares = shares_of(settings)
    looks = len(shares) * target.data.shape[0] * _LOOK
    # As many clusters as share a processor with that of an observation.
    n_met = math.ceil(n_clusters * float(shares @ shares))
    return target.data.shape[0] * visit_cost(target, n_met) + looks


def _sams_cost(target: Target, n_clusters: int, attempts: float, _settings: np.ndarray) -> float:
    return _collapsed_cost(target, n_clusters) + attempts * _side_cost(target, n_clusters)


def _cost_of_densities(target: Target, n_atoms: float) -> float:
    """Cost of the density of every observation under atoms, and of an update of parameters."""
    per_density = _COMPILED_DENSITY
    if isinstance(target.prior, CompiledPrior):
        n_atoms += _STEPS_OF_SLICE * len(target.prior.widths)
    else:
        per_density = _DENSITY + _WORK * work_of(target.data)
    return target.data.shape[0] * n_atoms * per_density


def _neal2_cost(target: Target, n_clusters: int, _: float, _settings: np.ndarray) -> float:
    return _cost_of_densities(target, n_clusters + 1)


def _neal8_cost(target: Target, n_clusters: int, _: float, _settings: np.ndarray) -> float:
    return _cost_of_densities(target, n_clusters + TILE * N_AUXILIARY)


def _chang_fisher_cost(
    target: Target, n_clusters: int, attempts: float, settings: np.ndarray
) -> float:
    if settings[REPAIRED] != 0.0:
        return _repaired_cost(target, n_clusters, attempts)
    looks = (n_clusters + attempts) * target.data.shape[0] * _LOOK
    return _cost_of_densities(target, n_clusters + 2) + looks


def _repaired_cost(target: Target, n_clusters: int, attempts: float) -> float:
    """Cost of a sweep, of redrawing the sub-clusters, and of attempts: two sides, three looks."""
    n_obs = target.data.shape[0]
    share = len(rows_with_sub_clusters(n_obs)) / n_obs
    allocated = 2.0 * attempts * typical_size(target, n_clusters) / n_obs
    densities = _cost_of_densities(target, n_clusters + share * N_SUB_CLUSTERS + allocated)
    return densities + 3.0 * attempts * n_obs * _LOOK


def _ics_cost(target: Target, n_clusters: int, _: float, settings: np.ndarray) -> float:
    return _cost_of_densities(target, n_clusters + float(settings[0]))


def _truncated_cost(target: Target, n_clusters: int, _: float, settings: np.ndarray) -> float:
    looks = n_clusters * target.data.shape[0] * _LOOK
    return _cost_of_densities(target, float(settings[0])) + looks


def _slice_cost(target: Target, n_clusters: int, _: float, _settings: np.ndarray) -> float:
    n_sticks = target.law.strength * math.log1p(target.data.shape[0])
    return _cost_of_densities(target, n_clusters + n_sticks)


_ALL = (
    PublishedSampler(
        name="jain-neal",
        source="Jain & Neal (2004), J. Comput. Graph. Stat. 13, 158-182",
        is_exact=True,
        conjugate=KernelForm(iterate_jain_neal, None),
        nonconjugate=None,
        attempts=1,
        cost=_jain_neal_cost,
        is_collapsed=True,
    ),
    PublishedSampler(
        name="sams",
        source="Dahl (2003), technical report, Dept. of Statistics, Univ. of Wisconsin - Madison",
        is_exact=True,
        conjugate=KernelForm(iterate_sams, None),
        nonconjugate=None,
        attempts=1,
        cost=_sams_cost,
        is_collapsed=True,
    ),
    PublishedSampler(
        name="neal2",
        source="Neal (2000), J. Comput. Graph. Stat. 9, 249-265, algorithm 2",
        is_exact=True,
        conjugate=KernelForm(iterate_neal2, None),
        nonconjugate=None,
        attempts=0,
        cost=_neal2_cost,
        is_collapsed=False,
    ),
    PublishedSampler(
        name="neal8",
        source="Neal (2000), J. Comput. Graph. Stat. 9, 249-265, algorithm 8",
        is_exact=True,
        conjugate=KernelForm(iterate_neal8, None),
        nonconjugate=KernelForm(iterate_neal8, None),
        attempts=0,
        cost=_neal8_cost,
        is_collapsed=False,
    ),
    PublishedSampler(
        name="chang-fisher",
        source="Chang & Fisher (2013), Adv. Neural Inf. Process. Syst. 26, 620-628",
        is_exact=False,
        conjugate=KernelForm(iterate_chang_fisher, None, keeps=True),
        nonconjugate=None,
        attempts=1,
        cost=_chang_fisher_cost,
        is_collapsed=False,
        takes_any_law=False,
        options=(
            SamplerOption("super_clusters", False),
            SamplerOption("sub_cluster_burn_in", True),
            SamplerOption(
                "repaired",
                False,
                is_exact_if_true=True,
                not_beside=("super_clusters", "sub_cluster_burn_in"),
            ),
        ),
    ),
    PublishedSampler(
        name="slice",
        source="Walker (2007), Comm. Stat. Simul. Comput. 36, 45-54",
        is_exact=True,
        conjugate=KernelForm(iterate_slice, None, keeps=True),
        nonconjugate=KernelForm(iterate_slice, None, keeps=True),
        attempts=0,
        cost=_slice_cost,
        is_collapsed=False,
        takes_any_law=False,
        most_strength=MOST_STRENGTH,
    ),
    PublishedSampler(
        name="ics",
        source="Canale, Corradin & Nipoti (2022), Stat. Comput. 32, 40",
        is_exact=False,
        conjugate=KernelForm(iterate_ics, None),
        nonconjugate=KernelForm(iterate_ics, None),
        attempts=0,
        cost=_ics_cost,
        is_collapsed=False,
        options=(SamplerOption("m", N_VALUES, least=1),),
    ),
    PublishedSampler(
        name="truncated",
        source="Ishwaran & James (2001), J. Am. Stat. Assoc. 96, 161-173",
        is_exact=False,
        conjugate=KernelForm(iterate_truncated, None, keeps=True),
        nonconjugate=KernelForm(iterate_truncated, None, keeps=True),
        attempts=0,
        cost=_truncated_cost,
        is_collapsed=False,
        takes_any_law=False,
        most_strength=MOST_STRENGTH,
        options=(SamplerOption("truncation", TRUNCATION, least=2),),
    ),
    PublishedSampler(
        name="av-parallel",
        source="Williamson, Dubey & Xing (2013), arXiv 1211.7120",
        is_exact=True,
        conjugate=KernelForm(iterate_av_parallel, None, keeps=True),
        nonconjugate=None,
        attempts=0,
        cost=_av_parallel_cost,
        is_collapsed=True,
        takes_any_law=False,
        options=(
            SamplerOption("processors", N_PROCESSORS, least=1),
            SamplerOption("published", False, is_exact_if_true=False),
            SamplerOption("shares", (), not_beside=("processors", "published")),
        ),
    ),
)

SAMPLERS: dict[str, PublishedSampler] = {sampler.name: sampler for sampler in _ALL}
