"""Checks that a continuation has the same model, options, seed and versions as the stored run."""

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from pymc.model import Model
from pymc.step_methods.compound import BlockedStep
from pymc.util import get_state_from_generator
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant
from pytensor.graph.traversal import ancestors

from pymc_dpsplit.checkpoint.chain_files import ChainFiles

FORMAT = 2
_LIBRARIES = ("pymc", "pytensor", "numpy", "numba", "scipy")
# Options that do not affect the draws.
_FREE_OPTIONS = ("threads",)
_CHAIN = re.compile(r"chain(-\d+)*")


def describe(model: Model, methods: list[BlockedStep], options: dict[str, Any]) -> dict[str, Any]:
    """Return all that determines the draws except the seed, for JSON.

    Parameters
    ----------
    model : pymc.Model
    methods : list of BlockedStep
    options : dict
        Options of the steps, by their names.

    Returns
    -------
    dict
    """
    start = {name: np.asarray(value) for name, value in model.initial_point().items()}
    return _as_read(
        {
            "format": FORMAT,
            "versions": {
                **{name: version(name) for name in _LIBRARIES},
                __name__.partition(".")[0]: sys.modules[__name__.partition(".")[0]].__version__,
            },
            "variables": {name: [str(of.dtype), of.shape] for name, of in start.items()},
            "steps": [[_name(method), [var.name for var in method.vars]] for method in methods],
            "options": _comparable(options),
            "data": _digest(model),
        }
    )


def stream(rng: np.random.Generator) -> dict[str, Any]:
    """Return the state of a generator, which identifies seed and chain, for JSON."""
    state = get_state_from_generator(rng)
    return _as_read({"seed": state.seed_seq_state, "generator": state.bit_generator_state})


def chains_in(folder: Path) -> Iterator[dict[str, Any]]:
    """Iterate over the manifests of the chains in a folder.

    Parameters
    ----------
    folder : pathlib.Path

    Yields
    ------
    dict

    Raises
    ------
    ValueError
        If the folder contains anything else, or a manifest is damaged.
    """
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if not (path.is_dir() and _CHAIN.fullmatch(path.name)):
            raise ValueError(
                f"{folder} holds {path.name}, which is not part of a checkpoint; give a folder of "
                "its own."
            )
        manifest = ChainFiles(path).manifest()
        if manifest is not None:
            yield manifest


def chain_folder(folder: Path, rng: dict[str, Any]) -> Path:
    """Return the folder of a chain, named after the position of its generator in the seed tree."""
    return folder / "-".join(["chain", *map(str, rng["seed"]["spawn_key"])])


def refuse_other_run(stored: dict[str, Any], here: dict[str, Any], folder: Path) -> None:
    """Raise ValueError if chains have another model, other options or other versions.

    Parameters
    ----------
    stored, here : dict
        From `describe`, of the stored and of the present run.
    folder : pathlib.Path
    """
    if stored.get("format") != FORMAT:
        # Format 1, without checksums, is not read: it is of another version of the package, and
        # chains are continued with the versions that drew them.
        raise ValueError(
            f"{folder} has format {stored.get('format')} of checkpoints, of another version of "
            "pymc_dpsplit; continue with that version, or give another folder."
        )
    differing = [key for key in here if stored.get(key) != here[key]]
    if not differing:
        return
    key = differing[0]
    if key == "data":
        raise ValueError(
            f"{folder} holds chains of other data or constants in the model; give those of the "
            "first run, or another folder."
        )
    then, now = _differences(stored.get(key), here[key])
    raise ValueError(
        f"{folder} holds chains of other {key}: {then} in the first run, {now} now; restore them "
        "to continue, or give another folder."
    )


def refuse_other_seed(stored: dict[str, Any], rng: dict[str, Any], folder: Path) -> None:
    """Raise ValueError if a chain in the folder has another seed.

    Parameters
    ----------
    stored : dict
        Manifest of the chain.
    rng : dict
        From `stream`.
    folder : pathlib.Path
    """
    entropy = stored["rng"]["seed"]["entropy"]
    if entropy != rng["seed"]["entropy"]:
        raise ValueError(
            f"{folder} holds chains of another random_seed; give random_seed={entropy} to continue "
            "them, or another folder."
        )


def refuse_other_chain(
    stored: dict[str, Any], rng: dict[str, Any], tune: int, folder: Path
) -> None:
    """Raise ValueError if a chain was started with another generator or other tuning.

    Parameters
    ----------
    stored : dict
        Manifest of the chain.
    rng : dict
        From `stream`.
    tune : int
        Number of tuning iterations.
    folder : pathlib.Path
    """
    if stored["rng"] != rng:
        raise ValueError(
            f"{folder} holds a chain of another state of the random generator; give random_seed as "
            "in the first run, or another folder."
        )
    if stored["tune"] != tune:
        raise ValueError(
            f"{folder} holds a chain with tune={stored['tune']}, not {tune}; give "
            f"tune={stored['tune']} to continue it, or another folder."
        )


def _as_read(value: Any) -> Any:
    """Return a value as JSON restores it, for comparison with a stored one."""
    return json.loads(json.dumps(value, default=lambda array: array.tolist()))


def _name(method: BlockedStep) -> str:
    return str(getattr(method, "name", type(method).__name__))


def _comparable(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of all steps that are numbers or strings."""
    plain = (bool, int, float, str, type(None), np.bool_, np.integer, np.floating)
    return {
        f"{step}.{name}": value
        for step, given in options.items()
        for name, value in given.items()
        if name not in _FREE_OPTIONS and isinstance(value, plain)
    }


def _digest(model: Model) -> str:
    """Return a digest of every number in the model, independent of their order."""
    values = []
    # A step may read an observed variable that has no term in the log-probability.
    for var in ancestors([model.logp(), *model.rvs_to_values.values()]):
        if isinstance(var, Constant):
            values.append(var.data)
        elif isinstance(var, SharedVariable):
            values.append(var.get_value(borrow=True))
    arrays = [np.ascontiguousarray(value) for value in values if isinstance(value, np.ndarray)]
    return hashlib.sha256(b"".join(sorted(map(_digest_of, arrays)))).hexdigest()


def _digest_of(array: np.ndarray) -> bytes:
    digest = hashlib.sha256(f"{array.dtype} {array.shape} ".encode())
    # Without a copy, because data may fill the memory.
    digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.digest()


def _differences(then: Any, now: Any) -> tuple[Any, Any]:
    """Return two values, reduced for dicts to the entries that differ."""
    if not (isinstance(then, dict) and isinstance(now, dict)):
        return then, now
    keys = [key for key in {**then, **now} if then.get(key) != now.get(key)]
    first, second = ({key: of.get(key, "none") for key in keys} for of in (then, now))
    return first, second
