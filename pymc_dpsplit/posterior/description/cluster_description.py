"""`ClusterDescription`: the result of `describe_clusters`, as tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from pymc_dpsplit.posterior.description.top_words import ranked_words

_STATISTIC = "statistic"


@dataclass(frozen=True, eq=False, repr=False)
class ClusterDescription:
    """Quantities of the clusters of a reference partition, see `describe_clusters`.

    Attributes
    ----------
    name : str
        Name of the mixture.
    draws : Dataset
        Weight, certainty and parameters of each reference cluster in every draw, over chain, draw,
        ``{name}_reference_cluster`` and the dimensions of the parameter.
    size : DataArray of int, shape (R,)
        Numbers of observations.
    membership : DataArray of float64, shape (N, R)
        Soft membership of the observations; rows sum to one.
    ci_prob : float
        Probability of the equal-tailed intervals.
    """

    name: str
    draws: xr.Dataset
    size: xr.DataArray
    membership: xr.DataArray
    ci_prob: float

    def __repr__(self) -> str:
        n_obs, n_clusters = self.membership.shape
        return (
            f"<ClusterDescription of {self.name}: {n_clusters} clusters of {n_obs} observations; "
            f"parameters {', '.join(self.parameters)}>"
        )

    @property
    def cluster_dim(self) -> str:
        """Name of the dimension of reference clusters."""
        return str(self.size.dims[0])

    @property
    def parameters(self) -> list[str]:
        """Names of the parameters."""
        return [str(key) for key in self.draws.data_vars if key not in ("weight", "certainty")]

    def to_dataset(self) -> xr.Dataset:
        """Return summaries over the draws.

        Returns
        -------
        Dataset
            Each quantity over ``{name}_reference_cluster``, its own dimensions and ``statistic``:
            mean, sd, and the ends of the interval, named as by `arviz.summary`, such as
            ``eti89_lb``.  Also ``size`` and ``membership``.
        """
        tail = (1 - self.ci_prob) / 2
        over = ["chain", "draw"]
        ends = [self.draws.quantile(q, over).drop_vars("quantile") for q in (tail, 1 - tail)]
        parts = [self.draws.mean(over), self.draws.std(over), *ends]
        interval = f"eti{100 * self.ci_prob:.0f}"
        names = ["mean", "sd", f"{interval}_lb", f"{interval}_ub"]
        summary: Any = xr.concat(parts, dim=_STATISTIC).assign_coords({_STATISTIC: names})
        summary = summary.transpose(self.cluster_dim, ..., _STATISTIC)
        return summary.assign(size=self.size, membership=self.membership)

    def to_dataframe(self, parameters: str | Sequence[str] | None = None) -> Any:
        """Return summaries as a table with one row for each cluster and quantity.

        Parameters
        ----------
        parameters : str or sequence of str, optional
            Parameters to include, by default all.

        Returns
        -------
        pandas.DataFrame
            Indexed by ``{name}_reference_cluster`` and ``quantity``: size, weight, certainty, then
            entries of parameters such as ``mu[alcohol]``, of symmetric matrices each pair once.

        Raises
        ------
        ValueError
            If a parameter is unknown.
        """
        chosen = self.chosen(parameters)
        summary = self.to_dataset()
        size = np.repeat(self.size.to_numpy()[:, None, None], summary.sizes[_STATISTIC], axis=2)
        size = np.where(summary[_STATISTIC] == "sd", 0.0, size)
        quantities, columns = ["size"], [size]
        for key in ["weight", "certainty", *chosen]:
            values = summary[key]
            for entry, place in entries_of(values, 1, 1):
                quantities.append(f"{key}[{entry}]" if place else key)
                at: Any = (slice(None), *place)
                columns.append(values.to_numpy()[at][:, None])
        table = xr.Dataset(
            {
                str(of): ((self.cluster_dim, "quantity"), np.concatenate(columns, axis=1)[..., i])
                for i, of in enumerate(summary[_STATISTIC].to_numpy())
            },
            coords={self.cluster_dim: self.size[self.cluster_dim], "quantity": quantities},
        )
        return table.to_dataframe()

    def chosen(self, parameters: str | Sequence[str] | None) -> list[str]:
        """Check names of parameters, by default all.

        Parameters
        ----------
        parameters : str or sequence of str, optional

        Returns
        -------
        list of str

        Raises
        ------
        ValueError
            If one is unknown.
        """
        if parameters is None:
            return self.parameters
        given = [parameters] if isinstance(parameters, str) else list(parameters)
        unknown = [key for key in given if key not in self.parameters]
        if unknown or not given:
            raise ValueError(
                f"parameters={parameters!r} must name parameters of {self.name}; give some of "
                f"{self.parameters}."
            )
        return given

    def covariance(self, parameter: str) -> xr.DataArray:
        """Return the posterior covariance of the entries of a parameter in each cluster.

        Parameters
        ----------
        parameter : str
            Name of a vector, such as ``"beta"`` of `LinearRegression` or ``"mu"``.

        Returns
        -------
        DataArray of float64, shape (R, C, C)
            Over the draws; the square roots of its diagonals are the standard deviations of
            `to_dataset`.  The name of the second dimension of entries ends in ``_bis``.

        Raises
        ------
        ValueError
            If the parameter is unknown, a number or a matrix.
        """
        (name,) = self.chosen(parameter)
        values = self.draws[name].transpose("chain", "draw", self.cluster_dim, ...)
        if values.ndim != 4:
            vectors = [key for key in self.parameters if self.draws[key].ndim == 4]
            raise ValueError(
                f"parameter={name!r} has {values.ndim - 3} dimensions in each cluster, not one; "
                f"give a vector, of {vectors}."
            )
        dim = str(values.dims[-1])
        gap = (values - values.mean(["chain", "draw"])).to_numpy()
        found = np.einsum("sdri,sdrj->rij", gap, gap) / (gap.shape[0] * gap.shape[1])
        coords: dict[str, Any] = {self.cluster_dim: self.size[self.cluster_dim].to_numpy()}
        if dim in values.coords:
            coords |= dict.fromkeys((dim, f"{dim}_bis"), values[dim].to_numpy())
        over = (self.cluster_dim, dim, f"{dim}_bis")
        return xr.DataArray(found, dims=over, coords=coords, name=name)

    def top_words(
        self, n: int = 10, *, relevance: float = 0.6, parameter: str | None = None
    ) -> Any:
        r"""Return the most relevant features of each cluster, such as the words of texts.

        Parameters
        ----------
        n : int
            Number of words; all, if there are fewer.
        relevance : float
            Weight :math:`\lambda`, from 0 to 1, of the relevance
            :math:`\lambda \log p_{rd} + (1 - \lambda) \log(p_{rd} / \bar p_d)` of word d in
            cluster r [1]_, where :math:`p_{rd}` is the posterior mean of its probability and
            :math:`\bar p_d` the average of these, weighted by size.  1 orders by probability, 0
            by the ratio to the average.
        parameter : str, optional
            Name of the probabilities, by default the only parameter whose entries sum to one.

        Returns
        -------
        pandas.DataFrame, shape (n, R)
            Labels of the features, the most relevant first.

        Raises
        ------
        ValueError
            If there are no such probabilities, or an argument is out of range.

        References
        ----------
        .. [1] Sievert and Shirley (2014). LDAvis: a method for visualizing and interpreting topics.
           Proceedings of the Workshop on Interactive Language Learning, equation 1, with 0.6 in
           section 5.
        """
        words, _ = self.words_and_places(n, relevance, parameter)
        return words.to_pandas()

    def words_and_places(
        self, n: int, relevance: float, parameter: str | None
    ) -> tuple[xr.DataArray, xr.DataArray]:
        """Return the words of `top_words`, and the draws of their probabilities.

        Parameters
        ----------
        n, relevance, parameter
            As in `top_words`.

        Returns
        -------
        words : DataArray of str, dims (rank, cluster)
        probability : DataArray of float64, dims (chain, draw, cluster, rank)
        """
        probability = self.draws[self._simplex(parameter)]
        places = ranked_words(probability.mean(["chain", "draw"]), self.size, n, relevance)
        dim: Any = probability.dims[-1]
        ranks = np.arange(1, places.shape[1] + 1)
        words = xr.DataArray(
            probability[dim].to_numpy().astype(object)[places].T,
            dims=("rank", self.cluster_dim),
            coords={"rank": ranks, self.cluster_dim: self.size[self.cluster_dim]},
        )
        index = xr.DataArray(places, dims=(self.cluster_dim, "rank"))
        return words, probability.drop_vars(dim, errors="ignore").isel({dim: index})

    def _simplex(self, parameter: str | None) -> str:
        """Return the name of the parameter of which each cluster has probabilities."""
        found = [key for key in self.parameters if _sums_to_one(self.draws[key])]
        if parameter is None and len(found) == 1:
            return found[0]
        if parameter not in found:
            raise ValueError(
                f"parameter={parameter!r} is no vector of probabilities of words of {self.name}; "
                f"give one of {found}, or a mixture of Multinomial."
            )
        return str(parameter)


def _sums_to_one(values: xr.DataArray) -> bool:
    """Whether a parameter (chain, draw, R, D) is a vector of probabilities of features."""
    is_vector = values.ndim == 4 and values.shape[-1] > 1
    return is_vector and bool(np.allclose(values.to_numpy().sum(-1), 1.0))


def entries_of(values: xr.DataArray, before: int, after: int) -> list[tuple[str, tuple[int, ...]]]:
    """Return the name and the indices of the entries of a parameter, as in ``a, b``.

    Parameters
    ----------
    values : DataArray
        A parameter; a coordinate ``{name}_category_name`` names its categories, "" where a column
        has fewer, see `describe_clusters`.
    before, after : int
        Numbers of dimensions before and after those of the parameter.

    Returns
    -------
    list of tuple
        Of a symmetric matrix each pair once.
    """
    own = values.dims[before : values.ndim - after]
    labels = [
        values.coords[dim].to_numpy() if dim in values.coords else np.arange(values.sizes[dim])
        for dim in own
    ]
    categories = values.coords.get(f"{values.name}_category_name")
    is_symmetric = symmetric(values, before, after)
    found = []
    for place in np.ndindex(*(len(of) for of in labels)):
        inside = [str(of[i]) for of, i in zip(labels, place, strict=True)]
        if categories is not None:
            inside[-1] = str(categories.to_numpy()[place])
        if (is_symmetric and place[0] > place[1]) or (inside and not inside[-1]):
            continue
        found.append((", ".join(inside), place))
    return found


def symmetric(values: xr.DataArray, before: int, after: int) -> bool:
    """Whether the entries of a parameter are symmetric matrices, see `entries_of`."""
    numbers = values.to_numpy()
    if values.ndim - before - after != 2:
        return False
    swapped = numbers.swapaxes(before, before + 1)
    return swapped.shape == numbers.shape and np.allclose(numbers, swapped)
