"""Updates of latent or incomplete rows jointly with their labels, as many per draw as wanted."""

from dataclasses import dataclass

import numpy as np
from pymc.model import Model

from pymc_dpsplit import sampler
from pymc_dpsplit.components.nonconjugate.family import NonconjugateFamily
from pymc_dpsplit.moves.likely_rows import LikelyRows
from pymc_dpsplit.moves.patterns import Incomplete
from pymc_dpsplit.step.concentration_move import with_present_law
from pymc_dpsplit.step.joint_label_row_update import update_incomplete_rows, update_latent_rows
from pymc_dpsplit.variables import MixtureVariables
from pymc_dpsplit.variables.conditioning import Conditioning
from pymc_dpsplit.variables.likelihood import RowLikelihood, row_likelihood


@dataclass(frozen=True)
class Exchanges:
    """What a step updates jointly with labels.

    Attributes
    ----------
    mixture : MixtureVariables
    likelihood : RowLikelihood, optional
        Of latent rows; None if there are none, or if it does not have one factor per row.
    incomplete : Incomplete
        Rows with missing entries.
    number : int
        Updates of latent rows per draw; of incomplete rows one, unless this is 0.
    """

    mixture: MixtureVariables
    likelihood: RowLikelihood | None
    incomplete: Incomplete
    number: int

    def apply(
        self,
        form: str,
        target: sampler.Target,
        state: sampler.ChainState,
        conditioning: Conditioning,
        shift: np.ndarray,
        point: dict[str, np.ndarray],
        schedule: sampler.Schedule,
        counts: np.ndarray,
        rng: np.random.Generator,
    ) -> tuple[sampler.Target, sampler.ChainState, dict[str, np.ndarray], int]:
        """Update the rows; return target, state, point and the number of rows that moved.

        Parameters
        ----------
        form : str
            Name of the kernel.
        target : Target
        state : ChainState
        conditioning : Conditioning
            What the model gives the mixture at `point`.
        shift : ndarray of float64, shape (D,)
            Subtracted from the observations of the target.
        point : dict
            Value of every variable.
        schedule : Schedule
        counts : ndarray of int64, shape (4,)
            Acceptance counts; those of iterations between updates are added.
        rng : numpy.random.Generator
        """
        rows, total = conditioning.rows, 0
        law = self.mixture.component, conditioning.values
        if len(self.incomplete.where) and self.number:
            target, state, total = update_incomplete_rows(
                *law, target, shift, state, rows, self.incomplete, rng
            )
        if self.likelihood is None or not self.number:
            return target, state, point, total
        self.likelihood.hold(point)
        log_likelihood, single = self.likelihood.evaluate, schedule._replace(n_iterations=1)
        present = LikelyRows(rows, log_likelihood(rows))
        for _ in range(self.number):
            target, state, present, n_accepted = update_latent_rows(
                *law, target, shift, state, present, log_likelihood, rng
            )
            state, more = sampler.advance(form, target, state, rng, single)
            target = with_present_law(target, single.strength)
            counts += more
            total += n_accepted
        name = self.mixture.name
        return target, state, {**point, name: present.rows.reshape(point[name].shape)}, total


def exchanges_of(
    mixture: MixtureVariables, model: Model, point: dict[str, np.ndarray], number: int
) -> Exchanges:
    """Return what the step of a mixture updates jointly with labels.

    Parameters
    ----------
    mixture : MixtureVariables
    model : pymc.Model
    point : dict
        Any point of the model.
    number : int
        Updates of latent rows per draw.

    Returns
    -------
    Exchanges
    """
    is_conjugate = not isinstance(mixture.component, NonconjugateFamily)
    has_rows = mixture.is_latent and is_conjugate
    likelihood = row_likelihood(mixture, model, point) if has_rows else None
    return Exchanges(mixture, likelihood, mixture.incomplete(), number)
