"""The public basis of time: orthonormal, with the shapes of a season in few vectors."""

from dataclasses import replace

import numpy as np
import pytest

from understudy.data import Time
from understudy.statistics.basis import Basis, basis_of
from understudy.synthesizers.contract.panels import plain_schema

AXES = [
    (1, "1h"),
    (2, "1h"),
    (5, "1h"),
    (168, "1h"),
    (167, "1h"),
    (344, "1d"),
    (672, "15min"),
    (336, "1h"),
    (60, "1mo"),
]


def basis(steps: int, frequency: str = "1h", align: str = "calendar") -> Basis:
    return basis_of(replace(plain_schema(), time=Time(column="when", steps=steps, frequency=frequency, align=align)))


@pytest.mark.parametrize(("steps", "frequency"), AXES)
def test_coefficients_keep_the_length_and_come_back(steps: int, frequency: str) -> None:
    series = np.random.default_rng(0).normal(size=(5, steps, 2))
    own = basis(steps, frequency)
    coefficients = own.coefficients(series)
    np.testing.assert_allclose(np.linalg.norm(coefficients, axis=1), np.linalg.norm(series, axis=1))
    np.testing.assert_allclose(own.series(coefficients), series, atol=1e-12)
    np.testing.assert_allclose(coefficients[:, 0], series.mean(axis=1) * np.sqrt(steps), atol=1e-12)


@pytest.mark.parametrize(("steps", "frequency"), AXES)
def test_every_place_is_in_one_subspace_and_the_shares_are_those_of_one_series(steps: int, frequency: str) -> None:
    own = basis(steps, frequency)
    assert sorted(np.concatenate(own.groups).tolist()) == list(range(steps))
    assert own.groups[0].tolist() == [0]
    assert own.shares.sum() == pytest.approx(1)
    assert own.spread_out(own.shares).sum() == pytest.approx(1)
    assert (own.shares > 0).all()
    assert ((own.common > 0) & (own.common < 1)).all()


@pytest.mark.parametrize(("steps", "frequency", "season"), [(168, "1h", 24), (167, "1h", 24), (344, "1d", 7)])
def test_what_repeats_every_season_lies_in_as_many_places_as_a_season_has_steps(
    steps: int, frequency: str, season: int
) -> None:
    shape = np.random.default_rng(1).normal(size=season)
    series = np.tile(shape, steps // season + 1)[:steps]
    own = basis(steps, frequency)
    seasonal = np.concatenate(own.groups[1 : 2 + int(np.ceil(np.log2(season // 2)))])
    energy = own.coefficients(series[None, :, None])[0, :, 0] ** 2
    assert len(seasonal) <= season
    assert energy[seasonal].sum() + energy[0] == pytest.approx(energy.sum(), rel=0.05)
    without = basis(steps, frequency, align="relative").coefficients(series[None, :, None])[0, :, 0] ** 2
    assert np.sort(without)[::-1][:season].sum() < np.sort(energy)[::-1][:season].sum()


def test_a_series_looks_at_no_other_series() -> None:
    series, own = np.random.default_rng(2).normal(size=(30, 168, 2)), basis(168)
    together = own.coefficients(series)
    for row in range(30):
        assert np.array_equal(own.coefficients(series[row : row + 1])[0], together[row])
