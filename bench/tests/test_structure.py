"""`spectral` is not worse than the control that has seen no private data, on any figure of the general suite."""

import pytest
from understudy_bench.structure import _halves, _positions

from understudy.data import simulate_households

CHANCE = 0.05  # of the way from other real series to the control, by which a figure differs from fit to fit
AS_NEAR = {"cross_correlation", "lagged_correlation"}  # load and sun of homes hardly correlate, as in the control


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_thousand_homes_at_epsilon_one_half_are_never_worse_than_independent(seed: int) -> None:
    found = _positions(*_halves(simulate_households(2_000)), 0.5, seed)
    assert {"values_ks", "autocorrelation", "trees_raw", "forecast_skill"} < set(found)
    assert {name for name, position in found.items() if position > 1 + CHANCE} <= AS_NEAR
