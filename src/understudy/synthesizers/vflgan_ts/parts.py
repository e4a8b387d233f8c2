"""One party's part of a run whose parties sit apart: its columns, its facts, its rows; and all parts put together.

A fact such as the distributions of all columns is one noisy release over the columns of all parties. Noise on its
coordinates is independent, so every party can release its own coordinates with the noise of the whole.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from understudy.data import Panel, Schema
from understudy.privacy.grant import Grant
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics import facts as bought
from understudy.statistics.columns import classes_of, gappy_channels
from understudy.statistics.encoding import Encoding, linear_scales
from understudy.statistics.facts import Facts
from understudy.synthesizers.release import PUBLIC_CONTEXT
from understudy.synthesizers.vflgan_ts import drawing
from understudy.synthesizers.vflgan_ts.holdings import holdings_of, num_classes, rows_of
from understudy.synthesizers.vflgan_ts.party import Rows
from understudy.synthesizers.vflgan_ts.recipe import Recipe

Arrays = Mapping[str, np.ndarray]


def own_schema(schema: Schema, party: str) -> Schema:
    """Returns the contract of one party's table: its columns, and the label if it holds that."""
    channels = tuple(channel for channel in schema.channels if channel.party == party)
    static = tuple(column for column in schema.static if column.party == party)
    label = schema.label if any(column.name == schema.label for column in static) else None
    return replace(schema, channels=channels, static=static, label=label, constraints=(), columns=(), ignore=())


def private_series(panel: Panel, population: int) -> PrivateSeries:
    """Returns a party's aligned series: one of each unit."""
    return PrivateSeries.of(panel, population)


def buy_part(private: PrivateSeries, grant: Grant, schema: Schema) -> Facts:
    """Releases a party's part of every fact that was charged.

    Args:
        schema: Of the joined table.

    Privacy: bounds are those of the joined table, so with the other parties' parts this is the release that each
    party was charged for.
    """
    own = private.schema
    return bought.buy(private, grant, linear_scales(own, None), parts_of(own, schema))


def parts_of(own: Schema, schema: Schema) -> dict[str, float]:
    """Returns the facts of which a party makes a part, with the bound of the whole over that of the part."""
    sizes = {
        "marginals": (_num_columns(own), _num_columns(schema)),
        "labels": (int(own.label is not None), 1),
        "absence": (len(gappy_channels(own)), len(gappy_channels(schema))),
    }
    return {label: math.sqrt(whole / part) for label, (part, whole) in sizes.items() if part}


def num_values(schema: Schema) -> int:
    """Returns how many numbers a row of all parties holds, the class included."""
    return schema.num_steps * sum(holding.num_attributes for holding in holdings_of(schema)) + num_classes(schema)


def own_rows(private: PrivateSeries, facts: Facts, schema: Schema) -> Rows:
    """Returns a party's rows by what it has released about its columns.

    Privacy: private; every row follows from its own series and from public facts.
    """
    own = private.schema
    encoding = Encoding.of(own, facts.marginals, linear_scales(own, None))
    (holding,) = holdings_of(own)
    return rows_of(holding, private.panel, encoding, classes_of(private.panel), num_classes(schema))


def joined_facts(schema: Schema, parts: Mapping[str, Facts]) -> Facts:
    """Returns the facts of the joined table, in the order of its columns."""
    label_party = next((column.party for column in schema.static if column.name == schema.label), None)
    columns = _Columns(schema)
    return Facts(
        cells=columns.joined(parts, "cells", "column_cells"),
        cumulative=columns.joined(parts, "cumulative", "column_cells", extra=1),
        column_cells=columns.joined(parts, "column_cells"),
        label_share=np.ones(1) if label_party is None else parts[label_party].label_share,
        static_missing=columns.static(parts),
        gap_model=columns.gaps(parts),
        length_share=np.zeros(0),
    )


def released_arrays(
    schema: Schema, recipe: Recipe, seed: int, facts: Facts, generators: Mapping[str, Arrays]
) -> Arrays:
    """Returns what a release holds, from all parties' generators by name; reads nothing private."""
    holdings, linear = holdings_of(schema), linear_scales(schema, None)
    arrays = {**facts.to_arrays(), "linear": linear, PUBLIC_CONTEXT: np.zeros((0, 0), dtype=np.float32)}
    for place, holding in enumerate(holdings):
        named = generators[holding.party].items()
        arrays |= {f"{drawing.PARTY}{place}.{name}": np.asarray(array) for name, array in named}
    counts = [holding.num_attributes for holding in holdings]
    num_latent = drawing.LATENT + num_classes(schema)
    modules = drawing.generators_of(arrays, recipe, counts, num_latent, schema.num_steps)
    encoding = Encoding.of(schema, facts.marginals, linear)
    arrays["nodes"] = drawing.pool_nodes(modules, recipe, encoding, facts, num_classes(schema), seed)
    return arrays


class _Columns:
    """Where each column of the joined table stands at the party that holds it."""

    def __init__(self, schema: Schema) -> None:
        static = tuple(column for column in schema.static if column.name != schema.label)
        self._gappy = [schema.channels[place].party for place in gappy_channels(schema)]
        self._static = [column.party for column in static]
        # A party's own columns stand in the same order: channels, then static ones.
        self._holders = [column.party for column in (*schema.channels, *static)]

    def joined(self, parts: Mapping[str, Facts], name: str, sizes: str | None = None, extra: int = 0) -> np.ndarray:
        """Returns arrays that hold one piece per column, end to end on their last axis."""
        pieces: dict[str, list[np.ndarray]] = {}
        for party, facts in parts.items():
            array = getattr(facts, name)
            lengths = np.ones(array.shape[-1], dtype=int) if sizes is None else getattr(facts, sizes) + extra
            pieces[party] = np.split(array, np.cumsum(lengths), axis=-1)[:-1]
        if not any(pieces.values()):
            return np.asarray(getattr(next(iter(parts.values())), name))
        return np.concatenate(self._in_order(self._holders, pieces), axis=-1)

    def static(self, parts: Mapping[str, Facts]) -> np.ndarray:
        """Returns how often each static column is missing."""
        rows = {party: list(facts.static_missing) for party, facts in parts.items()}
        return np.array(self._in_order(self._static, rows), dtype=np.float64)

    def gaps(self, parts: Mapping[str, Facts]) -> np.ndarray:
        """Returns one row for each channel that may be missing."""
        rows = {party: list(facts.gap_model) for party, facts in parts.items()}
        return np.stack(self._in_order(self._gappy, rows)) if any(rows.values()) else np.zeros((0, 1))

    @staticmethod
    def _in_order(holders: list[str | None], pieces: Mapping[str, list]) -> list:
        waiting = {party: iter(own) for party, own in pieces.items()}
        return [next(waiting[str(party)]) for party in holders]


def _num_columns(schema: Schema) -> int:
    return schema.num_channels + len([column for column in schema.static if column.name != schema.label])
