"""Moments, tails, repetition and entropy of every noise source. False-alarm rate 1e-9 per test.

Counts beyond a border are binomial; `suspicious` is the exact two-sided test. Every kind of test has a control: it
fails on noise that is cut off, wrong by ten percent, or drawn from too few bits.
"""

import math
import os

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom, ks_2samp, norm

from understudy.privacy import noise as noise_module
from understudy.privacy.noise import NoiseSource, tabulated

FALSE_ALARM = 1e-9
SOURCES = {"secure": NoiseSource.secure, "seeded": lambda: NoiseSource.seeded(11)}
NUMBERS = {True: 25_000, False: 400_000}  # of integers: exact ones take their time
FAR = 40_000_000  # draws, of which 23 are expected beyond five standard deviations


def suspicious(count: int, draws: int, probability: float) -> bool:
    """Whether `count` of `draws` is less likely than the false-alarm rate, on either side."""
    return min(binom.cdf(count, draws, probability), binom.sf(count - 1, draws, probability)) < FALSE_ALARM / 2


def tail_counts(source: NoiseSource, draws: int, borders: tuple[float, ...]) -> np.ndarray:
    counts = np.zeros(len(borders), dtype=np.int64)
    for begin in range(0, draws, 1 << 22):
        sizes = np.abs(source.normal(1.0, min(1 << 22, draws - begin)))
        counts += [int((sizes > border).sum()) for border in borders]
    return counts


def test_normals_reach_beyond_five_standard_deviations_as_often_as_they_should() -> None:
    """Cut off at 5σ none would be there, by chance once in 10¹⁰."""
    borders = (3.0, 4.0, 4.5, 5.0)
    for border, count in zip(borders, tail_counts(NoiseSource.secure(), FAR, borders), strict=True):
        assert not suspicious(int(count), FAR, 2 * float(ndtr(-border))), border


@pytest.mark.slow
def test_normals_reach_beyond_six_standard_deviations_as_often_as_they_should() -> None:
    """Of 1.1 · 10¹⁰ draws 21.7 are expected there."""
    draws, borders = 11_000_000_000, (5.5, 6.0)
    for border, count in zip(borders, tail_counts(NoiseSource.secure(), draws, borders), strict=True):
        assert not suspicious(int(count), draws, 2 * float(ndtr(-border))), border


@pytest.mark.parametrize(("border", "kept"), [(5.0, 0), (4.0, 1200), (5.0, 4 * 23)])
def test_the_tail_test_finds_a_tail_cut_off_halved_or_four_times_as_heavy(border: float, kept: int) -> None:
    """Negative control."""
    assert suspicious(kept, FAR, 2 * float(ndtr(-border)))


def test_the_farthest_normals_follow_their_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keystream words made small put both normals of a point 6σ out together, where no number of draws would.

    Their radius² exceeds 2 log 2²⁶ by Exp(2), in any direction; compared with as many made by numpy.
    """
    shift, stream = 13, NoiseSource._keystream
    small = lambda self, words: (stream(self, words).view(np.int64) >> shift).view(np.uint64)  # noqa: E731
    monkeypatch.setattr(NoiseSource, "_keystream", small)
    rng, number = np.random.default_rng(1), 400_000
    drawn = NoiseSource.secure().normal(1.0, number)
    radius = np.sqrt(4 * shift * math.log(2) + rng.exponential(2.0, number))
    expected = radius * np.cos(2 * math.pi * rng.random(number))
    # Points of the square outside the circle are no longer turned away, but never as far out as this.
    out = lambda values: values[np.abs(values) > 6.2]  # noqa: E731
    assert ks_2samp(out(drawn), out(expected)).pvalue > FALSE_ALARM
    assert abs(len(out(drawn)) / len(out(expected)) - math.pi / 4) < 0.05  # of the square the circle is so much
    assert ks_2samp(np.minimum(out(drawn), 6.5), out(expected)).pvalue < FALSE_ALARM  # negative control


MOMENTS = {1: 0.0, 2: 1.0, 3: 0.0, 4: 3.0, 6: 15.0}
_SPREADS = {1: 1.0, 2: 2.0, 3: 15.0, 4: 96.0, 6: 10_170.0}  # variances of the powers of a standard normal


def wrong_moments(values: np.ndarray) -> list[int]:
    """Powers whose mean is 6.4 deviations off, which happens to none of five with 1 − 10⁻⁹."""
    errors = {power: abs(float((values**power).mean()) - mean) for power, mean in MOMENTS.items()}
    return [power for power, error in errors.items() if error > 6.4 * math.sqrt(_SPREADS[power] / len(values))]


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_the_first_six_moments_are_those_of_a_normal(make) -> None:
    values = make().normal(1.0, 1_000_000)
    assert wrong_moments(values) == []
    assert 2 in wrong_moments(1.1 * values)
    assert 4 in wrong_moments(np.clip(values, -3.0, 3.0))
    assert 1 in wrong_moments(values + 0.01)


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("scale", [0.5, 20.0, 1e4])
def test_discrete_gaussians_have_their_tails(make, scale: float) -> None:
    """Counts beyond 1, 2, 3, 4 and 4.4 deviations against exact sums of the law."""
    number = NUMBERS[make().is_secure]
    drawn = make().discrete_gaussian(scale, number)
    support = np.arange(-math.ceil(12 * scale) - 2, math.ceil(12 * scale) + 3, dtype=np.float64)
    mass = np.exp(-(support**2) / (2 * scale**2))
    mass /= mass.sum()
    for border in (1.0, 2.0, 3.0, 4.0, 4.4):
        for side in (1, -1):
            expected = float(mass[side * support > border * scale].sum())
            count = int((side * drawn > border * scale).sum())
            assert not suspicious(count, number, expected), (border, side)
            wrong = float(mass[side * support > 1.1 * border * scale].sum())  # the control: noise shorter by a tenth
            assert scale < 1 or border != 2.0 or suspicious(round(wrong * number), number, expected)


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("scale", [0.4, 30.0])
def test_discrete_laplace_integers_have_their_tails(make, scale: float) -> None:
    number = NUMBERS[make().is_secure]
    drawn = make().discrete_laplace(scale, number)
    rate = math.exp(-1 / scale)
    for least in sorted({max(1, round(border * scale)) for border in (0.5, 2, 5, 9)}):
        expected = rate**least / (1 + rate)
        for side in (1, -1):
            assert not suspicious(int((side * drawn >= least).sum()), number, expected), (least, side)
    least, wrong = max(1, round(2 * scale)), math.exp(-1 / (1.1 * scale))
    assert suspicious(int((np.abs(drawn) >= least).sum()), number, 2 * wrong**least / (1 + wrong))  # the control


def test_tabulated_noise_reaches_as_far_as_its_law_to_the_last_bit_of_a_uniform() -> None:
    """Inversion at chosen points: the chance of |x| ≥ t is found where uniforms say so, out to 6σ and e⁻²⁴."""
    scale = 7.3
    support = np.arange(-1200, 1201, dtype=np.float64)
    for kind, law, reach in (
        ("gaussian", np.exp(-(support**2) / (2 * scale**2)), 44),
        ("laplace", np.exp(-np.abs(support) / scale), 175),
    ):
        below = np.cumsum(law / law.sum())
        for least in (1, 7, 15, reach // 2, reach):
            place = int(np.searchsorted(support, -least))
            chance = below[place]
            assert tabulated(kind, scale, np.array([chance * 0.999]))[0] <= -least
            assert tabulated(kind, scale, np.array([chance * 1.001]))[0] > -least


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("probability", [1e-6, 0.003, 0.5, 1 - 1e-6])
def test_coins_fall_as_often_as_they_should_however_rarely(make, probability: float) -> None:
    draws = 30_000_000 if min(probability, 1 - probability) < 1e-3 else 1_000_000
    heads = int(make().bernoulli(probability, draws).sum())
    assert not suspicious(heads, draws, probability)
    assert suspicious(round(3 * draws * probability) if probability < 0.5 else heads - draws // 10, draws, probability)


def test_a_coin_is_compared_with_all_53_bits() -> None:
    """Thresholds beside a drawn number: with fewer bits, the same coin would fall the same way on both sides."""
    drawn = NoiseSource.seeded(7).uniform(2000)
    for place, bits in enumerate(drawn):
        assert not NoiseSource.seeded(7).bernoulli(float(bits), place + 1)[-1]
        if place > 40:
            break
        assert NoiseSource.seeded(7).bernoulli(float(bits) + 2.0**-53, place + 1)[-1]


def repeated(words: np.ndarray) -> int:
    return len(words) - len(np.unique(words))


def test_nothing_repeats_over_long_draws() -> None:
    """Of 4 million 53-bit numbers 0.001 pairs are equal by chance, three or more once in 10¹⁰; with 36 bits 116."""
    source = NoiseSource.secure()
    drawn = np.concatenate([source.uniform(500_003) for _ in range(8)])
    assert repeated(drawn) < 3
    assert repeated(np.floor(drawn[:2_000_000] * 2.0**36)) > 3  # the control
    normals = np.concatenate([source.normal(1.0, 250_009) for _ in range(8)])
    assert repeated(normals) < 3


def first_numbers(entropy: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[list[float], int]:
    """What a secure source draws first if the operating system gives this, and how many bytes it asked for."""
    asked = 0

    def given(number: int) -> bytes:
        nonlocal asked
        asked += number
        return entropy[asked - number : asked]

    with monkeypatch.context() as patch:
        patch.setattr(noise_module.os, "urandom", given)
        source = NoiseSource.secure()
    return source.uniform(4).tolist(), asked


def test_a_key_takes_256_bits_from_the_operating_system_and_every_one_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """128 of the key and 128 of the counter: one bit changed anywhere, and other numbers come."""
    entropy = os.urandom(64)
    genuine, asked = first_numbers(entropy, monkeypatch)
    assert asked >= 32
    seen = {tuple(genuine)}
    for bit in range(8 * asked):
        changed = bytearray(entropy)
        changed[bit // 8] ^= 1 << (bit % 8)
        seen.add(tuple(first_numbers(bytes(changed), monkeypatch)[0]))
    assert len(seen) == 8 * asked + 1


def test_the_seed_of_a_test_source_counts_in_full() -> None:
    seeds = [0, 1, 2**31, 2**32, 2**32 + 1, 2**63, 2**64, 2**64 + 1, 2**128]
    assert len({tuple(NoiseSource.seeded(seed).uniform(3)) for seed in seeds}) == len(seeds)


def test_a_thousand_sources_never_begin_alike() -> None:
    """A key of 32 bits, reached by a birthday after 65,000 sources, would be missed; of 16 bits it is found."""
    assert repeated(np.array([NoiseSource.secure().uniform(1)[0] for _ in range(3000)])) == 0


def test_the_keystream_does_not_come_round() -> None:
    """The counter goes on from call to call: blocks drawn one by one are those of one long draw."""
    together, apart = NoiseSource.seeded(3), NoiseSource.seeded(3)
    whole = together.uniform(3 * (1 << 15))
    parts = np.concatenate([apart.uniform(1 << 14) for _ in range(6)])
    assert np.array_equal(whole, parts)
    assert norm.sf(abs(float(np.corrcoef(whole[:-1], whole[1:])[0, 1])) * math.sqrt(len(whole))) > FALSE_ALARM
