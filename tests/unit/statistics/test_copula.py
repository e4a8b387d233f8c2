import numpy as np
import pytest
from scipy.special import ndtr

from understudy.data import Time
from understudy.statistics.basis import Basis, basis_of
from understudy.statistics.copula import (
    LEVEL_EDGES,
    SHOCK_EDGES,
    VOLATILITY_EDGES,
    Kind,
    evened,
    matched_normals,
    normal_of,
    numbers_of,
)
from understudy.statistics.counts import cumulative_of
from understudy.synthesizers.contract.panels import plain_schema


def make_kind(steps: int, channels: int, seed: int = 0, tails: float = 1.0) -> Kind:
    rng = np.random.default_rng(seed)
    relative = rng.uniform(0.4, 1.6, (steps - 1, channels))
    if steps > 1:
        relative /= np.sqrt((relative**2).mean(0))

    def bell(edges: np.ndarray, deviation: float) -> np.ndarray:
        centre = (edges[0] + edges[-1]) / 2
        return cumulative_of(np.diff(ndtr((edges - centre) / deviation)))

    spikes = cumulative_of(np.diff(ndtr(np.sign(SHOCK_EDGES) * np.abs(SHOCK_EDGES) ** tails)))
    return Kind(
        mean=rng.normal(size=(steps, channels)),
        spread=rng.uniform(0.5, 1.5, (steps, channels)),
        strength=relative,
        levels=np.stack([bell(LEVEL_EDGES, 1.0)] * channels),
        volatilities=np.stack([bell(VOLATILITY_EDGES, 1.2)] * channels),
        shocks=np.stack([spikes] * channels),
    )


def basis(steps: int) -> Basis:
    return basis_of(plain_schema(time=Time(column="when", steps=steps)))


@pytest.mark.parametrize(("steps", "channels"), [(1, 2), (2, 1), (24, 3)])
def test_coefficients_come_back_from_their_coordinates(steps: int, channels: int) -> None:
    kind, rng = make_kind(steps, channels), np.random.default_rng(1)
    size = np.exp(rng.normal(-2.5, 0.4, (50, 1, channels)))  # volatilities well inside their grid
    moves = size * rng.choice([-1.0, 1.0], (50, steps, channels))
    moves[:, 0] = rng.normal(0, 0.8, (50, channels)) * np.sqrt(steps)
    coordinates = kind.coordinates_of(moves, basis(steps))
    assert coordinates.shape == (50, steps + 1, channels)
    back = kind.coefficients_of(coordinates, basis(steps))
    inside = (np.abs(coordinates) < 3.4).all(axis=(1, 2))
    assert inside.mean() > 0.5
    np.testing.assert_allclose(back[inside][:, 0], moves[inside][:, 0], atol=1e-6)
    wrong = np.abs(back[inside] - moves[inside])  # shocks have a mean, which is not the level
    assert wrong.mean() < 0.02 * np.abs(moves[inside]).mean()


def test_coordinates_are_bounded_whatever_the_series() -> None:
    kind = make_kind(8, 2)
    for scale in (0.0, 1e-12, 1e12):
        coordinates = kind.coordinates_of(np.full((3, 8, 2), scale), basis(8))
        assert np.isfinite(coordinates).all()
        assert np.abs(coordinates).max() <= 4.0


def test_variances_are_those_of_drawn_coefficients() -> None:
    kind = make_kind(6, 2)
    drawn = np.random.default_rng(2).standard_normal((60_000, 7, 2))
    found = kind.coefficients_of(drawn, basis(6)).var(axis=0)
    expected = kind.variances()
    np.testing.assert_allclose(expected[0], found[0], rtol=0.05)
    np.testing.assert_allclose(expected[2:], found[1:], rtol=0.25)  # the size is lognormal: a heavy tail


def test_steps_have_the_shocks_that_were_released() -> None:
    kind = make_kind(200, 1, tails=0.5)
    drawn = kind.coefficients_of(np.random.default_rng(0).standard_normal((2_000, 201, 1)), basis(200))
    even = evened(drawn[:, 1:], kind.strength, basis(200))[:, 1:]
    kurtosis = (even**4).mean() / (even**2).mean() ** 2
    assert kurtosis > 5  # normal numbers have 3
    numbers = numbers_of(np.linspace(-3, 3, 61)[:, None], kind.shocks, SHOCK_EDGES)
    scores = normal_of(numbers, kind.shocks, SHOCK_EDGES)
    np.testing.assert_allclose(scores.ravel(), np.linspace(-3, 3, 61), atol=1e-6)


@pytest.mark.parametrize("number", [0, 1, 8, 40, 103, 1000])
def test_the_strongest_coordinates_of_few_series_have_exact_moments(number: int) -> None:
    importance = np.random.default_rng(3).permutation(168) + 1.0
    drawn = matched_normals(number, importance, np.random.default_rng(4))
    assert drawn.shape == (number, 168)
    strong = np.argsort(-importance)[: max(0, min((number - 8) // 3, 256))]
    np.testing.assert_allclose(
        drawn[:, strong].T @ drawn[:, strong],
        number * np.eye(168)[: len(strong), : len(strong)],
        atol=1e-8 * max(1, number),
    )
    if len(strong):
        apart = np.delete(drawn, strong, axis=1)
        assert np.abs(drawn[:, strong].T @ apart).max(initial=0) < 1e-8 * number


def test_every_series_of_matched_ones_is_distributed_as_one_drawn_alone() -> None:
    """The first of forty series, 3,000 times: variances one within six deviations, no kurtosis, nothing in the mean."""
    rng, importance = np.random.default_rng(5), np.arange(60.0)
    first = np.stack([matched_normals(40, importance, rng)[0] for _ in range(3_000)])
    assert np.abs(first.mean(axis=0)).max() < 6 / np.sqrt(3_000)
    np.testing.assert_allclose((first**2).mean(axis=0), 1.0, atol=6 * np.sqrt(2 / 3_000))
    assert np.abs((first**4).mean() - 3.0) < 0.3
    correlation = np.corrcoef(first.T) - np.eye(60)
    assert np.abs(correlation).max() < 6 / np.sqrt(3_000)
