"""Checks of hyperparameters, shared by the families: one sentence per fault."""

from typing import Any

import numpy as np


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
        If it is not numeric, not rectangular, or not finite.
    """
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name}={value!r} is not numeric; give a number, an array or a PyMC variable."
        ) from None
    if not np.isfinite(array).all():
        raise ValueError(f"{name}={value!r} has NaN or infinite entries; give finite numbers.")
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
        raise ValueError(f"{name}={value!r} must be positive; give numbers above 0.")
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
        raise ValueError(f"{name}={value!r} must be positive; give a number above 0.")
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


def rows_of(observed: Any, row_ndim: int) -> np.ndarray:
    """Check observations as numbers: finite, not empty, (N,) or (N, D); return (N, D)."""
    array = observed_array(observed)
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
    if not np.isfinite(array).all():
        n_bad = int((~np.isfinite(array)).sum())
        raise ValueError(
            f"observed has {n_bad} NaN or infinite entr{'y' if n_bad == 1 else 'ies'}, which this "
            "component cannot impute; drop those rows or fill them in first."
        )
    return np.ascontiguousarray(array.reshape(array.shape[0], -1))


def observed_array(observed: Any) -> np.ndarray:
    """Convert observations (NumPy, pandas, polars, xarray) to float64, or say what they are."""
    if isinstance(observed, np.ma.MaskedArray):
        observed = observed.filled(np.nan) if observed.mask.any() else observed.data
    array = observed.to_numpy() if hasattr(observed, "to_numpy") else np.asarray(observed)
    if array.dtype.kind not in "biuf" and not (array.dtype == object and array.size):
        raise ValueError(
            f"observed has dtype {array.dtype}, which is not numeric; give numbers, and encode "
            "categories first."
        )
    try:
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            "observed holds entries that are not numbers; give numbers, and encode categories "
            "first."
        ) from None
