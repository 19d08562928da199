"""`diagnose`: a verdict on the convergence of label-invariant quantities."""

import textwrap
from dataclasses import dataclass

import xarray as xr
from pymc.model import Model

from pymc_dpsplit.posterior.diagnostics.agreement import Agreement, chain_agreement
from pymc_dpsplit.posterior.diagnostics.doubts import doubts_of
from pymc_dpsplit.posterior.diagnostics.invariants import (
    LEAST_DRAWS,
    invariant_quantities,
    largest_disagreement,
    tabulate,
)
from pymc_dpsplit.posterior.diagnostics.plan import naming_the_step, plan_remarks
from pymc_dpsplit.posterior.diagnostics.probes import probe_densities
from pymc_dpsplit.posterior.diagnostics.problems import (
    LARGEST_R_HAT,
    LEAST_ESS,
    MOST_ERRORS,
    R_HAT_APART,
    are_apart,
    listed_worst,
    longer_tune,
    named_values,
    partition_problems,
    plural,
    problems_of,
    rounded_up,
)
from pymc_dpsplit.posterior.diagnostics.topics import (
    choose_topics,
    names_of_concentrations,
    topic_model_in,
    topic_quantities,
    topic_remarks,
)
from pymc_dpsplit.posterior.trace.declared import kept_rows
from pymc_dpsplit.posterior.trace.groups import choose_mixture, group_of, mixture_names
from pymc_dpsplit.posterior.trace.hierarchical import declared_mixture, hierarchical_in
from pymc_dpsplit.posterior.trace.labels import refuse_other_data
from pymc_dpsplit.posterior.trace.recorded import counts_of, refuse_other_draws
from pymc_dpsplit.variables import find_mixtures

# A chain with fewer accepted moves has hardly explored other numbers of clusters.
_FEW_ACCEPTED = 10
_WITHOUT_MODEL = (
    "Give model= to judge more: the density of any family, and partitions of the chains."
)
_LINE = 88  # characters


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Result of `diagnose`; ``print`` it for the verdict in words.

    Attributes
    ----------
    var_name : str
        Name of the mixture, or of the documents of a topic model.
    table : Dataset
        Over ``quantity``: ``mean``, ``sd``, ``r_hat``, ``ess_bulk``, ``ess_tail``, ``is_constant``,
        ``is_judged`` (whether R-hat and ESS are meaningful); over ``quantity`` and ``chain``:
        ``chain_mean`` and ``chain_error``, its standard error.
    n_draws : int
        Draws per chain.
    agreement : Agreement or None
        Agreement of the partitions of the chains: ``r_hat``, and the mean variation of information
        ``between`` and ``within`` chains; None if they could not be compared.
    problems : tuple of str
        Reasons not to trust the draws, each with its remedy; empty if converged.
    remarks : tuple of str
        Further findings that do not change the verdict.
    doubts : tuple of str
        Signs that the model does not suit the data, however well the chains agree, each with its
        remedy.
    kind : str
        What the name is of, ``"Mixture"`` or ``"Topics"``.
    """

    var_name: str
    table: xr.Dataset
    n_draws: int
    agreement: Agreement | None
    problems: tuple[str, ...]
    remarks: tuple[str, ...]
    doubts: tuple[str, ...] = ()
    kind: str = "Mixture"

    @property
    def converged(self) -> bool:
        """Return whether all R-hat and ESS pass and the partitions of the chains agree."""
        return not self.problems

    @property
    def verdict(self) -> str:
        """Return the first line of the printed diagnosis."""
        if self.converged:
            return f"Converged: every R-hat < {LARGEST_R_HAT} and every bulk ESS > {LEAST_ESS}."
        return "Not converged, as far as these draws tell:"

    def __str__(self) -> str:
        chains = plural(self.table.sizes["chain"], "chain")
        lines = [f"{self.kind} {self.var_name}: {chains} of {plural(self.n_draws, 'draw')}", ""]
        lines += [*_table_lines(self.table), "", self.verdict]
        for bullet in self.problems:
            lines += textwrap.wrap(bullet, _LINE, initial_indent="  - ", subsequent_indent="    ")
        if self.doubts:
            lines.append("The fit is doubtful, whatever the chains do:")
        for bullet in self.doubts:
            lines += textwrap.wrap(bullet, _LINE, initial_indent="  - ", subsequent_indent="    ")
        for remark in self.remarks:
            lines += textwrap.wrap(remark, _LINE, subsequent_indent="  ")
        return "\n".join(lines)


def diagnose(
    idata: xr.DataTree, *, model: Model | None = None, var_name: str | None = None
) -> Diagnosis:
    """Assess the convergence of a run, and suggest remedies.

    Parameters
    ----------
    idata : DataTree
        As returned by `pm.sample`, or loaded from disk.
    model : pymc.Model, optional
        The sampled model, by default that of the context.  Without a model partitions are compared
        only if the trace contains labels, and predictive densities only if clusters are Gaussian.
    var_name : str, optional
        Name of the mixture or of the documents of a topic model; required if the trace contains
        several.

    Returns
    -------
    Diagnosis
        Print it for the verdict in words; ``converged`` is the verdict as a bool.

    Raises
    ------
    ValueError
        If the trace lacks a group or a variable, contains several mixtures and none is named, or is
        of other data than the model.

    Notes
    -----
    The verdict covers the scalar variables of the posterior (alpha, the number of clusters, the
    weight of the remainder, and the other scalars of the model), the entropy and the log joint
    density of the partition, and the log predictive density at five rows, at its quantiles 5, 25,
    50, 75 and 95 %.  It also compares the distance between partitions of different chains with that
    between partitions of one chain [1]_.  It excludes parameters of single clusters, because their
    R-hat depends on the numbering of clusters.

    Of an `HDPTopics` it judges the scalars of the posterior, the entropy of the sizes of topics,
    the largest share and the log joint density.

    With a model, ``doubts`` tells of fits that no longer chain improves: many times more clusters
    than the prior of alpha expects, one cluster where a partition by k-means is likelier (which
    takes seconds, and is tried for conjugate families and at most 2e6 entries), columns on scales
    that the base measure does not expect, and columns of a `Product` that are too dispersed for
    `Poisson`.

    References
    ----------
    .. [1] docs/method.md, eq. (11.9).

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
    model = Model.get_context(error_if_none=False) if model is None else model
    topics = choose_topics(idata, var_name)
    if topics is not None:
        return _diagnose_topics(idata, topics, model)
    name = choose_mixture(idata, var_name)
    posterior, stats = group_of(idata, "posterior"), group_of(idata, "sample_stats")
    refuse_other_draws(posterior, stats, "sample_stats")
    mixture = None if model is None else declared_mixture(model, name)
    if mixture is not None:
        refuse_other_data(idata, mixture)
    draws = invariant_quantities(posterior, stats, name, mixture_names(idata))
    probes = probe_densities(idata, name, model)
    table = tabulate(draws if probes is None else draws.merge(probes))
    n_draws = draws.sizes["draw"]
    agreement = chain_agreement(idata, name, model)
    tune = longer_tune(posterior.attrs.get("tuning_steps"))
    foreign = _foreign_quantities(table, name, model)
    of_chains = problems_of(table, n_draws, tune, foreign)
    of_partitions = partition_problems(agreement, tune)
    remarks = [
        *(_constant_remarks(table) if n_draws >= LEAST_DRAWS else []),
        *_tail_remarks(table),
        # That chains agree is said only where nothing says that they do not.
        *(_agreement_remarks(table) if not of_partitions else []),
        *(_partition_remarks(agreement) if not are_apart(table) else []),
        *plan_remarks(stats, name),
        *_move_remarks(stats, name, is_apart=are_apart(table)),
        *_dropped_remarks(posterior, stats, name),
        *_divergence_remarks(stats),
    ]
    if model is None and (agreement is None or probes is None) and n_draws >= LEAST_DRAWS:
        remarks.append(_WITHOUT_MODEL)
    doubts = tuple(doubts_of(idata, posterior, name, model))
    problems = naming_the_step([*of_chains, *of_partitions], stats, name)
    remarks = list(naming_the_step(remarks, stats, name))
    return Diagnosis(name, table, n_draws, agreement, problems, tuple(remarks), doubts)


def _diagnose_topics(idata: xr.DataTree, name: str, model: Model | None) -> Diagnosis:
    posterior, stats = group_of(idata, "posterior"), group_of(idata, "sample_stats")
    refuse_other_draws(posterior, stats, "sample_stats")
    topics = topic_model_in(idata, name, model)
    draws = topic_quantities(idata, posterior, stats, name)
    table, n_draws = tabulate(draws), draws.sizes["draw"]
    law = {"alpha", "gamma", "eta"}
    if topics is not None and model is not None:
        law = names_of_concentrations(topics, model)
    foreign = _not_of(table, name, law)
    found = problems_of(table, n_draws, longer_tune(posterior.attrs.get("tuning_steps")), foreign)
    remarks = (
        *(_constant_remarks(table) if n_draws >= LEAST_DRAWS else []),
        *_tail_remarks(table),
        *_agreement_remarks(table),
        *topic_remarks(posterior, name),
        *_divergence_remarks(stats),
    )
    problems = naming_the_step(found, stats, name)
    return Diagnosis(name, table, n_draws, None, problems, remarks, kind="Topics")


def _not_of(table: xr.Dataset, name: str, law: set[str]) -> set[str]:
    """Return the quantities that belong neither to a mixture or topics nor to their law."""
    own = (f"{name}_", f"{name}[", "log_density[")
    quantities = {str(key) for key in table["quantity"].values}
    return {key for key in quantities if not key.startswith(own) and key not in law}


def _foreign_quantities(table: xr.Dataset, name: str, model: Model | None) -> set[str]:
    """Return the quantities that other steps move: not the mixture's own, nor those of its law."""
    mixture = None if model is None else find_mixtures(model).get(name)
    law = {"alpha"}
    if model is not None and mixture is not None:
        law = mixture.names_of_law(model)
    grouped = None if model is None else hierarchical_in(model, name)
    if model is not None and grouped is not None:
        law = {str(of.name) for of in grouped.roots_of_concentrations(model)}
    return _not_of(table, name, law)


def _partition_remarks(agreement: Agreement | None) -> list[str]:
    if agreement is None or agreement.r_hat >= R_HAT_APART:
        return []
    return [
        f"Partitions agree: two draws differ by {agreement.between:.3g} nats in different chains "
        f"and by {agreement.within:.3g} in one (variation of information; R-hat of the "
        f"co-clustering {agreement.r_hat:.3f})."
    ]


def _constant_remarks(table: xr.Dataset) -> list[str]:
    constant = table.isel(quantity=table["is_constant"])
    if constant.sizes["quantity"] == 0:
        return []
    values = [f"{q} = {m:g}" for q, m in named_values(constant, "mean")]
    return [f"Constant in every draw, so without R-hat and ESS: {', '.join(values)}."]


def _tail_remarks(table: xr.Dataset) -> list[str]:
    failing = table.isel(quantity=table["ess_tail"] <= LEAST_ESS)
    if failing.sizes["quantity"] == 0:
        return []
    listed = listed_worst(failing, "ess_tail", "{:.0f}")
    return [f"Tail ESS is {LEAST_ESS} or less for {listed}: trust its extreme quantiles less."]


def _agreement_remarks(table: xr.Dataset) -> list[str]:
    """Return the largest difference between chains, if no R-hat reports one already."""
    moving = table.isel(quantity=table["chain_error"].notnull().all("chain"))
    is_faulty = not (moving["r_hat"] < LARGEST_R_HAT).all()
    if is_faulty or moving.sizes["chain"] < 2 or moving.sizes["quantity"] == 0:
        return []
    quantity, chain, errors = largest_disagreement(moving)
    far = errors > MOST_ERRORS
    start = "Chains differ by more than chance" if far else "Chains agree"
    return [
        f"{start}: the mean {quantity} of chain {chain} is {errors:.1f} standard errors from that "
        "of the others, the largest such difference."
    ]


def _move_remarks(stats: xr.Dataset, name: str, is_apart: bool) -> list[str]:
    """Return the acceptance rates of splits and merges, and a remedy if they are too low."""
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


def _dropped_remarks(posterior: xr.Dataset, stats: xr.Dataset, name: str) -> list[str]:
    """Count the draws with more occupied clusters than recorded rows."""
    n_clusters, n_rows = counts_of(posterior, name), kept_rows(posterior, name)
    n_over = int((n_clusters > n_rows).sum())
    if n_over == 0:
        return []
    most = int(n_clusters.max())
    has_labels = any(f"{name}_labels" in group for group in (posterior, stats))
    flag = stats.get(f"{name}_is_conjugate")
    record = (
        "functions that read the trace draw the clusters of these draws anew, given the labels"
        if has_labels and flag is not None and bool(flag.all())
        else f"the record of the smallest clusters is: give max_clusters={rounded_up(1.2 * most)} "
        "to DPMixture"
    )
    return [
        f"Clusters left out: {n_over} of {n_clusters.size} draws have more clusters (up to {most}) "
        f"than the {n_rows} rows kept; the chains are not affected, but {record}."
    ]


def _divergence_remarks(stats: xr.Dataset) -> list[str]:
    n_diverging = int(stats["diverging"].sum()) if "diverging" in stats else 0
    if n_diverging == 0:
        return []
    return [f"NUTS diverged in {n_diverging} draws: give target_accept=0.95, or reparametrise."]


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
