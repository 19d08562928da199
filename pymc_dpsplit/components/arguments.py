"""Checks of hyperparameters and observations, shared by the families: one sentence per fault."""

from typing import Any

import numpy as np

_LONGEST_SHOWN = 60


def _shown(value: Any) -> str:
    """Return a value as a message shows it: on one line, and by its shape if it is long."""
    text = " ".join(repr(value).split())
    if len(text) <= _LONGEST_SHOWN:
        return text
    shape = getattr(value, "shape", None)
    kind = type(value).__name__
    return f"<{kind}>" if shape is None else f"<{kind} of shape {tuple(shape)}>"


def _real_array(value: Any) -> tuple[np.ndarray, str]:
    """Convert to float64; return the array, and what is wrong with `value` ("" if nothing is).

    NumPy alone would read numbers off strings, drop imaginary parts and ignore masks.
    """
    nothing = np.empty(0)
    if isinstance(value, np.ma.MaskedArray):
        value = np.ma.filled(value.astype(object), np.nan) if np.any(value.mask) else value.data
    try:
        array = value.to_numpy() if hasattr(value, "to_numpy") else np.asarray(value)
    except ValueError:
        return nothing, "is ragged: its rows differ in length"
    if array.dtype.kind not in "biufO":
        return nothing, f"has dtype {array.dtype}, which is not numeric"
    if array.dtype.kind == "O":
        odd = [type(v).__name__ for v in array.flat if isinstance(v, str | bytes | complex)]
        if odd:
            return nothing, f"holds entries of type {odd[0]}, which are not numbers"
    try:
        return array.astype(np.float64), ""
    except (TypeError, ValueError, OverflowError):
        return nothing, "holds entries that are not numbers"


def as_floats(name: str, value: Any) -> np.ndarray:
    """Convert a number or array to float64.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    value : number or array-like

    Returns
    -------
    ndarray of float64

    Raises
    ------
    ValueError
        If it is not of real numbers, not rectangular, or not finite.
    """
    array, fault = _real_array(value)
    if fault or np.asarray(value).dtype == bool:
        raise ValueError(
            f"{name}={_shown(value)} {fault or 'is a truth value'}; give a number, an array of "
            "numbers or a PyMC variable."
        )
    if not np.isfinite(array).all():
        raise ValueError(
            f"{name}={_shown(value)} has NaN or infinite entries; give finite numbers."
        )
    return array


def real_vector(name: str, value: Any, n_features: int) -> np.ndarray:
    """Check a real number, or vector of one per feature; return shape (n_features,)."""
    array = as_floats(name, value)
    if array.ndim > 1 or (array.ndim == 1 and array.shape[0] not in (1, n_features)):
        raise ValueError(
            f"{name} has shape {array.shape}, but the data have {n_features} feature"
            f"{'s' if n_features > 1 else ''}; give a number or shape ({n_features},)."
        )
    return np.array(np.broadcast_to(array, (n_features,)))


def positive_vector(name: str, value: Any, n_features: int) -> np.ndarray:
    """Check a positive number, or vector of one per feature; return shape (n_features,)."""
    array = real_vector(name, value, n_features)
    if not (array > 0).all():
        raise ValueError(f"{name}={_shown(value)} must be positive; give numbers above 0.")
    return array


def real_scalar(name: str, value: Any) -> float:
    """Check a real number."""
    array = as_floats(name, value)
    if array.size != 1:
        raise ValueError(f"{name} has shape {array.shape}; give a single number.")
    return float(array.reshape(()))


def positive_scalar(name: str, value: Any) -> float:
    """Check a positive number."""
    number = real_scalar(name, value)
    if not number > 0:
        raise ValueError(f"{name}={_shown(value)} must be positive; give a number above 0.")
    return number


def positive_definite(name: str, value: Any, n_features: int) -> np.ndarray:
    """Check a symmetric positive definite matrix; return shape (n_features, n_features)."""
    array = as_floats(name, value)
    if array.size == 1 and n_features == 1:
        array = array.reshape(1, 1)
    if array.shape != (n_features, n_features):
        raise ValueError(
            f"{name} has shape {array.shape}, but the data have {n_features} features; "
            f"give a matrix of shape ({n_features}, {n_features})."
        )
    scale = np.sqrt(np.abs(np.diag(array)))
    # Relative to the diagonal, so that features in very different units are judged alike.
    relative = array / np.where(scale > 0, scale, 1.0) / np.where(scale > 0, scale, 1.0)[:, None]
    if np.abs(relative - relative.T).max() > 1e-8:
        raise ValueError(f"{name} is not symmetric; give ({name} + {name}.T) / 2 if that is meant.")
    try:
        np.linalg.cholesky(relative)
    except np.linalg.LinAlgError:
        raise ValueError(
            f"{name} is not positive definite; give a covariance matrix of full rank, "
            "for instance by adding a small multiple of the identity."
        ) from None
    return (array + array.T) / 2


def rows_of(observed: Any, row_ndim: int, may_miss: bool = False) -> np.ndarray:
    """Check observations as numbers: finite, not empty, (N,) or (N, D); return (N, D).

    With `may_miss`, entries may be masked or NaN; they come back as NaN.
    """
    array, fault = _real_array(observed)
    if fault:
        raise ValueError(f"observed {fault}; give numbers, and encode categories first.")
    if array.ndim != row_ndim + 1:
        wanted = "(N,)" if row_ndim == 0 else "(N, D)"
        other = "MvNormal or DiagNormal" if row_ndim == 0 else "Normal"
        raise ValueError(
            f"observed has shape {array.shape}, but this component takes shape {wanted}; "
            f"reshape the data or use {other}."
        )
    if array.size == 0:
        raise ValueError(
            f"observed is empty (shape {array.shape}); give at least one row and one feature."
        )
    is_bad = np.isinf(array) if may_miss else ~np.isfinite(array)
    if is_bad.any():
        n_bad, kind = int(is_bad.sum()), "infinite" if may_miss else "NaN or infinite"
        raise ValueError(
            f"observed has {n_bad} {kind} entr{'y' if n_bad == 1 else 'ies'}, which nobody can "
            "impute here; drop those rows or fill them in first."
        )
    if np.isnan(array).all():
        raise ValueError("observed has no entry that is not missing; give at least one.")
    return np.ascontiguousarray(array.reshape(array.shape[0], -1))
