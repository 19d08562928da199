"""`choose_alpha`: the concentration by cross-validation of MAP-DPM."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from pymc.model import Model

from pymc_dpsplit import sampler
from pymc_dpsplit.components.arguments import as_floats, check_integer, generator_of
from pymc_dpsplit.estimates.climbing import Summit, climb
from pymc_dpsplit.estimates.fixed_mixture import FixedMixture, complete_mixture, read_mixture
from pymc_dpsplit.estimates.map_prediction import MIXTURE, check_how, predictive_of_rows
from pymc_dpsplit.estimates.starts import starts_of
from pymc_dpsplit.variables import MixtureVariables, model_of_context


@dataclass(frozen=True, eq=False)
class AlphaChoice:
    """Result of `choose_alpha`.

    Attributes
    ----------
    alpha : float
        The candidate with the highest `elpd`.
    candidates : ndarray of float64, shape (A,)
    elpd : ndarray of float64, shape (A,)
        Sum over all observations of the log predictive density given the folds without them.
    se_of_difference : ndarray of float64, shape (A,)
        Standard error of the difference of each `elpd` from the highest one.
    n_clusters : ndarray of float64, shape (A,)
        Mean number of clusters in the partitions of the folds.
    """

    alpha: float
    candidates: np.ndarray
    elpd: np.ndarray
    se_of_difference: np.ndarray
    n_clusters: np.ndarray


class Fold(NamedTuple):
    """Observations that are fitted, and those that are predicted."""

    fitted: np.ndarray
    left_out: np.ndarray


def choose_alpha(
    model: Model | None = None,
    *,
    candidates: Sequence[float],
    var_name: str | None = None,
    how: str = MIXTURE,
    n_folds: int = 5,
    n_restarts: int = 10,
    max_iterations: int = 500,
    initvals: Mapping[str, Any] | None = None,
    random_seed: Any = None,
) -> AlphaChoice:
    """Choose the concentration by cross-validation of `find_map` [1]_.

    For each candidate and each fold a partition of the other folds is found by MAP-DPM, and the
    observations of the fold are predicted given this partition.  The candidate with the highest
    sum of log densities is chosen.

    Parameters
    ----------
    model : pymc.Model, optional
        By default the model of the context.  Its alpha is not used.
    candidates : sequence of float
        Concentrations to compare, positive.
    var_name : str, optional
        Name of the mixture; required if the model has several.
    how : {"mixture", "cluster"}
        How observations are predicted, see ``MapPartition.log_predictive``.
    n_folds : int
        Number of folds, from 2 to N, to which observations are assigned at random; with N each
        observation is left out on its own.
    n_restarts, max_iterations : int
        Of each climb, see `find_map`.
    initvals : dict, optional
        Values of other variables, as in `find_map`.
    random_seed : int or numpy.random.Generator, optional
        All candidates have the same folds and the same starts.

    Returns
    -------
    AlphaChoice

    Raises
    ------
    ValueError
        If an argument is out of range, or the mixture is none that `find_map` takes by rows: it
        must be a `DPMixture` with complete, dense observations, each with a label of its own.

    Warns
    -----
    UserWarning
        If a climb was stopped by `max_iterations`.

    See Also
    --------
    find_map : ``find_map(alpha=candidates)`` chooses the candidate of the highest log joint density
        of data and partition, and without `alpha` a concentration with a prior is at its mode.

    Notes
    -----
    These are the three ways of the reference.  By it, the mode of alpha suffers most from local
    maxima, and the highest joint density can overfit small data, for which cross-validation is
    recommended.  Hyperparameters are not chosen again in each fold; those of ``from_data`` have
    seen all observations.

    References
    ----------
    .. [1] Raykov, Boukouvalas & Little (2014), Simple approximate MAP inference for Dirichlet
       processes, arXiv 1411.0939, section 3.3 and appendix A.3; docs/method.md, eq. (12.6).

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_dpsplit as dps
    >>> with pm.Model() as model:
    ...     _ = dps.DPMixture(
    ...         "x", 1.0, dps.Normal(0, 0.1, 2, 0.1), observed=[0.0, 0.1, 0.2, 5.0, 5.1, 5.2]
    ...     )
    >>> dps.choose_alpha(model, candidates=[1.0, 1000.0], random_seed=1).alpha
    1.0
    """
    rng = generator_of("random_seed", random_seed)
    model = model_of_context(model)
    check_integer("n_restarts", n_restarts, 1)
    check_integer("max_iterations", max_iterations, 1)
    check_integer("n_folds", n_folds, 2)
    alphas = checked_candidates("candidates", candidates)
    check_how(how)
    mixture = complete_mixture(model, var_name, "choose_alpha")
    read = _read(mixture, model, initvals, int(rng.integers(2**31)), n_folds)
    folds = list(_folds(len(read.rows), n_folds, rng))
    seed = int(rng.integers(2**63))
    densities, n_clusters = np.empty((len(alphas), len(read.rows))), np.empty(len(alphas))
    has_settled = True
    for a, alpha in enumerate(alphas):
        target = read.target._replace(law=read.target.law._replace(strength=float(alpha)))
        fixed, numbers = read._replace(target=target), []
        for fold in folds:
            best = _fitted(mixture, fixed, fold, (n_restarts, max_iterations, seed))
            has_settled &= best.has_settled
            numbers.append(len(best.state.stats))
            densities[a, fold.left_out] = _predicted(mixture, fixed, fold, best, how)
        n_clusters[a] = np.mean(numbers)
    if not has_settled:
        warnings.warn(
            f"choose_alpha stopped climbs after {max_iterations} iterations; raise max_iterations.",
            stacklevel=2,
        )
    return _chosen(alphas, densities, n_clusters)


def checked_candidates(name: str, alpha: Any) -> np.ndarray:
    """Check one or several concentrations.

    Parameters
    ----------
    name : str
        Of the argument, for the message.
    alpha : float or sequence of float

    Returns
    -------
    ndarray of float64, shape (A,)
    """
    candidates = np.atleast_1d(as_floats(name, alpha))
    if candidates.ndim > 1 or not len(candidates) or not (candidates > 0).all():
        otherwise = ", or leave it out" if name == "alpha" else ""
        raise ValueError(
            f"{name}={alpha!r} is not one or several positive numbers; give the concentration, "
            f"or a sequence of candidates{otherwise}."
        )
    return candidates


def _read(
    mixture: MixtureVariables, model: Model, initvals: Any, seed: int, n_folds: int
) -> FixedMixture:
    """Read a mixture whose rows can be divided into folds."""
    if mixture.is_finite:
        raise ValueError(
            f"{mixture.name} has a finite number of components and no alpha; declare a DPMixture."
        )
    if mixture.items.shared is not None:
        raise ValueError(
            f"{mixture.name} has rows that share labels, which choose_alpha cannot divide into "
            "folds; use find_map(alpha=candidates)."
        )
    component = mixture.component
    if component.has_covariates or component.holds_covariates:
        raise ValueError(
            f"{mixture.name} has covariates, given which a partition does not predict; use "
            "find_map(alpha=candidates)."
        )
    read = read_mixture(mixture, model, initvals, seed, "choose_alpha")
    if not isinstance(read.rows, np.ndarray):
        raise ValueError(
            f"{mixture.name} has sparse observations, which choose_alpha cannot divide into folds; "
            "give a dense array, or use find_map(alpha=candidates)."
        )
    if n_folds > len(read.rows):
        raise ValueError(
            f"n_folds={n_folds} exceeds the {len(read.rows)} observations of {mixture.name}; give "
            "no more."
        )
    return read


def _folds(n_obs: int, n_folds: int, rng: np.random.Generator) -> Iterator[Fold]:
    """Yield folds of nearly equal sizes."""
    of_each = rng.permutation(np.arange(n_obs) % n_folds)
    for fold in range(n_folds):
        yield Fold(np.flatnonzero(of_each != fold), np.flatnonzero(of_each == fold))


def _fitted(
    mixture: MixtureVariables, read: FixedMixture, fold: Fold, work: tuple[int, int, int]
) -> Summit:
    """Find a partition of the observations that are not left out."""
    n_starts, max_iterations, seed = work
    rows = np.ascontiguousarray(read.rows[fold.fitted])
    target: sampler.Target = read.target._replace(data=mixture.items.arranged(rows))
    starts = starts_of(target, n_starts, np.random.default_rng(seed))
    climbs = (climb(target, labels, order, max_iterations) for labels, order in starts)
    return max(climbs, key=lambda end: end.objective)


def _predicted(
    mixture: MixtureVariables, read: FixedMixture, fold: Fold, best: Summit, how: str
) -> np.ndarray:
    """Return the log density of each observation that is left out."""
    of_model = mixture.name, mixture.component, mixture.n_features
    rule = predictive_of_rows(*of_model, read.target.prior, best.state.stats, best.law)
    rows = np.ascontiguousarray(read.rows[fold.left_out])
    return rule.log_density_of(rows, how)


def _chosen(alphas: np.ndarray, densities: np.ndarray, n_clusters: np.ndarray) -> AlphaChoice:
    elpd = densities.sum(axis=1)
    best = int(elpd.argmax())
    differences = densities - densities[best]
    errors = np.sqrt(densities.shape[1]) * differences.std(axis=1)
    return AlphaChoice(float(alphas[best]), alphas, elpd, errors, n_clusters)
