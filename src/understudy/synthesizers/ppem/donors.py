"""x* given x′ from one release of `spectral`: every wanted x′ is given to the series whose own x′ is nearest to it.

Idea. `spectral` is bought, and a large pool of series is drawn from it. All that follows is post-processing: wanted x′
are drawn from the target, or from a generator that was taught to differ from the pool, each takes a donor from the
pool, and the donor's x′ is replaced. What x* is given x′ is then `spectral`'s, and the marginal of x′ the wanted one.

The pool shows the marginal that is to be hidden, so neither it nor the model behind it is released: a release holds
finished series, and more of them than it holds are repeats. A donor serves once where there are enough of them. A few
series of every label are held beside, for whoever asks for a label that is rare.

Reference: Andridge and Little (2010), DOI 10.1111/j.1751-5823.2010.00103.x (hot deck imputation).
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial import cKDTree

from understudy.data import Panel, Schema
from understudy.data.channels import num_codes
from understudy.errors import InputError
from understudy.privacy.grant import Grant
from understudy.privacy.private_series import PrivateSeries
from understudy.synthesizers.base import Progress, SampleRequest
from understudy.synthesizers.ppem.attributes import Attribute, Partition
from understudy.synthesizers.registry import METHODS

if TYPE_CHECKING:
    from understudy.synthesizers.ppem.learning import Rows

VALUES, LENGTHS, STATIC = "rows.values", "rows.lengths", "rows.static"  # arrays of a release
COMMON = "rows.common"  # how many come first, that are drawn where no label is asked for
_ABSENT = ".absent"  # of the arrays that say where values are missing
_NEAREST = 32  # donors that one wanted x′ may choose from
_APART = 10.0  # deviations that another category counts for
_CHANCE = 0.1  # deviations by which donors that are equally near are told apart
_POOL, _POOL_NUMBERS = 32_768, 2**23  # series in the pool, fewer where they are long
_KEPT, _KEPT_NUMBERS = 8192, 2**21  # series in a release, likewise
_OF_EACH_LABEL = 64  # series in a release beside


def bought_pools(
    private: PrivateSeries, grant: Grant, hidden: Sequence[Attribute], seed: int, progress: Progress
) -> list[PrivateSeries]:
    """Returns synthetic series in the place of private ones: of all labels, then a few of each.

    Labels that are x′ themselves have no pools: there are as many series of each as wanted.

    Privacy: `spectral`'s; everything that is made from the pools is post-processing of its releases.
    """
    seen = private.without_context()
    schema = seen.schema
    spectral = METHODS.create("spectral")
    arrays = spectral.learn(seen, grant, progress)
    shown = None if any(attribute.kind == "label" for attribute in hidden) else schema.label_column
    labels = () if shown is None else range(len(shown.categories))
    asked = [(_fitting(schema, _POOL, _POOL_NUMBERS), None), *((_OF_EACH_LABEL, label) for label in labels)]
    rng = np.random.default_rng(seed)
    requests = [SampleRequest(num_series=number, rng=rng, label=label) for number, label in asked]
    return [PrivateSeries.of(spectral.sample(arrays, schema, own), own.num_series) for own in requests]


def series_for(
    values: np.ndarray, pools: Sequence[tuple[Panel, "Rows"]], partition: Partition
) -> dict[str, np.ndarray]:
    """Returns what is released: sensitive columns [series, column] as wanted, everything else from donors.

    Args:
        pools: Of all labels, then of each; with their series taken apart.
    """
    common = min(_fitting(partition.schema, _KEPT, _KEPT_NUMBERS), len(values))
    numbers = [common, *(_OF_EACH_LABEL for _ in pools[1:])]
    parts = [_given(values[:number], *pool, partition) for number, pool in zip(numbers, pools, strict=True)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} | {COMMON: np.array([common])}


def _given(values: np.ndarray, pool: Panel, rows: "Rows", partition: Partition) -> dict[str, np.ndarray]:
    """Returns arrays of one pool's series with wanted values in their sensitive columns."""
    chosen = donors(_places(partition, values, rows.values), _places(partition, rows.values, rows.values))
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


def donors(wanted: np.ndarray, pool: np.ndarray) -> np.ndarray:
    """Returns a row of the pool for every wanted place: the nearest that is free, or the nearest of all."""
    near = cKDTree(pool).query(wanted, k=min(_NEAREST, len(pool)))[1].reshape(len(wanted), -1)
    free = np.ones(len(pool), dtype=bool)
    chosen = np.empty(len(wanted), dtype=np.int64)
    for row, candidates in enumerate(near):
        left = candidates[free[candidates]]
        chosen[row] = left[0] if len(left) else candidates[row % len(candidates)]
        free[chosen[row]] = False
    return chosen


def draw(arrays: Mapping[str, np.ndarray], schema: Schema, request: SampleRequest) -> Panel:
    """Returns series of a release in random order, from the beginning again where more are asked for."""
    values, static = (np.where(arrays[name + _ABSENT], np.nan, arrays[name]) for name in (VALUES, STATIC))
    rows = np.arange(arrays[COMMON][0])
    if request.label is not None:
        rows = np.flatnonzero(static[:, [column.name for column in schema.static].index(schema.label or "")]
                              == request.label)  # fmt: skip
    if not len(rows):
        raise InputError("label: a label of which the release holds series is expected. Ask for another, or for all.")
    taken = request.rng.permutation(rows)[np.arange(request.num_series) % len(rows)]
    return request.panel(schema, values[taken], arrays[LENGTHS][taken], static[taken])


def _places(partition: Partition, values: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Returns sensitive columns where distances count: numbers in deviations of `scale`, a category far from others.

    A little chance decides among donors that are equally near.
    """
    parts = [np.random.default_rng(len(values)).uniform(0, _CHANCE, (len(values), 1))]
    for place, column in enumerate(partition.columns):
        own, codes = np.nan_to_num(values[:, place]), num_codes(column)
        spread = max(float(np.nanstd(scale[:, place])), 1e-9)
        parts.append(own[:, None] / spread if codes is None else _APART * np.eye(codes)[own.astype(int)])
    return np.concatenate(parts, axis=1)


def _fitting(schema: Schema, most: int, numbers: int) -> int:
    """Returns how many series are held: `most`, fewer where they are long, by public facts."""
    return int(np.clip(numbers // (schema.num_steps * schema.num_channels), 1024, most))
