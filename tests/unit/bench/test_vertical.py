"""Data and definitions of the vertical benchmarks."""

import numpy as np
import pytest

from understudy.bench.vertical_cost import BATCH, _table_6
from understudy.bench.vertical_data import PARTIES, dealt, sines, split
from understudy.data import Continuous
from understudy.evaluate.vertical.sine import amplitudes


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
    """Paper 004, Table 6: about a megabyte for two parties."""
    features = 6 * BATCH * 256 * 4 * 2 / 2**20
    assert features < _table_6("stock")["round_mb"] < 1.1 * features
