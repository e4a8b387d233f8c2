import numpy as np
import pytest

from understudy.synthesizers.spectral import spectrum


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e12])
def test_a_direction_has_length_one_or_none_at_all(scale: float) -> None:
    coefficients = scale * np.random.default_rng(0).normal(size=(20, 9, 3))
    norms = np.linalg.norm(spectrum.directions(coefficients), axis=1)
    assert ((np.abs(norms - 1) < 1e-12) | (norms == 0)).all()
    assert not spectrum.directions(np.zeros((2, 9, 3))).any()
    assert spectrum.directions(np.zeros((2, 0, 3))).shape == (2, 0, 3)


def test_strengths_behind_many_series_are_found() -> None:
    truth = np.linspace(2.0, 0.2, 30)[:, None]
    truth = truth / np.sqrt((truth**2).mean())
    drawn = truth * np.random.default_rng(1).normal(size=(20_000, 30, 1))
    fitted = spectrum.fit_strengths(spectrum.directions(drawn).mean(0), noise=1e-4)
    np.testing.assert_allclose(fitted.relative, truth, rtol=0.08)


def test_strengths_have_mean_square_one_and_none_vanishes_whatever_the_noise() -> None:
    for noisy in (np.zeros((5, 2)), -np.ones((5, 2)), np.random.default_rng(2).normal(size=(5, 2))):
        relative = spectrum.fit_strengths(noisy, 0.5).relative
        np.testing.assert_allclose((relative**2).mean(0), 1.0)
        assert relative.min() > 0


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_short_series_have_few_frequencies(steps: int) -> None:
    fitted = spectrum.fit_strengths(np.ones((steps - 1, 2)), 0.1)
    assert fitted.relative.shape == (steps - 1, 2)
    assert np.isfinite(fitted.volatilities_of(np.zeros((4, steps - 1, 2)))).all()


def test_the_volatility_is_the_log_size_of_the_movements() -> None:
    strengths = spectrum.Strengths(np.ones((50, 1)))
    found = strengths.volatilities_of(np.full((1, 50, 1), np.e))
    assert found[0, 0] == pytest.approx(1.0)


def test_a_spectrum_that_falls_is_found_under_noise_as_large_as_most_of_it() -> None:
    """Two hundred random walks at epsilon one: strengths are off by a factor below two in the mean."""
    truth = 1 / np.arange(1, 100)[:, None]
    truth = truth / np.sqrt((truth**2).mean())
    rng = np.random.default_rng(6)
    mean = spectrum.directions(truth * rng.normal(size=(20_000, 99, 1))).mean(0)
    off = [
        np.abs(np.log2(spectrum.fit_strengths(mean + 0.04 * rng.normal(size=(99, 1)), 0.04).relative / truth)).mean()
        for _ in range(40)
    ]
    assert np.mean(off) < 1.0
