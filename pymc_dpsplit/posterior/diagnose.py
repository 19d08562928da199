"""The verdict on a run, in words: convergence of what does not depend on cluster numbering."""

import math
import textwrap
from dataclasses import dataclass

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.posterior.agreement import Agreement, chain_agreement
from pymc_dpsplit.posterior.invariants import (
    LEAST_DRAWS,
    invariant_quantities,
    largest_disagreement,
    tabulate,
)
from pymc_dpsplit.posterior.probes import probe_densities
from pymc_dpsplit.posterior.trace import choose_mixture, group_of, mixture_names

# Vehtari et al. (2021), Rank-normalization, folding, and localization, Bayesian Analysis 16.
LARGEST_R_HAT = 1.01
LEAST_ESS = 400
# Between the two limits longer chains may do; above, chains explore different regions.
R_HAT_APART = 1.05
# Means of chains that differ by more standard errors than this do so hardly by chance.
_MOST_ERRORS = 5.0
# Draws are asked for with this margin, since the estimate of ESS is itself noisy.
_MARGIN = 1.25
# A chain that would have to be so many times longer is not cured by length.
_MOST_TIMES_LONGER = 50
# With fewer changes of the number of clusters a chain has hardly looked at another one.
_FEW_ACCEPTED = 10
_WITHOUT_MODEL = (
    "Give model= to judge more: the density of any family, and partitions of the chains."
)
_LINE = 88  # characters


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What `diagnose` found; ``print`` it for the verdict in words.

    Attributes
    ----------
    var_name : str
        Name of the mixture.
    table : Dataset
        Over ``quantity``: ``mean``, ``sd``, ``r_hat``, ``ess_bulk``, ``ess_tail``, ``is_constant``,
        ``is_judged`` (whether R-hat and ESS make sense); over ``quantity`` and ``chain``:
        ``chain_mean`` and ``chain_error``, its standard error.
    n_draws : int
        Draws per chain.
    agreement : Agreement or None
        Of the partitions of the chains: ``r_hat``, and the mean variation of information
        ``between`` chains and ``within``; None if they could not be compared.
    problems : tuple of str
        What stands against the draws, each with its remedy; empty if converged.
    remarks : tuple of str
        What else is worth knowing.
    """

    var_name: str
    table: xr.Dataset
    n_draws: int
    agreement: Agreement | None
    problems: tuple[str, ...]
    remarks: tuple[str, ...]

    @property
    def converged(self) -> bool:
        """Whether every R-hat and every ESS could be judged and passed, and partitions agree."""
        return not self.problems

    @property
    def verdict(self) -> str:
        """The first line of the judgement."""
        if self.converged:
            return f"Converged: every R-hat < {LARGEST_R_HAT} and every bulk ESS > {LEAST_ESS}."
        return "Not converged, as far as these draws tell:"

    def __str__(self) -> str:
        chains = _plural(self.table.sizes["chain"], "chain")
        lines = [f"Mixture {self.var_name}: {chains} of {_plural(self.n_draws, 'draw')}", ""]
        lines += [*_table_lines(self.table), "", self.verdict]
        for bullet in self.problems:
            lines += textwrap.wrap(bullet, _LINE, initial_indent="  - ", subsequent_indent="    ")
        for remark in self.remarks:
            lines += textwrap.wrap(remark, _LINE, subsequent_indent="  ")
        return "\n".join(lines)


def diagnose(
    idata: xr.DataTree, var_name: str | None = None, model: Model | None = None
) -> Diagnosis:
    """Judge a run by its label-invariant quantities, and say what to do next.

    Parameters
    ----------
    idata : DataTree
        As returned by `pm.sample`, or loaded from disk.
    var_name : str, optional
        Name of the mixture; needed if the trace holds several.
    model : pymc.Model, optional
        The model sampled.  Without it partitions are compared only if the trace holds labels,
        and predictive densities only if clusters are Gaussian.

    Returns
    -------
    Diagnosis
        Print it for the verdict in words; ``converged`` is the verdict as a bool.

    Raises
    ------
    ValueError
        If the trace lacks a group or a variable, or holds several mixtures and none is named.

    Notes
    -----
    Judged are the scalar variables of the posterior (alpha, the number of clusters, the weight
    of everything not yet seen, and whatever else the model holds), and the entropy and the log
    joint density of the partition.  Parameters of single clusters are not: their R-hat depends
    on how clusters are numbered.  Judged too is the log predictive density at five rows, those
    at the quantiles 5, 25, 50, 75 and 95 % of it, and whether partitions of different chains are
    no further apart than those of one [1]_.

    References
    ----------
    .. [1] docs/method.md, eq. (118).

    Examples
    --------
    >>> import arviz as az
    >>> import numpy as np
    >>> import pymc_dpsplit as dps
    >>> rng = np.random.default_rng(1)
    >>> drawn = {name: rng.normal(size=(4, 500)) for name in ("x_log_joint", "x_entropy")}
    >>> posterior = {
    ...     "x_n_clusters": rng.integers(1, 4, size=(4, 500)),
    ...     "x_new_weight": rng.random((4, 500)),
    ...     "x_weights": np.full((4, 500, 3), 0.3),
    ... }
    >>> idata = az.from_dict({"posterior": posterior, "sample_stats": drawn})
    >>> dps.diagnose(idata).converged
    True
    """
    name = choose_mixture(idata, var_name)
    posterior, stats = group_of(idata, "posterior"), group_of(idata, "sample_stats")
    draws = invariant_quantities(posterior, stats, name, mixture_names(idata))
    probes = probe_densities(idata, name, model)
    table = tabulate(draws if probes is None else draws.merge(probes))
    n_draws = draws.sizes["draw"]
    agreement = chain_agreement(idata, name, model)
    tune = _longer_tune(posterior.attrs.get("tuning_steps"))
    problems = [*_problems(table, n_draws, tune), *_partition_problems(agreement, tune)]
    remarks = [
        *(_constant_remarks(table) if n_draws >= LEAST_DRAWS else []),
        *_tail_remarks(table),
        *_agreement_remarks(table),
        *_partition_remarks(agreement),
        *_move_remarks(stats, name, is_apart=_are_apart(table)),
        *_dropped_remarks(posterior, name),
        *_divergence_remarks(stats),
    ]
    if model is None and (agreement is None or probes is None) and n_draws >= LEAST_DRAWS:
        remarks.append(_WITHOUT_MODEL)
    return Diagnosis(name, table, n_draws, agreement, tuple(problems), tuple(remarks))


def _problems(table: xr.Dataset, n_draws: int, tune: str) -> list[str]:
    """What stands against the draws, each with its remedy."""
    undefined = table["quantity"].values[~np.isfinite(table["mean"].values)]
    problems = [
        f"{name} is not finite in some draws: look at the draws of that quantity, and at its prior."
        for name in undefined
    ]
    if n_draws < LEAST_DRAWS:
        few = f"{_plural(n_draws, 'draw')} per chain cannot be judged: give draws=1000."
        return [*problems, few]
    if table.sizes["chain"] < 2:
        problems.append("one chain does not show whether others would agree: give chains=4.")
    else:
        problems += _r_hat_problems(table, n_draws, tune)
    return [*problems, *_ess_problems(table, n_draws)]


def _are_apart(table: xr.Dataset) -> bool:
    """Whether chains explore different regions, by more than their slowness explains."""
    if table.sizes["chain"] < 2:
        return False
    failing = table.isel(quantity=table["is_judged"] & ~(table["r_hat"] < R_HAT_APART))
    return failing.sizes["quantity"] > 0 and largest_disagreement(failing)[2] > _MOST_ERRORS


def _r_hat_problems(table: xr.Dataset, n_draws: int, tune: str) -> list[str]:
    # Written so that an R-hat that could not be computed fails.
    failing = table.isel(quantity=table["is_judged"] & ~(table["r_hat"] < LARGEST_R_HAT))
    if failing.sizes["quantity"] == 0:
        return []
    listed = _listed(failing, "r_hat", "{:.3g}")
    if not _are_apart(table):
        remedy = f"give more draws, {2 * n_draws} or what bulk ESS asks for"
        return [f"R-hat is {LARGEST_R_HAT} or more for {listed}: {remedy}."]
    quantity, chain, _ = largest_disagreement(failing)
    own, rest = _mean_and_rest(failing.sel(quantity=quantity), chain)
    return [
        f"the chains are in different places: R-hat is {listed}; chain {chain} stands apart, with "
        f"a mean {quantity} of {own:.5g} where the others have {rest:.5g}: give {tune}, and if "
        "they still differ, look at az.plot_trace for chains that never meet."
    ]


def _longer_tune(n_tune: int | None) -> str:
    return f"tune={2 * int(n_tune)}" if n_tune else "tune= twice as large"


def _partition_problems(agreement: Agreement | None, tune: str) -> list[str]:
    if agreement is None or agreement.r_hat < R_HAT_APART:
        return []
    return [
        f"the chains hold different partitions: R-hat of the co-clustering is "
        f"{agreement.r_hat:.3g}, two draws differ by {agreement.between:.3g} nats in different "
        f"chains and by {agreement.within:.3g} in one, chain {agreement.chain} most: give {tune}, "
        "and if they still differ, compare similarity_matrix(labels.sel(chain=[...])) of chains."
    ]


def _partition_remarks(agreement: Agreement | None) -> list[str]:
    if agreement is None or agreement.r_hat >= R_HAT_APART:
        return []
    return [
        f"Partitions agree: two draws differ by {agreement.between:.3g} nats in different chains "
        f"and by {agreement.within:.3g} in one (variation of information; R-hat of the "
        f"co-clustering {agreement.r_hat:.3f})."
    ]


def _ess_problems(table: xr.Dataset, n_draws: int) -> list[str]:
    failing = table.isel(quantity=table["is_judged"] & ~(table["ess_bulk"] > LEAST_ESS))
    if failing.sizes["quantity"] == 0:
        return []
    listed = _listed(failing, "ess_bulk", "{:.0f}")
    short = f"bulk ESS is {LEAST_ESS} or less for {listed}"
    times_longer = _MARGIN * LEAST_ESS / float(failing["ess_bulk"].min())
    if _are_apart(table):
        return [f"{short}: judge it again when the chains have met."]
    work = 'more work per draw by pm.sample(dpsplit={"iterations": ...})'
    if times_longer > _MOST_TIMES_LONGER:
        return [f"{short}: the chains hardly move; look at az.plot_trace, and give {work}."]
    return [f"{short}: give draws={_rounded_up(n_draws * times_longer)}, or {work}."]


def _constant_remarks(table: xr.Dataset) -> list[str]:
    constant = table.isel(quantity=table["is_constant"])
    if constant.sizes["quantity"] == 0:
        return []
    values = [f"{q} = {m:g}" for q, m in _pairs(constant, "mean")]
    return [f"Constant in every draw, so without R-hat and ESS: {', '.join(values)}."]


def _tail_remarks(table: xr.Dataset) -> list[str]:
    failing = table.isel(quantity=table["ess_tail"] <= LEAST_ESS)
    if failing.sizes["quantity"] == 0:
        return []
    listed = _listed(failing, "ess_tail", "{:.0f}")
    return [f"Tail ESS is {LEAST_ESS} or less for {listed}: trust its extreme quantiles less."]


def _agreement_remarks(table: xr.Dataset) -> list[str]:
    """How far chains differ where R-hat finds no fault; where it does, it has been said."""
    moving = table.isel(quantity=table["chain_error"].notnull().all("chain"))
    is_faulty = not (moving["r_hat"] < LARGEST_R_HAT).all()
    if is_faulty or moving.sizes["chain"] < 2 or moving.sizes["quantity"] == 0:
        return []
    quantity, chain, errors = largest_disagreement(moving)
    far = errors > _MOST_ERRORS
    start = "Chains differ by more than chance" if far else "Chains agree"
    return [
        f"{start}: the mean {quantity} of chain {chain} is {errors:.1f} standard errors from that "
        "of the others, the largest such difference."
    ]


def _move_remarks(stats: xr.Dataset, name: str, is_apart: bool) -> list[str]:
    """How often splits and merges were proposed and accepted; what to do if that is too rare."""
    said, n_accepted = [], 0
    for kind in ("splits", "merges"):
        keys = [f"{name}_{kind}_{what}" for what in ("accepted", "proposed")]
        if all(key in stats for key in keys):
            accepted, proposed = (int(stats[key].sum()) for key in keys)
            n_accepted += accepted
            if proposed:
                said.append(f"{100 * accepted / proposed:.1f} % of {proposed} {kind}")
    if not said:
        return []
    remedy = ""
    if is_apart and n_accepted < _FEW_ACCEPTED * stats.sizes["chain"]:
        remedy = ' Chains that differ need more: give pm.sample(dpsplit={"attempts": 4}).'
    return [f"Accepted: {' and '.join(said)}.{remedy}"]


def _dropped_remarks(posterior: xr.Dataset, name: str) -> list[str]:
    """Draws with more occupied clusters than rows to record them in."""
    n_clusters = posterior[f"{name}_n_clusters"]
    (cluster,) = set(posterior[f"{name}_weights"].dims) - {"chain", "draw"}
    n_rows = posterior.sizes[cluster]
    n_over = int((n_clusters > n_rows).sum())
    if n_over == 0:
        return []
    most = int(n_clusters.max())
    return [
        f"Clusters left out: {n_over} of {n_clusters.size} draws have more clusters (up to {most}) "
        f"than the {n_rows} rows kept; the chains are not affected, but the record of the smallest "
        f"clusters is: give max_clusters={_rounded_up(1.2 * most)} to DPMixture."
    ]


def _divergence_remarks(stats: xr.Dataset) -> list[str]:
    n_diverging = int(stats["diverging"].sum()) if "diverging" in stats else 0
    if n_diverging == 0:
        return []
    return [f"NUTS diverged in {n_diverging} draws: give target_accept=0.95, or reparametrise."]


def _mean_and_rest(row: xr.Dataset, chain: int) -> tuple[float, float]:
    """Mean of one chain, and of the others together."""
    is_own = row["chain"] == chain
    means = row["chain_mean"]
    return float(means.where(is_own).mean()), float(means.where(~is_own).mean())


def _pairs(table: xr.Dataset, column: str) -> list[tuple[str, float]]:
    return [
        (str(name), float(value))
        for name, value in zip(table["quantity"].values, table[column].values, strict=True)
    ]


def _listed(table: xr.Dataset, column: str, form: str) -> str:
    return ", ".join(f"{name} ({form.format(value)})" for name, value in _pairs(table, column))


def _table_lines(table: xr.Dataset) -> list[str]:
    names = [str(name) for name in table["quantity"].values]
    forms = {"mean": "{:.6g}", "sd": "{:.3g}", "r_hat": "{:.3f}"}
    forms |= {"ess_bulk": "{:.0f}", "ess_tail": "{:.0f}"}
    width = max(map(len, names))
    lines = [" " * width + "".join(f"{column:>12}" for column in forms)]
    for i, name in enumerate(names):
        cells = [form.format(float(table[key][i])) for key, form in forms.items()]
        shown = ["-" if cell == "nan" else cell for cell in cells]
        lines.append(f"{name:<{width}}" + "".join(f"{cell:>12}" for cell in shown))
    return lines


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _rounded_up(value: float) -> int:
    """Round `value` up to two digits."""
    unit = 10 ** max(0, math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit) * unit
