"""Naive forecasts cost what one can count on one's fingers."""

import numpy as np
import pytest
from understudy_bench.metrics.naive import naive_errors, naive_parts, season_steps

from understudy.data import Time

SAW = np.tile([0.0, 1.0, 3.0], 4)[None, :, None]


def test_each_step_from_the_one_before() -> None:
    errors = naive_errors(SAW, 3)
    changes = np.abs(np.diff(SAW[0, :, 0]))
    assert errors["persistence"].mae == pytest.approx(changes.mean())
    assert errors["persistence"].mse == pytest.approx((changes**2).mean())
    assert errors["seasonal naive"].mae == 0.0
    assert errors["mean"].mae > 0


def test_all_steps_after_the_known_ones() -> None:
    errors = naive_errors(SAW, 3, known=6)
    assert errors["persistence"].mae == pytest.approx(np.mean([3, 2, 0]))  # the last known step is 3
    assert errors["mean"].rmse == pytest.approx(np.std([0, 1, 3]))
    assert errors["seasonal naive"].mae == 0.0
    assert naive_errors(SAW, 5, known=6)["seasonal naive"].mae > 0  # a wrong season is not free


def test_gaps_are_not_forecast_and_not_forecast_from() -> None:
    series = np.array([[[1.0], [np.nan], [2.0], [5.0]]])
    assert naive_errors(series, None)["persistence"].mae == 3.0
    assert naive_errors(series, None)["mean"].mae == pytest.approx((1.0 + 3.5) / 2)
    assert naive_errors(np.full((1, 4, 1), np.nan), 2) == {}


def test_no_season_no_seasonal_forecast() -> None:
    assert set(naive_errors(SAW, None)) == {"persistence", "mean"}
    assert set(naive_errors(SAW, 7, known=6)) == {"persistence", "mean"}
    assert naive_parts(naive_errors(SAW, None, known=6), "rmse").keys() == {"persistence RMSE", "mean RMSE"}


@pytest.mark.parametrize(
    ("frequency", "steps", "season"),
    [
        ("1h", 168, 24),
        ("1h", 24, None),
        ("15min", 400, 96),
        ("1d", 24, 7),
        ("1mo", 48, 12),
        ("1w", 99, None),
        ("1y", 99, None),
    ],
)
def test_the_season_of_an_axis_is_a_day_a_week_or_a_year(frequency: str, steps: int, season: int | None) -> None:
    assert season_steps(Time(frequency=frequency, start="2024-01-01T00:00:00"), steps) == season
