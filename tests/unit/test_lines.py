"""Arrays that begin at a cache line."""

import numpy as np
import pytest

from pymc_dpsplit.kernels.lines import on_lines, zeros_on_lines


@pytest.mark.parametrize("allocate", [on_lines, zeros_on_lines])
@pytest.mark.parametrize("size", [0, 1, 8, 77])
def test_first_number_begins_a_line(allocate, size: int) -> None:
    others = [np.empty(k) for k in range(1, 9)]
    for _ in others:
        numbers = allocate(size)
        assert numbers.shape == (size,)
        assert numbers.flags.c_contiguous
        assert size == 0 or numbers.ctypes.data % 64 == 0


def test_zeros_are_zeros() -> None:
    for size in (1, 9, 300):
        numbers = on_lines(size)
        numbers[:] = np.nan
        del numbers
        np.testing.assert_array_equal(zeros_on_lines(size), np.zeros(size))
