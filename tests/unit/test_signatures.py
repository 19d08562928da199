"""What reads a trace is called in one way: f(idata, ..., *, model=None, var_name=None, ...)."""

import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any

import pytest

import pymc_dpsplit as dps

# Each reader of a trace with the arguments that a user always gives after it.
READERS: dict[str, tuple[str, ...]] = {
    "credible_ball": ("partition",),
    "density": (),
    "describe_clusters": ("partition",),
    "diagnose": (),
    "group_weights": ("partition",),
    "loo": (),
    "loo_groups": (),
    "partition_uncertainty": ("partition",),
    "plot_clusters": (),
    "plot_density": (),
    "plot_n_clusters": (),
    "plot_partition_uncertainty": (),
    "plot_similarity": (),
    "point_partition": (),
    "predict": ("new",),
    "sample_labels": (),
    "similarity_matrix": (),
}
# Public functions that read no trace, or a trace without the model.
OTHERS = {
    "DPMixture",
    "FiniteMixture",
    "HDPMixture",
    "HDPTopics",
    "MFMixture",
    "choose_alpha",
    "compare_samplers",
    "dp_means",
    "dp_means_penalty",
    "document_topics",
    "elicit_alpha",
    "elicit_gamma",
    "extend",
    "find_map",
    "finite_mixture",
    "plot_cluster_parameters",
    "plot_membership",
    "plot_prior_n_clusters",
    "plot_top_words",
    "plot_topics",
    "plot_trace",
    "prior_n_clusters",
    "smc",
    "top_words",
    "topic_coherence",
    "topic_perplexity",
    "topic_words",
}
# What other spellings of an argument have been.
OUTDATED = {"X", "data", "ci", "prob", "n_draws", "n_samples", "seed", "rng", "name"}
DEFAULTS = {
    "model": None,
    "var_name": None,
    "random_seed": None,
    "partition": None,
    "rows": None,
    "ax": None,
    "like": None,
    "features": None,
}


def shape_faults(function: Callable[..., Any], given: tuple[str, ...]) -> list[str]:
    """Return what a reader of a trace has in another way than the others."""
    parameters = inspect.signature(function).parameters
    positional = [name for name, of in parameters.items() if of.kind is not Parameter.KEYWORD_ONLY]
    faults = []
    if positional != ["idata", *given]:
        faults.append(f"positional arguments {positional}")
    keywords = [name for name in parameters if name not in positional]
    if keywords[:2] != ["model", "var_name"]:
        faults.append(f"keywords begin with {keywords[:2]}")
    last = [name for name in ("random_seed", "ax") if name in keywords]
    if last and keywords[-len(last) :] != last:
        faults.append(f"random_seed and ax are not last in {keywords}")
    faults += [f"argument {name}" for name in parameters if name in OUTDATED]
    for name in keywords:
        if name in DEFAULTS and parameters[name].default is not DEFAULTS[name]:
            faults.append(f"{name} is by default {parameters[name].default}")
    return faults


@pytest.mark.parametrize("name", READERS)
def test_readers_have_one_shape(name: str) -> None:
    assert shape_faults(getattr(dps, name), READERS[name]) == []


def test_every_public_function_is_listed() -> None:
    functions = {name for name in dps.__all__ if inspect.isfunction(getattr(dps, name))}
    assert functions == READERS.keys() | OTHERS


def test_data_have_one_name() -> None:
    for name in ("compare_samplers", "dp_means", "dp_means_penalty", "finite_mixture"):
        assert "observed" in inspect.signature(getattr(dps, name)).parameters
    families = [of for of in map(dps.__dict__.get, dps.__all__) if hasattr(of, "from_data")]
    assert families
    assert all("observed" in inspect.signature(of.from_data).parameters for of in families)


def in_old_shape(idata, var_name=None, model=None, *, prob=0.9):
    return idata, var_name, model, prob


def with_a_default(idata, *, model=None, var_name="x", ax=None, random_seed=None):
    return idata, model, var_name, ax, random_seed


@pytest.mark.control
def test_other_shapes_are_reported() -> None:
    assert shape_faults(in_old_shape, ()) == [
        "positional arguments ['idata', 'var_name', 'model']",
        "keywords begin with ['prob']",
        "argument prob",
    ]
    assert shape_faults(with_a_default, ()) == [
        "random_seed and ax are not last in ['model', 'var_name', 'ax', 'random_seed']",
        "var_name is by default x",
    ]


def takers_of_seeds() -> list[str]:
    """Return the public functions with an argument `random_seed`."""
    return [
        name
        for name in (*READERS, *sorted(OTHERS))
        if "random_seed" in inspect.signature(getattr(dps, name)).parameters
    ]


def test_takers_of_seeds_are_found() -> None:
    assert {"find_map", "predict", "sample_labels", "similarity_matrix"} <= set(takers_of_seeds())


@pytest.mark.parametrize("name", takers_of_seeds())
def test_wrong_seed_is_refused_before_the_rest_is_read(name: str) -> None:
    function = getattr(dps, name)
    parameters = inspect.signature(function).parameters.values()
    needed = {of.name: None for of in parameters if of.default is Parameter.empty}
    with pytest.raises(ValueError, match=r"^random_seed='1' is no seed; give a non-negative"):
        function(**needed, random_seed="1")
