"""`extend`: more draws of the chains of a trace."""

import logging
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr
from pymc.model import Model
from pymc.sampling import mcmc
from pymc.stats.convergence import log_warnings

from pymc_dpsplit.components.arguments import check_integer, generator_of, shown
from pymc_dpsplit.posterior.extension.joined import joined
from pymc_dpsplit.posterior.extension.last_draws import last_draws, last_draws_in_groups
from pymc_dpsplit.posterior.trace.groups import find_group, group_of
from pymc_dpsplit.variables import find_mixtures, is_owned, model_of_context

_LOG = logging.getLogger("pymc")
# Arguments of `pm.sample` that follow from the trace, or would change what is returned.
_OWN = (
    "chains",
    "discard_tuned_samples",
    "idata_kwargs",
    "init",
    "initvals",
    "nuts_sampler",
    "return_inferencedata",
    "step",
    "trace",
    "var_names",
)


def extend(
    idata: xr.DataTree,
    model: Model | None = None,
    draws: int = 1000,
    *,
    tune: int = 200,
    random_seed: Any = None,
    progressbar: bool = True,
    compute_convergence_checks: bool = True,
    **kwargs: Any,
) -> xr.DataTree:
    """Continue the chains of a trace, and return it with their new draws.

    Each chain goes on from its last draw, without a `Checkpoint`.  Variables have the values of
    that draw.  The partition is not in the trace, unless labels are variables of the model, or of
    rows in groups (`HDPMixture`), whose recorded labels a chain goes on from: other labels are
    drawn from their exact conditional distribution given the recorded weights and parameters
    [1]_.  So if the last draw follows the posterior, the state from which the chain goes on does.
    What the steps learn in tuning, such as the step size and the mass matrix of NUTS, is not in
    the trace either, and is learnt anew in `tune` draws, which are discarded.

    Parameters
    ----------
    idata : DataTree
        As returned by ``pm.sample`` or by this function, or loaded from disk.
    model : pymc.Model, optional
        The sampled model with the same data, by default that of the context.
    draws : int
        Number of draws to add to each chain.
    tune : int
        Number of draws in which steps are tuned, before those that are kept.
    random_seed : int or numpy.random.Generator, optional
        It may be that of ``pm.sample``; the draws that it gives are different.
    progressbar : bool
        Whether to show a progress bar.
    compute_convergence_checks : bool
        Whether to check convergence, of old and new draws together.
    **kwargs
        Other arguments of ``pm.sample``, for instance ``cores``, ``dpsplit`` and ``hdp``.  Options
        of the steps are not in the trace, except whether labels were kept: repeat them.

    Returns
    -------
    DataTree
        The groups of `idata`.  In ``posterior`` and ``sample_stats`` the new draws follow the old
        ones, numbered from there on.  Groups that are computed from the draws, such as
        ``log_likelihood``, are left out.

    Raises
    ------
    ValueError
        If there is no model or it has no mixture, or an `HDPTopics`, the topics of whose tokens are
        not in a trace; if the trace is of another model or other data; if it lacks a free variable,
        all clusters of a last draw, draws between those it holds, or the labels of an `HDPMixture`.

    Notes
    -----
    The draws are not those that one longer run would have given.  They are a continuation of the
    same chain in law: every step leaves the posterior invariant, the steps are fixed when tuning
    ends, and no greedy move is made.  ``pm.sample(step=dps.Checkpoint(folder))`` continues with
    the same draws.

    References
    ----------
    .. [1] docs/method.md, section 5, and docs/decisions/0040-chains-go-on-from-a-trace.md.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_dpsplit as dps
    >>> quiet = {"progressbar": False, "compute_convergence_checks": False}
    >>> with pm.Model() as model:
    ...     _ = dps.DPMixture("x", 1.0, dps.Normal(0, 0.1, 2, 1), observed=[0.0, 0.1, 5.0])
    ...     idata = pm.sample(draws=20, tune=20, chains=2, **quiet)
    >>> idata = dps.extend(idata, model, draws=30, tune=10, **quiet)
    >>> dict(idata["posterior"]["x_n_clusters"].sizes)
    {'chain': 2, 'draw': 50}
    """
    check_integer("draws", draws, 1)
    check_integer("tune", tune, 0)
    _refuse_own(kwargs)
    rng = generator_of("random_seed", random_seed)
    model = model_of_context(model)
    starts = last_draws(idata, model)
    posterior = group_of(idata, "posterior")
    # Never the generators of the run that is continued, whose draws the starts depend on.
    seeds = [*rng.integers(2**32, size=4), abs(int(posterior["draw"][-1]))]
    more = pm.sample(
        draws=draws,
        tune=tune,
        chains=len(starts),
        initvals=starts,
        random_seed=np.random.default_rng(seeds),
        model=model,
        var_names=[str(name) for name in posterior.data_vars],
        progressbar=progressbar,
        compute_convergence_checks=False,
        **{**kwargs, **_options(kwargs, idata, model)},
    )
    extended, left_out = joined(idata, more)
    if not kwargs.get("quiet"):
        _LOG.info(_what_was_done(len(starts), tune, left_out, model))
    if compute_convergence_checks:
        log_warnings(mcmc.run_convergence_checks(extended, model))
    return extended


def _refuse_own(kwargs: dict[str, Any]) -> None:
    for name in kwargs:
        if name in _OWN:
            raise ValueError(
                f"{name}={shown(kwargs[name])} is given, but how a chain goes on follows from "
                f"idata; leave {name} out."
            )


def _options(given: dict[str, Any], idata: xr.DataTree, model: Model) -> dict[str, Any]:
    """Add what the trace tells to the options of the steps of mixtures."""
    stats = find_group(idata, "sample_stats")
    options: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    names = [f"{name}_labels" for name in find_mixtures(model)]
    if names:
        has_labels = stats is not None and any(name in stats for name in names)
        options["dpsplit"] = {"keep_labels": has_labels}, {"continues": True}
    if last := last_draws_in_groups(idata, model):
        options["hdp"] = {"keep_labels": True}, {"continues": last}
    # What is no dict is refused by the step.
    return {
        key: {**first, **given.get(key, {}), **final} if isinstance(given.get(key, {}), dict)
        else given[key]
        for key, (first, final) in options.items()
    }  # fmt: skip


def _what_was_done(n_chains: int, tune: int, left_out: list[str], model: Model) -> str:
    """Say from what the chains went on, and what is not kept."""
    are_drawn = any(not mixture.is_labelled for mixture in find_mixtures(model).values())
    others = not all(is_owned(rv) for rv in model.free_RVs)
    said = f"Continued {n_chains} chain{'s' if n_chains > 1 else ''} from the last draw: labels "
    said += "drawn anew" if are_drawn else "as recorded"
    said += f", {'all steps' if others else 'the step'} tuned for {tune} draws that are not kept"
    return said + (f", without the groups {', '.join(left_out)}." if left_out else ".")
