"""Series as vectors that attacks compare: every column by its declared bounds, nothing learned from data."""

import numpy as np
from numpy.typing import NDArray

from understudy.data import Panel
from understudy.nn.nearest import nearest
from understudy.statistics.encoding import Encoding, linear_scales

Vectors = NDArray[np.float32]


def vectors(panel: Panel) -> Vectors:
    """Returns one row per series: its steps, channel by channel, then its static columns; gaps bridged."""
    encoding = Encoding.of(panel.schema, [], linear_scales(panel.schema, None))
    series = encoding.series(panel, slice(None)).transpose(0, 2, 1)
    static = encoding.static(panel, slice(None))
    return np.concatenate([series.reshape(len(series), -1), static], axis=1).astype(np.float32)


def distances(queries: Vectors, base: Vectors, neighbours: int = 1) -> NDArray[np.float64]:
    """Returns Euclidean distances [query, neighbour] to the nearest rows of `base`, nearest first."""
    _, squared = nearest(queries, base, min(neighbours, len(base)))
    return np.sqrt(squared.astype(np.float64))


def isolation(rows: Vectors) -> NDArray[np.float64]:
    """Returns each row's distance to the nearest other row."""
    return distances(rows, rows, 2)[:, -1]
