import numpy as np
import pytest
from scipy.fft import dct

from understudy.privacy.contributions import shortened
from understudy.synthesizers.spectral import profile


def test_the_radius_lets_most_series_pass_unclipped() -> None:
    scores = np.random.default_rng(0).normal(size=(500, 24, 2))
    vectors, radius = profile.moment_vectors(scores), profile.clip_radius(24, 2)
    assert (shortened(vectors, radius) == vectors).all(axis=1).mean() > 0.99


@pytest.mark.parametrize("steps", [1, 24])
def test_without_noise_the_profile_is_the_mean_and_spread_of_each_step(steps: int) -> None:
    rng = np.random.default_rng(1)
    mean, spread = 0.4 * rng.normal(size=(steps, 2)), rng.uniform(0.6, 1.2, (steps, 2))
    scores = mean + spread * rng.normal(size=(30_000, steps, 2))
    moments = profile.moment_vectors(scores).mean(0)
    kept = profile.denoise_nested(moments[None], np.ones(1), 1e-9, (1,), (steps, 2))[0]
    np.testing.assert_allclose(kept, moments, atol=1e-6)
    (fitted,) = profile.fit_profiles(moments[None], moments, np.ones(1), (steps, 2), 0.0)
    np.testing.assert_allclose(fitted.mean, mean, atol=0.03)
    np.testing.assert_allclose(fitted.spread, spread, atol=0.03)
    np.testing.assert_allclose(fitted.restore((scores - fitted.mean) / fitted.spread), scores, atol=1e-9)


def test_noise_alone_leaves_an_almost_flat_profile() -> None:
    rng = np.random.default_rng(2)
    noisy = 0.1 * rng.normal(size=(100, 1, 96))
    kept = np.stack([profile.denoise_nested(sums, np.ones(1), 0.1, (1,), (24, 2)) for sums in noisy])
    assert (kept**2).sum() < 0.15 * (noisy**2).sum()


def test_noise_alone_passes_for_a_loud_frequency_as_rarely_as_said() -> None:
    """3,000 draws of noise, of whose squares only a loud frequency is kept: one draw in a hundred has any. 30 ± 5.5 are
    expected; more than 70 have probability 2e-10, and so many would be seen from a rate of 3 % on. Control: the
    universal threshold √(2 log n) lets one draw in four pass, and six deviations are always kept.
    """
    rng, size = np.random.default_rng(5), 96
    noise = rng.normal(size=(3000, 2 * size))
    passed = sum(profile.denoise_nested(one[None], np.ones(1), 1.0, (1,), (size, 1))[0, size:].any() for one in noise)
    assert 3 <= passed <= 70
    universal = np.abs(dct(noise[:, size:], norm="ortho")) > np.sqrt(2 * np.log(size))
    assert universal.any(axis=1).sum() > 500
    wave = np.concatenate([np.zeros(size), 6 * np.sqrt(2 / size) * np.cos(np.pi * (np.arange(size) + 0.5) * 20 / size)])
    kept = profile.denoise_nested(wave[None], np.ones(1), 1.0, (1,), (size, 1))[0]
    np.testing.assert_allclose(kept, wave, atol=1e-9)


def test_a_day_too_weak_for_any_single_frequency_shows_in_all_of_its_frequencies() -> None:
    """Seven days by the hour, each frequency of the day about as loud as noise can be: together they are louder."""
    rng, hours, noise = np.random.default_rng(4), np.arange(168), 1.0
    day = sum(np.cos(2 * np.pi * hours * k / 24 + k) for k in (1, 2, 3, 4))
    truth = np.concatenate([0.35 * day, np.zeros(168)])
    found = {}
    for season in (24, None):
        errors = []
        for _ in range(40):
            sums = truth[None] + noise * rng.normal(size=(1, 336))
            errors.append(
                ((profile.denoise_nested(sums, np.ones(1), noise, (1,), (168, 1), season)[0] - truth) ** 2).sum()
            )
        found[season] = np.mean(errors)
    assert found[24] < 0.75 * (truth**2).sum()
    assert found[24] < 0.85 * found[None]


def test_a_spread_is_never_smaller_than_the_noise() -> None:
    pooled = np.concatenate([np.zeros(24), np.linspace(-1, 1, 24)])
    quiet, loud = (profile.fit_profiles(np.zeros((1, 48)), pooled, np.ones(1), (24, 1), noise)[0] for noise in (0, 0.6))
    assert quiet.spread.min() < 0.3
    assert loud.spread.min() == pytest.approx(np.sqrt(0.6))


def test_a_spread_never_vanishes() -> None:
    (fitted,) = profile.fit_profiles(np.zeros((1, 8)), np.full(8, -50.0), np.ones(1), (4, 1), 0.0)
    assert fitted.spread.min() > 0.1


def test_kinds_that_differ_keep_their_difference_and_others_share() -> None:
    """Four kinds in two groups: the groups differ visibly, the kinds inside a group do not."""
    rng, counts, noise = np.random.default_rng(3), np.full(4, 500.0), 5.0
    truth = np.zeros((4, 16))
    truth[2:, :8] = 1.0
    sums = counts[:, None] * truth + noise * rng.normal(size=truth.shape)
    means = profile.denoise_nested(sums, counts, noise, (4, 2, 1), (4, 2))
    assert np.abs(means - truth).max() < 0.05
    np.testing.assert_allclose(means[0], means[1], atol=0.03)
