"""Checks of arguments: hyperparameters and observations of families, integers, random seeds."""

from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any

import numpy as np

from pymc_dpsplit.components.no_numbers import refuse_columns_by_name, remedy_for
from pymc_dpsplit.data.blocks import blocks_of, count_where
from pymc_dpsplit.data.fixed_rows import memory_map_of, read_only
from pymc_dpsplit.data.spool import is_chunked, spooled

_LONGEST_SHOWN = 60
# Kernels count in int64.
_MOST = np.iinfo(np.int64).max


def shown(value: Any) -> str:
    """Format a value for a message: on one line, or as its type and shape if it is long.

    Parameters
    ----------
    value : object

    Returns
    -------
    str
    """
    text = " ".join(printed(value).split())
    if len(text) <= _LONGEST_SHOWN:
        return text
    shape = getattr(value, "shape", None)
    kind = type(value).__name__
    return f"<{kind}>" if shape is None else f"<{kind} of shape {tuple(shape)}>"


def printed(value: Any) -> str:
    """Return the text of a value as Python prints it, or its type if Python cannot.

    Parameters
    ----------
    value : object

    Returns
    -------
    str
    """
    try:
        return repr(value)
    except ValueError:  # an integer of more digits than Python prints
        return f"<{type(value).__name__}>"


def array_of(value: Any) -> tuple[Any, str]:
    """Read a value as an array of any type, NaN where masked; "" or what is wrong with it.

    Arrays keep their type, and where they are.
    """
    nothing = np.empty(0)
    if fault := _fault_of_container(value):
        return nothing, fault
    if isinstance(value, np.ma.MaskedArray):
        value = without_mask(value)
    try:
        array = value.to_numpy() if hasattr(value, "to_numpy") else value
        return array if is_chunked(array) else np.asanyarray(array), ""
    except ValueError:
        return nothing, "is ragged: its rows differ in length"
    except Exception as error:  # whatever a type raises that cannot be read as an array
        kind = type(value).__name__
        return nothing, f"is a {kind}, which is no array ({type(error).__name__})"


def _numeric_array(value: Any) -> tuple[Any, str]:
    """Convert a value to an array of numbers; return it and a description of the fault, or "".

    Only arrays of objects are converted to float64 and copied; others keep their type and memory.
    `np.asarray` is not enough: it would parse strings, drop imaginary parts and ignore masks.
    """
    nothing = np.empty(0)
    array, fault = array_of(value)
    if fault:
        return nothing, fault
    kind = getattr(array.dtype, "kind", "")
    if kind not in tuple("biufO") or (kind == "O" and is_chunked(array)):
        return nothing, f"has dtype {array.dtype}, which is not numeric"
    if kind == "O":
        odd = [type(v).__name__ for v in array.flat if isinstance(v, str | bytes | complex)]
        if odd:
            return nothing, f"holds entries of type {odd[0]}, which are not numbers"
        try:
            return array.astype(np.float64), ""
        except Exception:  # whatever the type of an entry raises
            return nothing, "holds entries that are not numbers"
    return array, ""


def _fault_of_container(value: Any) -> str:
    """Say why a container is not an array, "" if it may be one."""
    kind = type(value).__name__
    if isinstance(value, Set):
        return f"is a {kind}, whose entries have no order; give a list or an array"
    if isinstance(value, Iterator):
        return f"is a {kind}, which can be read only once; give a list or an array"
    if isinstance(value, Mapping) and not isinstance(value, dict):  # such as a Dataset of xarray
        return f"is a {kind}, which holds arrays by name; give one of them"
    return ""


def with_remedy(fault: str, remedy: str) -> str:
    """Append a remedy to a fault that does not name one."""
    return fault if "; " in fault else f"{fault}; {remedy}"


def without_mask(value: Any) -> np.ndarray:
    """Return the data of a masked array, with NaN in masked entries."""
    if not np.any(value.mask):
        return value.data
    return value.filled(np.nan) if value.dtype.kind == "f" else value.astype(object).filled(np.nan)


def as_floats(name: str, value: Any) -> np.ndarray:
    """Convert a number or array to float64.

    Parameters
    ----------
    name : str
        Name of the argument, used in the message.
    value : number or array-like

    Returns
    -------
    ndarray of float64

    Raises
    ------
    ValueError
        If the entries are not finite real numbers, or rows differ in length.
    """
    array = as_numbers(name, value)
    if not np.isfinite(array).all():
        raise ValueError(f"{name}={shown(value)} has NaN or infinite entries; give finite numbers.")
    return array


def as_numbers(name: str, value: Any) -> np.ndarray:
    """Convert a number or array to float64, as `as_floats`; NaN and infinity are let through."""
    array, fault = _numeric_array(value)
    if fault or np.asarray(value).dtype == bool:
        fault = with_remedy(
            fault or "is a truth value", "give a number, an array of numbers or a PyMC variable"
        )
        raise ValueError(f"{name}={shown(value)} {fault}.")
    return np.array(array, np.float64)


def shape_given(name: str, value: Any) -> tuple[int | None, ...]:
    """Shape of a number, an array or a variable, None where that of a variable is not known."""
    symbolic: Any = getattr(getattr(value, "type", None), "shape", None)
    return as_floats(name, value).shape if symbolic is None else tuple(symbolic)


def real_vector(name: str, value: Any, n_features: int) -> np.ndarray:
    """Check a real number or a vector with one per feature, and broadcast it.

    Parameters
    ----------
    name : str
        Name of the argument, used in the message.
    value : number or array-like
    n_features : int
        Number of features D.

    Returns
    -------
    ndarray of float64, shape (D,)

    Raises
    ------
    ValueError
        With one sentence that names the fault and the remedy.
    """
    array = as_floats(name, value)
    if array.ndim > 1 or (array.ndim == 1 and array.shape[0] not in (1, n_features)):
        raise ValueError(
            f"{name} has shape {array.shape}, but the data have {n_features} feature"
            f"{'s' if n_features > 1 else ''}; give a number or shape ({n_features},)."
        )
    return np.array(np.broadcast_to(array, (n_features,)))


def positive_vector(name: str, value: Any, n_features: int) -> np.ndarray:
    """Check a positive number or a vector with one per feature, and broadcast it.

    Parameters
    ----------
    name : str
        Name of the argument, used in the message.
    value : number or array-like
    n_features : int
        Number of features D.

    Returns
    -------
    ndarray of float64, shape (D,)
    """
    array = real_vector(name, value, n_features)
    if not (array > 0).all():
        raise ValueError(f"{name}={shown(value)} must be positive; give numbers above 0.")
    return array


def real_scalar(name: str, value: Any) -> float:
    """Check a real number and return it as a float."""
    array = as_floats(name, value)
    if array.size != 1:
        raise ValueError(f"{name} has shape {array.shape}; give a single number.")
    return float(array.reshape(()))


def positive_scalar(name: str, value: Any) -> float:
    """Check a positive number and return it as a float."""
    number = real_scalar(name, value)
    if not number > 0:
        raise ValueError(f"{name}={shown(value)} must be positive; give a number above 0.")
    return number


def positive_definite(name: str, value: Any, n_features: int) -> np.ndarray:
    """Check a symmetric positive definite matrix.

    Parameters
    ----------
    name : str
        Name of the argument, used in the message.
    value : array-like of shape (D, D), or number if D = 1
    n_features : int
        Number of features D.

    Returns
    -------
    ndarray of float64, shape (D, D)
        Exactly symmetric.

    Raises
    ------
    ValueError
        With one sentence that names the fault and the remedy.
    """
    array = as_floats(name, value)
    if array.size == 1 and n_features == 1:
        array = array.reshape(1, 1)
    if array.shape != (n_features, n_features):
        raise ValueError(
            f"{name} has shape {array.shape}, but the data have {n_features} features; "
            f"give a matrix of shape ({n_features}, {n_features})."
        )
    scale = np.sqrt(np.abs(np.diag(array)))
    # Relative to the diagonal, so that the tolerance does not depend on the units of features.
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
    return array / 2 + array.T / 2  # a sum of large elements might overflow


def rows_of(observed: Any, row_ndim: int, may_miss: bool = False) -> np.ndarray:
    """Check that observations are finite numbers in a non-empty array (N,) or (N, D).

    Parameters
    ----------
    observed : array-like
    row_ndim : int
        0 for shape (N,), 1 for (N, D).
    may_miss : bool
        Whether entries may be masked or NaN; both are returned as NaN.

    Returns
    -------
    ndarray of float64 or float32, shape (N, D)
        In the form that kernels read, see `data.fixed_rows.read_only`.  A view of `observed` if
        that is a C-contiguous array of one of these types; otherwise a copy, which is a temporary
        file if `observed` is a memory map or a chunked array, and in memory if not.

    Raises
    ------
    ValueError
        With one sentence that names the fault and the remedy.
    """
    refuse_columns_by_name(observed, row_ndim)
    array, fault = _numeric_array(observed)
    if fault:
        given, unread = array_of(observed)
        remedy = remedy_for(given, is_ragged="ragged" in unread)
        raise ValueError(f"observed {with_remedy(fault, remedy)}.")
    refuse_shape(tuple(array.shape), row_ndim)
    rows = _in_place(array)
    rows = read_only(rows.reshape(len(rows), -1))
    _refuse_entries(rows, may_miss)
    return rows


def refuse_shape(shape: tuple[int, ...], row_ndim: int) -> None:
    """Refuse the shape of observations that are empty, or of other than ``row_ndim + 1`` axes."""
    if len(shape) != row_ndim + 1:
        wanted = "(N,)" if row_ndim == 0 else "(N, D)"
        remedy = "give one number for each row, as observed[:, 0], or use one for several features"
        if row_ndim:
            remedy = "give observed[:, None] for a single feature, observed[None] for a single row"
        raise ValueError(
            f"observed has shape {shape}, but this component takes shape {wanted}; {remedy}."
        )
    if 0 in shape:
        raise ValueError(
            f"observed is empty (shape {shape}); give at least one row and one feature."
        )


def _in_place(array: Any) -> np.ndarray:
    """Return an array that kernels can read, without a copy if possible.

    Kernels read C-contiguous float64 and float32 in native byte order.  Arrays on disk that need
    a conversion are written to a temporary file.
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
    """Refuse observations with entries for which a predicate is true.

    Parameters
    ----------
    is_wrong : callable
        From rows (n, D) to bool (n, D); its value is ignored for NaN, which means missing.
    rows : ndarray of float64 or float32, shape (N, D)
    remedy : str
        Advice for the message: what to give instead.

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


def is_integer(value: Any) -> bool:
    """Whether a value is an integer, and no truth value."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_integer(name: str, value: Any, least: int) -> None:
    """Raise ValueError if an argument is not an integer of at least `least`.

    Parameters
    ----------
    name : str
        Name of the argument, used in the message.
    value : object
    least : int
        Smallest legal value.
    """
    if not is_integer(value) or not least <= value <= _MOST:
        raise ValueError(
            f"{name}={shown(value)} is out of range; give an integer of at least {least}."
        )


def generator_of(name: str, seed: Any) -> np.random.Generator:
    """Return the generator that a random seed stands for, or raise ValueError.

    Parameters
    ----------
    name : str
        Name of the argument, used in the message.
    seed : int or numpy.random.Generator, optional
        Whatever else NumPy takes for a seed is legal too.  A generator is returned as it is.

    Returns
    -------
    numpy.random.Generator
    """
    fault = f"{name}={shown(seed)} is no seed; give a non-negative integer or a generator of NumPy."
    if isinstance(seed, bool | np.bool_):
        raise ValueError(fault)
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise ValueError(fault) from None
