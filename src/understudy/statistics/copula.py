"""A Gaussian copula over frequencies: what a `spectral` release holds, and how series are sampled from it.

A series becomes normal scores (by marginals), factors (by a rotation of channels), what remains of them beyond their
kind's mean and spread at each step, coefficients in a public basis of time, and Gaussian coordinates: level,
volatility, every frequency, which is what coefficients beyond the level are called.
Sampling goes the same way back. Everything here is a function of noisy statistics and of nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from scipy.special import ndtr

from understudy.data import Schema
from understudy.data.timegrid import hours_of_day, parse_frequency
from understudy.statistics.basis import WEEK_DAYS, Basis, basis_of, has_days, seasons_of
from understudy.statistics.columns import context_summary, num_labels, single_columns
from understudy.statistics.facts import Facts
from understudy.statistics.marginals import SCORE_LIMIT, Marginal, bounded_scores

NUM_CELLS = 64
_HALF = NUM_CELLS // 2
_SIZES = SCORE_LIMIT * 2.0 ** (-np.arange(_HALF - 1, -1, -1) / 4)  # quarter octaves: small levels matter as large do
LEVEL_EDGES = np.concatenate([-_SIZES[::-1], [0.0], _SIZES])
VOLATILITY_EDGES = np.linspace(-7.0, 2.0, NUM_CELLS + 1)
SHOCK_EDGES = 4 * LEVEL_EDGES
NODE_RANKS = np.concatenate([[0.0], ndtr(np.linspace(-4.25, 4.25, 1023)), [1.0]])  # of synthetic scores; dense at ends
_COORDINATE_LIMIT = 4.0
_MOST_SEEN, _POOL, _SMALL = 96, 4096, 0.02  # of continued series: values conditioned on, windows drawn, ridge
_FEWEST, _FEW, _MATCHED = 8, 4096, 256  # series with exact moments, at least and at most; coordinates, at most
_RIDGE = 0.05  # how much of a series' own response to context is taken for chance


def normal_of(numbers: np.ndarray, cumulative: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Returns the normal scores of numbers [..., channel] by distribution functions [channel, cell + 1]."""
    ranks = [np.interp(numbers[..., c], edges, row) for c, row in enumerate(cumulative)]
    return bounded_scores(np.stack(ranks, axis=-1))


def numbers_of(normal: np.ndarray, cumulative: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Inverse of `normal_of`."""
    rising, ranks = cumulative + np.arange(NUM_CELLS + 1) * 1e-12, ndtr(normal)  # np.interp wants rising nodes
    return np.stack([np.interp(ranks[..., c], row, edges) for c, row in enumerate(rising)], axis=-1)


def evened(coefficients: np.ndarray, strength: np.ndarray, basis: Basis) -> np.ndarray:
    """Returns the volatility, then the steps of the series with an even spectrum and variance one, end to end.

    Strengths [frequency, channel] have mean square one; a series without movement has a very small volatility.
    """
    square = ((coefficients / strength) ** 2).mean(axis=1, keepdims=True) if len(strength) else 1.0
    volatility = np.zeros((len(coefficients), 1, coefficients.shape[2])) + 0.5 * np.log(np.maximum(square, 1e-12))
    moves = coefficients / strength / np.exp(volatility)
    return np.concatenate([volatility, basis.series(np.concatenate([0 * volatility, moves], axis=1))], axis=1)


@dataclass(frozen=True, eq=False, repr=False)
class Kind:
    """Coordinates of a series, in blocks of one number per channel: level, volatility, then every frequency.

    Steps of a series with an even spectrum are shocks: appliances and orders come as spikes, and a spectrum and its
    correlations are about normal numbers with the same ranks.
    """

    mean: np.ndarray  # profile [step, channel]
    spread: np.ndarray
    strength: np.ndarray  # relative strengths [frequency, channel] of the frequencies above 0
    levels: np.ndarray  # distribution functions [channel, cell + 1]
    volatilities: np.ndarray
    shocks: np.ndarray

    def coordinates_of(self, coefficients: np.ndarray, basis: Basis) -> np.ndarray:
        """Returns coordinates [series, block, channel] of coefficients [series, frequency, channel]."""
        steps = coefficients.shape[1]
        volatility, even = np.split(evened(coefficients[:, 1:], self.strength, basis), [1], axis=1)
        moves = basis.coefficients(normal_of(even, self.shocks, SHOCK_EDGES))[:, 1:]
        level = normal_of(coefficients[:, :1] / np.sqrt(steps), self.levels, LEVEL_EDGES)
        blocks = [level, normal_of(volatility, self.volatilities, VOLATILITY_EDGES), moves]
        return np.clip(np.concatenate(blocks, axis=1), -_COORDINATE_LIMIT, _COORDINATE_LIMIT)

    def coefficients_of(self, coordinates: np.ndarray, basis: Basis) -> np.ndarray:
        """Returns coefficients [series, frequency, channel]; inverse of `coordinates_of`."""
        steps = coordinates.shape[1] - 1
        level = numbers_of(coordinates[:, :1], self.levels, LEVEL_EDGES) * np.sqrt(steps)
        volatility = np.exp(numbers_of(coordinates[:, 1:2], self.volatilities, VOLATILITY_EDGES))
        still = np.zeros_like(level)
        even = basis.series(np.concatenate([still, coordinates[:, 2:]], axis=1))
        moves = basis.coefficients(numbers_of(even, self.shocks, SHOCK_EDGES))[:, 1:]
        size = np.sqrt((moves**2).mean(axis=1, keepdims=True)) if steps > 1 else np.ones_like(volatility)
        moves = moves * self.strength * (volatility / np.maximum(size, 1e-6))
        return np.concatenate([level, moves], axis=1)

    def variances(self) -> np.ndarray:
        """Returns the variance [block, channel] each block has among the coefficients; the volatility's is its own."""
        levels, volatilities = np.diff(self.levels, axis=1), np.diff(self.volatilities, axis=1)
        level = _variance(levels, LEVEL_EDGES) * (len(self.strength) + 1)
        size = volatilities @ np.exp(VOLATILITY_EDGES[1:] + VOLATILITY_EDGES[:-1])
        return np.concatenate([[level], [_variance(volatilities, VOLATILITY_EDGES)], self.strength**2 * size])


def _variance(mass: np.ndarray, edges: np.ndarray) -> np.ndarray:
    middle = (edges[1:] + edges[:-1]) / 2
    return np.maximum(mass @ middle**2 - (mass @ middle) ** 2, 1e-6)


@dataclass(frozen=True, eq=False)
class Covariance:
    """Covariances of one kind: `coupled` [coordinate, coordinate] and `free` [block, channel, channel]."""

    coupled: np.ndarray
    free: np.ndarray

    def sample(self, normal: np.ndarray, known: dict[int, np.ndarray] | None = None) -> np.ndarray:
        """Returns coordinates [series, coordinate] of normal numbers; `known` ones by position are conditioned on."""
        first, rest = np.split(normal, [len(self.coupled)], axis=1)
        coupled = first @ np.linalg.cholesky(self.coupled).T
        if known:
            coupled = _condition(coupled, self.coupled, known)
        factors = np.linalg.cholesky(self.free) if len(self.free) else self.free
        free = np.einsum("sbj,bij->sbi", rest.reshape(len(rest), *self.free.shape[:2]), factors, optimize=True)
        return np.concatenate([coupled, free.reshape(len(rest), -1)], axis=1)


def matched_normals(number: int, importance: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Returns normal numbers [series, coordinate], of which the most important have exactly the moments of the model.

    Few series drawn one by one have correlations of chance, which a forecast takes for rules. The strongest coordinates
    are made orthogonal to each other and to all weaker ones. Every series by itself is distributed as before.
    """
    drawn = rng.standard_normal((number, len(importance)))
    most = max(0, (number - _FEWEST) // 3) if number <= _FEW else 0  # chance is small among many
    strong = np.argsort(-importance, kind="stable")[: min(most, _MATCHED)]
    if len(strong):
        drawn -= drawn.mean(axis=0)
        lead, upper = np.linalg.qr(drawn[:, strong])
        drawn = (drawn - lead @ (lead.T @ drawn)) * np.sqrt(number / (number - 1 - len(strong)))
        drawn[:, strong] = lead * np.sign(np.diag(upper)) * np.sqrt(number)
    return drawn


def _condition(drawn: np.ndarray, covariance: np.ndarray, known: dict[int, np.ndarray]) -> np.ndarray:
    """Moves unconditional draws to draws given the known coordinates (Matheron's rule)."""
    places = list(known)
    wanted = np.stack([known[place] for place in places], axis=1)
    gain = np.linalg.solve(covariance[np.ix_(places, places)], covariance[places])
    moved = drawn + (wanted - drawn[:, places]) @ gain
    moved[:, places] = wanted
    return moved


@dataclass(frozen=True, kw_only=True)
class Model:
    """Everything sampling needs. A *kind* is a class of series: a label, divided further by level where it pays."""

    facts: Facts
    rotation: np.ndarray  # matrix [channel, factor] from scores to factors; what follows is about factors
    kind_share: np.ndarray
    mean: np.ndarray  # what `Kind` has, of every kind
    spread: np.ndarray
    strength: np.ndarray
    levels: np.ndarray
    volatilities: np.ndarray
    shocks: np.ndarray
    coupled: np.ndarray  # covariances of each kind
    free: np.ndarray
    order: np.ndarray  # blocks of coordinates in the order of the covariances
    single_mean: np.ndarray  # [label, single] of scores of single columns, and of how often gappy channels are observed
    score_nodes: np.ndarray  # quantiles [channel or single, node] of synthetic scores, which map to ranks

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Returns the arrays by name, ready to be stored."""
        own = {name: np.ascontiguousarray(getattr(self, name)) for name in _ARRAYS}
        return {**self.facts.to_arrays(), **own}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "Model":
        """Returns the model that `to_arrays` stored."""
        return cls(facts=Facts.from_arrays(arrays), **{name: arrays[name] for name in _ARRAYS})

    @property
    def marginals(self) -> list[Marginal]:
        """Distribution of each column."""
        return self.facts.marginals

    def kind(self, kind: int) -> Kind:
        """The road between coefficients and coordinates for one kind."""
        return Kind(*(getattr(self, field.name)[kind] for field in fields(Kind)))

    def covariance(self, kind: int) -> Covariance:
        """Covariances of one kind."""
        return Covariance(self.coupled[kind], self.free[kind])


_ARRAYS = [field.name for field in fields(Model) if field.name != "facts"]


def stacked(parts: Sequence[Kind] | Sequence[Covariance]) -> dict[str, np.ndarray]:
    """Returns the arrays of all kinds as a model has them."""
    return {field.name: np.stack([getattr(part, field.name) for part in parts]) for field in fields(parts[0])}


def sample_kinds(
    model: Model, schema: Schema, num_series: int, label: int | None, rng: np.random.Generator
) -> np.ndarray:
    """Returns the kind of each synthetic series; `label` restricts it to the kinds of one label."""
    share = model.kind_share
    if label is not None:
        per_label = len(share) // num_labels(schema)
        chosen = np.arange(len(share)) // per_label == label
        share = np.where(chosen, np.maximum(share, 1e-12), 0.0)
    return rng.choice(len(share), size=num_series, p=share / share.sum())


def sample_scores(
    model: Model,
    schema: Schema,
    kinds: np.ndarray,
    rng: np.random.Generator,
    context: np.ndarray | None = None,
    steps: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Returns (scores [series, step, channel], scores [series, single] of what a series has once).

    More steps than those of the series that were learned from continue them.
    """
    num_blocks, num_channels = schema.num_steps + 1, schema.num_channels
    scores, basis = np.empty((len(kinds), steps or schema.num_steps, num_channels)), basis_of(schema)
    clock = repeated_steps(schema, scores.shape[1])
    num_single, per_label = model.single_mean.shape[1], len(model.kind_share) // num_labels(schema)
    singles = np.empty((len(kinds), num_single))
    for kind in np.unique(kinds):
        rows = np.flatnonzero(kinds == kind)
        mean = model.single_mean[kind // per_label]
        known = _known_singles(model, schema, None if context is None else context[rows], mean)
        road = model.kind(kind)
        strength = road.variances()
        strength[:2] = np.inf  # level and volatility
        importance = np.append(np.full(num_single, np.inf), strength[model.order])
        sampled = model.covariance(kind).sample(matched_normals(len(rows), importance, rng), known)
        singles[rows] = sampled[:, :num_single] + mean
        coordinates = np.empty((len(rows), num_blocks, num_channels))
        coordinates[:, model.order] = sampled[:, num_single:].reshape(coordinates.shape)
        around = basis.series(road.coefficients_of(coordinates, basis))
        if len(clock) > schema.num_steps:
            around = _continued(around, schema, clock, model, kind, sampled, rng)
        scores[rows] = road.mean[clock] + road.spread[clock] * around
    return scores @ np.linalg.inv(model.rotation), singles


def repeated_steps(schema: Schema, steps: int) -> np.ndarray:
    """Returns to which learned step each step belongs: beyond the last, the declared season continues.

    Where there is a whole week of series with a day's season, weeks come again, so that a Monday follows a Sunday.
    """
    step, learned = np.arange(steps), schema.num_steps
    if steps <= learned:
        return step
    season = seasons_of(schema)
    week = WEEK_DAYS * season[0]
    period = week if has_days(schema) and week <= learned else season[-1]
    return np.where(step < learned, step, step % (learned // period * period))


def _continued(
    around: np.ndarray,
    schema: Schema,
    clock: np.ndarray,
    model: Model,
    kind: int,
    sampled: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Returns [series, step, channel] around the profile, window by window given the steps before it.

    Every further window is drawn for the series' own level and volatility, which coordinates `sampled` of the first
    window hold, with steps that might have come before it; a linear function of where these differ from those that did
    come is added (Matheron's rule). How steps follow steps is taken from windows of the model, a season or more after
    their beginning.
    """
    basis, learned, channels = basis_of(schema), schema.num_steps, schema.num_channels
    road, covariance, order = model.kind(kind), model.covariance(kind), model.order
    first = model.single_mean.shape[1]
    own = first + np.flatnonzero(np.repeat(order, channels) < 2)  # level and volatility

    def windows(known: np.ndarray) -> np.ndarray:
        normal, places = rng.standard_normal(known.shape), map(int, (*range(first), *own))
        drawn = covariance.sample(normal, {place: known[:, place] for place in places})
        coordinates = np.empty((len(known), learned + 1, channels))
        coordinates[:, order] = drawn[:, first:].reshape(coordinates.shape)
        return basis.series(road.coefficients_of(coordinates, basis))

    begin, season = int(clock[learned]), seasons_of(schema)[-1]
    middle = min(begin + max(season, learned // 2 // season * season), learned - 1)
    seen = min(middle, max(1, _MOST_SEEN // channels))
    pool = windows(np.repeat(sampled[:1] * 0, _POOL, axis=0))
    pool -= pool.mean(axis=0)
    past, future = (part.reshape(_POOL, -1) for part in np.split(pool[:, middle - seen :], [seen], axis=1))
    future = future[:, : _MOST_SEEN // channels * channels]
    onwards, back = _regression(past, future), _regression(future, past)
    chance = past - future @ back
    while around.shape[1] < len(clock):
        window = windows(sampled)
        level = window.mean(axis=1, keepdims=True)  # of the series, in every window
        ahead = window[:, int(clock[around.shape[1]]) : int(clock.max()) + 1] - level
        number = min(future.shape[1], ahead[0].size) // channels
        part = (slice(None), slice(0, number * channels))
        might = ahead[:, :number].reshape(len(ahead), -1) @ back[: number * channels]
        might += chance[rng.integers(0, _POOL, len(ahead))]
        did = (around[:, -seen:] - level).reshape(len(around), -1)
        ahead[:, :number] += ((did - might) @ onwards[part]).reshape(len(ahead), number, channels)
        around = np.concatenate([around, ahead + level], axis=1)
    return around[:, : len(clock)]


def _regression(given: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    gram = given.T @ given
    return np.asarray(np.linalg.solve(gram + _SMALL * np.trace(gram) / len(gram) * np.eye(len(gram)), given.T @ wanted))


def _known_singles(
    model: Model, schema: Schema, context: np.ndarray | None, mean: np.ndarray
) -> dict[int, np.ndarray] | None:
    """Returns the scores, around their mean, that a caller's own contexts [series, step, context] fix."""
    if context is None:
        return None
    summary = context_summary(context)
    first = len(single_columns(schema, with_context=False))
    marginals = model.marginals[schema.num_channels + first :]
    return {first + i: one.scores_of(summary[:, i]) - mean[first + i] for i, one in enumerate(marginals)}


def respond(scores: np.ndarray, schema: Schema, fit_context: np.ndarray, context: np.ndarray) -> np.ndarray:
    """Moves scores from the context of the fit to others [series, step, context].

    How strongly a synthetic series responds is read off the series itself: the part of its movement that follows
    the context of the fit beyond the hour of the day. A regression per synthetic series costs no privacy.
    """
    design = _beyond_clock(fit_context.astype(np.float64), schema)
    gram = design.T @ design + np.diag(_RIDGE * np.maximum((design**2).sum(0), 1e-9))
    response = np.einsum("ct,sti->sci", np.linalg.solve(gram, design.T), scores[:, : len(design)], optimize=True)
    change = context.astype(np.float64) - fit_context[repeated_steps(schema, scores.shape[1])]
    return scores + np.einsum("stc,sci->sti", change, response, optimize=True)


def _beyond_clock(context: np.ndarray, schema: Schema) -> np.ndarray:
    """Returns the context without its mean at each hour of the day, or without its mean for slower series."""
    steps_per_day = 86_400_000_000 / max(parse_frequency(schema.time.frequency).microseconds, 1)
    clocked = schema.time.align == "calendar" and 1 < steps_per_day <= len(context) / 2
    hour = hours_of_day(schema.time, len(context)) if clocked else np.zeros(len(context), dtype=np.int64)
    count = np.maximum(np.bincount(hour, minlength=24), 1)
    means = np.stack([np.bincount(hour, weights=column, minlength=24) / count for column in context.T], axis=1)
    return np.asarray(context - means[hour])


def ranks_of(score_nodes: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Returns the rank of each score [..., column] among all synthetic ones, so that marginals come out right."""
    ranks = np.empty_like(scores)
    for column, own in enumerate(score_nodes):
        ranks[..., column] = np.interp(scores[..., column], own, NODE_RANKS)
    return ranks


def sample_absence(
    model: Model, schema: Schema, scores: np.ndarray, ranks: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Returns (lengths, True [series, step, channel] where a value is missing), by ranks of what a series has once."""
    num_series, num_steps, facts = len(scores), schema.num_steps, model.facts
    lengths = facts.sample_lengths(schema, num_series, rng)
    numbers = ranks[:, ranks.shape[1] - len(facts.gap_model) :]
    missing = facts.sample_missing(schema, scores[:, :num_steps], lengths, rng, numbers)
    whole, clock = np.full(num_series, num_steps), repeated_steps(schema, scores.shape[1])
    while missing.shape[1] < len(clock):  # whole series with as many observed steps go on
        ahead = np.arange(missing.shape[1], min(missing.shape[1] + clock.max() + 1, len(clock)))
        window = scores[:, :num_steps].copy()
        window[:, clock[ahead]] = scores[:, ahead]
        own = facts.sample_missing(schema, window, whole, rng, numbers)
        missing = np.concatenate([missing, own[:, clock[ahead]]], axis=1)
    lengths = np.where(lengths == num_steps, len(clock), lengths).astype(np.int32)
    beyond = (np.arange(len(clock)) >= lengths[:, None])[:, :, None]
    return lengths, beyond | missing
