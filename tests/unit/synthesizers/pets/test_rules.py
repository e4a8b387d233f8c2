"""Rule-based series and draws from public ones."""

import numpy as np
import pytest

from understudy.data import Time
from understudy.statistics.encoding import Encoding, linear_scales
from understudy.synthesizers.contract.panels import plain_schema
from understudy.synthesizers.pets import rules
from understudy.synthesizers.pets.method import PETS
from understudy.synthesizers.pets.pretraining import drawn_from
from understudy.synthesizers.pets.rules import (
    BOUND,
    CHANGES,
    MAX_CHANGES,
    PRESETS,
    RuleBased,
    add_changes,
    levels_of,
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("channels", [1, 3])
def test_equal_seeds_give_equal_series_and_others_do_not(preset: str, channels: int) -> None:
    generate = RuleBased(num_steps=64, num_channels=channels, preset=preset)
    first = generate(20, rng(1))
    np.testing.assert_array_equal(first, generate(20, rng(1)))
    assert not np.array_equal(first, generate(20, rng(2)))


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("steps", [1, 2, 5, 15, 16, 24, 33, 64, 65, 577])
def test_series_of_any_length_are_finite_and_in_working_scale(preset: str, steps: int) -> None:
    for levels in ("standard", "spread"):
        series = RuleBased(num_steps=steps, num_channels=2, preset=preset, levels=levels)(50, rng())
        assert series.shape == (50, steps, 2)
        assert series.dtype == np.float32
        assert np.isfinite(series).all()
    assert abs(series).max() <= BOUND


@pytest.mark.parametrize("wave", ["sine", "square", "triangle"])
@pytest.mark.parametrize("steps", [128, 576])
def test_the_requested_period_is_the_peak_of_the_spectrum(wave: str, steps: int) -> None:
    cycles = rng(3).uniform(3, min(16, steps / 6), 200)
    if wave == "square":  # its second harmonic is only 5 % weaker: no leakage, please
        cycles = cycles.round()
    series = rules.wave(wave, steps / cycles, steps, rng(4))
    strength = np.abs(np.fft.rfft(series - series.mean(axis=1, keepdims=True), axis=1))
    assert (abs(strength.argmax(axis=1) - cycles) <= 1).all()


def test_periods_are_short_and_long_in_equal_parts() -> None:
    period = rules.draw_periods(4000, 160, rng())
    assert period.min() >= 10
    assert period.max() <= 160 / 3
    assert abs((period < 20).mean() - 0.5) < 0.05  # 6.3 deviations of a fair coin: false alarm 3e-10
    assert (rules.draw_periods(500, 64, rng()) >= 8).all()


def test_with_a_declared_season_half_of_the_series_have_it() -> None:
    shares = []
    for season in (24, None):
        waves = rules.draw_waves(2000, 168, PRESETS["rich"], rng(), season)
        strength = np.abs(np.fft.rfft(waves, axis=1))[:, 1:]
        shares.append(float(((strength.argmax(axis=1) == 168 / 24 - 1) & (strength.max(axis=1) > 1e-9)).mean()))
    assert 0.43 < shares[0] < 0.6  # a half, and a few of the others: six deviations of a fair coin below
    assert shares[1] < 0.05


def test_only_series_on_one_calendar_are_given_its_season(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int | None] = []

    def watched(num_series: int, num_steps: int, own: rules.Rules, random: object, season: int | None) -> np.ndarray:
        seen.append(season)
        return np.zeros((num_series, num_steps))

    monkeypatch.setattr("understudy.synthesizers.pets.rules.draw_waves", watched)
    for align in ("calendar", "relative"):
        schema = plain_schema(time=Time(column="t", steps=60, align=align, start="2024-01-01T00:00:00"))
        encoding = Encoding.of(schema, (), linear_scales(schema, None))
        PETS().first_population(encoding, np.zeros(3, dtype=np.int64), rng())
    assert set(seen[: len(seen) // 2]) == {24}
    assert set(seen[len(seen) // 2 :]) == {None}


def test_the_rich_pool_has_the_published_shares() -> None:
    rich = PRESETS["rich"]
    assert rich.waves == (0.7, 0.25, 0.02, 0.03)
    assert rich.trends == (0.3, 0.3, 0.3, 0.1)
    assert list(rich.changes) == list(CHANGES)
    assert len(CHANGES) == 19
    assert sum(rich.changes.values()) == 70
    waves = rules.draw_waves(4000, 128, rich, rng())
    assert abs((waves == 0).all(axis=1).mean() - 0.7) < 0.046  # 6.3 deviations


def test_the_papers_preset_knows_spikes_and_steps_only() -> None:
    assert {name.split()[0] for name in PRESETS["pets"].changes} == {"spike", "step"}
    assert set(PRESETS["pets"].bends) == {"linear", "exponential"}
    assert PRESETS["pets"].trends[rules.TRENDS.index("turns")] == 0


@pytest.mark.parametrize("name", CHANGES)
def test_a_local_change_goes_its_way_and_stays_local(name: str) -> None:
    series = np.zeros((200, 128))
    add_changes(series, {name: 1.0}, rng(5))
    untouched = (series == 0).all(axis=1)
    assert abs(untouched.mean() - 1 / (MAX_CHANGES + 1)) < 0.2  # 6.5 deviations
    first = np.take_along_axis(series, (abs(series) > 1e-9).argmax(axis=1)[:, None], axis=1)[~untouched, 0]
    if name != "shake":
        assert (np.sign(first) == CHANGES[name].sign).all()
    lasting = (series[~untouched, -1] != 0).mean()
    assert (lasting > 0.9) if name.startswith("step") or "then" in name else (lasting < 0.2)


def test_channels_share_some_of_their_movement_and_not_all() -> None:
    series = RuleBased(num_steps=128, num_channels=2)(800, rng(6))
    between = np.array([np.corrcoef(one.T)[0, 1] for one in series])
    apart = np.array([np.corrcoef(a[:, 0], b[:, 1])[0, 1] for a, b in zip(series, np.roll(series, 1, 0), strict=True)])
    assert (abs(between) > 0.5).mean() > 1.15 * (abs(apart) > 0.5).mean()
    assert (abs(between) < 0.5).mean() > 0.3


def test_a_group_of_codes_has_one_hot_channel_at_a_time() -> None:
    series = RuleBased(num_steps=40, num_channels=5, levels="spread", one_hot=((1, 4),))(60, rng(7))
    codes = series[:, :, 1:4]
    assert set(np.unique(codes)) == {0.0, 1.0}
    assert (codes.sum(axis=2) == 1).all()
    assert (codes.mean(axis=(0, 1)) > 0.1).all()
    assert (abs(np.diff(codes, axis=1)).sum(axis=2) > 0).mean() < 0.3  # states last
    assert len(np.unique(series[:, :, 0])) > 100


def test_public_levels_are_taken_over_and_nothing_else_is() -> None:
    public = np.stack([10 + 0.5 * rng(8).normal(size=(30, 1)), 2 * np.ones((30, 1))], axis=2)
    series = RuleBased(num_steps=64, levels=public)(200, rng(9))
    levels = levels_of(series)
    assert abs(levels[:, 0, 0][:, None] - public[:, 0, 0]).min(axis=1).max() < 1e-4
    assert len(np.unique(levels[:, 0, 0].round(3))) > 20
    np.testing.assert_allclose(levels[:, 0, 1], 2, atol=1e-3)


def test_public_series_are_all_used_before_one_is_repeated() -> None:
    draw = drawn_from(np.arange(7, dtype=np.float32)[:, None, None] * np.ones((1, 4, 2), dtype=np.float32))
    assert sorted(draw(7, rng())[:, 0, 0]) == list(range(7))
    counts = np.bincount(draw(17, rng(1))[:, 0, 0].astype(int), minlength=7)
    assert set(counts) == {2, 3}
    assert draw(0, rng()).shape == (0, 4, 2)
