"""Portraits: right numbers, small, plain JSON, and no complaint about odd panels."""

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.evaluation.sets import panel_of, waves
from tests.unit.report.toy import real_waves
from understudy.data import Categorical, concatenate, simulate_households
from understudy.evaluation.panels import Comparison
from understudy.evaluation.portraits import MAX_CATEGORIES, MAX_CHANNELS, MAX_SERIES, Frame, embedding, portrait


def test_quantiles_shares_and_correlations_are_those_of_numpy() -> None:
    panel = real_waves(200)
    found = portrait(panel, Frame.of(panel))
    wave = found["channels"]["wave0"]
    assert wave["bands"]["0.5"][3] == pytest.approx(np.median(panel.values[:, 3, 0]), rel=1e-3)
    assert wave["quantiles"][4] == pytest.approx(np.quantile(panel.values[:, :, 0], 0.95), rel=1e-3)
    assert sum(wave["histogram"]["shares"]) == pytest.approx(1, abs=1e-3)
    pair = np.corrcoef(panel.values[:, :, :2].reshape(-1, 2), rowvar=False)[0, 1]
    assert found["correlation"]["matrix"][0][1] == pytest.approx(pair, abs=1e-3)
    assert found["channels"]["mode"]["shares"][1] == pytest.approx(panel.values[:, :, 2].mean(), abs=1e-3)
    assert found["static"]["ward"]["shares"] == [0.5, 0.5]


def test_a_rhythm_is_the_peak_of_the_spectrum_and_of_the_memory() -> None:
    panel = waves(100, steps=48)  # two cycles a series
    wave = portrait(panel, Frame.of(panel))["channels"]["wave0"]
    power = wave["spectrum"]["power"]
    assert wave["spectrum"]["frequencies"][int(np.argmax(power))] == pytest.approx(2 / 48, rel=1e-3)
    assert sum(power) == pytest.approx(1, abs=1e-3)
    assert int(np.argmin(wave["autocorrelation"])) + 1 == pytest.approx(12, abs=1)


def test_single_series_are_shown_from_the_least_to_the_most() -> None:
    levels = np.linspace(0, 1, 40)[np.random.default_rng(0).permutation(40)]
    panel = panel_of(np.broadcast_to(levels[:, None, None], (40, 5, 1)).copy())
    shown = [series[0] for series in portrait(panel, Frame.of(panel))["channels"]["wave0"]["samples"]]
    assert shown == sorted(shown)
    assert shown[0] < 0.25 < 0.75 < shown[-1]


def test_two_portraits_in_one_frame_share_their_bins() -> None:
    one, other = waves(50), panel_of(0.5 + 0.1 * waves(50, seed=1).values)
    frame = Frame.of(one, other)
    bins = [portrait(panel, frame)["channels"]["wave0"]["histogram"]["edges"] for panel in (one, other)]
    assert bins[0] == bins[1]


def test_a_portrait_is_small_and_says_what_it_left_out() -> None:
    many = concatenate([waves(MAX_SERIES + 50, steps=4, channels=MAX_CHANNELS + 2)])
    found = portrait(many, Frame.of(many))
    assert len(found["channels"]) == MAX_CHANNELS
    assert any(f"{MAX_SERIES} of {MAX_SERIES + 50}" in note for note in found["notes"])
    assert any(f"first {MAX_CHANNELS} of {MAX_CHANNELS + 2}" in note for note in found["notes"])
    assert len(json.dumps(found, allow_nan=False)) < 100_000


def test_rare_categories_are_put_together() -> None:
    panel = real_waves(60)
    column = Categorical("ward", tuple(f"ward {number}" for number in range(100)))
    static = panel.static.copy()
    static[:, 0] = np.arange(60)
    wide = replace(panel, schema=replace(panel.schema, static=(column, panel.schema.static[1])), static=static)
    shares = portrait(wide, Frame.of(wide))["static"]["ward"]
    assert len(shares["shares"]) == MAX_CATEGORIES
    assert shares["categories"][-1] == f"the other {101 - MAX_CATEGORIES}"
    assert sum(shares["shares"]) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    "values",
    [np.full((4, 6, 2), np.nan), np.full((4, 6, 2), 0.5), np.full((4, 1, 1), 0.5), np.full((1, 3, 2), 0.1)],
    ids=["empty", "constant", "one step", "one series"],
)
def test_odd_panels_have_portraits_that_are_json(values: np.ndarray, recwarn: pytest.WarningsRecorder) -> None:
    panel = panel_of(values)
    json.dumps(portrait(panel, Frame.of(panel)), allow_nan=False)
    assert not recwarn.list


def test_an_embedding_keeps_different_series_apart_and_like_ones_together() -> None:
    def gap(candidate):
        comparison = Comparison(real=waves(60), candidate=candidate, reference=waves(9), unseen=waves(9))
        found = embedding(comparison)
        json.dumps(found, allow_nan=False)
        real, other = (np.array(found["pca"][side]) for side in ("real", "synthetic"))
        return np.linalg.norm(real.mean(0) - other.mean(0)) / real.std()

    assert gap(waves(60, seed=1)) < 0.5
    assert gap(panel_of(np.clip(waves(60, seed=1).values + 0.4, 0, 1))) > 1.0


def test_few_series_of_one_step_can_be_embedded() -> None:
    tiny = panel_of(np.linspace(0, 1, 6).reshape(6, 1, 1))
    found = embedding(Comparison(real=tiny, candidate=tiny, reference=tiny, unseen=tiny))
    assert len(found["pca"]["real"]) == 6


def test_series_that_are_all_equal_are_embedded_as_one_point() -> None:
    """t-SNE itself ends the process there."""
    still = panel_of(np.full((30, 8, 2), 0.3))
    found = embedding(Comparison(real=still, candidate=still, reference=still, unseen=still))
    assert np.ptp(found["tsne"]["real"] + found["tsne"]["synthetic"]) == 0


def test_a_portrait_has_the_times_of_a_clock_where_series_share_a_calendar() -> None:
    homes = simulate_households(30)
    zoned = replace(homes.schema.time, start="2024-03-31T00:00:00", zone="Europe/Paris", dtype="auto")  # clocks change
    panel = replace(homes, schema=replace(homes.schema, time=zoned))
    assert portrait(panel, Frame.of(panel))["times"][:4] == [f"2024-03-31T0{hour}:00:00" for hour in (0, 1, 3, 4)]
    own = replace(
        homes, schema=replace(homes.schema, constraints=(), time=replace(homes.schema.time, align="relative"))
    )
    assert portrait(own, Frame.of(own))["times"] is None
