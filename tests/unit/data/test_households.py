"""The simulated homes: deterministic, awkward on purpose, and true to their own schema."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from understudy.data import Schema, read_panel
from understudy.data.constraints import violations
from understudy.data.simulators import NIGHT_HOURS, households_schema, simulate_households, write_households


@pytest.fixture(scope="module")
def homes():
    return simulate_households(3000)


def load(panel):
    return panel.values[:, :, 0]


def test_the_same_seed_gives_the_same_homes(homes):
    again = simulate_households(3000)
    assert again.values.tobytes() == homes.values.tobytes()
    assert simulate_households(50, seed=8).values.tobytes() != homes.values[:50].tobytes()


def test_the_first_homes_stay_the_same_when_more_are_made(homes):
    assert simulate_households(1500).values.tobytes() == homes.values[:1500].tobytes()


def test_files_come_back_as_the_homes_they_were_made_from(tmp_path, homes):
    table, context, schema_file = write_households(3000, tmp_path / "data")
    schema = Schema.load(schema_file)
    panel = read_panel(table, schema, context=context)
    assert schema == households_schema(3000)
    assert panel.values.tobytes() == homes.values.tobytes()
    assert panel.context[0].tobytes() == homes.context[0].tobytes()
    assert panel.static.tobytes() == homes.static.tobytes()
    assert pq.read_schema(table).names == ["household", "timestamp", "load_kw", "solar_kw", "tariff"]


def test_the_schema_declares_the_budget(homes):
    budget = homes.schema.budget
    assert (budget.epsilon, budget.max_runs, homes.schema.delta) == (3.0, 5, pytest.approx(1 / 300_000))


def test_homes_obey_their_own_constraints(homes):
    assert violations(homes.values, homes.schema) == []
    night = np.isin(np.arange(168) % 24, NIGHT_HOURS)
    assert np.nanmax(homes.values[:, night, 1]) == 0
    assert np.nanmax(homes.values[:, ~night, 1]) > 3


def test_load_has_a_heavy_tail(homes):
    values = load(homes)[~np.isnan(load(homes))]
    standard = (values - values.mean()) / values.std()
    assert (standard**4).mean() > 8  # a Gaussian has 3


def test_homes_have_two_modes(homes):
    means = np.log(np.nanmean(load(homes), axis=1))
    counts, _ = np.histogram(means, bins=25)
    smooth = np.convolve(counts, np.ones(5) / 5, mode="same")
    peaks = [i for i in range(2, 23) if smooth[i] == smooth[i - 2 : i + 3].max() and smooth[i] > 40]
    valley = smooth[peaks[0] : peaks[-1] + 1].min()
    assert len(peaks) >= 2
    assert valley < 0.7 * min(smooth[peaks[0]], smooth[peaks[-1]])


def test_weekends_differ_from_working_days(homes):
    by_hour = np.nanmean(load(homes), axis=0).reshape(7, 24)
    morning = by_hour[:, 7] / by_hour[:, 11]  # the ratio takes out how cold the day was
    assert morning[:5].min() > 1.1 * morning[5:].max()


def test_gaps_tell_something(homes):
    inside = np.arange(168) < homes.lengths[:, None]
    gap = np.isnan(load(homes)) & inside
    before = load(homes)[:, :-1]
    high, low = before > 4, before < 1
    assert gap[:, 1:][high].mean() > 2 * gap[:, 1:][low].mean()
    assert gap.sum() / inside.sum() > 0.01


def test_some_homes_end_early(homes):
    early = homes.lengths < 168
    assert 0.03 < early.mean() < 0.2
    assert homes.lengths.min() >= 120


def test_the_tariff_shows_in_the_pattern(homes):
    night = np.isin(np.arange(168) % 24, (0, 1, 2, 3))
    share = np.nansum(load(homes)[:, night], axis=1) / np.nansum(load(homes), axis=1)
    flat, nightly, _ = (np.median(share[homes.label == code]) for code in range(3))
    assert nightly > 1.5 * flat
    price = homes.context[0, :, 1]
    filled = np.nan_to_num(load(homes), nan=0.5)
    response = np.array([np.corrcoef(np.log(row), price)[0, 1] for row in filled[:600]])
    labels = homes.label[:600]
    assert response[labels == 2].mean() < response[labels == 0].mean() - 0.2


def test_every_tariff_is_common_enough_to_learn(homes):
    assert (np.bincount(homes.label) / 3000 > 0.1).all()


def test_at_least_one_home_is_needed():
    with pytest.raises(ValueError, match="at least one"):
        simulate_households(0)
