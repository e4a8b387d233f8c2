"""Data and definitions of the vertical benchmarks."""

import math

import numpy as np
import pytest
from understudy_bench.cells import Cells
from understudy_bench.cost.vertical import BATCH, _table_6
from understudy_bench.metrics.vertical.sine import amplitudes
from understudy_bench.pictures.draw import drawings
from understudy_bench.vertical import experiment as vertical
from understudy_bench.vertical.data import PARTIES, _without_outliers, dealt, homes, parties, sines, split
from understudy_bench.vertical.rivals import MODELS, Rival

from understudy.data import Continuous
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.synthesizers.vflgan_ts.recipe import Recipe


@pytest.mark.parametrize(("name", "channels"), [("sine-2", 2), ("sine-6", 6)])
def test_a_sine_set_has_one_amplitude_per_series_and_two_classes(name: str, channels: int) -> None:
    panel = sines(name, num_steps=400)
    assert panel.values.shape == (2048, 400, channels)
    assert panel.schema.population.size == 2048
    found = amplitudes(panel.values[:60])
    assert np.abs(found - found.mean(axis=1, keepdims=True)).max() < 0.05  # they agree up to the noise
    levels = found.mean(axis=1)
    assert 0.35 < levels.mean() < 0.65
    assert levels.std() > 0.08  # around 0.4 and around 0.6


def test_channels_are_dealt_to_parties_in_equal_shares() -> None:
    channels = dealt(tuple(Continuous(f"c{place}", 0.0, 1.0) for place in range(28)), ("a", "b", "c", "d"))
    assert [sum(channel.party == party for channel in channels) for party in "abcd"] == [7, 7, 7, 7]
    assert {channel.party for channel in sines("sine-6", 10).schema.channels} == set(PARTIES)


def test_a_split_declares_as_many_units_as_it_keeps() -> None:
    train, rest = split(sines("sine-2", 10))
    assert train.schema.population.size == train.num_units == 1638
    assert rest.num_units == 410


def test_a_round_is_six_tensors_of_features_and_little_else() -> None:
    """VFLGAN-TS, Table 6: about a megabyte for two parties."""
    features = 6 * BATCH * 256 * 4 * 2 / 2**20
    assert features < _table_6("stock")["round_mb"] < 1.1 * features


def test_values_far_off_are_bridged_and_the_range_is_two() -> None:
    wave = np.sin(np.arange(400) / 9)
    wave[[50, 200]] = 1e4, -1e3  # the second shows only once the first is gone
    found = _without_outliers(wave)
    assert found.max() - found.min() == pytest.approx(2)
    assert np.abs(found).max() < 1.1
    assert abs(found[50] - found[49]) < 0.2


def test_homes_and_any_number_of_parties_are_dealt() -> None:
    panel, _ = homes(20)
    assert {channel.party for channel in panel.schema.channels} == set(PARTIES)
    assert all(column.party for column in panel.schema.static)
    assert len({channel.party for channel in dealt(panel.schema.channels * 5, parties(10))}) == 10


def test_a_whole_benchmark_has_every_row_its_controls_and_its_pictures(
    monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    """As little work as possible: a few series, two iterations, one epsilon so large that noise needs no search."""
    monkeypatch.setattr(vertical, "SINES", vertical.Scale(10, 1.0, 60, 5, seeds=2))
    monkeypatch.setattr(vertical, "EPSILONS", (200.0,))
    monkeypatch.setattr(vertical, "SOUND", Recipe(iterations=2, batch=8, features=8))
    few = lambda name: sines(name, 200).take_units(np.arange(120))  # noqa: E731
    monkeypatch.setattr(vertical, "sines", few)
    found = vertical.sine("sine-2", "quick", None, lambda stage, share: None, Cells(tmp_path))
    assert [line["method"] for line in found["rows"]] == [
        *np.repeat([*MODELS[:3], vertical.NOISED], 2),
        "spectral",
        "vflgan-ts, sound",
        "vflgan-ts, sound",
    ]
    assert found["rows"][0]["metrics"]["awd"] != found["rows"][1]["metrics"]["awd"]  # another seed
    assert [line["method"] for line in found["controls"]] == ["holdout", "independent"]
    for line in [*found["rows"], *found["controls"]]:
        assert {"awd", "aada", "sine_ratio", "sine_amplitude", "sine_error"} <= set(line["metrics"])
        assert np.isfinite(list(line["metrics"].values())).all()
    assert found["controls"][0]["metrics"]["awd"] < found["rows"][0]["metrics"]["awd"]  # ten iterations learn little
    assert [made.name for made in drawings(found)] == ["epsilon", "amplitudes", "iterations"]
    assert len(list(tmp_path.iterdir())) == 13  # one finished part each


def test_the_original_objective_of_coscigan_is_another_one() -> None:
    panel = sines("sine-2", 40).take_units(np.arange(40))
    recipe = Recipe(iterations=4, batch=8, features=8)
    drawn = []
    for original in (False, True):
        method = Rival(mode="plain", scale="bounds", recipe=recipe, original=original)
        ledger = Ledger.in_memory(Guarantee(math.inf, 1e-6), population=panel.schema.population.size)
        drawn.append(method.fit(panel, ledger).sample(20, rng=np.random.default_rng(0)).values)
    assert np.isfinite(drawn).all()
    assert not np.array_equal(*drawn)
