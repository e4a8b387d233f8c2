"""The toy has the correlation it is asked for, with the same private series throughout."""

import numpy as np
import pytest
from understudy_bench.data.correlated import simulate_correlated
from understudy_bench.metrics.pub2priv.context import correlations

from understudy.errors import InputError


@pytest.mark.parametrize("wanted", [0.0, 0.3, 0.6, 0.9, 1.0])
def test_the_context_has_the_correlation_that_was_asked_for(wanted):
    toy = simulate_correlated(400, wanted)
    found = correlations(toy.values, toy.context)
    assert abs(found.mean() - wanted) < 6.1 * 0.1 / 20  # each correlation strays by at most 1/√steps = 0.1; p < 1e-9


def test_private_series_are_the_same_whatever_the_correlation():
    first, second = (simulate_correlated(20, wanted) for wanted in (0.0, 0.9))
    np.testing.assert_array_equal(first.values, second.values)
    assert not np.array_equal(first.context, second.context)


def test_series_are_standard_and_every_context_is_its_own():
    toy = simulate_correlated(50, 0.6)
    np.testing.assert_allclose(toy.values.mean(axis=1), 0, atol=1e-5)
    assert toy.schema.own_contexts
    assert len(np.unique(toy.context, axis=0)) == 50


@pytest.mark.parametrize("wanted", [-0.1, 1.1])
def test_a_correlation_that_can_not_be_is_refused(wanted):
    with pytest.raises(InputError, match="0 to 1"):
        simulate_correlated(5, wanted)
