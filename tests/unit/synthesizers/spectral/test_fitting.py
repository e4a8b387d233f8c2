from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

from understudy.statistics.basis import Basis, _basis
from understudy.statistics.copula import LEVEL_EDGES, NUM_CELLS, _variance, evened, normal_of, numbers_of
from understudy.statistics.series import symmetric, unit_length
from understudy.statistics.shapes import smoothed_cumulative
from understudy.synthesizers.spectral import fitting
from understudy.synthesizers.spectral.fitting import EVEN_EDGES, Split


def plain_basis(steps: int, seasons: tuple[int, ...] = ()) -> Basis:
    return _basis(steps, seasons)


@pytest.mark.parametrize("channels", [2, 5])
def test_moments_are_the_mean_products_of_channels(channels: int) -> None:
    scores = np.random.default_rng(0).normal(size=(9, 6, channels))
    whole = np.einsum("sti,stj->sij", scores, scores) / 6
    np.testing.assert_allclose(symmetric(fitting.product_vectors(scores), channels), whole)


def test_the_radius_of_products_lets_most_series_pass_unclipped() -> None:
    """Independent channels, and channels that are all the same."""
    scores = np.random.default_rng(1).normal(size=(1000, 24, 4))
    for drawn in (scores, np.repeat(scores[:, :, :1], 4, axis=2)):
        norms = np.linalg.norm(fitting.product_vectors(drawn), axis=1)
        assert (norms <= fitting.factors_radius(4)).mean() > 0.9


def test_channels_that_move_as_one_become_factors_of_unit_size() -> None:
    rng = np.random.default_rng(2)
    common, apart, other = rng.normal(size=(3, 500, 24, 1))
    scores = np.concatenate([common, np.sqrt(0.92) * common + np.sqrt(0.08) * apart, other], axis=2)
    rotation = fitting.fit_rotation(fitting.product_vectors(scores).mean(0), 3)
    turned = (scores @ rotation).reshape(-1, 3)
    assert abs(np.corrcoef(turned.T)[0, 1]) < 0.02
    np.testing.assert_array_equal(rotation[2], [0, 0, 1])
    np.testing.assert_allclose(scores @ rotation @ np.linalg.inv(rotation), scores, atol=1e-9)


@pytest.mark.parametrize("noisy", [np.zeros(6), np.full(6, -40.0), 100 * np.random.default_rng(3).normal(size=6)])
def test_whatever_noise_makes_of_it_a_rotation_can_be_undone(noisy: np.ndarray) -> None:
    rotation = fitting.fit_rotation(noisy, 3)
    assert np.isfinite(rotation).all()
    assert np.linalg.cond(rotation) < 1e6


def test_channels_that_are_linked_by_another_become_one_group() -> None:
    correlation = np.eye(5)
    for pair, size in (((0, 3), 0.9), ((3, 4), 0.95), ((0, 4), 0.8)):
        correlation[pair] = correlation[pair[::-1]] = size
    mixed = np.abs(fitting.fit_rotation(correlation[np.triu_indices(5)], 5)) > 1e-9
    assert mixed[np.ix_([0, 3, 4], [0, 3, 4])].all()
    np.testing.assert_array_equal(mixed[[1, 2]], np.eye(5, dtype=bool)[[1, 2]])


def hump(centre: float, deviation: float, mass: float, edges: np.ndarray = EVEN_EDGES) -> np.ndarray:
    return mass * np.diff(ndtr((edges - centre) / deviation))


def test_each_series_votes_once_per_channel_also_beyond_the_edges() -> None:
    numbers = np.array([[0.1, -99.0], [99.0, 0.1]])
    cells = fitting.cells_of(numbers, LEVEL_EDGES)
    assert cells.shape == (2, 2)
    assert cells[0, 1] == 0
    assert cells[1, 0] == NUM_CELLS - 1
    assert LEVEL_EDGES[cells[0, 0]] <= 0.1 < LEVEL_EDGES[cells[0, 0] + 1]
    assert cells[0, 0] == cells[1, 1]


def test_two_clear_modes_are_divided_between_them() -> None:
    votes = np.stack([hump(0, 1, 2000), hump(-1.5, 0.4, 900) + hump(1.5, 0.4, 1100)])
    (split,) = fitting.find_splits(votes, noise=5.0, most=2)
    assert split.channel == 1
    assert -0.8 < split.threshold < 0.8


@pytest.mark.parametrize(
    ("votes", "noise", "most"),
    [
        (hump(0, 1, 2000), 5.0, 2),
        (hump(-1.5, 0.4, 900) + hump(1.5, 0.4, 1100), 100.0, 2),
        (hump(-1.5, 0.4, 20) + hump(1.5, 0.4, 1980), 1.0, 2),
        (hump(-1.5, 0.4, 900) + hump(1.5, 0.4, 1100), 5.0, 0),
        (np.zeros(NUM_CELLS), 1.0, 2),
    ],
    ids=["one mode", "too noisy", "hardly anybody on one side", "not affordable", "nobody"],
)
def test_what_is_not_clearly_two_modes_stays_whole(votes: np.ndarray, noise: float, most: int) -> None:
    assert fitting.find_splits(votes[None], noise, most) == ()


def test_noise_alone_is_hardly_ever_divided() -> None:
    rng = np.random.default_rng(0)
    found = [fitting.find_splits(rng.normal(0, 9, (4, NUM_CELLS)), 9.0, 2) for _ in range(200)]
    assert sum(map(bool, found)) < 20


def test_strata_count_in_binary() -> None:
    kinds = fitting.stratum_of(
        np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]]), (Split(0, 0.0), Split(1, 0.0))
    )
    assert kinds.tolist() == [0, 1, 2, 3]
    assert fitting.stratum_of(np.zeros((3, 2)), ()).tolist() == [0, 0, 0]


def test_numbers_come_back_from_their_scores() -> None:
    shares = hump(-1.0, 0.5, 0.5, LEVEL_EDGES) + hump(1.0, 0.7, 0.5, LEVEL_EDGES)
    cumulative = smoothed_cumulative(shares, 1e-6, LEVEL_EDGES, LEVEL_EDGES)[None]
    numbers = np.linspace(-2, 2.5, 60)[:, None]
    scores = normal_of(numbers, cumulative, LEVEL_EDGES)
    np.testing.assert_allclose(numbers_of(scores, cumulative, LEVEL_EDGES), numbers, atol=1e-3)
    assert _variance(np.diff(cumulative), LEVEL_EDGES)[0] == pytest.approx(1 + (0.25 + 0.49) / 2, rel=0.05)


def test_noise_makes_cells_fewer_and_their_edges_stay_among_the_many() -> None:
    for few, many in zip(fitting.edges_for(1.0), fitting.edges_for(0.0), strict=True):
        assert len(few) < len(many) / 4
        assert np.isin(few, many).all()
        assert (np.diff(few) > 0).all()
        assert (few[0], few[-1]) == (many[0], many[-1])


def test_the_radius_of_profiles_lets_most_series_pass_unclipped() -> None:
    """Series that are all chance, and such as the prior expects; both weigh about what they may."""
    basis, chance = plain_basis(24), np.random.default_rng(0).normal(size=(500, 24, 2))
    expected = basis.series(np.sqrt(24 * basis.spread_out(basis.shares))[:, None] * chance)
    for noise in (1e-4, 0.03):
        moments = fitting.Moments.of(basis, 2, noise)
        for scores, most in ((chance, 0.85), (expected, 0.75)):
            norms = np.linalg.norm(moments.vectors(scores), axis=1)
            assert (norms < moments.radius * (1 - 1e-9)).mean() > most
            assert norms.max() <= moments.radius * (1 + 1e-12)
    assert norms.mean() > 0.5


def profiles_of(scores: np.ndarray, noise: float, drawn: np.random.Generator | None = None) -> tuple[np.ndarray, ...]:
    """The profile behind the moments of series, released with noise of this standard deviation."""
    moments = fitting.Moments.of(plain_basis(scores.shape[1]), scores.shape[2], noise / len(scores))
    sums = moments.vectors(scores).sum(axis=0, keepdims=True)
    sums = sums if drawn is None else sums + noise * drawn.normal(size=sums.shape)
    return tuple(own[0] for own in moments.profiles(sums, np.array([float(len(scores))]), noise, 1))


@pytest.mark.parametrize("steps", [1, 24])
def test_without_noise_the_profile_is_the_mean_and_spread_of_each_step(steps: int) -> None:
    rng = np.random.default_rng(1)
    mean, spread = 0.4 * rng.normal(size=(steps, 2)), rng.uniform(0.6, 1.0, (steps, 2))
    scores = mean + spread * rng.normal(size=(30_000, steps, 2))
    fitted = profiles_of(scores, 1e-3)
    np.testing.assert_allclose(fitted[0], mean, atol=0.05 if steps > 1 else 0.2)  # one step of two: some are clipped
    np.testing.assert_allclose(fitted[1], spread, atol=0.05 if steps > 1 else 0.2)


def test_noise_alone_leaves_an_almost_flat_profile() -> None:
    """A hundred units at a noise of their own number: an estimate without a prior would err by the noise of a step."""
    rng = np.random.default_rng(2)
    moments = fitting.Moments.of(plain_basis(96), 1, 0.5)
    zero = np.zeros((1, moments.weights.size))
    fitted = [moments.profiles(zero + 50 * rng.normal(size=zero.shape), np.array([100.0]), 50.0, 1) for _ in range(50)]
    assert np.mean([(mean**2).mean() for mean, _ in fitted]) < 0.15
    assert np.mean([((spread - 1) ** 2).mean() for _, spread in fitted]) < 0.15


def test_the_more_noise_the_fewer_moments_are_released_and_the_louder() -> None:
    many, few = (fitting.Moments.of(plain_basis(96), 1, noise) for noise in (1e-4, 0.05))
    assert (many.weights > 0).all()
    assert 0 < (few.weights > 0).sum() < 40
    assert few.weights[0, 1] > 2 * many.weights[0, 1]


def test_best_weights_leave_less_error_than_others_of_the_same_length() -> None:
    rng = np.random.default_rng(3)
    prior, typical, noise = rng.exponential(size=30), rng.exponential(size=30), 0.3
    best = fitting.best_weights(prior, typical, noise)
    assert (best * typical).sum() == pytest.approx(1)
    error = (prior * noise**2 / (prior * best + noise**2)).sum()
    for _ in range(200):
        other = best * rng.exponential(size=30) + 0.1 * rng.exponential(size=30)
        other /= (other * typical).sum()
        assert (prior * noise**2 / (prior * other + noise**2)).sum() > error


def test_noise_alone_passes_for_signal_as_rarely_as_said() -> None:
    """3,000 draws of noise of which nothing is expected: 2 % pass as a subspace, 1 % for one loud coefficient.

    87 ± 9 are expected; fewer than 32 or more than 142 have probability 1e-9, a rate off by two thirds would be seen.
    Control: the universal threshold √(2 log n) lets one draw in four pass, and six deviations are always kept.
    """
    rng, size = np.random.default_rng(5), 96
    one, nothing = np.ones(size), np.zeros(size)
    basis = replace(plain_basis(size), groups=(np.arange(size),))
    noise = rng.normal(size=(3000, size, 1))
    passed = sum(basis.denoise(drawn, one, nothing).any() for drawn in noise)
    assert 32 <= passed <= 142
    assert (np.abs(noise) > np.sqrt(2 * np.log(size))).any(axis=1).sum() > 500
    wave = 6.0 * (np.arange(size) == 20)[:, None]
    np.testing.assert_allclose(basis.denoise(wave, one, nothing), wave, atol=1e-9)


def test_a_day_too_weak_for_any_single_coefficient_shows_in_all_of_its_harmonics() -> None:
    """Seven days by the hour, every harmonic about as loud as noise can be: together they are louder."""
    rng, hours = np.random.default_rng(4), np.arange(168)
    day = 0.35 * sum(np.cos(2 * np.pi * hours * k / 24 + k) for k in (1, 2, 3, 4))
    errors = {}
    for season in ((24,), ()):
        own = plain_basis(168, season)
        truth, prior = own.coefficients(day[None, :, None])[0], 0.5 * own.spread_out(own.shares)
        noisy = truth + rng.normal(size=(40, 168, 1))
        kept = [own.denoise(one, np.ones(168), prior) for one in noisy]
        errors[season] = np.mean([((one - truth) ** 2).sum() for one in kept])
    assert errors[(24,)] < 0.75 * (day**2).sum()
    assert errors[(24,)] < 0.85 * errors[()]


def test_a_spread_never_vanishes() -> None:
    moments = fitting.Moments.of(plain_basis(4), 1, 1e-6)
    _, spread = moments.profiles(np.full((1, 8), -50.0), np.ones(1), 1e-6, 1)
    assert spread.min() > 0.1


def test_kinds_that_differ_keep_their_difference_and_others_share() -> None:
    """Four kinds in two groups: the groups differ visibly, the kinds inside a group do not."""
    rng, counts, noise = np.random.default_rng(3), np.full(4, 500.0), np.full(16, 5.0)
    truth = np.zeros((4, 16, 1))
    truth[2:, :8] = 1.0
    sums = counts[:, None, None] * truth + 5.0 * rng.normal(size=truth.shape)
    basis = replace(plain_basis(16), groups=(np.arange(8), np.arange(8, 16)))
    means = fitting.denoise_nested(sums, counts, noise, np.full(16, 1e-4), (4, 2, 1), basis)
    assert np.abs(means - truth).max() < 0.05
    np.testing.assert_allclose(means[0], means[1], atol=0.03)


def test_the_declared_number_of_units_counts_unless_noise_cannot_explain_another() -> None:
    np.testing.assert_allclose(fitting.fit_counts(np.array([90.0]), 20.0, 100), [100.0])
    np.testing.assert_allclose(fitting.fit_counts(np.array([40.0, 20.0]), 0.1, 100), [40, 20], rtol=0.01)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e12])
def test_a_direction_has_length_one_or_none_at_all(scale: float) -> None:
    coefficients = scale * np.random.default_rng(0).normal(size=(20, 9, 3))
    norms = np.linalg.norm(unit_length(np.abs(coefficients)), axis=1)
    assert ((np.abs(norms - 1) < 1e-12) | (norms == 0)).all()
    assert not unit_length(np.abs(np.zeros((2, 9, 3)))).any()
    assert unit_length(np.abs(np.zeros((2, 0, 3)))).shape == (2, 0, 3)


def test_directions_of_gaussian_series_are_as_expected_and_lead_back_to_their_energies() -> None:
    energy = np.array([0.5, 0.2, 0.1, 0.1, 0.05, 0.03, 0.02])
    drawn = np.sqrt(energy)[:, None] * np.random.default_rng(1).normal(size=(200_000, 7, 1))
    expected = fitting.expected_directions(energy)
    np.testing.assert_allclose(unit_length(np.abs(drawn)).mean(0)[:, 0], expected, rtol=0.01)
    np.testing.assert_allclose(fitting.energies_behind(expected, np.ones(7)), energy, rtol=0.02)


def test_strengths_behind_many_series_are_found_and_the_share_of_the_level() -> None:
    truth = np.linspace(2.0, 0.2, 30)[:, None]
    truth = truth / np.sqrt((truth**2).mean())
    drawn = np.concatenate([[[np.sqrt(30)]], truth]) * np.random.default_rng(1).normal(size=(20_000, 31, 1))
    fitted, level = fitting.fit_strengths(unit_length(np.abs(drawn)).mean(0), 1e-4, plain_basis(31))
    np.testing.assert_allclose(fitted, truth, rtol=0.08)
    assert level[0] == pytest.approx(0.5, abs=0.02)


def test_strengths_have_mean_square_one_and_none_vanishes_whatever_the_noise() -> None:
    for noisy in (np.zeros((5, 2)), -np.ones((5, 2)), np.random.default_rng(2).normal(size=(5, 2))):
        fitted, level = fitting.fit_strengths(noisy, 0.5, plain_basis(5))
        np.testing.assert_allclose((fitted**2).mean(0), 1.0)
        assert fitted.min() > 0
        assert ((level > 0) & (level < 1)).all()


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_short_series_have_few_frequencies(steps: int) -> None:
    fitted, level = fitting.fit_strengths(np.ones((steps, 2)), 0.1, plain_basis(steps))
    assert fitted.shape == (steps - 1, 2)
    assert np.isfinite(evened(np.zeros((4, steps - 1, 2)), fitted, plain_basis(steps))).all()
    assert np.isfinite(level).all()


def test_the_volatility_is_the_log_size_of_the_movements() -> None:
    found = evened(np.full((1, 50, 1), np.e), np.ones((50, 1)), plain_basis(51))
    assert found[0, 0, 0] == pytest.approx(1.0)


def test_a_spectrum_that_falls_is_found_under_noise_as_large_as_most_of_it() -> None:
    """Two hundred random walks at epsilon one: strengths are off by a factor below two in the mean."""
    truth = 1 / np.arange(1, 100)[:, None]
    truth = truth / np.sqrt((truth**2).mean())
    rng, basis = np.random.default_rng(6), plain_basis(100)
    walks = np.concatenate([[[np.sqrt(99)]], truth]) * rng.normal(size=(20_000, 100, 1))
    mean = unit_length(np.abs(walks)).mean(0)
    noisy = [mean + 0.04 * rng.normal(size=(100, 1)) for _ in range(20)]
    off = [np.abs(np.log2(fitting.fit_strengths(one, 0.04, basis)[0] / truth)).mean() for one in noisy]
    assert np.mean(off) < 1.0


def test_a_kind_is_not_believed_to_differ_by_more_than_kinds_do() -> None:
    """One fit in six gave few sick patients another volatility: a loud draw passes the test of James and Stein."""
    counts, noise = np.array([7000.0, 1000.0]), 20.0
    sums = np.stack([7000.0 * np.full(8, 0.125), 1000.0 * np.full(8, 0.125) + 3 * noise * np.array([1.0, -1.0] * 4)])
    freely, held = (fitting.pooled_kinds(sums, counts, noise, doubt)[1][0] for doubt in (np.inf, 0.01))
    assert np.abs(held - 0.125).max() < 0.4 * np.abs(freely - 0.125).max()
    sure = fitting.pooled_kinds(sums, counts, 0.01 * noise, 0.01)[1][0]
    np.testing.assert_allclose(sure, sums[1] / 1000, rtol=0.02)
