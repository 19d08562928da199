"""The functions of PyMC that are replaced by wrapped versions, in one table.

Models without a mixture are treated as before.
"""

import pymc  # noqa: F401  (imports the modules that are named below)

from pymc_dpsplit.pymc_hooks.wrap import wrap

_MCMC = "pymc.sampling.mcmc"
_SAMPLE = "sample", (_MCMC, "pymc", "pymc.sampling")
_MODEL = "modelcontext"
_STEPS = "instantiate_steppers", (_MCMC,)

# Wrapper, name of the function, and the modules that contain it.  Later rows are called first.
_TABLE: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("step.step_order:knowing_steps", "assign_step_methods", (_MCMC,)),
    ("topic_model.step:knowing_steps", "assign_step_methods", (_MCMC,)),
    ("hierarchical_model.step:knowing_steps", "assign_step_methods", (_MCMC,)),
    ("pymc_hooks.refusals:refusing_steps", "assign_step_methods", (_MCMC,)),
    ("topic_model.step:ordering", *_STEPS),
    ("hierarchical_model.step:ordering", *_STEPS),
    ("step.step_order:ordering", *_STEPS),
    ("pymc_hooks.rounding:rounding_alike", *_STEPS),
    ("step.compilation:compiling_first", "_sample_many", (_MCMC,)),
    ("step.compilation:compiling_first", "_mp_sample", (_MCMC,)),
    ("step.compilation:compiling_first", "_sample_population", (_MCMC,)),
    ("hierarchical_model.step:compiling_first", "_mp_sample", (_MCMC,)),
    ("pymc_hooks.convergence:checking", "run_convergence_checks", (_MCMC,)),
    ("pymc_hooks.rounding:rounding_alike", *_SAMPLE),
    ("pymc_hooks.refusals:refusing_samplers", *_SAMPLE),
    ("pymc_hooks.refusals:refusing_find_map", _MODEL, ("pymc.tuning.starting",)),
    ("pymc_hooks.refusals:refusing_smc", _MODEL, ("pymc.smc.sampling",)),
    ("pymc_hooks.refusals:refusing_fit", _MODEL, ("pymc.variational.opvi",)),
    # zarr takes half a second to import.
    (
        "pymc_hooks.trace_data:without_warning",
        "find_observations",
        ("pymc.backends.arviz", "pymc.backends.zarr"),
    ),
    (
        "pymc_hooks.pointwise_likelihood:of_observed_rows",
        "compute_log_likelihood",
        ("pymc.stats.log_density", "pymc.stats", "pymc"),
    ),
    (
        "pymc_hooks.forward_draws:of_whole_mixtures",
        "sample_posterior_predictive",
        ("pymc.sampling.forward", "pymc.sampling", "pymc"),
    ),
    (
        "pymc_hooks.forward_draws:after_present_rows",
        "sample_prior_predictive",
        ("pymc.sampling.forward", "pymc.sampling", "pymc"),
    ),
)


def install() -> None:
    """Replace the functions; a second call has no effect."""
    for wrapper, attribute, holders in _TABLE:
        wrap(attribute, wrapper, *holders)
