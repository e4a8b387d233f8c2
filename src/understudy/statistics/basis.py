"""A public orthonormal basis of time: the level, exact waves of the declared seasons, and cosines of all other speeds.

A series that repeats every day is a sum of twenty-four vectors here, whatever its shape, and what varies between series
that share a clock lies in few *subspaces*: level, harmonics of a season, slow, from one season to the next, fast. A
typical series spreads its energy over them much the same everywhere, from traffic to loads to sales. That is the
*prior*, a public fact: where noise drowns single coefficients, the shares of a dozen subspaces are still heard.

Notation: E unit vectors of the cosines that give way, Q₁ the waves of seasons in the frequencies of the DCT,
W = E − Q₁. The reflection Q = I − W (I − Q₁ᵀE)⁻¹ Wᵀ is orthogonal, takes E to Q₁ and moves other cosines as little as
it can.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.fft import dct

from understudy.data import Schema
from understudy.data.timegrid import parse_frequency, season_steps
from understudy.statistics.counts import loud_size, weights_of
from understudy.statistics.series import to_frequencies, to_steps

_MOST_WAVES = 24  # harmonics of a season that get exact waves
WEEK_DAYS = 7  # in the season above a day
_DAY = 86_400_000_000  # microseconds
_LEVEL, _SLOW = 0.40, 0.15  # prior shares of energy where there is a season
_HARMONICS = (0.14, 0.06, 0.05, 0.03, 0.01)  # by octave of the harmonic, halved beyond
_BETWEEN = (0.05, 0.04, 0.04, 0.03, 0.02)  # by octave above one wave a season, halved beyond
_STILL, _FALL = 0.5, 0.65  # without a season: the level, and how an octave's share falls from one to the next
_COMMON = {"level": 0.03, "season": 0.5, "slow": 0.1, "rest": 0.01}  # of the energy that all series have in common


@dataclass(frozen=True, eq=False, repr=False)
class Basis:
    """Orthonormal vectors of time; the first is the level."""

    away: np.ndarray  # W, one column for each wave of a season; none without seasons
    gain: np.ndarray  # (I − Q₁ᵀE)⁻¹
    groups: tuple[np.ndarray, ...]  # places of the vectors of each subspace
    shares: np.ndarray  # prior share of the energy of a series in each subspace
    common: np.ndarray  # prior part of that energy which is the same for all series: that of their mean

    def coefficients(self, series: np.ndarray) -> np.ndarray:
        """Returns the coefficients [series, place, channel] of [series, step, channel], each series by itself."""
        return self._reflected(to_frequencies(series), self.gain.T)

    def series(self, coefficients: np.ndarray) -> np.ndarray:
        """Inverse of `coefficients`."""
        return to_steps(self._reflected(coefficients, self.gain))

    def _reflected(self, frequencies: np.ndarray, gain: np.ndarray) -> np.ndarray:
        if not self.away.shape[1]:
            return frequencies
        back = (self.away @ gain) @ (self.away.T @ frequencies)  # a product per series: its bits do not hang on others
        return np.asarray(frequencies - back)

    def spread_out(self, figures: np.ndarray) -> np.ndarray:
        """Returns for every place its part of its subspace's figure."""
        even = np.empty(sum(map(len, self.groups)))
        for places, figure in zip(self.groups, figures, strict=True):
            even[places] = figure / len(places)
        return even

    def denoise(self, noisy: np.ndarray, noise: np.ndarray, prior: np.ndarray) -> np.ndarray:
        """Returns coefficients [place, channel] drawn towards 0, each subspace as `weights_of` says.

        Args:
            noise, prior: Standard deviation of the noise and expected variance, by place; places without either are 0.
        """
        kept, loud = np.zeros_like(noisy), loud_size(noisy.size)
        for places in (group[np.isfinite(noise[group])] for group in self.groups):
            if len(places):
                own = noise[places, None]
                kept[places] = weights_of(noisy[places] / own, loud, prior[places, None] / own**2) * noisy[places]
        return kept


def basis_of(schema: Schema) -> Basis:
    """Returns the basis for a schema's time axis."""
    return _basis(schema.num_steps, seasons_of(schema))


def seasons_of(schema: Schema) -> tuple[int, ...]:
    """Returns the steps of the seasons that fit twice, the shortest first; none without a common clock."""
    steps = schema.num_steps
    first = season_steps(schema.time, steps)
    if first is None or schema.time.align != "calendar" or not schema.unit.protects_a_person:
        return ()
    return (first, WEEK_DAYS * first) if has_days(schema) and 2 * WEEK_DAYS * first <= steps else (first,)


def has_days(schema: Schema) -> bool:
    """Says whether the first season is a day."""
    width = parse_frequency(schema.time.frequency).microseconds
    return 0 < width < _DAY


@lru_cache(maxsize=16)
def _basis(steps: int, seasons: tuple[int, ...]) -> Basis:
    places, waves, names = _waves(steps, seasons)
    first = seasons[0] if seasons else None
    names.update({place: _name(place, steps, first) for place in range(steps) if place not in names})
    kinds = sorted(set(names.values()))
    groups = tuple(np.array(sorted(place for place, name in names.items() if name == kind)) for kind in kinds)
    shares = np.array([_share(kind, first is not None) for kind in kinds])
    common = np.array([_COMMON[kind[1]] for kind in kinds])
    unit = np.zeros((steps, len(places)))
    unit[places, np.arange(len(places))] = 1.0
    away = unit - waves
    return Basis(away, np.linalg.inv(np.eye(len(places)) - waves.T @ unit), groups, shares / shares.sum(), common)


Name = tuple[int, str, int]  # (order, kind, octave)


def _waves(steps: int, seasons: tuple[int, ...]) -> tuple[list[int], np.ndarray, dict[int, Name]]:
    """Returns (places that give way, waves [frequency, wave] of the seasons, the subspace of each place)."""
    places: list[int] = []
    columns: list[np.ndarray] = []
    names: dict[int, Name] = {}
    time = np.arange(steps) + 0.5
    for order, season in enumerate(seasons):
        for harmonic in range(1, min(season // 2, _MOST_WAVES) + 1):
            nearest = round(2 * steps * harmonic / season)
            if order and harmonic % (season // seasons[0]) == 0:
                continue  # a wave of the shorter season
            for place, shape in ((nearest, np.cos), (nearest + 1, np.sin)):
                if not 0 < place < steps or place in names:
                    continue
                places.append(place)
                columns.append(shape(2 * np.pi * harmonic * time / season))
                names[place] = (1 + order, "season", int(np.ceil(np.log2(harmonic))))
    if not places:
        return places, np.zeros((steps, 0)), names
    frequencies = dct(np.stack(columns, axis=1), axis=0, norm="ortho")
    frequencies[0] = 0.0  # waves stand on the level
    waves, upper = np.linalg.qr(frequencies)
    waves = waves * np.sign(np.diag(upper))
    return places, -waves * np.sign(waves[places, np.arange(len(places))]), names  # −: so that I − Q₁ᵀE is far from 0


def _name(place: int, steps: int, season: int | None) -> Name:
    """Returns the subspace of a cosine that stays."""
    if place == 0:
        return (0, "level", 0)
    if season is None:
        return (3, "rest", int(np.log2(place)))
    speed = place * season / (2 * steps)  # waves per season
    if speed < 0.85:
        return (3, "slow", int(np.floor(np.log2(place))))
    return (4, "rest", max(0, int(np.ceil(np.log2(speed / 1.5)))))


def _share(name: Name, seasonal: bool) -> float:
    """Returns the prior share of a subspace, up to a factor."""
    order, kind, octave = name
    if kind == "level":
        return _LEVEL if seasonal else _STILL
    if kind == "slow":
        return _SLOW * 0.5 ** (1 + octave)
    if not seasonal:
        return (1 - _STILL) * (1 - _FALL) * _FALL**octave
    table = _HARMONICS if kind == "season" else _BETWEEN
    last = len(table) - 1
    return table[min(octave, last)] * 0.5 ** max(0, octave - last) / (order if kind == "season" else 1)
