"""Meters as what they gain, and back."""

from dataclasses import replace

import numpy as np
import pytest

from understudy.data import Binary, Continuous, Integer, Monotone, Panel, Schema, ZeroWhen
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.statistics.rules import from_learned, learned_schema, to_learned
from understudy.synthesizers.contract.panels import plain_schema
from understudy.synthesizers.spectral import Spectral

STEPS = 60


def meters(number: int, *, seed: int = 0) -> Panel:
    """A meter that rests on half of its days, and a tank that empties; the meter has gaps."""
    rng = np.random.default_rng(seed)
    used = (rng.random((number, STEPS)) < 0.5) * rng.gamma(1.5, 6.0, (number, STEPS)) * rng.gamma(2, 0.5, (number, 1))
    meter = np.floor(rng.gamma(2.0, 100.0, (number, 1)) + np.cumsum(used, axis=1))
    tank = 900.0 - np.cumsum(rng.random((number, STEPS)), axis=1)
    values = np.stack([meter, tank], axis=2).astype(np.float32)
    values[rng.random((number, STEPS)) < 0.1, 0] = np.nan
    channels = (Integer("meter", 0, 20_000, missing=True), Continuous("tank", 0.0, 1000.0))
    base = plain_schema()
    schema = replace(
        base,
        channels=channels,
        time=replace(base.time, steps=STEPS, min_steps=None),
        constraints=(Monotone("meter"), Monotone("tank", "decreasing")),
    )
    lengths = np.full(number, STEPS, dtype=np.int32)
    return Panel(
        schema=schema,
        values=values,
        lengths=lengths,
        unit=np.arange(number),
        static=np.zeros((number, 0), dtype=np.float32),
    )


def test_meters_come_back_from_what_they_gained() -> None:
    panel = meters(20)
    gained = to_learned(panel)
    assert gained.schema == learned_schema(panel.schema)
    assert [column.name for column in gained.schema.static] == ["meter~start", "tank~start"]
    assert np.array_equal(np.isnan(gained.values), np.isnan(panel.values))
    assert np.nanmin(gained.values) >= 0
    whole = to_learned(panel.with_values(_bridged(panel)))
    values, static = from_learned(whole.values, whole.static, panel.schema)
    np.testing.assert_allclose(values, _bridged(panel), rtol=1e-5)
    assert static.shape == panel.static.shape


def _bridged(panel: Panel) -> np.ndarray:
    values = np.array(panel.values)
    for row in values[:, :, 0]:
        known = np.flatnonzero(~np.isnan(row))
        row[:] = np.interp(np.arange(STEPS), known, row[known])
    return values


def test_a_series_looks_at_no_other_series() -> None:
    panel = meters(20)
    alone = to_learned(panel.take_units([7]))
    np.testing.assert_array_equal(alone.values[0], to_learned(panel).values[7])
    np.testing.assert_array_equal(alone.static[0], to_learned(panel).static[7])


def test_a_table_without_meters_stays_as_it_is() -> None:
    schema = replace(meters(1).schema, constraints=())
    assert learned_schema(schema) is schema


@pytest.mark.parametrize("steps", [1, 2])
def test_short_series_have_a_start(steps: int) -> None:
    panel = meters(5)
    schema: Schema = replace(panel.schema, time=replace(panel.schema.time, steps=steps))
    lengths = np.full(5, steps, dtype=np.int32)
    short = replace(panel, schema=schema, values=_bridged(panel)[:, :steps], lengths=lengths)
    gained = to_learned(short)
    values, _ = from_learned(gained.values, gained.static, schema)
    np.testing.assert_allclose(values, short.values, rtol=1e-5)


def test_synthetic_meters_rest_as_often_as_real_ones_and_end_where_they_do() -> None:
    """2,000 meters at ε = 2. Mended scores made 83 % of steps flat where 46 % are."""
    real = meters(2000, seed=1)
    release = Spectral().fit(real, Ledger.in_memory(Guarantee(2.0, 1e-6)), noise=NoiseSource.seeded(1))
    made = release.sample(2000, rng=np.random.default_rng(1))
    meter = [_bridged(panel)[:, :, 0] for panel in (real, made)]
    rests = [(np.diff(own, axis=1) < 1).mean() for own in meter]
    ends = [np.median(own[:, -1]) for own in meter]
    assert (np.diff(meter[1], axis=1) >= 0).all()
    assert (np.diff(made.values[:, :, 1], axis=1) <= 0).all()
    assert rests[1] == pytest.approx(rests[0], abs=0.08)
    assert ends[1] == pytest.approx(ends[0], rel=0.2)


def shops(number: int) -> Panel:
    """Sales of shops that are closed on Sundays and on a tenth of the other days, and sell nothing on some."""
    rng = np.random.default_rng(5)
    opened = (np.arange(STEPS) % 7 != 6) & (rng.random((number, STEPS)) > 0.1)
    sales = opened * (rng.random((number, STEPS)) > 0.05) * rng.gamma(9.0, 10.0, (number, STEPS))
    base = plain_schema()
    schema = replace(
        base,
        channels=(Continuous("sales", 0.0, 400.0), Binary("open")),
        time=replace(base.time, steps=STEPS, min_steps=None),
        constraints=(ZeroWhen("sales", channel_is_zero="open"),),
    )
    return Panel(
        schema=schema,
        values=np.stack([sales, opened], axis=2).astype(np.float32),
        lengths=np.full(number, STEPS, dtype=np.int32),
        unit=np.arange(number),
        static=np.zeros((number, 0), dtype=np.float32),
    )


def test_a_closed_shop_is_seen_as_if_its_last_sales_had_stayed() -> None:
    panel = shops(50)
    sales, opened = np.moveaxis(to_learned(panel).values, 2, 0)
    was = panel.values[:, :, 0]
    assert np.array_equal(sales[opened == 1], was[opened == 1])
    closed = (opened[:, 1:] == 0) & (opened.cumsum(axis=1)[:, 1:] > 0)
    assert np.array_equal(sales[:, 1:][closed], sales[:, :-1][closed])


def test_closed_shops_sell_nothing_and_open_ones_what_they_did() -> None:
    real = shops(2000)
    release = Spectral().fit(real, Ledger.in_memory(Guarantee(2.0, 1e-6)), noise=NoiseSource.seeded(1))
    made = release.sample(2000, rng=np.random.default_rng(1)).values
    assert (made[..., 0][made[..., 1] == 0] == 0).all()
    selling = [values[..., 0][values[..., 1] == 1] for values in (real.values, made)]
    assert selling[1].mean() == pytest.approx(selling[0].mean(), rel=0.1)
    assert (selling[1] == 0).mean() == pytest.approx((selling[0] == 0).mean(), abs=0.03)
