"""Reasons not to trust draws, each with its remedy, in words."""

import math

import numpy as np
import xarray as xr

from pymc_dpsplit.posterior.diagnostics.agreement import Agreement
from pymc_dpsplit.posterior.diagnostics.invariants import LEAST_DRAWS, largest_disagreement

# Vehtari et al. (2021), Rank-normalization, folding, and localization, Bayesian Analysis 16.
LARGEST_R_HAT = 1.01
LEAST_ESS = 400
# Between the two limits longer chains may suffice; above, chains explore different regions.
R_HAT_APART = 1.05
# Means of chains that differ by more standard errors are reported as different.
MOST_ERRORS = 5.0
# Margin of the number of draws suggested, because the estimate of ESS is noisy.
_MARGIN = 1.25
# Beyond this factor a longer chain is not a useful remedy.
_MOST_TIMES_LONGER = 50
_MOST_LISTED = 3


def problems_of(table: xr.Dataset, n_draws: int, tune: str, foreign: set[str]) -> list[str]:
    """Return the reasons not to trust the draws, each with its remedy."""
    undefined = table["quantity"].values[~np.isfinite(table["mean"].values)]
    problems = [
        f"{name} is not finite in some draws: look at the draws of that quantity, and at its prior."
        for name in undefined
    ]
    if n_draws < LEAST_DRAWS:
        few = f"{plural(n_draws, 'draw')} per chain cannot be judged: give draws=1000."
        return [*problems, few]
    if table.sizes["chain"] < 2:
        problems.append("one chain does not show whether others would agree: give chains=4.")
    else:
        problems += _r_hat_problems(table, n_draws, tune)
    is_foreign = np.isin(table["quantity"].values.astype(str), sorted(foreign))
    own, others = table.isel(quantity=~is_foreign), table.isel(quantity=is_foreign)
    apart = are_apart(table)
    return [
        *problems,
        *_ess_problems(own, n_draws, apart, by_other_step=False),
        *_ess_problems(others, n_draws, apart, by_other_step=True),
    ]


def are_apart(table: xr.Dataset) -> bool:
    """Return whether chains differ by more than slow mixing explains."""
    if table.sizes["chain"] < 2:
        return False
    failing = table.isel(quantity=table["is_judged"] & ~(table["r_hat"] < R_HAT_APART))
    return failing.sizes["quantity"] > 0 and largest_disagreement(failing)[2] > MOST_ERRORS


def _r_hat_problems(table: xr.Dataset, n_draws: int, tune: str) -> list[str]:
    # Negated, so that a NaN R-hat, which could not be computed, fails.
    failing = table.isel(quantity=table["is_judged"] & ~(table["r_hat"] < LARGEST_R_HAT))
    if failing.sizes["quantity"] == 0:
        return []
    listed = listed_worst(failing, "r_hat", "{:.3g}")
    if not are_apart(table):
        remedy = f"give more draws, {2 * n_draws} or what bulk ESS asks for"
        return [f"R-hat is {LARGEST_R_HAT} or more for {listed}: {remedy}."]
    quantity, chain, _ = largest_disagreement(failing)
    own, rest = _mean_and_rest(failing.sel(quantity=quantity), chain)
    return [
        f"the chains are in different places: R-hat is {listed}; chain {chain} stands apart, with "
        f"a mean {quantity} of {own:.5g} where the others have {rest:.5g}: give {tune}, and if "
        "they still differ, look at dps.plot_trace for chains that never meet."
    ]


def longer_tune(n_tune: int | None) -> str:
    """Return the advice to tune for longer."""
    return f"tune={2 * int(n_tune)}" if n_tune else "tune= twice as large"


def partition_problems(agreement: Agreement | None, tune: str) -> list[str]:
    """Return what to do if chains hold different partitions."""
    if agreement is None or agreement.r_hat < R_HAT_APART:
        return []
    return [
        f"the chains hold different partitions: R-hat of the co-clustering is "
        f"{agreement.r_hat:.3g}, two draws differ by {agreement.between:.3g} nats in different "
        f"chains and by {agreement.within:.3g} in one, chain {agreement.chain} most: give {tune}, "
        "and if they still differ, compare similarity_matrix(labels.sel(chain=[...])) of chains."
    ]


def _ess_problems(
    table: xr.Dataset, n_draws: int, is_apart: bool, by_other_step: bool
) -> list[str]:
    failing = table.isel(quantity=table["is_judged"] & ~(table["ess_bulk"] > LEAST_ESS))
    if failing.sizes["quantity"] == 0:
        return []
    listed = listed_worst(failing, "ess_bulk", "{:.0f}")
    short = f"bulk ESS is {LEAST_ESS} or less for {listed}"
    times_longer = _MARGIN * LEAST_ESS / float(failing["ess_bulk"].min())
    if is_apart:
        return [f"{short}: judge it again when the chains have met."]
    if by_other_step:
        longer = f"draws={rounded_up(n_draws * min(times_longer, _MOST_TIMES_LONGER))}"
        return [
            f"{short}, which the step of the mixture does not move, but another step: give "
            f"{longer}, or look at that step, as NUTS with target_accept=0.95, and at the "
            "parametrisation."
        ]
    work = 'more work per draw by pm.sample(dpsplit={"iterations": ...})'
    if times_longer > _MOST_TIMES_LONGER:
        return [f"{short}: the chains hardly move; look at dps.plot_trace, and give {work}."]
    return [f"{short}: give draws={rounded_up(n_draws * times_longer)}, or {work}."]


def _mean_and_rest(row: xr.Dataset, chain: int) -> tuple[float, float]:
    """Return the mean of one chain, and that of all others."""
    is_own = row["chain"] == chain
    means = row["chain_mean"]
    return float(means.where(is_own).mean()), float(means.where(~is_own).mean())


def named_values(table: xr.Dataset, column: str) -> list[tuple[str, float]]:
    """Return the quantities of a table, each with its value in a column."""
    return [
        (str(name), float(value))
        for name, value in zip(table["quantity"].values, table[column].values, strict=True)
    ]


def listed_worst(table: xr.Dataset, column: str, form: str) -> str:
    """List the worst quantities, NaN first, and count the others."""
    sign = -1.0 if column == "r_hat" else 1.0
    ordered = sorted(
        named_values(table, column), key=lambda of: (not math.isnan(of[1]), sign * of[1])
    )
    said = ", ".join(f"{name} ({form.format(value)})" for name, value in ordered[:_MOST_LISTED])
    more = len(ordered) - _MOST_LISTED
    return f"{said} and {more} more" if more > 0 else said


def plural(count: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def rounded_up(value: float) -> int:
    """Round `value` up to two significant digits."""
    unit = 10 ** max(0, math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit) * unit
