"""What pictures of PPEM show: the hidden marginal, and means of the rest given it (PPEM, Fig. 3 and 4)."""

from typing import Any

import numpy as np
from scipy.stats import gaussian_kde

from understudy.data import Integer
from understudy.data.channels import num_codes
from understudy.synthesizers.ppem.attributes import Partition, Rows

_COLUMNS, _NEIGHBOURHOODS, _BINS, _STEPS = 3, 3, 30, 48
_SMOOTHED, _GRID = 2000, 80  # rows and points of a density


def marginals(partition: Partition, real: Rows, drawn: Rows) -> dict[str, dict[str, list[Any]]]:
    """Returns shares of both sides for a few columns of x′: by category, or by bin."""
    found = {}
    for place, column in enumerate(partition.columns[:_COLUMNS]):
        sides = {"real": real.values[:, place], "drawn": drawn.values[:, place]}
        codes = num_codes(column)
        if codes is not None:
            shares = {side: np.bincount(own.astype(int), minlength=codes) / len(own) for side, own in sides.items()}
            names = [str(category) for category in getattr(column, "categories", range(codes))]
            found[column.name] = {"names": names, **{side: own.tolist() for side, own in shares.items()}}
            continue
        both = np.concatenate([np.quantile(own, [0.002, 0.998]) for own in sides.values()])
        edges = np.linspace(both.min(), both.max(), _BINS + 1)
        if isinstance(column, Integer) and both.max() - both.min() < 2 * _BINS:
            edges = np.arange(both.min() - 0.5, both.max() + 1)
        shares = {side: np.histogram(own, edges)[0] / len(own) for side, own in sides.items()}
        found[column.name] = {"edges": edges.tolist(), **{side: own.tolist() for side, own in shares.items()}}
    return found


def densities(partition: Partition, real: Rows, drawn: Rows) -> dict[str, dict[str, list[float]]]:
    """Returns kernel density estimates of a few columns of x*, over all x′; in working scale."""
    columns = [*partition.schema.channels, *partition.encoding.static_columns]
    hidden = {column.name for column in partition.columns}
    kept = [column for column in columns if column.name not in hidden] if partition.schema.num_steps == 1 else []
    found: dict[str, Any] = {}
    begin = 0
    for column in kept:
        codes = num_codes(column)
        sides = {"real": real.rest[:_SMOOTHED, begin], "drawn": drawn.rest[:_SMOOTHED, begin]}
        begin += codes or 1
        if codes is None and min(own.std() for own in sides.values()) > 0 and len(found) < _COLUMNS:
            low, high = np.quantile(np.concatenate([*sides.values()]), [0.002, 0.998])
            grid = np.linspace(low, high, _GRID)
            found[column.name] = {
                "grid": grid.tolist(), **{side: gaussian_kde(own)(grid).tolist() for side, own in sides.items()}
            }  # fmt: skip
    return found


def conditionals(
    partition: Partition, real: Rows, drawn: Rows, places: tuple[np.ndarray, np.ndarray], fewest: int
) -> list[dict[str, Any]]:
    """Returns means of x* in the largest neighbourhoods that both sides visit.

    Along the steps these are working values; columns of a table are told in deviations from the real mean of all.

    Args:
        places: The neighbourhood of each real and of each drawn row.
    """
    hidden = sum(num_codes(a.columns[0]) or 1 for a in partition.attributes if a.kind == "channel")
    steps, kept = partition.schema.num_steps, partition.encoding.num_channels - hidden
    shown = slice(0, _STEPS * kept, kept) if steps > 1 else slice(0, _STEPS)
    middle, spread = (0.0, 1.0) if steps > 1 else (real.rest.mean(axis=0), np.maximum(real.rest.std(axis=0), 1e-6))
    found: list[dict[str, Any]] = []
    for group in np.argsort(-np.bincount(places[0])):
        sides = [rows.rest[place == group] for rows, place in zip((real, drawn), places, strict=True)]
        if min(map(len, sides)) >= fewest and len(found) < _NEIGHBOURHOODS:
            means = [((own.mean(axis=0) - middle) / spread)[shown].tolist() for own in sides]
            title = _described(partition, real.values[places[0] == group])
            found.append(
                {"title": title, "along": "step" if steps > 1 else "column", "real": means[0], "drawn": means[1]}
            )
    return found


def _described(partition: Partition, values: np.ndarray) -> str:
    """Returns what x′ is like in a neighbourhood: the commonest category, the mean of numbers."""
    words = []
    for place, column in enumerate(partition.columns[:2]):
        own, codes = values[:, place], num_codes(column)
        if codes is None:
            words.append(f"{column.name} {own.mean():.2g}")
        else:
            commonest = int(np.bincount(own.astype(int)).argmax())
            words.append(f"{column.name} {getattr(column, 'categories', range(codes))[commonest]}")
    return ", ".join(words)
