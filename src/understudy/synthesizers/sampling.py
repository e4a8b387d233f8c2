"""What methods share on the way from a release to series: classes, calibrated scores, panels of facts.

Nothing here has ever seen private data.
"""

import numpy as np

from understudy.data import Panel, Schema
from understudy.synthesizers.base import Draw
from understudy.synthesizers.frame.encoding import Encoding
from understudy.synthesizers.frame.facts import Facts
from understudy.synthesizers.spectral.marginals import bounded_scores

NODES = 513  # quantiles by which scores are calibrated


def draw_classes(facts: Facts, request: Draw) -> np.ndarray:
    """Returns the class of each row: as asked for, or in released proportions."""
    share = facts.label_share
    if request.label is not None:
        return np.full(request.num_series, request.label)
    return request.rng.choice(len(share), size=request.num_series, p=share / share.sum())


def score_nodes(series: np.ndarray) -> np.ndarray:
    """Returns quantiles [working channel, node] of generated scores [row, step, channel]."""
    ranks = np.linspace(0, 1, NODES)
    return np.stack([np.quantile(series[:, :, channel], ranks) for channel in range(series.shape[2])])


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
    request: Draw,
    encoding: Encoding,
    facts: Facts,
    classes: np.ndarray,
    working: tuple[np.ndarray, np.ndarray],
) -> Panel:
    """Returns the panel in the user's units: gaps and lengths as bought, the label from the class."""
    rng, (series, static) = request.rng, working
    lengths = facts.draw_lengths(schema, request.num_series, rng)
    values = encoding.values(series)
    values[facts.draw_missing(schema, encoding.ranked(series), lengths, rng)] = np.nan
    own = encoding.static_values(static)
    own[rng.random(own.shape) < facts.static_missing] = np.nan
    columns = np.empty((request.num_series, len(schema.static)))
    columns[:, [place for place, column in enumerate(schema.static) if column.name != schema.label]] = own
    if schema.label_column is not None:
        place = [column.name for column in schema.static].index(schema.label_column.name)
        columns[:, place] = np.where(classes < len(schema.label_column.categories), classes, np.nan)
    return request.panel(schema, values, lengths, columns)
