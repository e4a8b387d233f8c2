"""What is bought beside the gradients: distributions of columns that are not sensitive, gaps and lengths.

Sensitive columns are replaced by public constants before anything is counted, so that nothing which is released here
knows their values. What the training has to know about them is in the sketch, which is not released.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from understudy.data import Channel, Panel, Schema
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics import facts
from understudy.statistics.columns import gappy_channels, missing_shares, single_columns
from understudy.statistics.encoding import Encoding, Scale, Scores, by_bounds
from understudy.statistics.facts import Facts
from understudy.statistics.marginals import Marginal
from understudy.statistics.queries import Queries
from understudy.synthesizers.ppem.attributes import Attribute


def free_places(schema: Schema, attributes: tuple[Attribute, ...]) -> list[int]:
    """Returns which columns are not touched by x′: places among channels, then static columns but the label."""
    channels = {attribute.place for attribute in attributes if attribute.kind in ("channel", "level")}
    static = {schema.static[attribute.place].name for attribute in attributes if attribute.kind == "static"}
    single = single_columns(schema.without_context(), with_context=False)
    free = [place for place in range(schema.num_channels) if place not in channels]
    return free + [schema.num_channels + place for place, column in enumerate(single) if column.name not in static]


def shares(schema: Schema, attributes: tuple[Attribute, ...], *, marginals: bool) -> dict[str, float]:
    """Returns which facts are bought and their shares of mu²."""
    wanted = {
        "marginals": marginals and bool(free_places(schema, attributes)),
        "absence": bool(gappy_channels(schema)) or schema.time.min_steps is not None,
    }
    return {label: facts.SHARES[label] for label, needed in wanted.items() if needed}


def masked(private: PrivateSeries, attributes: tuple[Attribute, ...]) -> PrivateSeries:
    """Returns the series with public constants in the place of everything sensitive; gaps stay where they are."""
    schema = private.schema.without_context()
    return private.seen_as(schema, partial(_masked, attributes, schema))


def _masked(attributes: tuple[Attribute, ...], schema: Schema, panel: Panel) -> Panel:
    values, static = np.array(panel.values), np.array(panel.static)
    for attribute in attributes:
        held = values[:, :, attribute.place] if attribute.kind in ("channel", "level") else static[:, attribute.place]
        held[~np.isnan(held)] = attribute.columns[0].bounds[0]
    return replace(panel, schema=schema, values=values, static=static, context=None)


def buy(queries: Queries, places: list[int]) -> Facts:
    """Releases what was charged; `places` are the columns whose distributions are counted.

    Privacy: `spectral`'s releases, over `masked` series.
    """
    charged = {entry.label for entry in queries.grant.plan.entries}
    schema, channels = queries.schema, queries.schema.num_channels
    single = len(single_columns(schema, with_context=False))
    marginals: list[Marginal] = []
    static_missing = np.zeros(single)
    if "marginals" in charged:
        marginals, totals = queries.count_columns("marginals", places)
        static = [(n, place - channels) for n, place in enumerate(places) if place >= channels]
        columns = tuple(queries.columns[channels + own] for _, own in static)
        counted = np.array([totals[n] for n, _ in static])
        static_missing[[own for _, own in static]] = missing_shares(counted, columns, queries.private.population)
    gap_model, length_share = np.zeros((0, 1)), np.zeros(0)
    if "absence" in charged:
        scales = _scales(schema, dict(zip(places, marginals, strict=False)))
        ranked = Encoding(schema, scales[:channels], scales[channels:])
        every = slice(None)
        gap_model, length_share = queries.release_absence(lambda panel: ranked.ranked(ranked.series(panel, every)))
    return facts.facts_of(marginals, np.ones(1), static_missing, gap_model, length_share)


def encoding_of(schema: Schema, bought: Facts, attributes: tuple[Attribute, ...]) -> Encoding:
    """Returns working scale: bought distributions for free columns, declared bounds for all others."""
    held = dict(zip(free_places(schema, attributes), bought.marginals, strict=False))
    scales = _scales(schema, held)
    return Encoding(schema, scales[: schema.num_channels], scales[schema.num_channels :])


def _scales(schema: Schema, held: Mapping[int, Marginal]) -> tuple[Scale, ...]:
    columns: list[Channel] = [*schema.channels, *single_columns(schema.without_context(), with_context=False)]
    return tuple(Scores(held[n]) if n in held else by_bounds(column) for n, column in enumerate(columns))
