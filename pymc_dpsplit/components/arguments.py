"""Checks of hyperparameters and observations, shared by the families: one sentence per fault."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pymc_dpsplit.data.blocks import blocks_of, count_where
from pymc_dpsplit.data.fixed_rows import memory_map_of, read_only
from pymc_dpsplit.data.spool import is_chunked, spooled

_LONGEST_SHOWN = 60


def shown(value: Any) -> str:
    """Return a value as a message shows it: on one line, and by its shape if it is long."""
    text = " ".join(repr(value).split())
    if len(text) <= _LONGEST_SHOWN:
        return text
    shape = getattr(value, "shape", None)
    kind = type(value).__name__
    return f"<{kind}>" if shape is None else f"<{kind} of shape {tuple(shape)}>"


def _numeric_array(value: Any) -> tuple[Any, str]:
    """Convert to an array of numbers; return it, and what is wrong with `value` ("" if nothing is).

    Only arrays of objects are converted to float64: others keep their type, and where they are.
    NumPy alone would read numbers off strings, drop imaginary parts and ignore masks.
    """
    nothing = np.empty(0)
    if isinstance(value, np.ma.MaskedArray):
        value = _without_mask(value)
    try:
        array = value.to_numpy() if hasattr(value, "to_numpy") else value
        array = array if is_chunked(array) else np.asanyarray(array)
    except ValueError:
        return nothing, "is ragged: its rows differ in length"
    kind = getattr(array.dtype, "kind", "")
    if kind not in tuple("biufO") or (kind == "O" and is_chunked(array)):
        return nothing, f"has dtype {array.dtype}, which is not numeric"
    if kind == "O":
        odd = [type(v).__name__ for v in array.flat if isinstance(v, str | bytes | complex)]
        if odd:
            return nothing, f"holds entries of type {odd[0]}, which are not numbers"
        try:
            return array.astype(np.float64), ""
        except (TypeError, ValueError, OverflowError):
            return nothing, "holds entries that are not numbers"
    return array, ""


def _without_mask(value: Any) -> np.ndarray:
    """Data of a masked array, NaN where masked."""
    if not np.any(value.mask):
        return value.data
    return value.filled(np.nan) if value.dtype.kind == "f" else value.astype(object).filled(np.nan)


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
    array, fault = _numeric_array(value)
    if fault or np.asarray(value).dtype == bool:
        raise ValueError(
            f"{name}={shown(value)} {fault or 'is a truth value'}; give a number, an array of "
            "numbers or a PyMC variable."
        )
    array = np.array(array, np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name}={shown(value)} has NaN or infinite entries; give finite numbers.")
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
        raise ValueError(f"{name}={shown(value)} must be positive; give numbers above 0.")
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
        raise ValueError(f"{name}={shown(value)} must be positive; give a number above 0.")
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
    """Check observations as numbers: finite, not empty, (N,) or (N, D).

    Parameters
    ----------
    observed : array-like
    row_ndim : int
        0 for shape (N,), 1 for (N, D).
    may_miss : bool
        Whether entries may be masked or NaN; they come back as NaN.

    Returns
    -------
    ndarray of float64 or float32, shape (N, D)
        What kernels take, see `data.fixed_rows.read_only`.  A view of `observed` where that is an
        array of one of these types, contiguous by rows; else a copy, in memory, or in a
        temporary file if `observed` is itself a memory map or an array that is read in chunks.

    Raises
    ------
    ValueError
        With one sentence that names the fault and the remedy.
    """
    array, fault = _numeric_array(observed)
    if fault:
        raise ValueError(
            f"observed {fault}; give numbers, and encode categories first, "
            "for instance by .cat.codes of pandas."
        )
    _refuse_shape(tuple(array.shape), row_ndim)
    rows = _in_place(array)
    rows = read_only(rows.reshape(len(rows), -1))
    _refuse_entries(rows, may_miss)
    return rows


def _refuse_shape(shape: tuple[int, ...], row_ndim: int) -> None:
    if len(shape) != row_ndim + 1:
        wanted = "(N,)" if row_ndim == 0 else "(N, D)"
        remedy = "reshape the data or use MvNormal or DiagNormal"
        if row_ndim:
            remedy = "give observed[:, None] for a single feature, or use Normal"
        raise ValueError(
            f"observed has shape {shape}, but this component takes shape {wanted}; {remedy}."
        )
    if 0 in shape:
        raise ValueError(
            f"observed is empty (shape {shape}); give at least one row and one feature."
        )


def _in_place(array: Any) -> np.ndarray:
    """Return an array as kernels can read it: itself, or converted, on disk if it comes from there.

    They read float64 and float32 of this machine's byte order, rows one after the other.
    """
    is_single = array.dtype.kind == "f" and array.dtype.itemsize == 4
    dtype = np.dtype(np.float32 if is_single else np.float64)
    if is_chunked(array):
        return spooled(array, dtype)
    if array.dtype == dtype and array.flags.c_contiguous and array.flags.aligned:
        return array
    if memory_map_of(array) is not None:
        return spooled(array, dtype)
    return np.array(array, dtype, order="C")


def _refuse_entries(rows: np.ndarray, may_miss: bool) -> None:
    n_infinite = count_where(np.isinf, rows)
    n_missing = count_where(np.isnan, rows)
    n_bad = n_infinite if may_miss else n_infinite + n_missing
    if n_bad:
        kind = "infinite" if may_miss else "NaN or infinite"
        raise ValueError(
            f"observed has {n_bad} {kind} entr{'y' if n_bad == 1 else 'ies'}, which nobody can "
            "impute here; drop those rows or fill them in first."
        )
    if n_missing == rows.size:
        raise ValueError("observed has no entry that is not missing; give at least one.")


def refuse_where(
    is_wrong: Callable[[np.ndarray], np.ndarray], rows: np.ndarray, remedy: str
) -> None:
    """Refuse observations with an entry of which a function of arrays is true.

    Parameters
    ----------
    is_wrong : callable
        From rows (n, D) to bool (n, D); what it says of NaN, which is missing, does not count.
    rows : ndarray of float64 or float32, shape (N, D)
    remedy : str
        What to give instead.

    Raises
    ------
    ValueError
        With one sentence that names the first such entry and its column.
    """
    for block in blocks_of(rows.shape):
        wrong = is_wrong(rows[block]) & ~np.isnan(rows[block])
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            raise ValueError(f"observed has {rows[block][i, j]:g} in column {j}; {remedy}.")
