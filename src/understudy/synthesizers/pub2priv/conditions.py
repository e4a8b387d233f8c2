"""From public context to what a series is conditioned on: signals at every step, and the level of each window.

Context is standardised window by window, so that no figure over several series is needed; the level that this takes out
comes back as a summary in units of the declared bounds. Every row follows from its own context alone.
"""

import warnings
from dataclasses import dataclass

import numpy as np

from understudy.data import Schema
from understudy.data.channels import num_codes
from understudy.errors import InputError
from understudy.statistics.series import dct_matrix, to_frequencies, unit_length
from understudy.synthesizers.pub2priv.knowledge import Knowledge
from understudy.synthesizers.pub2priv.signals import standardised

_LEVEL_WEIGHT = 0.5  # of the level of a channel beside its movement
_KNOWN_DIRECTIONS = 2  # of z, whose movements are features beside the channels' own


@dataclass(frozen=True, eq=False)
class Conditions:
    """How a schema's context is read.

    Attributes:
        knowledge: θ_T; None if context is taken as it is, or not at all.
        without_context: True for the ablation that never looks at context.
    """

    schema: Schema
    knowledge: Knowledge | None
    without_context: bool

    @property
    def own(self) -> bool:
        """Whether context differs between series, so that its level can teach something."""
        return self.schema.own_contexts and not self.without_context

    @property
    def num_columns(self) -> int:
        """Columns of context that series may be compared with, each with its own."""
        return len(self._columns()) if self.own else 0

    @property
    def num_levels(self) -> int:
        """Numbers in a summary."""
        return self.num_columns

    def num_signals(self, wanted: int) -> int:
        """Returns how many signals there are, at most `wanted`."""
        if self.without_context:
            return min(wanted, max(self.schema.num_steps - 1, 1))
        more = 0 if self.knowledge is None else self.knowledge.directions.shape[1]
        return min(wanted, len(self._columns()) + more)

    def signals(self, context: np.ndarray | None, num_series: int, wanted: int) -> np.ndarray:
        """Returns [series, step, signal]: what series may follow, each with mean 0 and deviation 1, or 0 at rest.

        The mean of all channels first; then, as far as `wanted` goes, the directions of z, or single channels. Without
        context: cosines, slowest first.
        """
        number = self.num_signals(wanted)
        if context is None or self.without_context:
            waves = dct_matrix(self.schema.num_steps)[1 : number + 1].T
            return np.broadcast_to(_padded(waves[None], number), (num_series, self.schema.num_steps, number))
        whole = self.of_windows(context)
        common = np.nan_to_num(whole).mean(axis=2, keepdims=True)
        more = np.nan_to_num(whole[:, :, 1:])
        if self.knowledge is not None:
            directions = self.knowledge.directions[:, : number - 1]
            more = np.concatenate([self.knowledge.embed(whole) @ directions, more], axis=2)
        return _padded(standardised(np.concatenate([common, more], axis=2)[:, :, :number]), number)

    def per_step(self, context: np.ndarray | None, num_series: int) -> np.ndarray:
        """Returns what the published network receives [series, step, condition]: z, context itself, or nothing."""
        if self.without_context or context is None:
            return np.zeros((num_series, self.schema.num_steps, 0), dtype=np.float32)
        whole = self.of_windows(context)
        return np.nan_to_num(whole) if self.knowledge is None else self.knowledge.embed(whole)

    def num_features(self, num_frequencies: int) -> int:
        """Numbers that `features` returns for each series."""
        return self._num_followed * num_frequencies + self.num_levels

    @property
    def feature_reach(self) -> float:
        """Most that the features of one context measure: directions have length one, levels lie within their weight."""
        return float(max(np.sqrt(self._num_followed + _LEVEL_WEIGHT**2 * self.num_levels), 1.0))

    @property
    def _num_followed(self) -> int:
        """Signals whose movements are features: every channel, and what θ_T says of them."""
        if not self.own:
            return 0
        return len(self._columns()) + (0 if self.knowledge is None else _KNOWN_DIRECTIONS)

    def features(self, context: np.ndarray | None, num_series: int, frequencies: np.ndarray) -> np.ndarray:
        """Returns what of a context may explain a shape [series, feature], none longer than `feature_reach`.

        How each channel moves at some frequencies (0 for the slowest), not how much, as for series; then its level.

        Privacy: private if the contexts are; a row follows from its own context alone.
        """
        if not self.own or context is None:
            return np.zeros((num_series, 0))
        whole = self.of_windows(context)
        signals = np.nan_to_num(whole)
        if self.knowledge is not None:
            known = self.knowledge.embed(whole) @ self.knowledge.directions[:, :_KNOWN_DIRECTIONS]
            signals = np.concatenate([signals, known], axis=2)
        moves = unit_length(to_frequencies(signals.astype(np.float64))[:, 1:][:, frequencies])
        return np.concatenate([moves.reshape(num_series, -1), _LEVEL_WEIGHT * self.levels(context, num_series)], axis=1)

    def levels(self, context: np.ndarray | None, num_series: int) -> np.ndarray:
        """Returns the mean of each channel over a window in units of its bounds [series, level], within [−1, 1]."""
        if not self.own or context is None:
            return np.zeros((num_series, 0), dtype=np.float32)
        lows, highs = np.array([column[1] for column in self._columns()]).T
        middle, half = (lows + highs) / 2, np.maximum((highs - lows) / 2, 1e-12)
        seen = np.nan_to_num((self._numbers(context) - middle) / half)
        return np.clip(seen.mean(axis=1), -1.0, 1.0).astype(np.float32)

    def of_windows(self, context: np.ndarray) -> np.ndarray:
        """Returns each channel of each window with mean 0 and deviation 1; 0 at rest, NaN where missing."""
        return standardised(self._numbers(context)).astype(np.float32)

    def check_at_rest(self, context: np.ndarray | None, name: str = "context") -> None:
        """Refuses a public context that never moves: nobody could learn how series follow it. `name` is for errors."""
        if self.without_context or context is None or context.size == 0 or self.schema.num_steps < 2:
            return
        if not (np.nan_to_num(np.nanmax(context, axis=-2) - np.nanmin(context, axis=-2)) > 0).any():
            raise InputError(
                f"{name}: at least one channel that moves is expected, got none. Bring context that changes within "
                "a series, or say knowledge='none'."
            )

    def tell_beyond(self, context: np.ndarray | None, fit_context: np.ndarray | None) -> None:
        """Says so if context leaves what was seen: the fit's range, or the declared bounds where that is private."""
        if self.without_context or context is None:
            return
        beyond = []
        for place, channel in enumerate(self.schema.context):
            low, high = channel.bounds if fit_context is None else _range(fit_context[:, place])
            slack = 1e-5 * max(abs(low), abs(high), 1e-12)
            if (context[..., place] < low - slack).any() or (context[..., place] > high + slack).any():
                beyond.append(channel.name)
        if beyond:
            limit = (
                "the range seen during the fit" if fit_context is not None else "the bounds that the schema declares"
            )
            warnings.warn(
                f"context: {', '.join(beyond)} leaves {limit}; how series respond there is extrapolated.", stacklevel=2
            )

    def _columns(self) -> list[tuple[int, tuple[float, float], int | None]]:
        """Returns (place, bounds, code) of every number that context is read as; codes are taken apart."""
        columns: list[tuple[int, tuple[float, float], int | None]] = []
        for place, channel in enumerate(self.schema.context):
            codes = num_codes(channel) or 0
            if codes > 2:
                columns += [(place, (0.0, 1.0), code) for code in range(codes)]
            else:
                columns.append((place, channel.bounds, None))
        return columns

    def _numbers(self, context: np.ndarray) -> np.ndarray:
        parts = []
        for place, _, code in self._columns():
            own = context[:, :, place].astype(np.float64)
            parts.append(own if code is None else np.where(np.isnan(own), np.nan, own == code))
        return np.stack(parts, axis=2)


def _padded(signals: np.ndarray, number: int) -> np.ndarray:
    return np.pad(signals, ((0, 0), (0, 0), (0, number - signals.shape[2])))


def _range(values: np.ndarray) -> tuple[float, float]:
    return float(np.nanmin(values)), float(np.nanmax(values))
