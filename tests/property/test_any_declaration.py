"""Declarations of any kind: accepted, or refused in one sentence that names the argument."""

import re
import resource
import signal
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import pymc_dpsplit as dps
from pymc_dpsplit.components.arguments import shown
from pymc_dpsplit.components.component_family import ComponentFamily
from tests.support.families import FAMILIES, HYPERPARAMETERS, as_observed, dataset_of

MOST_SECONDS, MOST_BYTES = 20, 2**31  # of one case; beside what the process has
PUBLIC = [name for name in dps.__all__ if isinstance(getattr(dps, name), type)
          and issubclass(getattr(dps, name), ComponentFamily)]  # fmt: skip
ARGUMENTS = {"observed", "alpha", "max_clusters", "dims", "shape", "name", "component", "covariate"}


class Named(NamedTuple):
    """A value that is made inside the model, with the name under which a failure shows it."""

    name: str
    make: Callable[[], Any]

    def __repr__(self) -> str:
        return self.name


def of_value(value: Any) -> Named:
    return Named(shown(value), lambda: value)


# --- hyperparameters ----------------------------------------------------------------------

ODD: list[Any] = [
    None, "a", b"a", "", True, np.True_, 1j, np.nan, np.inf, -np.inf, -1.0, 0.0, 0.5, 1e308, 1e-320,
    10**400, -(10**5000), 2**63, [], [[]], [1.0], [1.0, 2.0], [[1.0], [2.0, 3.0]], [1.0, [2.0]],
    [[[1.0], [2.0, 3.0]], [1.0]], [None, 1.0], ["a", 1.0], [True, False], [1j, 1.0],
    np.ones(7), np.ones((2, 2)), np.ones((1, 1, 1)), -np.eye(3), np.full((2, 2), np.nan),
    np.array(None), np.array([{}, []], object), np.ma.masked_array([1.0, 2.0], [True, False]),
    {1.0}, frozenset(), {"a": 1.0}, {}, range(2), slice(3), len, object, Ellipsis,
    np.datetime64("2020-01-01"), pd.Series([1.0, 2.0]), pd.DataFrame({"a": [1.0]}),
    xr.Dataset({"a": ("i", [1.0, 2.0])}), xr.DataArray([1.0, 2.0]), sparse.csr_array(np.eye(2)),
]  # fmt: skip


NUMBERS = count()


def new_name() -> str:
    """A name that the model does not have."""
    return f"h{next(NUMBERS)}"


VARIABLES = {
    "Normal": lambda: pm.Normal(new_name()),
    "HalfNormal": lambda: pm.HalfNormal(new_name()),
    "HalfNormal (2,)": lambda: pm.HalfNormal(new_name(), shape=2),
    "HalfNormal (3, 1)": lambda: pm.HalfNormal(new_name(), shape=(3, 1)),
    "Poisson": lambda: pm.Poisson(new_name(), 2.0),
    "Deterministic": lambda: pm.Deterministic(new_name(), 2.0 * pm.HalfNormal(new_name())),
    "Data": lambda: pm.Data(new_name(), [1.0, 2.0]),
    "Data of codes": lambda: pm.Data(new_name(), 1),
    "unnamed": lambda: pm.Gamma.dist(1.0, 1.0),
    "free scalar": lambda: pt.scalar("free"),
    "free vector": lambda: 2.0 * pt.vector("free"),
    "constant": lambda: pt.as_tensor(2.0),
    "constant NaN": lambda: pt.as_tensor(np.nan),
    "constant complex": lambda: pt.as_tensor(1j),
    "generator of random numbers": lambda: pt.random.shared_rng(seed=1),
    "sparse variable": lambda: pytensor.sparse.csr_matrix("free"),
    "model": lambda: pm.Model.get_context(),
    "component": lambda: dps.Poisson(1.0, 1.0),
    "generator": lambda: (value for value in [1.0]),
}
WILD = [*map(of_value, ODD), *(Named(name, make) for name, make in VARIABLES.items())]

# --- data ---------------------------------------------------------------------------------


def spoilt(rows: np.ndarray, value: Any) -> np.ndarray:
    rows = np.array(rows, object if isinstance(value, str | complex | int) else float)
    rows.flat[-1] = value
    return rows


DATA: dict[str, Callable[[np.ndarray], Any]] = {
    "legal": lambda rows: rows,
    "lists": lambda rows: rows.tolist(),
    "float32": lambda rows: rows.astype(np.float32),
    "objects": lambda rows: rows.astype(object),
    "one row": lambda rows: rows[:1],
    "no rows": lambda rows: rows[:0],
    "transposed": lambda rows: rows.T,
    "flat": lambda rows: rows.ravel(),
    "a column more": lambda rows: np.column_stack([rows, rows]),
    "an axis more": lambda rows: rows[..., None],
    "ragged": lambda rows: [[1.0, 2.0], [3.0]],
    "ragged columns": lambda rows: {"height": [1.0], "visits": [1.0, 2.0], "colour": [[1], [1, 2]]},
    "table": lambda rows: {"height": [1.0, 2.0], "visits": [1, 2], "colour": ["u", 3]},
    "frame": lambda rows: pd.DataFrame(rows),
    "Dataset": lambda rows: xr.Dataset({"a": ("i", [1.0, 2.0])}),
    "DataArray": lambda rows: xr.DataArray(rows),
    "masked": lambda rows: np.ma.masked_array(rows, np.arange(rows.size).reshape(rows.shape) == 1),
    "sparse": lambda rows: sparse.csr_array(np.atleast_2d(rows)),
    "less a mean": lambda rows: pt.as_tensor(rows) - pm.Normal("mean"),
    "times a variable": lambda rows: pt.as_tensor(rows) * pm.Normal("mean"),
    "Data": lambda rows: pm.Data("data", rows),
    "Minibatch": lambda rows: pm.Minibatch(rows, batch_size=2),
    "none": lambda rows: None,
    **{f"with {shown(value)}": lambda rows, value=value: spoilt(rows, value)
       for value in (np.nan, np.inf, -1.0, 0.5, 1e300, 5e8, "a", 1j, 10**400)},
}  # fmt: skip

# --- cases --------------------------------------------------------------------------------


class Case(NamedTuple):
    """A declaration."""

    family: str
    values: dict[str, Named]
    data: str | Named
    options: dict[str, Named]


OPTIONS = ("alpha", "max_clusters", "dims", "shape")
AT_MOST_TWO = st.sampled_from([0, 1, 1, 2])


@st.composite
def cases(draw: Any) -> Case:
    """A legal declaration in which some arguments are exchanged."""
    family = draw(st.sampled_from(PUBLIC))
    names = list(HYPERPARAMETERS.get(family, lambda _: ARGUMENTS_OF_COMPONENT)(n_of(family)))
    wrong = draw(st.lists(st.sampled_from(names), max_size=draw(AT_MOST_TWO), unique=True))
    values = {name: draw(st.sampled_from(WILD)) for name in wrong}
    data: Any = "legal"
    if draw(st.booleans()):
        data = draw(st.sampled_from([*DATA, *WILD]))
    others = draw(st.lists(st.sampled_from(OPTIONS), max_size=draw(AT_MOST_TWO), unique=True))
    return Case(family, values, data, {name: draw(st.sampled_from(WILD)) for name in others})


# Of pm.Normal, which is conjugate with a sigma that is a number.
ARGUMENTS_OF_COMPONENT = {"mu": None, "sigma": 1.0, "covariates": None}


def n_of(family: str) -> int:
    return FAMILIES[family].n_features[-1] if family in FAMILIES else 1


def declare(case: Case) -> None:
    """Make a declaration, inside a model."""
    made = {name: value.make() for name, value in case.values.items()}
    if case.family == "Component":
        rows = np.linspace(-1.0, 1.0, 6)
        component = dps.Component(
            pm.Normal, **{**ARGUMENTS_OF_COMPONENT, "mu": pm.Normal.dist(0.0, 2.0), **made}
        )
        if hasattr(component, "_declaration"):  # not conjugate: its kernels would be compiled
            return
    else:
        rows = dataset_of(case.family, "separated", n_of(case.family))
        rows = as_observed(case.family, rows)
        hyperparameters = {**HYPERPARAMETERS[case.family](n_of(case.family)), **made}
        component = FAMILIES[case.family].component(**hyperparameters)
    observed = case.data.make() if isinstance(case.data, Named) else DATA[case.data](rows)
    options = {name: value.make() for name, value in case.options.items()}
    dps.DPMixture("x", options.pop("alpha", 1.0), component, observed=observed, **options)


def is_clear(message: str, case: Case) -> bool:
    """Whether a message is one sentence of ours that names an argument."""
    named = ARGUMENTS | set(ARGUMENTS_OF_COMPONENT) | set(case.values) | {"Component", "Normal"}
    if case.family in FAMILIES:
        named |= set(HYPERPARAMETERS[case.family](n_of(case.family)))
    words = set(re.findall(r"[A-Za-z_0-9]+", message))
    is_sentence = message.endswith(".") and "\n" not in message and "; " in message
    return is_sentence and bool(words & named)


@contextmanager
def limits() -> Iterator[None]:
    """Stop a case that takes too long or too much memory."""

    def stop(*_: Any) -> None:
        raise TimeoutError

    with open("/proc/self/statm") as sizes:
        used = int(sizes.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    handler = signal.signal(signal.SIGALRM, stop)
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_BYTES, before[1]))
    signal.setitimer(signal.ITIMER_REAL, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, before)
        signal.signal(signal.SIGALRM, handler)


def outcome_of(case: Case) -> tuple[str, str]:
    """What became of a declaration, and the error if it is not as it should be."""
    try:
        with limits(), pm.Model(coords={"row": range(6)}):
            declare(case)
    except TimeoutError:
        return "hung", ""
    except (ValueError, TypeError) as error:
        if is_clear(str(error), case):
            return "clear", ""
        return "raw", "".join(traceback.format_exception(error)[-3:])
    except BaseException as error:
        return "raw", "".join(traceback.format_exception(error)[-3:])
    return "accepted", ""


@pytest.mark.filterwarnings("ignore")
def test_any_declaration_is_accepted_or_refused(capsys: pytest.CaptureFixture[str]) -> None:
    counts: Counter[str] = Counter(accepted=0, clear=0, raw=0, hung=0)
    faults: dict[str, Case] = {}

    @given(cases())
    def declared(case: Case) -> None:
        outcome, fault = outcome_of(case)
        counts[outcome] += 1
        if outcome in ("raw", "hung"):
            faults.setdefault(fault, case)

    # Otherwise numba would compile every expression of a few numbers.
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        declared()
    with capsys.disabled():
        print(f"\ndeclarations: {dict(counts)}")  # noqa: T201
    assert not faults, "\n\n".join(f"{case}\n{fault}" for fault, case in faults.items())
    assert min(counts["accepted"], counts["clear"]) > 0


@pytest.mark.control
def test_a_raw_error_is_told_from_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def declared(error: Exception) -> Callable[[Case], None]:
        def raising(_: Case) -> None:
            raise error

        return raising

    case = Case("Normal", {}, "legal", {})
    sentence = "x: mu0=nan has NaN or infinite entries; give finite numbers."
    for error, expected in [
        (ValueError(sentence), "clear"),
        (ValueError("x: setting an array element with a sequence."), "raw"),
        (KeyError(sentence), "raw"),
        (MemoryError(), "raw"),
    ]:
        monkeypatch.setitem(globals(), "declare", declared(error))
        assert outcome_of(case)[0] == expected
