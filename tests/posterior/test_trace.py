import numpy as np
import pytest
import xarray as xr

from pymc_dpsplit.posterior.trace.atoms import atoms_of
from pymc_dpsplit.posterior.trace.groups import choose_mixture, group_of, mixture_names
from pymc_dpsplit.posterior.trace.places import all_places, spread_places


def with_second_mixture(make_trace):
    second = {"y_b_n_clusters": np.ones((4, 1000)), "y_b_weights": np.ones((4, 1000, 2))}
    # A count alone is no mixture.
    return make_trace(other_n_clusters=np.ones((4, 1000)), **second)


def test_mixtures_are_found_by_name(make_trace):
    assert mixture_names(with_second_mixture(make_trace)) == ["x", "y_b"]
    assert choose_mixture(make_trace()) == "x"
    assert choose_mixture(with_second_mixture(make_trace), "y_b") == "y_b"


def test_open_choice_is_refused_with_a_list(make_trace):
    with pytest.raises(ValueError, match="give var_name as one of 'x', 'y_b'"):
        choose_mixture(with_second_mixture(make_trace))
    with pytest.raises(ValueError, match="var_name='z' is no mixture of idata; give one of 'x'"):
        choose_mixture(make_trace(), "z")


def test_what_is_no_trace_is_refused(make_trace):
    with pytest.raises(TypeError, match="idata is a dict; give the DataTree"):
        group_of({}, "posterior")
    with pytest.raises(ValueError, match="idata has no group prior"):
        group_of(make_trace(), "prior")
    idata = make_trace()
    idata["posterior"] = idata["posterior"].to_dataset().drop_vars("x_weights")
    with pytest.raises(ValueError, match="idata holds no mixture"):
        choose_mixture(idata)


# --- draws --------------------------------------------------------------------------------


def drawn_measures(rng, n_clusters):
    """A posterior group of two rows per draw, in which draws come before chains."""
    weights = np.sort(rng.dirichlet([1.0, 1.0, 0.5], n_clusters.shape))[..., :0:-1]
    over = "draw", "chain"
    columns = {
        "x_n_clusters": (over, n_clusters.T),
        "x_new_weight": (over, np.full(n_clusters.T.shape, 0.25)),
        "x_weights": ((*over, "x_cluster"), weights.transpose(1, 0, 2)),
        "x_mu": ((*over, "x_cluster"), rng.normal(size=(*n_clusters.T.shape, 2))),
    }
    return xr.Dataset(columns)


def test_atoms_are_those_of_the_draw_whatever_the_order_of_dimensions(rng):
    n_clusters = np.array([[1, 2, 3], [2, 1, 2]])
    posterior = drawn_measures(rng, n_clusters)
    places = all_places(posterior)
    assert places == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    for (chain, draw), atoms in zip(places, atoms_of(posterior, "x", ["mu"], places), strict=True):
        one = posterior.isel(chain=chain, draw=draw)
        n_recorded = min(2, n_clusters[chain, draw])
        np.testing.assert_array_equal(atoms.weights, one["x_weights"][:n_recorded])
        np.testing.assert_array_equal(atoms.parameters["mu"], one["x_mu"][:n_recorded])
        # What clusters without a row have is part of the remainder.
        has_all = n_clusters[chain, draw] <= 2
        rest = 0.25 if has_all else 1 - float(one["x_weights"].sum())
        assert atoms.remainder == pytest.approx(rest)


def test_finite_mixture_has_no_remainder(rng):
    posterior = drawn_measures(rng, np.full((2, 3), 2))
    finite = posterior.drop_vars(["x_n_clusters", "x_new_weight"])
    (atoms,) = atoms_of(finite, "x", ["mu"], [(1, 2)])
    np.testing.assert_array_equal(atoms.weights, posterior["x_weights"].isel(chain=1, draw=2))
    assert atoms.remainder == 0.0


def test_draws_are_spread_over_all_chains(rng):
    posterior = drawn_measures(rng, np.full((2, 5), 2))
    assert spread_places(posterior, 3) == [(0, 0), (0, 4), (1, 4)]
    assert spread_places(posterior, 100) == all_places(posterior)
