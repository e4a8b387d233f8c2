"""While tests run, a wrong shape is an error where it happens."""

import inspect

import numpy as np
import pytest
from jaxtyping import TypeCheckError

from understudy.data.panel import broadcast_context
from understudy.privacy import calibrate


def test_a_wrong_shape_is_refused() -> None:
    right = np.zeros((4, 2), dtype=np.float32)
    assert broadcast_context(right, 3).shape == (3, 4, 2)
    with pytest.raises(TypeCheckError, match="context"):
        broadcast_context(right[0], 3)


def test_what_names_no_shape_is_left_as_it_is() -> None:
    assert inspect.unwrap(calibrate.round_up) is calibrate.round_up
    assert inspect.unwrap(broadcast_context) is not broadcast_context
