"""Gaps and early ends: how many steps of a channel a series has, at which steps, in which runs.

Of a channel that may be missing every series has a *number* of observed steps, from none to all. Which steps these are
depends on the step, on the score there, on the other channels, and on whether the step before is observed. So a step
is observed when a Gaussian latent number of the series, less the step's *ease*, is among its lowest; the number says
how many are. Numbers have a distribution, eases are one figure per step, and what links steps is three figures.

Notation: o is 1 where a value is observed and 0 where not, p the share of steps a series has.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import betainc, ndtr, ndtri
from scipy.stats import norm

from understudy.data import Panel, Schema
from understudy.privacy.contributions import Cells, Contributions, Rows, SideBySide, shortened
from understudy.statistics.basis import Basis
from understudy.statistics.columns import gappy_channels
from understudy.statistics.counts import nearest_distribution, shrink, smooth_by_risk
from understudy.statistics.series import filled

LENGTH_EDGES = np.array([1, 2, 3, 4, 5, 7, 10, 14, 20, 30, 48, 96, 192])  # of runs of equal values
_MAX_LENGTH_CELLS = 64
_FEW = np.array([0, 1, 2, 3, 4, 6, 9])  # numbers with cells of their own, at both ends
_EVEN_CELLS = 12
_LAGS = (1, 2, 4, 8, 16)
_DYNAMICS = len(_LAGS) + 2  # figures on what links steps: by lag, with other channels, with scores
_DYNAMICS_LENGTH = 0.5  # the most they may weigh, per channel; the number and the steps weigh one each
_CONCENTRATION = 3.0  # of the Beta distribution of shares that is expected before votes are counted
_NEVER, _HARDEST = -9.0, 3.5  # ease of a step that is never observed; the largest ease of others in size
_SIGNIFICANT = 3.0  # standard deviations of noise from which a channel is never there, or missing with others
_MOST_TILT = 10.0
_HIGH = 0.95  # of series have no higher share
_FEWEST = 0.05  # share of steps of a channel that is counted on, at least
_QUIET = 3.3  # standard deviations of noise below which a step that should stand out of it is never observed
_RAREST = 0.002  # share of series that are observed at a step, if any are
_TYPICAL = 0.05  # variance over steps of the share of series that are observed
_MEMORIES = np.array([[0.0, 0.0], *([w, m] for w in (0.3, 0.6, 0.8, 0.95) for m in (0.4, 0.7, 0.85, 0.93, 0.98))])
_SIMULATED, _SIMULATION_ERROR = 2**19, 0.002  # values drawn to find what memory does to lags; what chance does
_MOST_TOGETHER, _MOST_RESPONSE, _ROUNDS = 0.999, 0.7, 30


@dataclass(frozen=True, eq=False)
class GapModel:
    """Released facts on the gaps of some channels."""

    numbers: np.ndarray  # distribution [channel, cell] of the number of observed steps over `number_edges`
    ease: np.ndarray  # how easily each step [channel, step] is observed, in deviations of the latent number
    weight: np.ndarray  # part of the latent number that lasts
    memory: np.ndarray  # and its correlation from one step to the next
    together: np.ndarray  # correlation [channel] of the latent number with one that all channels share
    response: np.ndarray  # correlation [channel] of the latent number with the score

    def packed(self) -> np.ndarray:
        """Returns one row per channel."""
        figures = np.stack([self.weight, self.memory, self.together, self.response], axis=1)
        return np.concatenate([self.numbers, self.ease, figures], axis=1)

    @classmethod
    def of(cls, rows: np.ndarray, steps: int) -> "GapModel":
        """Inverse of `packed`."""
        cells = len(number_edges(steps))
        return cls(*np.split(rows[:, :-4], [cells], axis=1), *rows[:, -4:].T)

    def ranks_of(self, numbers: np.ndarray) -> np.ndarray:
        """Returns the middle ranks [series, channel] of the cells of numbers of observed steps."""
        cell = _cell(numbers, number_edges(self.ease.shape[1]))
        cumulative = np.cumsum(self.numbers, axis=1)
        middle = cumulative - self.numbers / 2
        return np.stack([row[own] for row, own in zip(middle, cell.T, strict=True)], axis=1)

    def numbers_at(self, ranks: np.ndarray) -> np.ndarray:
        """Returns the numbers of observed steps at ranks [series, channel]."""
        edges, found = number_edges(self.ease.shape[1]), []
        width = np.diff(np.append(edges, edges[-1] + 1))
        for row, own in zip(self.numbers, ranks.T, strict=True):
            end = np.cumsum(row)
            cell = np.minimum(np.searchsorted(end, own, side="right"), np.flatnonzero(row)[-1])
            inside = (own - end[cell] + row[cell]) / np.maximum(row[cell], 1e-12)
            found.append(edges[cell] + np.minimum(inside * width[cell], width[cell] - 1).astype(np.int64))
        return np.stack(found, axis=1)

    def sample(
        self, ranks: np.ndarray, scores: np.ndarray, lengths: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Returns True [series, step, channel] where a value is missing, for ranks [series, channel] of numbers."""
        shape, steps = scores.shape, scores.shape[1]
        latent = np.stack([lasting(shape[:2], *own, rng) for own in zip(self.weight, self.memory, strict=True)], axis=2)
        part = (self.together**2 + 1e-9) / (self.together**2 + 1e-9).sum()
        common = lasting(shape[:2], float(part @ self.weight), float(part @ self.memory), rng)[:, :, None]
        latent = np.sqrt(1 - self.together**2) * latent + self.together * common
        around = standard_within(scores, lengths)
        around -= around.mean(axis=0)
        order = np.sqrt(1 - self.response**2) * latent + self.response * around - self.ease.T
        inside = _inside(steps, lengths)
        place = np.where(inside, order, np.inf).argsort(axis=1).argsort(axis=1)
        wanted = np.rint(self.numbers_at(ranks) * (lengths / steps)[:, None])
        possible = (inside & (self.ease.T > _NEVER)).sum(axis=1)
        return np.asarray(place >= np.minimum(wanted, possible)[:, None])


def observed_shares(rows: np.ndarray, schema: Schema, num_columns: int) -> np.ndarray:
    """Returns shares of steps at which a series has a value, [which, column]: mean, root mean square, high."""
    shares = np.ones((3, num_columns))
    if len(rows):
        model, edges = GapModel.of(rows, schema.num_steps), number_edges(schema.num_steps)
        share = _middles(edges)
        high = share[np.argmax(np.cumsum(model.numbers, axis=1) >= _HIGH, axis=1)]
        own = np.stack([model.numbers @ share, np.sqrt(model.numbers @ share**2), high])
        shares[:, gappy_channels(schema)] = np.maximum(own, _FEWEST)
    return shares


def lasting(shape: tuple[int, ...], weight: float, memory: float, rng: np.random.Generator) -> np.ndarray:
    """Returns normal numbers [series, step] of which a part lasts: first-order autoregressions and noise."""
    shocks, noise = rng.standard_normal((2, *shape))
    shocks[:, 1:] *= np.sqrt(1 - memory**2)
    for step in range(1, shape[1]):
        shocks[:, step] += memory * shocks[:, step - 1]
    return np.asarray(np.sqrt(weight) * shocks + np.sqrt(1 - weight) * noise)


def number_edges(steps: int) -> np.ndarray:
    """Returns the lower ends of the cells for numbers of observed steps, from none to all."""
    inner = np.linspace(0, steps, _EVEN_CELLS + 1).astype(np.int64)
    near = _FEW[steps >= 2 * _FEW]
    return np.unique(np.concatenate([near, inner, steps - near]))


def numbers_of(panel: Panel, channels: Sequence[int]) -> np.ndarray:
    """Returns how many of all steps are observed [series, channel]; a series that ends early counts as if it went on.

    Privacy: private if the panel is; a series follows from its own values alone.
    """
    observed = (~np.isnan(panel.values[:, :, channels])).sum(axis=1)
    return np.rint(observed * (panel.num_steps / np.maximum(panel.lengths, 1))[:, None]).astype(np.int64)


def num_figures(num_channels: int, steps: int) -> int:
    """Returns how many numbers `absence_votes` holds on gaps."""
    return num_channels * (len(number_edges(steps)) + steps + _DYNAMICS)


def absence_bound(num_channels: int, edges: np.ndarray) -> float:
    """Returns what a series can weigh in `absence_votes`."""
    return float(np.sqrt((2 + _DYNAMICS_LENGTH**2) * num_channels + (len(edges) > 0)))


def absence_votes(panel: Panel, channels: Sequence[int], edges: np.ndarray) -> SideBySide:
    """Returns what all series say: votes for numbers and for the length, signs at all steps, what links steps."""
    length = [Cells.one_each(_cell(panel.lengths, edges)[:, None], len(edges))] if len(edges) else []
    if not channels:
        return SideBySide(length)
    numbers, observed = number_edges(panel.num_steps), ~np.isnan(panel.values[:, :, channels])
    signs = np.where(_inside(panel.num_steps, panel.lengths), 2.0 * observed - 1, 0.0) / np.sqrt(panel.num_steps)
    whole = filled(panel.values[:, :, channels], panel.lengths)
    linked = dynamics_of(observed, whole, panel.lengths).reshape(panel.num_series, -1)
    votes: list[Contributions] = [
        Cells.one_each(_cell(numbers_of(panel, channels), numbers), len(numbers)),
        Rows(signs),
        Rows(shortened(linked, _DYNAMICS_LENGTH * np.sqrt(len(channels)))),
    ]
    return SideBySide([*votes, *length])


def dynamics_of(observed: np.ndarray, scores: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Returns [series, figure, channel]: means over steps of (o − p) times the same at each lag, others', the score."""
    inside, number = _inside(observed.shape[1], lengths), np.maximum(lengths, 1)[:, None]
    rest = np.where(inside, observed - (observed & inside).sum(axis=1, keepdims=True) / number[:, None], 0.0)
    figures = [(rest[:, lag:] * rest[:, : max(0, observed.shape[1] - lag)]).sum(axis=1) for lag in _LAGS]
    others = (rest.sum(axis=2, keepdims=True) - rest) / max(1, observed.shape[2] - 1)
    figures += [(rest * others).sum(axis=1), (rest * standard_within(scores, lengths)).sum(axis=1)]
    return np.stack(figures, axis=1) / number[:, None]


def standard_within(scores: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Returns scores [series, step, channel] around the mean of their series, with a mean square of at most one."""
    inside, number = _inside(scores.shape[1], lengths), np.maximum(lengths, 1)[:, None, None]
    around = np.where(inside, scores - np.where(inside, scores, 0.0).sum(axis=1, keepdims=True) / number, 0.0)
    size = np.sqrt((around.astype(np.float64) ** 2).sum(axis=1, keepdims=True) / number)
    return np.asarray(around / np.maximum(size, 0.05))


def gap_model(noisy: np.ndarray, noise: float, num_channels: int, running: np.ndarray, basis: Basis) -> GapModel:
    """Returns the model behind noisy sums of `absence_votes`, of which `running` series go on to each step."""
    steps, edges = len(running), number_edges(len(running))
    parts = np.split(noisy, np.cumsum([num_channels * len(edges), steps * num_channels]))
    votes, (signs, linked) = parts[0].reshape(num_channels, -1), (own.reshape(-1, num_channels) for own in parts[1:])
    count = running[0]
    raw = (1 + np.sqrt(steps) * signs / np.maximum(running, 1e-3 * count)[:, None]) / 2
    doubt = np.sqrt(steps) * noise / 2 / np.maximum(running, 1e-3 * count)
    shares = _share_of_steps(raw, doubt, basis)
    numbers = _numbers_behind(votes / count, noise / count, shares.mean(axis=0), edges)
    numbers = _tilted(numbers, shares.mean(axis=0), _middles(edges))
    ease = np.stack([_ease(own, part, _middles(edges)) for own, part in zip(numbers, shares.T, strict=True)])
    none = np.zeros(num_channels)
    return _linked(GapModel(numbers, ease, none, none, none, none), linked / count, noise / count)


def _share_of_steps(raw: np.ndarray, doubt: np.ndarray, basis: Basis) -> np.ndarray:
    """Returns the share of series observed at each step behind noisy ones [step, channel]; exactly 0 where never."""
    steps = len(raw)
    prior = _TYPICAL * steps * basis.spread_out(basis.shares * basis.common)
    prior[0] = steps  # the level is anywhere
    heard = basis.denoise(basis.coefficients(raw[None])[0], np.full(steps, doubt.mean()), prior)
    shares = basis.series(heard[None])[0]
    quiet = (raw < np.maximum(_QUIET * doubt[:, None], _RAREST)) & (shares.mean(axis=0) > 2 * _QUIET * doubt.mean())
    kept = np.where(quiet, 0.0, np.clip(shares, _RAREST, 1 - _RAREST))
    return np.asarray(
        np.minimum(kept * np.clip(raw.mean(axis=0), 0.0, 1.0) / np.maximum(kept.mean(axis=0), 1e-9), 1 - _RAREST)
    )


def _numbers_behind(votes: np.ndarray, noise: float, share: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Returns distributions [channel, cell]: as voted, or a Beta distribution with the share's mean."""
    cuts = np.append((edges - 0.5) / edges[-1], 1.0).clip(0, 1)
    a, b = _CONCENTRATION * np.clip(share, 0.01, 0.99), _CONCENTRATION * (1 - np.clip(share, 0.01, 0.99))
    expected = np.diff(betainc(a[:, None], b[:, None], cuts), axis=1)
    settled = np.stack([shrink(own, prior, noise)[0] for own, prior in zip(votes, expected, strict=True)])
    settled[settled[:, 0] < _SIGNIFICANT * noise, 0] = 0.0  # an invented series without the channel is worse than none
    return np.stack([nearest_distribution(own / max(own.sum(), 0.1)) for own in settled])


def _middles(edges: np.ndarray) -> np.ndarray:
    """Returns the mean share of steps in each cell of numbers."""
    return np.append((edges[:-1] + edges[1:] - 1) / 2, edges[-1]) / edges[-1]


def _tilted(numbers: np.ndarray, share: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """Returns the distributions [channel, cell] with these mean shares that are nearest: p · exp(θ · share)."""
    found = []
    for row, wanted in zip(numbers, share, strict=True):
        weights = row * np.exp(np.linspace(-_MOST_TILT, _MOST_TILT, 401)[:, None] * (middle - middle.mean()))
        tilted = weights / weights.sum(axis=1, keepdims=True)
        found.append(tilted[int(np.abs(tilted @ middle - wanted).argmin())])
    return np.stack(found)


def _ease(numbers: np.ndarray, shares: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """Returns the ease [step] with which steps are observed as often as they are by series with these numbers.

    Of a series with p of its steps, step t is observed with chance Φ(c_p + ease_t), where c_p makes the mean p.
    """
    weight = np.where(middle == 0, 0.0, numbers)
    never, offset = shares <= 0, np.zeros(len(middle))
    ease = np.where(never, _NEVER, 0.0)
    whole = np.minimum(middle, 0.999 * (1 - never.mean()))
    wanted = shares * min(1.0, weight @ whole / max(shares.mean(), 1e-9)) if shares.any() else shares
    for _ in range(60):
        chance = ndtr(offset[:, None] + ease)
        offset = np.clip(offset + 2 * (whole - chance.mean(axis=1)), -6, 6)
        chance = ndtr(offset[:, None] + ease)
        ease = np.where(never, _NEVER, np.clip(ease + 2 * (wanted - weight @ chance), -_HARDEST, _HARDEST))
    return ease


def _linked(model: GapModel, linked: np.ndarray, noise: float) -> GapModel:
    """Returns the model with what links steps, which makes drawn figures [figure, channel] what released ones are.

    Memory is averaged by likelihood over a few; covariances of two latent numbers show in those of steps to first
    order by φ(Φ⁻¹(p)) each.
    """
    channels, steps = model.ease.shape
    series, lags = max(32, min(1000, _SIMULATED // (channels * steps))), len(_LAGS)
    rng = np.random.default_rng(0)
    ranks, whole = rng.random((series, channels)), np.full(series, steps)
    still, drawn = np.zeros((series, steps, channels)), []
    for weight, memory in _MEMORIES:
        tried = replace(model, weight=np.full(channels, weight), memory=np.full(channels, memory))
        drawn.append(dynamics_of(~tried.sample(ranks, still, whole, rng), still, whole).mean(axis=0))
    misfit = ((np.stack(drawn)[:, :lags] - linked[:lags]) ** 2).sum(axis=1)  # [memory, channel]
    likely = np.exp(-(misfit - misfit.min(axis=0)) / (2 * (noise**2 + _SIMULATION_ERROR**2)))
    weight, memory = np.einsum("mc,md->dc", likely / likely.sum(axis=0), _MEMORIES)
    share = np.append(number_edges(steps)[:-1] + 0.5, steps)[None] / steps
    height = np.maximum((model.numbers * norm.pdf(ndtri(share.clip(1e-6, 1 - 1e-6)))).sum(axis=1), 0.02)
    excess = np.maximum(linked[lags] - drawn[0][lags], 0.0) * (channels - 1)
    excess = np.where(excess > _SIGNIFICANT * noise * (channels - 1), excess, 0.0)
    common = np.sqrt(excess / max(1, channels - 1))
    for _ in range(_ROUNDS):
        common = np.where(excess > 0, (common + excess / np.maximum(common.sum() - common, 1e-6)) / 2, 0.0)
    response = -linked[lags + 1] * np.maximum(0, 1 - (noise / np.maximum(np.abs(linked[lags + 1]), 1e-12)) ** 2)
    return replace(
        model,
        weight=weight,
        memory=memory,
        together=np.minimum(common / height, _MOST_TOGETHER),
        response=np.clip(response / height, -_MOST_RESPONSE, _MOST_RESPONSE),
    )


def length_shares(noisy_votes: np.ndarray, noise: float) -> np.ndarray:
    """Returns the distribution of lengths: most series run to the end, the others end anywhere."""
    if len(noisy_votes) < 2:
        return np.ones(len(noisy_votes))
    early, total = smooth_by_risk(noisy_votes[:-1], noise), max(float(noisy_votes.sum()), 1e-9)
    return nearest_distribution(np.append(early, noisy_votes[-1]) / total)


def length_edges(min_steps: int | None, steps: int) -> np.ndarray:
    """Returns the lower ends of the cells for series lengths; none where all series are equally long."""
    if min_steps is None:
        return np.zeros(0, dtype=np.int64)
    every = np.arange(min_steps, steps + 1)
    return every if len(every) <= _MAX_LENGTH_CELLS else np.unique(np.linspace(min_steps, steps, 65).astype(int))


def sample_lengths(
    share: np.ndarray, edges: np.ndarray, steps: int, num_series: int, rng: np.random.Generator
) -> np.ndarray:
    """Returns lengths of synthetic series: a cell by its share, then evenly up to the next cell's lower end."""
    cells = rng.choice(len(edges), size=num_series, p=share / share.sum())
    upper = np.append(edges[1:], edges[-1] + 1)
    return np.minimum(rng.integers(edges[cells], upper[cells]), steps).astype(np.int32)


def _cell(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    return np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 1)


def _inside(steps: int, lengths: np.ndarray) -> np.ndarray:
    """Returns True [series, step, 1] up to the end of each series."""
    return np.asarray((np.arange(steps) < lengths[:, None])[:, :, None])
