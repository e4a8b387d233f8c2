"""The size of a channel's movement is voted for, by windows of events alone, and known from few votes."""

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.synthesizers.dit.small import waves
from understudy.data import Continuous, Integer, Panel, PrivacyUnit, Schema
from understudy.data.channels import Binary
from understudy.synthesizers.dit.pretraining import public_marginals
from understudy.synthesizers.dit.scores import NormalScores, scale_votes, scaled_channels, scales_of

EVENT = PrivacyUnit(column="home", kind="event", event_steps=1)


def _schema(steps: int = 24) -> Schema:
    channels = (Continuous("load", -80.0, 80.0), Binary("on"), Integer("number", 0, 1000))
    return replace(waves(1, steps=steps, unit=EVENT).schema, channels=channels)


def _values(number: int, sizes: tuple[float, float]) -> np.ndarray:
    noise = np.random.default_rng(0).standard_normal((number, 24, 3))
    return np.stack([sizes[0] * noise[:, :, 0], noise[:, :, 1] > 0, 500 + sizes[1] * noise[:, :, 2]], axis=2)


def _panel(number: int, sizes: tuple[float, float]) -> Panel:
    return replace(waves(number, unit=EVENT), schema=_schema(), values=_values(number, sizes).astype(np.float32))


def _totals(panel: Panel) -> np.ndarray:
    return scale_votes(panel).weighted_sum(np.ones(panel.num_series), 1.0).astype(np.float64)


def test_numbers_of_events_are_scaled_and_nothing_else() -> None:
    assert scaled_channels(_schema()) == [0, 2]
    assert scaled_channels(replace(_schema(), unit=PrivacyUnit(column="home"))) == []


@pytest.mark.parametrize("sizes", [(0.1, 3.0), (8.0, 200.0)])
def test_the_size_is_found_to_a_half_octave(sizes: tuple[float, float]) -> None:
    found = scales_of(_schema(), _totals(_panel(50, sizes)))
    assert np.abs(np.log2(found / sizes)).max() < 0.6


def test_a_window_has_one_vote_for_each_number_and_none_where_it_stands_still() -> None:
    panel = _panel(20, (1.0, 5.0))
    values = np.array(panel.values)
    values[0, :, 0] = 7.0
    values[1] = np.nan
    panel = panel.with_values(values)
    assert [_totals(panel.take_units([unit])).sum() for unit in range(20)] == [1.0, 0.0] + [2.0] * 18
    assert scale_votes(panel).norms().tolist() == [1.0, 0.0] + [np.sqrt(2)] * 18


def test_noise_alone_gives_a_size_that_is_not_odd() -> None:
    """Within a factor of 20 of a sixteenth of the width in at least 90 % of 500 draws; without a prior in less."""
    schema, rng = _schema(), np.random.default_rng(1)
    noisy = rng.normal(scale=30, size=(500, 48))
    odd = [
        np.abs(np.log2([scales_of(schema, one, noise)[0] / 10 for one in noisy])) > np.log2(20) for noise in (30.0, 0.0)
    ]
    assert odd[0].mean() < 0.1 < odd[1].mean()


def test_scaled_values_come_back_and_straight_lines_stay_straight() -> None:
    panel = waves(40, unit=EVENT)
    columns = NormalScores(panel.schema, public_marginals(panel), 2, np.array([0.5]))
    scores = columns.scores(panel.values, panel.static)
    np.testing.assert_allclose(columns.values_of_scores(scores)[:, :24], panel.values, atol=1e-5)
    middle = (scores[:, :1] + scores[:, 2:3]) / 2
    line = (panel.values[:, 0] + panel.values[:, 2]) / 2
    found = columns.values_of_scores(np.repeat(middle, columns.num_steps, axis=1))[:, 0]
    np.testing.assert_allclose(found, line, atol=1e-5)
