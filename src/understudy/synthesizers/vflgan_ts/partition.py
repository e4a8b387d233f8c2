"""The vertical partition of a table: which party holds which columns, columns as attributes, facts bought by party.

An attribute is one series: a channel in working scale, or a static column as a constant. Numbers are stretched so that
most of them lie within [−1, 1], codes are 0 or 1. A fact such as the distributions of all columns is one noisy release;
noise on its coordinates is independent, so every party can release its own with the noise of the whole.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy.fft import dct, idct

from understudy.data import Channel, Panel, Schema
from understudy.data.channels import num_codes
from understudy.errors import InputError
from understudy.privacy.grant import Grant
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics import facts as bought
from understudy.statistics.columns import classes_of, gappy_channels, single_columns
from understudy.statistics.encoding import Encoding, linear_scales
from understudy.statistics.facts import Facts
from understudy.synthesizers.vflgan_ts.protocol import num_classes
from understudy.synthesizers.vflgan_ts.published import Rows

ALONE = "holder"  # name of the only party where no column names one
_STRETCH = 2.0  # working scale per attribute scale
_TILT = 1.0  # power of the frequency by which coefficients are weighted, chosen on simulated series
_CHUNK = 4096  # series encoded at a time


@dataclass(frozen=True)
class PartyColumns:
    """The columns of one party, by their places among working channels and working static columns."""

    party: str
    channels: tuple[int, ...]
    static: tuple[int, ...]
    label: bool  # whether the party holds the label

    @property
    def num_attributes(self) -> int:
        """Series that its generators make."""
        return len(self.channels) + len(self.static)


def partition(schema: Schema) -> tuple[PartyColumns, ...]:
    """Returns the columns of each party, in the order in which the schema names them."""
    columns = (*schema.channels, *schema.static)
    named = [column.party for column in columns]
    if any(party is None for party in named) and any(party is not None for party in named):
        lacking = next(column.name for column in columns if column.party is None)
        raise InputError(f"'{lacking}': who holds it? Name a party for every channel and static column, or for none.")
    kept, label = single_columns(schema, with_context=False), schema.label_column
    found = []
    for party in dict.fromkeys(party or ALONE for party in named):
        places = _places(schema.channels, party), _places(kept, party)
        found.append(PartyColumns(party, *places, label is not None and (label.party or ALONE) == party))
        if not found[-1].num_attributes:
            raise InputError(f"party '{party}': a column other than the label is expected. Give it to another party.")
    return tuple(found)


def rows_of(columns: PartyColumns, panel: Panel, encoding: Encoding, frequencies: int | None = None) -> Rows:
    """Returns a party's rows: attributes [row, attribute, step or `to_waves`], and the class if it holds the label.

    Privacy: private; every row follows from its own series and from public facts.
    """
    stretches = _stretches(columns, encoding)[:, None]
    series = torch.empty((panel.num_series, columns.num_attributes, frequencies or panel.num_steps))
    for begin in range(0, panel.num_series, _CHUNK):
        some = slice(begin, begin + _CHUNK)
        channels = encoding.series(panel, some)[:, :, list(columns.channels)].transpose(0, 2, 1)
        static = encoding.static(panel, some)[:, list(columns.static), None].repeat(panel.num_steps, axis=2)
        shown = np.concatenate([channels, static], axis=1) * stretches
        series[some] = torch.from_numpy(shown if frequencies is None else to_waves(shown, frequencies))
    hot = np.eye(num_classes(panel.schema), dtype=np.float32)[classes_of(panel)] if columns.label else None
    return Rows(series, torch.zeros(panel.num_series, 0) if hot is None else torch.from_numpy(hot))


def joined(
    columns: tuple[PartyColumns, ...], parts: tuple[np.ndarray, ...], encoding: Encoding, *, waves: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Returns (working series [row, step, channel], static columns [row, column]) from all parties' attributes."""
    num_rows, num_steps = len(parts[0]), encoding.schema.num_steps
    series, static = np.empty((num_rows, num_steps, encoding.num_channels)), np.empty((num_rows, encoding.num_static))
    for own, part in zip(columns, parts, strict=True):
        working = (from_waves(part, num_steps) if waves else part) / _stretches(own, encoding)[:, None]
        first = len(own.channels)
        series[:, :, list(own.channels)] = working[:, :first].transpose(0, 2, 1)
        static[:, list(own.static)] = working[:, first:].mean(axis=2)
    return series, static


def to_waves(series: np.ndarray, frequencies: int) -> np.ndarray:
    """Returns the first coefficients [..., frequency] of an orthonormal cosine transform of steps, weighted.

    Privacy: row by row, by a public weight. Without it a critic has to learn that neighbouring steps belong together.
    """
    coefficients = dct(series, norm="ortho")[..., :frequencies]
    return np.asarray(coefficients * _weights(frequencies, series.shape[-1]), dtype=np.float32)


def from_waves(waves: np.ndarray, num_steps: int) -> np.ndarray:
    """Returns the steps [..., step] of weighted coefficients; frequencies that were left out are 0."""
    coefficients = waves / _weights(waves.shape[-1], num_steps)
    return np.asarray(idct(coefficients, n=num_steps, norm="ortho"), dtype=np.float32)


def _weights(frequencies: int, num_steps: int) -> np.ndarray:
    return (1.0 + np.arange(frequencies)) ** _TILT / math.sqrt(num_steps)


def _places(columns: tuple[Channel, ...], party: str) -> tuple[int, ...]:
    holders = [column.party or ALONE for column in columns for _ in range(num_codes(column) or 1)]
    return tuple(place for place, holder in enumerate(holders) if holder == party)


def _stretches(columns: PartyColumns, encoding: Encoding) -> np.ndarray:
    """Returns the factor of each attribute: numbers are stretched, codes are not."""
    stretches = []
    for places, groups in ((columns.channels, encoding.channel_codes), (columns.static, encoding.static_codes)):
        codes = {place for begin, end in groups for place in range(begin, end)}
        stretches += [1.0 if place in codes else 1 / _STRETCH for place in places]
    return np.array(stretches, dtype=np.float32)


def own_schema(schema: Schema, party: str) -> Schema:
    """Returns the contract of one party's table: its columns, and the label if it holds that."""
    channels = tuple(channel for channel in schema.channels if channel.party == party)
    static = tuple(column for column in schema.static if column.party == party)
    label = schema.label if any(column.name == schema.label for column in static) else None
    return replace(schema, channels=channels, static=static, label=label, constraints=(), columns=(), ignore=())


def buy_part(private: PrivateSeries, grant: Grant, schema: Schema) -> Facts:
    """Releases a party's part of every fact of the joined table that was charged.

    Privacy: bounds are those of the joined table, so that all parts together are what each party was charged for.
    """
    return bought.buy(private, grant, parts_of(private.schema, schema))


def parts_of(own: Schema, schema: Schema) -> dict[str, float]:
    """Returns the facts of which a party makes a part, with the bound of the whole over that of the part."""
    marginals = [part.num_channels + len(single_columns(part, with_context=False)) for part in (own, schema)]
    sizes = {
        "marginals": marginals,
        "labels": [int(own.label is not None), 1],
        "absence": [len(gappy_channels(part)) for part in (own, schema)],
    }
    return {label: math.sqrt(whole / part) for label, (part, whole) in sizes.items() if part}


def num_values(schema: Schema) -> int:
    """Returns how many numbers a row of all parties holds, the class included."""
    return schema.num_steps * sum(own.num_attributes for own in partition(schema)) + num_classes(schema)


def encoding_of(schema: Schema, facts: Facts) -> Encoding:
    """Returns the encoding by bought distributions, or by declared bounds where none were bought."""
    return Encoding.of(schema, facts.marginals, linear_scales(schema, None))


def own_rows(private: PrivateSeries, facts: Facts, frequencies: int | None = None) -> Rows:
    """Returns a party's rows by what it has released about its columns; private."""
    (columns,) = partition(private.schema)
    return rows_of(columns, private.panel, encoding_of(private.schema, facts), frequencies)


def joined_facts(schema: Schema, parts: Mapping[str, Facts]) -> Facts:
    """Returns the facts of the joined table, in the order of its columns."""
    static, label = single_columns(schema, with_context=False), schema.label_column

    def in_order(columns: Sequence[Channel], pieces: Mapping[str, Iterable[Any]]) -> list[Any]:
        waiting = {party: iter(own) for party, own in pieces.items()}  # a party's own columns stand in the same order
        return [next(waiting[str(column.party)]) for column in columns]

    marginals = {party: facts.marginals for party, facts in parts.items()}
    missing = {party: facts.static_missing for party, facts in parts.items()}
    gaps = {party: facts.gap_model for party, facts in parts.items()}
    gappy = [schema.channels[place] for place in gappy_channels(schema)]
    return bought.facts_of(
        marginals=in_order((*schema.channels, *static), marginals) if any(marginals.values()) else [],
        label_share=np.ones(1) if label is None else parts[str(label.party)].label_share,
        static_missing=np.array(in_order(static, missing), float),
        gap_model=np.stack(in_order(gappy, gaps)) if any(map(len, gaps.values())) else np.zeros((0, 1)),
        length_share=np.zeros(0),
    )
