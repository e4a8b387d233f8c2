"""Which party holds which columns, and columns as attributes: one series per attribute, all of one length.

Channels in working scale are attributes as they are; a static column is an attribute that stands still. Numbers are
stretched so that most of them lie within [−1, 1], codes are 0 or 1.
"""

from dataclasses import dataclass

import numpy as np
import torch

from understudy.data import Channel, Panel, Schema
from understudy.data.channels import num_codes
from understudy.errors import InputError
from understudy.statistics.columns import num_labels
from understudy.statistics.encoding import Encoding
from understudy.synthesizers.vflgan_ts.party import Rows

ALONE = "holder"  # name of the only party where no column names one
_STRETCH = 2.0  # working scale per attribute scale
_CHUNK = 4096  # series encoded at a time


@dataclass(frozen=True)
class Holding:
    """One party's working columns.

    Attributes:
        channels: Places among working channels.
        static: Places among working static columns.
        label: Whether the party holds the label.
    """

    party: str
    channels: tuple[int, ...]
    static: tuple[int, ...]
    label: bool

    @property
    def num_attributes(self) -> int:
        """Series that its generators make."""
        return len(self.channels) + len(self.static)


def holdings_of(schema: Schema) -> tuple[Holding, ...]:
    """Returns what each party holds, in the order in which the schema names them.

    Raises:
        InputError: some columns name their party and others do not, or a party holds no channel or static column.
    """
    columns = (*schema.channels, *schema.static)
    named = [column.party for column in columns]
    if any(party is None for party in named) and any(party is not None for party in named):
        lacking = next(column.name for column in columns if column.party is None)
        raise InputError(f"'{lacking}': who holds it? Name a party for every channel and static column, or for none.")
    parties = tuple(dict.fromkeys(party or ALONE for party in named))
    kept = tuple(column for column in schema.static if column.name != schema.label)
    label = schema.label_column
    holdings = tuple(
        Holding(
            party,
            _places(schema.channels, party),
            _places(kept, party),
            label is not None and (label.party or ALONE) == party,
        )
        for party in parties
    )
    for holding in holdings:
        if not holding.num_attributes:
            raise InputError(
                f"party '{holding.party}': a column beside the label is expected. Give it to another party."
            )
    return holdings


def num_classes(schema: Schema) -> int:
    """Returns how many classes generators are told; 0 without a label."""
    return num_labels(schema) if schema.label_column is not None else 0


def rows_of(holding: Holding, panel: Panel, encoding: Encoding, classes: np.ndarray, number: int) -> Rows:
    """Returns a party's rows: attributes [row, attribute, step], and which of `number` classes if it holds them.

    Privacy: private; every row follows from its own series and from public facts.
    """
    size = (panel.num_series, holding.num_attributes, panel.num_steps)
    series = torch.empty(size)
    for begin in range(0, panel.num_series, _CHUNK):
        some = slice(begin, begin + _CHUNK)
        channels = encoding.series(panel, some)[:, :, list(holding.channels)].transpose(0, 2, 1)
        static = encoding.static(panel, some)[:, list(holding.static), None].repeat(panel.num_steps, axis=2)
        series[some] = torch.from_numpy(np.concatenate([channels, static], axis=1))
    series *= torch.from_numpy(_stretches(holding, encoding))[:, None]
    hot = np.eye(number, dtype=np.float32)[classes] if holding.label and number else None
    return Rows(series, torch.zeros(panel.num_series, 0) if hot is None else torch.from_numpy(hot))


def joined(
    holdings: tuple[Holding, ...], parts: tuple[np.ndarray, ...], encoding: Encoding
) -> tuple[np.ndarray, np.ndarray]:
    """Returns (working series [row, step, channel], static columns [row, column]) from all parties' attributes."""
    num_rows, _, num_steps = parts[0].shape
    series = np.empty((num_rows, num_steps, encoding.num_channels))
    static = np.empty((num_rows, encoding.num_static))
    for holding, part in zip(holdings, parts, strict=True):
        working = part / _stretches(holding, encoding)[:, None]
        first = len(holding.channels)
        series[:, :, list(holding.channels)] = working[:, :first].transpose(0, 2, 1)
        static[:, list(holding.static)] = working[:, first:].mean(axis=2)
    return series, static


def _places(columns: tuple[Channel, ...], party: str) -> tuple[int, ...]:
    places: list[int] = []
    begin = 0
    for column in columns:
        width = num_codes(column) or 1
        if (column.party or ALONE) == party:
            places += range(begin, begin + width)
        begin += width
    return tuple(places)


def _stretches(holding: Holding, encoding: Encoding) -> np.ndarray:
    """Returns the factor of each attribute: numbers are stretched, codes are not."""
    coded = [
        {place for begin, end in groups for place in range(begin, end)}
        for groups in (encoding.channel_codes, encoding.static_codes)
    ]
    places = [(place, coded[0]) for place in holding.channels] + [(place, coded[1]) for place in holding.static]
    return np.array([1.0 if place in codes else 1 / _STRETCH for place, codes in places], dtype=np.float32)
