import numpy as np
import pytest

from understudy.data import Binary, Continuous, Integer
from understudy.synthesizers.sampling import inside_bounds

VALUES = np.array([[-3.0], [0.26], [0.31], [7.04], [99.0], [np.nan]])


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (Continuous("x", 0.1, 10.0), [0.1, 0.26, 0.31, 7.04, 10.0, np.nan]),
        (Continuous("x", 0.1, 10.0, resolution=0.5), [0.1, 0.5, 0.5, 7.0, 10.0, np.nan]),
        (Integer("x", 0, 10), [0, 0, 0, 7, 10, np.nan]),
        (Binary("x"), [0, 0, 0, 1, 1, np.nan]),
    ],
)
def test_samples_are_rounded_as_declared_and_stay_inside_the_bounds(column, expected: list[float]) -> None:
    np.testing.assert_allclose(inside_bounds((column,), VALUES)[:, 0], expected)
