"""From a released model to synthetic series. Nothing here has ever seen private data."""

from collections.abc import Sequence

import numpy as np

from understudy.data import Schema
from understudy.data.timegrid import hours_of_day, parse_frequency
from understudy.synthesizers.spectral import gaps
from understudy.synthesizers.spectral.columns import context_summary, single_columns
from understudy.synthesizers.spectral.marginals import Marginal
from understudy.synthesizers.spectral.model import Model
from understudy.synthesizers.spectral.series import to_steps

_RIDGE = 0.05  # how much of a series' own response to context is taken for chance


def draw_kinds(
    model: Model, schema: Schema, num_series: int, label: int | None, rng: np.random.Generator
) -> np.ndarray:
    """Returns the kind of each synthetic series; `label` restricts it to the kinds of one label."""
    share = model.kind_share
    if label is not None:
        per_label = len(share) // num_labels(schema)
        chosen = np.arange(len(share)) // per_label == label
        share = np.where(chosen, np.maximum(share, 1e-12), 0.0)
    return rng.choice(len(share), size=num_series, p=share / share.sum())


def num_labels(schema: Schema) -> int:
    """Returns how many labels divide the population; one more when the label may be missing."""
    column = schema.label_column
    return 1 if column is None else len(column.categories) + int(column.missing)


def draw_scores(
    model: Model,
    schema: Schema,
    kinds: np.ndarray,
    rng: np.random.Generator,
    context: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Returns (scores [series, step, channel], scores of the single columns [series, column])."""
    num_blocks, num_channels = schema.num_steps + 1, schema.num_channels
    scores = np.empty((len(kinds), schema.num_steps, num_channels))
    num_single = model.coupled.shape[1] - (num_blocks - model.free.shape[1]) * num_channels
    singles = np.empty((len(kinds), num_single))
    for kind in np.unique(kinds):
        rows = np.flatnonzero(kinds == kind)
        known = _known_singles(model, schema, None if context is None else context[rows])
        drawn = model.covariance(kind).draw(len(rows), rng, known)
        singles[rows] = drawn[:, :num_single]
        coordinates = np.empty((len(rows), num_blocks, num_channels))
        coordinates[:, model.order] = drawn[:, num_single:].reshape(coordinates.shape)
        road = model.kind(kind)
        scores[rows] = road.profile.restore(to_steps(road.coefficients_of(coordinates)))
    return scores @ np.linalg.inv(model.rotation), singles


def _known_singles(model: Model, schema: Schema, context: np.ndarray | None) -> dict[int, np.ndarray] | None:
    """Returns the scores that a caller's own contexts [series, step, context] fix."""
    if context is None:
        return None
    summary = context_summary(context)
    first = len(single_columns(schema, with_context=False))
    marginals = model.marginals[schema.num_channels + first :]
    return {first + i: marginal.scores_of(summary[:, i]) for i, marginal in enumerate(marginals)}


def respond(scores: np.ndarray, schema: Schema, fit_context: np.ndarray, context: np.ndarray) -> np.ndarray:
    """Moves scores from the context of the fit to others [series, step, context].

    How strongly a synthetic series responds is read off the series itself: the part of its movement that follows
    the context of the fit beyond the hour of the day. A regression per synthetic series costs no privacy.
    """
    design = _beyond_clock(fit_context.astype(np.float64), schema)
    size = np.maximum((design**2).sum(0), 1e-9)
    gram = design.T @ design + np.diag(_RIDGE * size)
    response = np.einsum("ct,sti->sci", np.linalg.solve(gram, design.T), scores, optimize=True)
    change = context.astype(np.float64) - fit_context
    return scores + np.einsum("stc,sci->sti", change, response, optimize=True)


def _beyond_clock(context: np.ndarray, schema: Schema) -> np.ndarray:
    """Returns the context without its mean at each hour of the day, or without its mean for slower series."""
    steps_per_day = 86_400_000_000 / max(parse_frequency(schema.time.frequency).microseconds, 1)
    clocked = schema.time.align == "calendar" and 1 < steps_per_day <= len(context) / 2
    hour = hours_of_day(schema.time, len(context)) if clocked else np.zeros(len(context), dtype=np.int64)
    count = np.maximum(np.bincount(hour, minlength=24), 1)
    means = np.stack([np.bincount(hour, weights=column, minlength=24) / count for column in context.T], axis=1)
    return np.asarray(context - means[hour])


def ranks_of(model: Model, scores: np.ndarray) -> np.ndarray:
    """Returns the rank of each score among all synthetic scores of its channel, so that marginals come out right."""
    nodes = np.linspace(0, 1, model.score_nodes.shape[1])
    ranks = np.empty_like(scores)
    for channel in range(scores.shape[2]):
        ranks[:, :, channel] = np.interp(scores[:, :, channel], model.score_nodes[channel], nodes)
    return ranks


def static_values(
    schema: Schema,
    labels: np.ndarray,
    ranks: np.ndarray,
    marginals: Sequence[Marginal],
    missing: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Returns [series, static]: the label as drawn, the other columns from their ranks [series, column]."""
    static = np.empty((len(labels), len(schema.static)))
    place = 0
    for column, channel in enumerate(schema.static):
        if channel.name == schema.label and schema.label_column is not None:
            static[:, column] = np.where(labels < len(schema.label_column.categories), labels, np.nan)
            continue
        values = marginals[place].values_of(ranks[:, place])
        static[:, column] = np.where(rng.random(len(labels)) < missing[place], np.nan, values)
        place += 1
    return static


def draw_absence(
    model: Model, schema: Schema, scores: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Returns (lengths, True [series, step, channel] where a value is missing)."""
    num_series, num_steps = scores.shape[:2]
    lengths = np.full(num_series, num_steps, dtype=np.int32)
    if schema.time.min_steps is not None:
        edges = gaps.length_edges(schema.time.min_steps, num_steps)
        lengths = gaps.draw_lengths(model.length_shares, edges, num_steps, num_series, rng)
    missing = np.broadcast_to((np.arange(num_steps) >= lengths[:, None])[:, :, None], scores.shape).copy()
    gappy = [place for place, channel in enumerate(schema.channels) if channel.missing]
    for position, channel in enumerate(gappy):
        missing[:, :, channel] |= gaps.draw_gaps(model.gap_model(position), scores[:, :, channel], lengths, rng)
    return lengths, missing
