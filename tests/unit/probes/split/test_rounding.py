import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.split.rounding import from_sixteen, to_sixteen


@given(st.lists(st.floats(width=32), min_size=1, max_size=50))
def test_sixteen_bits_are_those_of_bfloat16(numbers) -> None:
    values = np.array(numbers, np.float32)
    with np.errstate(all="ignore"):
        expected = values.astype(ml_dtypes.bfloat16).astype(np.float32)
    assert np.array_equal(from_sixteen(to_sixteen(values)), expected, equal_nan=True)


def test_half_way_is_rounded_to_even() -> None:
    assert from_sixteen(to_sixteen(np.array([1 + 2**-8, 1 + 3 * 2**-8], np.float32))).tolist() == [1.0, 1 + 2**-6]


@pytest.mark.parametrize("shape", [(3,), (2, 3), (0,)])
def test_the_shape_is_kept(shape) -> None:
    assert from_sixteen(to_sixteen(np.ones(shape, np.float32))).shape == shape
