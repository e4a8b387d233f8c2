"""Hot-deck imputation: x* for a wanted x′ comes from the synthetic series (its donor) whose own x′ is nearest.

Donors are sampled from one release of `spectral`; all that follows is post-processing. The pool shows the marginal that
is to be hidden, so neither it nor the model behind it is released: a release holds finished series, also a few of every
label, and a request for more than it holds returns repeats. A donor serves once where there are enough of them.

Reference: Andridge and Little (2010), DOI 10.1111/j.1751-5823.2010.00103.x (hot deck imputation).
"""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.spatial import cKDTree

from understudy.data import Panel, Schema
from understudy.data.channels import num_codes
from understudy.errors import InputError
from understudy.privacy.grant import Grant
from understudy.privacy.private_series import PrivateSeries
from understudy.synthesizers.base import Progress, SampleRequest
from understudy.synthesizers.ppem.attributes import Partition, Rows
from understudy.synthesizers.registry import METHODS

VALUES, LENGTHS, STATIC = "rows.values", "rows.lengths", "rows.static"  # arrays of a release
COMMON = "rows.common"  # how many come first; only these are sampled where no label is asked for
_ABSENT = ".absent"  # of the arrays that say where values are missing
_NEAREST = 32  # donors that one wanted x′ may choose from
_CATEGORY_DISTANCE = 10.0  # of two categories, in standard deviations of a number
_TIE_BREAK = 0.1  # standard deviations of chance that decide between equally near donors
_POOL, _POOL_NUMBERS = 32_768, 2**23  # series in the pool, fewer where they are long
_KEPT, _KEPT_NUMBERS = 8192, 2**21  # series in a release, likewise
_OF_EACH_LABEL = 64  # further series in a release


def released_pools(
    private: PrivateSeries, grant: Grant, partition: Partition, seed: int, progress: Progress
) -> list[Panel]:
    """Return synthetic series of all labels, then a few of each label unless the label is hidden.

    Privacy: `spectral`'s; everything that is made from the pools is post-processing of its releases.
    """
    seen = private.without_context()
    schema = seen.schema
    spectral = METHODS.create("spectral")
    arrays = spectral.learn(seen, grant, progress)
    column = schema.label_column
    labels = () if column is None or partition.hides_label else range(len(column.categories))
    asked = [(_fitting(schema, _POOL, _POOL_NUMBERS), None), *((_OF_EACH_LABEL, label) for label in labels)]
    rng = np.random.default_rng(seed)
    requests = (SampleRequest(num_series=number, rng=rng, label=label) for number, label in asked)
    return [spectral.sample(arrays, schema, request) for request in requests]


def imputed(values: np.ndarray, pools: Sequence[tuple[Panel, Rows]], partition: Partition) -> dict[str, np.ndarray]:
    """Return what is released: sensitive columns [series, column] as wanted, everything else from donors.

    Args:
        pools: Of all labels, then of each label; with their rows.
    """
    common = min(_fitting(partition.schema, _KEPT, _KEPT_NUMBERS), len(values))
    numbers = [common, *(_OF_EACH_LABEL for _ in pools[1:])]
    parts = [_imputed(values[:number], *pool, partition) for number, pool in zip(numbers, pools, strict=True)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} | {COMMON: np.array([common])}


def _imputed(values: np.ndarray, pool: Panel, rows: Rows, partition: Partition) -> dict[str, np.ndarray]:
    """Return arrays of one pool's series with wanted values in their sensitive columns."""
    chosen = nearest_donors(_places(partition, values, rows.values), _places(partition, rows.values, rows.values))
    series, _, _ = partition.joined(values, rows.rest[chosen])
    channels = partition.encoding.values(series)
    channels[np.isnan(pool.values[chosen])] = np.nan
    static, begin = np.array(pool.static[chosen], dtype=np.float64), 0
    for attribute in partition.attributes:
        if attribute.kind in ("static", "label"):
            wanted, known = values[:, begin], partition.schema.static[attribute.place].bounds[1]
            static[:, attribute.place] = np.where(wanted <= known, wanted, np.nan)
        begin += len(attribute.columns)
    parts = {VALUES: channels.astype(np.float32), STATIC: static.astype(np.float32)}
    absent = {f"{name}{_ABSENT}": np.isnan(array) for name, array in parts.items()}
    return {name: np.nan_to_num(array) for name, array in parts.items()} | absent | {LENGTHS: pool.lengths[chosen]}


def nearest_donors(wanted: np.ndarray, pool: np.ndarray) -> np.ndarray:
    """Return a row of the pool for every wanted place: the nearest that is free, or the nearest of all."""
    near = cKDTree(pool).query(wanted, k=min(_NEAREST, len(pool)))[1].reshape(len(wanted), -1)
    free = np.ones(len(pool), dtype=bool)
    chosen = np.empty(len(wanted), dtype=np.int64)
    for row, candidates in enumerate(near):
        left = candidates[free[candidates]]
        chosen[row] = left[0] if len(left) else candidates[row % len(candidates)]
        free[chosen[row]] = False
    return chosen


def sample(arrays: Mapping[str, np.ndarray], schema: Schema, request: SampleRequest) -> Panel:
    """Return series of a release in random order, repeated where more are asked for."""
    values, static = (np.where(arrays[name + _ABSENT], np.nan, arrays[name]) for name in (VALUES, STATIC))
    rows = np.arange(arrays[COMMON][0])
    if request.label is not None:
        place = [column.name for column in schema.static].index(schema.label or "")
        rows = np.flatnonzero(static[:, place] == request.label)
    if not len(rows):
        raise InputError("label: a label of which the release holds series is expected. Ask for another, or for all.")
    taken = request.rng.permutation(rows)[np.arange(request.num_series) % len(rows)]
    return request.panel(schema, values[taken], arrays[LENGTHS][taken], static[taken])


def _places(partition: Partition, values: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return places [series, coordinate] whose distances choose donors; numbers are in deviations of `scale`."""
    parts = [np.random.default_rng(len(values)).uniform(0, _TIE_BREAK, (len(values), 1))]
    for place, column in enumerate(partition.columns):
        own, codes = np.nan_to_num(values[:, place]), num_codes(column)
        spread = max(float(np.nanstd(scale[:, place])), 1e-9)
        parts.append(own[:, None] / spread if codes is None else _CATEGORY_DISTANCE * np.eye(codes)[own.astype(int)])
    return np.concatenate(parts, axis=1)


def _fitting(schema: Schema, most: int, numbers: int) -> int:
    """Return how many series are held: `most`, fewer where they are long, by public facts."""
    return int(np.clip(numbers // (schema.num_steps * schema.num_channels), 1024, most))
