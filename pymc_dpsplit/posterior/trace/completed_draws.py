"""Random measures of draws with more clusters than a trace records, given the labels."""

import numpy as np
import xarray as xr

from pymc_dpsplit import sampler
from pymc_dpsplit.components.nonconjugate.family import NonconjugateFamily
from pymc_dpsplit.data.blocks import column_centres
from pymc_dpsplit.moves.target import Target
from pymc_dpsplit.posterior.trace.atoms import Atoms
from pymc_dpsplit.posterior.trace.groups import find_labels
from pymc_dpsplit.posterior.trace.recorded import counts_of, labels_of
from pymc_dpsplit.variables import MixtureVariables
from pymc_dpsplit.variables.conditioning import Conditioning
from pymc_dpsplit.variables.rows import MixtureRows

# Arbitrary random key, fixed so that all readers of a trace complete a draw in the same way.
_KEY = 0xC0DE


def labels_determine(mixture: MixtureVariables) -> bool:
    """Whether the law of the measure given labels is known, and can be drawn from.

    It is not for a family that is not conjugate, as the parameters of clusters that were not
    recorded are lost, nor for rows in groups, whose measure depends on more than the labels.
    """
    is_plain = isinstance(mixture.rv.owner.op, MixtureRows)
    return is_plain and not isinstance(mixture.component, NonconjugateFamily)


def with_recorded_labels(
    posterior: xr.Dataset, idata: xr.DataTree, mixture: MixtureVariables
) -> xr.Dataset | None:
    """Add the recorded labels to the posterior group if they determine the measure's law.

    Parameters
    ----------
    posterior : Dataset
    idata : DataTree
    mixture : MixtureVariables

    Returns
    -------
    Dataset or None
        None if the trace holds no labels, or they do not determine it.
    """
    if not labels_determine(mixture):
        return None
    labels = find_labels(idata, mixture.name)
    if labels is None:
        return None
    # The variable alone: coordinates of the two groups may differ.
    return posterior.assign({str(labels.name): labels.variable})


class Completion:
    """Draws the measure anew where a trace does not record all clusters.

    Parameters
    ----------
    posterior : Dataset
        From `with_recorded_labels`; without labels nothing is completed.
    mixture : MixtureVariables
    n_kept : int
        Number of clusters that a draw records.

    Attributes
    ----------
    labels : ndarray of int, shape (chain, draw, N), or None
        None if nothing is completed.
    """

    def __init__(self, posterior: xr.Dataset, mixture: MixtureVariables, n_kept: int) -> None:
        self._mixture = mixture
        self.labels: np.ndarray | None = None
        if f"{mixture.name}_labels" in posterior:
            self._is_short = (counts_of(posterior, mixture.name) > n_kept).to_numpy()
            if self._is_short.any():
                self.labels = labels_of(posterior, mixture.name).to_numpy()

    def completed(
        self, place: tuple[int, ...], recorded: Atoms, conditioning: Conditioning
    ) -> Atoms:
        """Return the measure of a draw, drawn given its labels if clusters were not recorded.

        Given labels, hyperparameters and observations, the measure has the law from which the
        sampler drew it (docs/method.md, section 5), and depends on nothing else in the model.  Atom
        `k` is the cluster of label `k`.

        Parameters
        ----------
        place : tuple of int
            Indices of chain and draw.
        recorded : Atoms
        conditioning : Conditioning

        Returns
        -------
        Atoms
        """
        if self.labels is None or not self._is_short[place]:
            return recorded
        items, (law, values, rows) = self._mixture.items, conditioning
        shift, data = column_centres(rows), items.arranged(rows)
        target = Target(items.prior(values, shift), data, law)
        labels = items.of_recorded(self.labels[place], "idata")
        state = sampler.resume(target, labels)
        measure = sampler.measure(target, state, np.random.default_rng([_KEY, *place]))
        params = items.unpack(measure.params[measure.rank], values, shift)
        parameters = {name: params[name] for name in recorded.parameters}
        return Atoms(measure.weights[measure.rank], float(np.exp(measure.log_rest)), parameters)
