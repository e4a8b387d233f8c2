"""What methods share on the way from a release to series: requests, bounds, calibrated scores, panels of facts.

Nothing here has ever seen private data.
"""

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np

from understudy.data import Channel, Continuous, Panel, Schema, constraints
from understudy.data.channels import num_codes
from understudy.statistics.encoding import Encoding
from understudy.statistics.facts import Facts
from understudy.statistics.marginals import bounded_scores

NODES = 513  # quantiles by which scores are calibrated
_FEWEST_POOLED, _POOLED_VALUES = 32, 2**23
_AT_BOTH_ENDS, _AT_EACH_END = 0.4, 0.05  # shares of values above which numbers say nothing
_NEAR_THE_BOUNDS = 0.1  # of the declared range, within which the least and the greatest value count as its ends
_FEW_NUMBERS = 2  # of whole numbers, whose ends are ordinary values


@dataclass(frozen=True, kw_only=True)
class SampleRequest:
    """One request for synthetic series; everything in it comes from the caller."""

    num_series: int
    rng: np.random.Generator
    context: np.ndarray | None = None  # public context [series, step, context]
    fit_context: np.ndarray | None = None  # [step, context] that all series shared during the fit
    label: int | None = None  # code of the label to draw; None draws labels in their released proportions
    steps: int | None = None  # of series that are to be longer than those that were learned from

    def panel(self, schema: Schema, values: np.ndarray, lengths: np.ndarray, static: np.ndarray) -> Panel:
        """Returns the panel of drawn values: rounded, inside the bounds and obeying the declared constraints."""
        tidy = inside_bounds(schema.channels, values)
        tidy = constraints.apply(tidy.astype(np.float32), schema, context=self.context)
        beyond = np.arange(schema.num_steps) >= lengths[:, None]
        return Panel(
            schema=schema,
            values=np.where(beyond[:, :, None], np.float32(np.nan), tidy).astype(np.float32),
            lengths=lengths.astype(np.int32),
            unit=np.arange(self.num_series, dtype=np.int64),
            static=inside_bounds(schema.static, static).astype(np.float32),
            context=None if self.context is None else self.context.astype(np.float32),
            private=False,
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CompletionRequest:
    """Series with entries to fill, as long as those that were learned from; everything in it comes from the caller."""

    values: np.ndarray  # [series, step, channel], NaN where unknown
    hidden: np.ndarray  # true where to fill; what is neither hidden nor known is left alone
    static: np.ndarray  # [series, static], NaN where unknown
    label: np.ndarray | None  # code of each series' label, -1 where unknown; None without a label
    context: np.ndarray | None  # [series, step, context], NaN where unknown; None if all of it is
    rng: np.random.Generator
    draws: int = 1  # how often all series come, one time after the other


@runtime_checkable
class Completer(Protocol):
    """A method whose releases fill gaps."""

    def complete(self, arrays: dict[str, np.ndarray], schema: Schema, gaps: CompletionRequest) -> np.ndarray:
        """Returns values [series, step, channel] with the hidden entries drawn from what `learn` returned."""
        ...


def shared_context(schema: Schema) -> np.ndarray:
    """Returns an invented public context [step, context]: it rises from bound to bound."""
    rising = np.linspace(0, 1, schema.num_steps)[:, None]
    low, high = np.array([channel.bounds for channel in schema.context]).T
    return np.asarray(low + (high - low) * rising, dtype=np.float32)


def first_steps(panel: Panel, steps: int) -> Panel:
    """Returns series without what follows their first steps."""
    if steps == panel.num_steps:
        return panel
    time = panel.schema.time
    least = None if time.min_steps is None else min(time.min_steps, steps)
    return replace(
        panel,
        schema=replace(panel.schema, time=replace(time, steps=steps, min_steps=least), columns=()),
        values=panel.values[:, :steps],
        lengths=np.minimum(panel.lengths, np.int32(steps)),
        context=None if panel.context is None else panel.context[:, :steps],
        shared_context=None if panel.shared_context is None else panel.shared_context[:steps],
    )


def inside_bounds(columns: tuple[Channel, ...], values: np.ndarray) -> np.ndarray:
    """Returns values [..., column] as their kinds allow: whole or on the declared resolution, inside the bounds."""
    tidy = np.empty_like(values)
    for place, channel in enumerate(columns):
        step = channel.resolution if isinstance(channel, Continuous) else 1.0
        column = values[..., place] if step is None else np.rint(values[..., place] / step) * step
        tidy[..., place] = np.clip(column, *channel.bounds)
    return tidy


def cautions(sampled: Panel) -> tuple[str, ...]:
    """Returns what synthetic series say against their own use, a sentence each.

    A network that did not learn leaves the range of the data, and what lies beyond the bounds is set to their two ends.
    Many values at one end are no such sign: most hours have no rain.
    """
    useless = []
    for place, channel in enumerate(sampled.schema.channels):
        own, (low, high) = sampled.values[:, :, place], channel.bounds
        ends = np.array([low, high]) if np.isnan(own).all() else np.array([np.nanmin(own), np.nanmax(own)])
        if (np.abs(ends - [low, high]) > _NEAR_THE_BOUNDS * (high - low)).any():
            continue  # released distributions may end a little before the bounds
        shares = [float((own == end).sum()) / max(int((~np.isnan(own)).sum()), 1) for end in ends]
        whole = channel.kind == "integer" and channel.bounds[1] - channel.bounds[0] <= _FEW_NUMBERS
        if num_codes(channel) is None and not whole and min(shares) > _AT_EACH_END and sum(shares) > _AT_BOTH_ENDS:
            useless.append(channel.name)
    if not useless:
        return ()
    return (
        f"Caution: of no use. Two values in five or more of {', '.join(useless)} lie at the ends of the range, as "
        "where a network did not learn. Use the method's default, another method or a larger epsilon.",
    )


def num_pooled(schema: Schema, most: int) -> int:
    """Returns how many series to draw where their quantiles are wanted: `most`, fewer where they are long or wide."""
    return max(_FEWEST_POOLED, min(most, _POOLED_VALUES // (schema.num_steps * schema.num_channels)))


def sample_classes(facts: Facts, request: SampleRequest) -> np.ndarray:
    """Returns the class of each row: as asked for, or in released proportions."""
    share = facts.label_share
    if request.label is not None:
        return np.full(request.num_series, request.label)
    return request.rng.choice(len(share), size=request.num_series, p=share / share.sum())


def score_nodes(series: np.ndarray) -> np.ndarray:
    """Returns quantiles [working channel, node] of generated scores [row, step, channel]."""
    return np.asarray(np.quantile(series, np.linspace(0, 1, NODES), axis=(0, 1)).T)


def calibrated(series: np.ndarray, nodes: np.ndarray, encoding: Encoding) -> np.ndarray:
    """Returns scores with a normal distribution over all rows, so that the bought distributions come out."""
    made = series.copy()
    codes = {place for begin, end in encoding.channel_codes for place in range(begin, end)}
    for channel in set(range(len(nodes))) - codes:
        ranks = np.interp(series[:, :, channel], nodes[channel], np.linspace(0, 1, nodes.shape[1]))
        made[:, :, channel] = bounded_scores(ranks)
    return made


def panel_of(
    schema: Schema,
    request: SampleRequest,
    encoding: Encoding,
    facts: Facts,
    classes: np.ndarray,
    working: tuple[np.ndarray, np.ndarray],
) -> Panel:
    """Returns the panel in the user's units: gaps and lengths as bought, the label from the class."""
    rng, (series, static) = request.rng, working
    lengths = facts.sample_lengths(schema, request.num_series, rng)
    values = encoding.values(series)
    values[facts.sample_missing(schema, encoding.ranked(series), lengths, rng)] = np.nan
    own = encoding.static_values(static)
    own[rng.random(own.shape) < facts.static_missing] = np.nan
    columns = np.empty((request.num_series, len(schema.static)))
    columns[:, [place for place, column in enumerate(schema.static) if column.name != schema.label]] = own
    if schema.label_column is not None:
        place = [column.name for column in schema.static].index(schema.label_column.name)
        columns[:, place] = np.where(classes < len(schema.label_column.categories), classes, np.nan)
    return request.panel(schema, values, lengths, columns)
