"""Is the likelihood of each row of a latent mixture found where there is one, and only there?"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dpsplit as dps
from pymc_dpsplit.variables import find_mixtures, row_likelihood

N, D = 4, 2
Y = np.array([0.3, -1.2, 0.8, 2.0])
GROUP = np.array([2, 0, 1, 1, 3, 0])
TABLE = np.arange(12.0).reshape(N, 3) / 7.0


def declared(likelihood: Callable[[Any], Any], is_vector: bool) -> pm.Model:
    """Model with a latent mixture and what `likelihood` adds."""
    with pm.Model() as model:
        if is_vector:
            b = dps.DPMixture("b", 1.0, dps.DiagNormal(0.0, 0.3, 2.0, 1.0), shape=(N, D))
        else:
            b = dps.DPMixture("b", 1.0, dps.Normal(0.0, 0.3, 2.0, 1.0), shape=N)
        likelihood(b)
    return model


def found_in(model: pm.Model) -> Any:
    (mixture,) = find_mixtures(model).values()
    return row_likelihood(mixture, model, model.initial_point())


def with_slope(b: Any) -> None:
    slope = pm.Normal("slope")
    pm.Poisson("y", pt.exp(b[GROUP] + slope * GROUP), observed=GROUP)


def twice(b: Any) -> None:
    pm.Normal("y", b, 0.5, observed=Y)
    pm.Bernoulli("z", logit_p=2.0 * b[GROUP], observed=GROUP > 1)


def mixture_of_two(b: Any) -> None:
    components = [pm.Normal.dist(b, 1.0), pm.Normal.dist(-b, 2.0)]
    pm.Mixture("y", [0.3, 0.7], components, observed=Y)


SCALARS: dict[str, Callable[[Any], Any]] = {
    "each": lambda b: pm.Normal("y", b, 0.5, observed=Y),
    "indexed, with a slope": with_slope,
    "two likelihoods": twice,
    "mixture": mixture_of_two,
    "table": lambda b: pm.Normal("y", b[:, None], 0.5, observed=TABLE),
    "table, transposed": lambda b: pm.Normal("y", b, 0.5, observed=TABLE.T),
    "some rows only": lambda b: pm.Normal("y", b[1:3], 0.5, observed=Y[1:3]),
    "one row": lambda b: pm.Potential("y", -(b[2] ** 4)),
    "sum over one axis": lambda b: pm.Potential("y", -((TABLE - b[:, None]) ** 2).sum(axis=1)),
    "joined": lambda b: pm.Normal("y", pt.concatenate([b[2:], b[:2]]), 0.5, observed=Y),
    "joined with numbers": lambda b: pm.Potential("y", -(pt.concatenate([Y[:2], b]) ** 2)),
    "as long as itself": lambda b: pm.Potential("y", -(b[pt.arange(b.shape[0])] ** 2)),
    "reshaped": lambda b: pm.Normal("y", b.reshape((2, 2)).T, 0.5, observed=Y.reshape(2, 2)),
    "reversed": lambda b: pm.Normal("y", b[::-1], 0.5, observed=Y),
    "no likelihood": lambda b: pm.Normal("y", 0.0, 0.5, observed=Y),
    "a variable below": lambda b: pm.Normal("y", pm.Normal("c", b, 1.0), 0.5, observed=Y),
}
VECTORS: dict[str, Callable[[Any], Any]] = {
    "every entry": lambda b: pm.Normal("y", b, 0.5, observed=TABLE[:, :D]),
    "sum of the features": lambda b: pm.Normal("y", b.sum(axis=1), 0.5, observed=Y),
    "one feature": lambda b: pm.Normal("y", b[GROUP, 1], 0.5, observed=GROUP),
}
COUPLED: dict[str, Callable[[Any], Any]] = {
    "matrix product": lambda b: pm.Normal("y", pt.dot(np.tri(N), b), 0.5, observed=Y),
    "mean": lambda b: pm.Normal("y", b.mean(), 0.5, observed=Y),
    "less the mean": lambda b: pm.Normal("y", b - b.mean(), 0.5, observed=Y),
    "cumulative": lambda b: pm.Normal("y", pt.cumsum(b), 0.5, observed=Y),
    "sorted by index": lambda b: pm.Normal("y", b[pt.argsort(b)], 0.5, observed=Y),
    "index into a table": lambda b: pm.Potential(
        "y", -(pt.as_tensor(Y)[pt.cast(pt.switch(b > 0, 1, 0), "int64")] ** 2)
    ),
    "sorted": lambda b: pm.Normal("y", pt.sort(b), 0.5, observed=Y),
    "full covariance": lambda b: pm.MvNormal("y", b, np.eye(N), observed=Y),
    "neighbours": lambda b: pm.Normal("y", b[1:] - b[:-1], 0.5, observed=Y[1:]),
    "one of two": lambda b: pm.Potential("y", pt.switch(Y > 0, b, b[::-1])),
    "sum": lambda b: pm.Potential("y", -(b.sum() ** 2)),
    "index that is sampled": lambda b: pm.Normal(
        "y", b[pm.Categorical("z", np.full(N, 1 / N), shape=N)], 0.5, observed=Y
    ),
    "each, and a mean": lambda b: (
        pm.Normal("y", b, 0.5, observed=Y), pm.Potential("p", -(b.mean() ** 2))
    ),
}  # fmt: skip


def total_of(model: pm.Model) -> Callable[[np.ndarray], float]:
    """Log density of the model but for that of the latent variable, as a function of it."""
    others = [rv for rv in model.basic_RVs if rv.name != "b" and not rv.name.startswith("b_")]
    total = model.compile_fn(
        model.logp(vars=[*others, *model.potentials], jacobian=False),
        inputs=model.value_vars,
        on_unused_input="ignore",
    )
    point = model.initial_point()
    return lambda b: float(total({**point, "b": b}))


@pytest.mark.parametrize(
    ("likelihood", "is_vector"),
    [*((f, False) for f in SCALARS.values()), *((f, True) for f in VECTORS.values())],
    ids=[*SCALARS, *VECTORS],
)
def test_each_row_has_the_factors_that_it_alone_changes(
    likelihood: Callable[[Any], Any], is_vector: bool, rng: np.random.Generator
) -> None:
    model = declared(likelihood, is_vector)
    found, total = found_in(model), total_of(model)
    assert found is not None
    found.hold(model.initial_point())
    shape = (N, D) if is_vector else (N,)
    b, other = rng.normal(size=(2, *shape))
    before, after = (found.evaluate(value.reshape(N, -1)) for value in (b, other))
    for row in range(N):
        moved = b.copy()
        moved[row] = other[row]
        assert total(moved) - total(b) == pytest.approx(after[row] - before[row], abs=1e-10)


@pytest.mark.parametrize("likelihood", COUPLED.values(), ids=COUPLED)
def test_rows_that_depend_on_each_other_have_none(likelihood: Callable[[Any], Any]) -> None:
    assert found_in(declared(likelihood, False)) is None


def test_held_variables_follow_the_point() -> None:
    model = declared(with_slope, False)
    found, rows = found_in(model), np.zeros((N, 1))
    found.hold({**model.initial_point(), "slope": np.array(0.0)})
    flat = found.evaluate(rows)
    found.hold({**model.initial_point(), "slope": np.array(1.0)})
    assert not np.allclose(found.evaluate(rows), flat)
