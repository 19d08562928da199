import numpy as np
import pytest

from pymc_dpsplit.posterior.trace import choose_mixture, group_of, mixture_names


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
