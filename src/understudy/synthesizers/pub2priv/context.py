"""How public context is read: columns at every step, and features of bounded length for the estimators.

Context is standardised window by window, so that no figure over several series is needed; the level that this takes out
comes back in units of the declared bounds. Every row follows from its own context alone.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pyarrow.types

from understudy.data import Schema
from understudy.data.channels import num_codes
from understudy.errors import InputError, MissingData
from understudy.privacy.contributions import shortened
from understudy.statistics.series import to_frequencies, unit_length

_LEVEL_WEIGHT = 0.5  # of the level of a channel, relative to its movement
_SMALLEST = 1e-3  # variance of a direction, relative to that of the largest
_UNEVENNESS = 0.25  # power of a direction's variance that is kept: 0 makes all alike, 1 leaves them as they are
_MOST_WINDOWS = 2_000  # of a public table of context that are read
_SLACK = 0.9  # clip radius over the root mean square length of public windows


def standardised(windows: np.ndarray) -> np.ndarray:
    """Returns windows [window, step, feature] with mean 0 and deviation 1 over the steps; 0 at rest, NaN if missing."""
    known = ~np.isnan(windows)
    count = np.maximum(known.sum(axis=1, keepdims=True), 1)
    centred = windows - np.where(known, windows, 0).sum(axis=1, keepdims=True) / count
    spread = np.sqrt(np.where(known, centred**2, 0).sum(axis=1, keepdims=True) / count)
    size = np.abs(np.where(known, windows, 0)).max(axis=1, keepdims=True, initial=0)
    return np.asarray(centred * np.where(spread > 1e-6 * size, 1 / np.maximum(spread, 1e-300), 0.0))


@dataclass(frozen=True, eq=False)
class Context:
    """How the context of a schema is read; `ignored` is True for the ablation that never looks at it."""

    schema: Schema
    ignored: bool

    @property
    def own(self) -> bool:
        """Whether context differs between series, so that an effect of it can be estimated."""
        return self.schema.own_contexts and not self.ignored

    @property
    def num_columns(self) -> int:
        """Columns of context that series are compared with; none where all series share one context."""
        return len(self.columns()) if self.own else 0

    @property
    def feature_bound(self) -> float:
        """Bound on the length of features: directions have length one, levels lie within their weight."""
        return float(np.sqrt(self.num_columns) * np.hypot(1.0, _LEVEL_WEIGHT))

    def features(self, context: np.ndarray | None, num_series: int, frequencies: np.ndarray) -> np.ndarray:
        """Returns features [series, feature] that may explain a shape, of length at most `feature_bound`.

        The direction of each signal's movement at some frequencies (0 for the slowest), then its level.

        Privacy: private if the contexts are; a row follows from its own context alone (so do `directions`).
        """
        if not self.own or context is None:
            return np.zeros((num_series, 0))
        moves = unit_length(self._movements(context)[:, frequencies])
        return np.concatenate([moves.reshape(num_series, -1), _LEVEL_WEIGHT * self._levels(context)], axis=1)

    def directions(self, context: np.ndarray | None, num_series: int) -> np.ndarray:
        """Returns the direction of each column's movement [series, frequency, column], of length one."""
        if context is None or not self.own:
            return np.zeros((num_series, self.schema.num_steps - 1, 0))
        return unit_length(self._movements(context))

    def _movements(self, context: np.ndarray) -> np.ndarray:
        """Returns the frequencies above 0 of each column [series, frequency, column]."""
        return to_frequencies(np.nan_to_num(self.windows(context)).astype(np.float64))[:, 1:]

    def _levels(self, context: np.ndarray) -> np.ndarray:
        """Returns the mean of each column over a window in units of its bounds [series, column], within [−1, 1]."""
        lows, highs = np.array([bounds for _, bounds, _ in self.columns()]).T
        seen = np.nan_to_num((self._numbers(context) - (lows + highs) / 2) / np.maximum((highs - lows) / 2, 1e-12))
        return np.clip(seen.mean(axis=1), -1.0, 1.0).astype(np.float32)

    def windows(self, context: np.ndarray) -> np.ndarray:
        """Returns each column of each window with mean 0 and deviation 1; 0 at rest, NaN where missing."""
        return standardised(self._numbers(context)).astype(np.float32)

    def check_at_rest(self, context: np.ndarray | None, name: str = "context") -> None:
        """Refuses a public context that never moves, which teaches nothing."""
        if self.ignored or context is None or context.size == 0 or self.schema.num_steps < 2:
            return
        if not (np.nan_to_num(np.nanmax(context, axis=-2) - np.nanmin(context, axis=-2)) > 0).any():
            raise InputError(
                f"{name}: at least one channel that moves is expected, got none. Bring context that changes within "
                "a series, or set knowledge='none'."
            )

    def warn_beyond(self, context: np.ndarray | None, fit_context: np.ndarray | None) -> None:
        """Warns if context leaves the range of the fit, or the declared bounds where that range is private."""
        if self.ignored or context is None:
            return
        lows, highs = np.array([channel.bounds for channel in self.schema.context]).reshape(-1, 2).T
        limit = "the bounds that the schema declares"
        if fit_context is not None:
            lows, highs = np.nanmin(fit_context, axis=0), np.nanmax(fit_context, axis=0)
            limit = "the range seen during the fit"
        slack = 1e-5 * np.maximum(np.maximum(abs(lows), abs(highs)), 1e-12)
        left = ((context < lows - slack) | (context > highs + slack)).reshape(-1, len(lows)).any(axis=0)
        beyond = ", ".join(self.schema.context[place].name for place in np.flatnonzero(left))
        if beyond:
            warnings.warn(f"context: {beyond} leaves {limit}; the response there is extrapolated.", stacklevel=2)

    def columns(self) -> list[tuple[int, tuple[float, float], int | None]]:
        """Returns (place, bounds, code) of every column that context is read as: one per code of a category."""
        columns: list[tuple[int, tuple[float, float], int | None]] = []
        for place, channel in enumerate(self.schema.context):
            codes = num_codes(channel) or 0
            own = [(place, (0.0, 1.0), code) for code in range(codes)]
            columns += own if codes > 2 else [(place, channel.bounds, None)]
        return columns

    def _numbers(self, context: np.ndarray) -> np.ndarray:
        parts = []
        for place, _, code in self.columns():
            own = context[:, :, place].astype(np.float64)
            parts.append(own if code is None else np.where(np.isnan(own), np.nan, own == code))
        return np.stack(parts, axis=2)


@dataclass(frozen=True, eq=False, kw_only=True)
class FeatureMap:
    """A public linear map of features with an intercept, and a bound on its values.

    Public windows show in which few directions contexts differ. Features are turned into these and scaled most of the
    way to equal size, so that a private sum spends no noise on directions that never move.
    """

    centre: np.ndarray  # mean feature of public windows
    turn: np.ndarray  # [feature, direction]
    products: np.ndarray  # mean products [1 + direction, 1 + direction] of mapped public windows; empty without any
    clip: float  # bound on the length of the directions

    @property
    def bound(self) -> float:
        """Bound on the length of a mapped context."""
        return float(np.hypot(1.0, self.clip))

    @classmethod
    def of_public(cls, features: np.ndarray) -> "FeatureMap":
        """Returns the directions in which features [window, feature] of public windows differ."""
        centre = features.mean(axis=0)
        variance, directions = np.linalg.eigh((features - centre).T @ (features - centre) / len(features))
        moves = variance > max(_SMALLEST * variance[-1], 1e-12)
        variance, directions = variance[moves], directions[:, moves]
        share = (variance / variance.max(initial=1e-300)) ** _UNEVENNESS
        turn = directions * np.sqrt(share / np.maximum(variance, 1e-300))
        clip = _SLACK * float(np.sqrt(share.sum()))
        mapped = cls(centre=centre, turn=turn, products=np.zeros((0, 0)), clip=clip).of(features)
        return cls(centre=centre, turn=turn, products=mapped.T @ mapped / len(mapped), clip=clip)

    def of(self, features: np.ndarray) -> np.ndarray:
        """Returns mapped features [series, 1 + direction] of length at most `bound`."""
        directions = shortened((features - self.centre) @ self.turn, self.clip)
        return np.concatenate([np.ones((len(features), 1)), directions], axis=1)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Returns the map as arrays."""
        return {f"map.{field.name}": np.ascontiguousarray(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "FeatureMap":
        """Returns the map that `to_arrays` stored."""
        parts = {field.name: arrays[f"map.{field.name}"] for field in fields(cls)}
        return cls(**{**parts, "clip": float(parts["clip"][0])})  # type: ignore[arg-type]


# --- public context from a file ---------------------------------------------------------------------------------------


def public_windows(file: str | None, schema: Schema) -> np.ndarray | None:
    """Returns windows [window, step, context] of a public table of context, as long as series are; None without."""
    if file is None:
        return None
    if not Path(file).is_file():
        raise MissingData(f"public_context: '{file}' is not there. Name a table of public context, or leave it out.")
    table, steps = read_signals(Path(file), "public_context"), schema.num_steps
    if table.shape[2] != len(schema.context) or table.shape[1] < steps:
        raise InputError(
            f"public_context: {len(schema.context)} columns of numbers over at least {steps} steps are expected, in "
            f"the order of the schema's context; got {table.shape[2]} over {table.shape[1]}."
        )
    windows = np.lib.stride_tricks.sliding_window_view(table, steps, axis=1)  # [series, first, context, step]
    flat = np.swapaxes(windows.reshape(-1, *windows.shape[2:]), 1, 2)
    return np.array(flat[:: max(1, -(-len(flat) // _MOST_WINDOWS))])


def read_signals(path: Path, option: str = "--public") -> np.ndarray:
    """Returns public signals [series, step, feature], NaN where missing; `option` is what errors call the file.

    A table is one series: rows in the order of time, every column of numbers a feature, other columns left out. An
    array (.npy) is [step, feature] or [series, step, feature].
    """
    array = np.load(path, allow_pickle=False) if path.suffix == ".npy" else _table(path, option)
    if array.ndim not in (2, 3) or array.dtype.kind not in "fiu" or 0 in array.shape:
        raise InputError(
            f"{option}: numbers [step, feature] or [series, step, feature] are expected. Reshape the array."
        )
    signals = np.asarray(array if array.ndim == 3 else array[None], dtype=np.float64)
    if np.isinf(signals).any() or np.isnan(signals).all(axis=(0, 1)).any():
        raise InputError(
            f"{option}: finite numbers are expected. Leave unknown ones missing, and drop features without any."
        )
    return signals


def _table(path: Path, option: str) -> np.ndarray:
    try:
        table = pyarrow.parquet.read_table(path) if path.suffix == ".parquet" else pyarrow.csv.read_csv(path)
    except (pa.ArrowInvalid, OSError) as problem:
        raise InputError(f"{option}: '{path}' can't be read as a table (.csv, .parquet) or array (.npy).") from problem
    kinds = pyarrow.types.is_floating, pyarrow.types.is_integer
    columns = [column.cast(pa.float64()) for column in table.columns if any(kind(column.type) for kind in kinds)]
    if not columns:
        raise InputError(f"{option}: '{path}' has no column of numbers. Expected a column for each public signal.")
    return np.stack([column.to_numpy() for column in columns], axis=1)
