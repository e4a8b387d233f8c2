"""Distances are nothing for the same series and something for other ones."""

from dataclasses import replace

import numpy as np
import pytest
from understudy_bench.metrics import distances

from understudy.data import Panel, simulate_households
from understudy.evaluation.general import values as judged

LAGS = (1, 24)
DISTANCES = {
    "label": distances.label_distance,
    "gaps": distances.gap_distance,
    "lengths": distances.length_distance,
    "profile": distances.profile_error,
    "autocorrelation": lambda real, other: distances.autocorrelation_error(real, other, LAGS),
    "values": lambda real, other: max(distances.channel_distances(real, other).values()),
    "levels": lambda real, other: max(distances.level_distances(real, other).values()),
}


@pytest.fixture(scope="module")
def homes() -> Panel:
    return simulate_households(300)


@pytest.fixture(scope="module")
def others(homes: Panel) -> Panel:
    """Homes that differ in every respect: doubled, shuffled in time, of one tariff, without gaps, cut short."""
    rng = np.random.default_rng(0)
    values = np.clip(2 * np.nan_to_num(homes.values, nan=1.0), 0, [20, 8]).astype(np.float32)
    values = values[:, rng.permutation(homes.num_steps)]
    values[:, 130:] = np.nan
    lengths = np.full(homes.num_series, 130, dtype=np.int32)
    return replace(homes, values=values, lengths=lengths, static=np.zeros_like(homes.static))


@pytest.mark.parametrize("name", DISTANCES)
def test_series_are_at_no_distance_from_themselves(name: str, homes: Panel) -> None:
    assert DISTANCES[name](homes, homes) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("name", DISTANCES)
def test_other_series_are_at_some_distance(name: str, homes: Panel, others: Panel) -> None:
    assert DISTANCES[name](homes, others) > 0.1


def test_autocorrelation_of_a_known_process_is_right() -> None:
    rng = np.random.default_rng(1)
    steps = [rng.standard_normal(20_000)]
    for _ in range(199):
        steps.append(0.8 * steps[-1] + 0.6 * rng.standard_normal(20_000))
    values = np.stack(steps, axis=1)[:, :, None].astype(np.float32)
    found = judged.correlations_of(judged.lag_sums(values, (1, 3)).sum(axis=0))[:, 0]
    # Each series is centred by its own mean, which lowers it by about (1 + 0.8)/(1 − 0.8)/200 = 0.045.
    np.testing.assert_allclose(found, [0.8, 0.8**3], atol=0.06)
    assert abs(found[0] - 0.6) > 0.06
