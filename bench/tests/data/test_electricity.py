"""Electricity of clients: days or weekly totals, the season, and weather from the other hemisphere."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from understudy_bench.data.electricity import (
    READINGS,
    STATION,
    WEATHER,
    WEEKLY,
    Clients,
    electricity_panel,
    load_clients,
    with_weather,
)

from understudy.errors import MissingData

WEEKS = 156


@pytest.fixture
def root(tmp_path):
    """Three clients in weekly totals and a sine of weather in southern seasons."""
    for file in (WEEKLY, WEATHER, READINGS):
        (tmp_path / file[0]).parent.mkdir(exist_ok=True)
    lines = [
        f"T{client}:2012-01-01 00-00-00:" + ",".join(str(100 * client + w) for w in range(WEEKS))
        for client in (1, 2, 3)
    ]
    (tmp_path / WEEKLY[0]).write_text("\n".join(["# about", "@relation Electricity", "@data", *lines]))
    days = [dt.date(2012, 1, 1) + dt.timedelta(days=n) for n in range(5 * 365)]
    warm = [20 + 8 * np.cos(2 * np.pi * (day.timetuple().tm_yday - 20) / 365) for day in days]  # warm in January
    table = {"Date": [str(d) for d in days], "Location": [STATION] * len(days), "MinTemp": [t - 5 for t in warm]}
    pq.write_table(pa.table({**table, "MaxTemp": [None, *(t + 5 for t in warm[1:])]}), tmp_path / WEATHER[0])
    return tmp_path


def test_weekly_totals_are_read_and_named_a_stand_in(root):
    clients, info = load_clients(root)
    assert clients.consumption.shape == (3, WEEKS)
    assert (clients.first_day, clients.days) == (dt.date(2012, 1, 1), 7)
    assert info.stand_in


def test_the_original_is_preferred_and_summed_to_days(root):
    stamps = [dt.datetime(2011, 1, 1, 0, 15) + dt.timedelta(minutes=15 * n) for n in range(2 * 96)]
    rows = [f'"{stamp}";{n // 96 + 1},5;0' for n, stamp in enumerate(stamps)]
    (root / READINGS[0]).write_text("\n".join(['"";"MT_001";"MT_002"', *rows]))
    clients, info = load_clients(root)
    assert not info.stand_in
    np.testing.assert_allclose(clients.consumption, [[96 * 1.5 / 4, 96 * 2.5 / 4], [0, 0]])


def test_weather_is_moved_to_the_right_hemisphere_and_its_gaps_are_closed(root):
    clients = with_weather(load_clients(root)[0], root)
    assert clients.temperature is not None
    assert np.isfinite(clients.temperature).all()
    january, july = clients.temperature[1], clients.temperature[28]
    assert january < 14
    assert july > 26


def test_a_window_shows_a_year_with_season_and_weather_and_clients_or_windows_are_units(root):
    clients = with_weather(load_clients(root)[0], root)
    entity, window = (electricity_panel(clients, unit) for unit in ("entity", "overlapping-window"))
    assert entity.values.shape == window.values.shape == (12, 52, 1)
    assert (entity.num_units, window.num_units) == (3, 12)
    assert [channel.name for channel in entity.schema.context][-1] == "temperature_stand_in"
    np.testing.assert_allclose((entity.context[:, :, :2] ** 2).sum(axis=2), 1, atol=1e-5)


def test_groups_of_different_size_share_the_windows_of_the_first(root):
    rng = np.random.default_rng(0)
    groups = [
        Clients(consumption=rng.random((size, WEEKS)) + 1, first_day=dt.date(2012, 1, 1), days=7) for size in (5, 9)
    ]
    first, second = (electricity_panel(group) for group in groups)
    np.testing.assert_array_equal(first.context, second.context[:20])


def test_missing_files_are_named(tmp_path):
    with pytest.raises(MissingData, match="zenodo") as caught:
        load_clients(tmp_path)
    assert caught.value.exit_code == 3
