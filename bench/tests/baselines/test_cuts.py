"""Levels are made series by series, from public facts, and lead back to series of the same levels."""

import numpy as np
import pytest
from understudy_bench.baselines.cuts import LEVELS, Cut, Frequencies, Segments, kept_frequencies
from understudy_bench.baselines.table import Table, single_domain

from understudy.data import Categorical, Continuous, Time
from understudy.statistics.marginals import Grid, Marginal
from understudy.synthesizers.contract.panels import make_panel, plain_schema, rich_schema

STEPS, CHANNELS = 24, 2
EVEN = Marginal(Grid(np.array([0.0]), np.array([20.0])), np.array([0.0, 1.0]))


def cuts() -> dict[str, Cut]:
    channels = (Continuous("load", 0.0, 20.0), Categorical("state", ("off", "idle", "on")))
    schema = plain_schema(channels=channels, time=Time(column="when", steps=STEPS))
    profile = np.random.default_rng(0).normal(size=(STEPS, CHANNELS))
    return {"segments": Segments(schema), "frequencies": Frequencies((EVEN, EVEN), profile, (0, 1, 2, 5))}


@pytest.mark.parametrize("name", ["segments", "frequencies"])
def test_series_within_their_levels_have_these_levels(name: str) -> None:
    cut, rng = cuts()[name], np.random.default_rng(1)
    codes = np.stack([rng.integers(0, size, 200) for size in cut.domain], axis=1)
    working = cut.working(codes, rng)
    assert working.shape == (200, STEPS, CHANNELS)
    assert (cut.codes(working) == codes).all()


@pytest.mark.parametrize("name", ["segments", "frequencies"])
def test_levels_of_a_series_do_not_depend_on_other_series(name: str) -> None:
    cut = cuts()[name]
    working = np.random.default_rng(2).uniform(-1, 1, (9, STEPS, CHANNELS))
    other = np.concatenate([working[:8], 1e3 * working[8:]])
    assert (cut.codes(working)[:8] == cut.codes(other)[:8]).all()
    assert (cut.codes(working)[8] != cut.codes(other)[8]).any()


def test_a_segment_of_the_paper_is_a_mean_in_fifty_levels() -> None:
    cut = Segments(plain_schema(time=Time(column="when", steps=20)))
    working = np.repeat(np.linspace(-1, 1, 10), 2)[None, :, None] + np.tile([-0.01, 0.01], 10)[None, :, None]
    assert cut.domain == (50,) * 10
    assert cut.codes(working)[0].tolist() == [0, 5, 11, 16, 22, 27, 33, 38, 44, 49]
    assert np.ptp(cut.working(cut.codes(working), np.random.default_rng(0)).reshape(10, 2), axis=1).max() == 0


def test_a_day_is_kept_where_a_series_sees_two() -> None:
    hourly = plain_schema(time=Time(column="when", steps=168, frequency="1h"))
    monthly = plain_schema(time=Time(column="when", steps=168, frequency="1mo"))
    assert kept_frequencies(hourly, 3) == (0, 1, 2, 14, 28)
    assert kept_frequencies(monthly, 3) == (0, 1, 2)
    assert kept_frequencies(plain_schema(time=Time(column="when", steps=2)), 3) == (0, 1)


def test_columns_that_stand_still_come_back_with_the_label_first() -> None:
    schema = rich_schema()
    panel, rng = make_panel(schema, 60), np.random.default_rng(0)
    table = Table(schema, Segments(schema))
    codes = table.codes(np.zeros((60, schema.num_steps, schema.num_channels)), panel.static)
    _, static = table.decoded(codes, rng)
    assert single_domain(schema) == (3, LEVELS + 1, 2, LEVELS)
    assert (codes[:, 0] == panel.static[:, 0]).all()
    assert (np.isnan(static) == np.isnan(panel.static)).all()
    assert (static[:, 2] == panel.static[:, 2]).all()
    assert np.nanmax(np.abs(static[:, 1] - panel.static[:, 1])) <= (300.1 - 10.0) / LEVELS
