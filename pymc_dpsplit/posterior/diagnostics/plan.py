"""What an iteration of the sampler was made of, in words."""

from collections.abc import Iterable

import numpy as np
import xarray as xr


def plan_remarks(stats: xr.Dataset, name: str) -> list[str]:
    """Say what an iteration was made of, as the last draws of the chains record it.

    Parameters
    ----------
    stats : Dataset
        The group ``sample_stats`` of a trace.
    name : str
        Name of the mixture.

    Returns
    -------
    list of str
        Empty for traces that do not record it.
    """
    keys = {key: f"{name}_{key}" for key in ("sliced", "scanned", "attempts", "iterations")}
    if any(key not in stats for key in keys.values()):
        return []
    last = {of: stats[key].isel(draw=-1).to_numpy().ravel() for of, key in keys.items()}
    parts, scanned = [], _range(last["scanned"], "{:.0f}")
    if last["sliced"].any():
        parts.append("a sweep by slices")
    if last["scanned"].any():
        parts.append(f"collapsed Gibbs for {scanned} observations")
    if last["attempts"].any():
        parts.append(f"{_range(last['attempts'], '{:.2g}')} split/merge attempts on average")
    if not parts:
        return []
    per_draw = _range(last["iterations"], "{:.0f}")
    noun = "iteration" if per_draw == "1" else "iterations"
    return [f"An iteration was made of {' and '.join(parts)}; {per_draw} {noun} per draw."]


def naming_the_step(texts: Iterable[str], stats: xr.Dataset, name: str) -> tuple[str, ...]:
    """Return remedies with the options of the step that moves the mixture.

    Parameters
    ----------
    texts : iterable of str
        With the options of `DPSplitMerge`.
    stats : Dataset
        The group ``sample_stats`` of a trace.
    name : str
        Name of the mixture.

    Returns
    -------
    tuple of str
    """
    if f"{name}_largest_share" in stats and f"{name}_eta" in stats:
        named = (text.replace("step of the mixture", "step of the topics") for text in texts)
        return tuple(text.replace("pm.sample(dpsplit=", "pm.sample(topics=") for text in named)
    if f"{name}_group_entropy" not in stats:
        return tuple(texts)
    more_attempts = [
        text.replace('dpsplit={"attempts": 4}', 'hdp={"attempts": 20}') for text in texts
    ]
    return tuple(text.replace("pm.sample(dpsplit=", "pm.sample(hdp=") for text in more_attempts)


def _range(values: np.ndarray, form: str) -> str:
    """Smallest and largest of the chains, once if they look equal."""
    least, most = form.format(values.min()), form.format(values.max())
    return least if least == most else f"{least} to {most}"
