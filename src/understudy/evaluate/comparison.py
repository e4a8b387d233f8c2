"""Real series beside a candidate that stands in for them, and the views of both that metrics share."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from understudy.data import Panel
from understudy.data.channels import num_codes


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparison:
    """What every metric looks at. Output is internal: it reads real data.

    Attributes:
        real: The series that were learned from.
        candidate: What is judged: synthetic series, other real series, or a control.
        reference: Further real series that the candidate never saw; tells closeness from copying.
        unseen: Real series that encoders may be trained on, the same for all comparisons of one evaluation.
        completions: Real series with steps hidden on purpose and filled by a release that can impute; none otherwise.
    """

    real: Panel
    candidate: Panel
    reference: Panel
    unseen: Panel
    completions: tuple["Completion", ...] = ()

    @cached_property
    def scale(self) -> "Scale":
        """The scale of the real series."""
        return Scale.of(self.real)

    @cached_property
    def real_unit(self) -> np.ndarray:
        """Real series [series, step, feature] in [0, 1], without gaps."""
        return self.scale.unit(self.real)

    @cached_property
    def candidate_unit(self) -> np.ndarray:
        """The candidate's series in the same scale; they may leave [0, 1]."""
        return self.scale.unit(self.candidate)

    @cached_property
    def reference_unit(self) -> np.ndarray:
        """The reference's series in the same scale."""
        return self.scale.unit(self.reference)

    def numeric(self, panel: Panel) -> np.ndarray:
        """Returns values [series, step, numeric channel] as they are, with gaps; categories are left out."""
        return panel.values[:, :, self.scale.numeric]

    @property
    def numeric_names(self) -> list[str]:
        """Names of the channels in `numeric`."""
        return [self.real.schema.channels[place].name for place in self.scale.numeric]

    @property
    def feature_channels(self) -> list[int]:
        """Place of the channel that each feature of the scaled views belongs to."""
        widths = [num_codes(channel) or 1 for channel in self.real.schema.channels]
        return [place for place, width in enumerate(widths) for _ in range(width)]

    def numeric_unit(self, panel: Panel) -> np.ndarray:
        """Returns the numeric channels as in the scaled views: without gaps, in the scale of the real series."""
        views = {id(self.real): "real_unit", id(self.candidate): "candidate_unit", id(self.reference): "reference_unit"}
        unit = getattr(self, views[id(panel)]) if id(panel) in views else self.scale.unit(panel)
        return np.asarray(unit[:, :, np.isin(self.feature_channels, self.scale.numeric)])


@dataclass(frozen=True, eq=False, kw_only=True)
class Completion:
    """What a release that can impute put in place of steps that were hidden from it. Internal: it holds real series.

    Attributes:
        kind: How steps were hidden: a name of `understudy.data.masks.MASKS`.
        truth: Real series [series, step, channel], NaN where never observed.
        hidden: [series, step], true where the release did not see them.
        draws: [draw, series, step, channel], several fillings of the same series; read at hidden steps only.
    """

    kind: str
    truth: np.ndarray
    hidden: np.ndarray
    draws: np.ndarray


@dataclass(frozen=True, eq=False, kw_only=True)
class Scale:
    """Least and greatest real value of each channel, as the papers scale; evaluation is internal, so it may look.

    Attributes:
        numeric: Places of the channels that are numbers; the others are categories.
    """

    low: np.ndarray
    width: np.ndarray
    middle: np.ndarray
    numeric: list[int]

    @classmethod
    def of(cls, real: Panel) -> "Scale":
        """Returns the scale of a panel; a channel never observed is taken from its bounds."""
        channels = real.schema.channels
        low, high, middle = (np.empty(len(channels)) for _ in range(3))
        for place, channel in enumerate(channels):
            seen = real.values[:, :, place]
            seen = seen[~np.isnan(seen)]
            low[place], high[place] = (seen.min(), seen.max()) if len(seen) else channel.bounds
            middle[place] = seen.mean(dtype=np.float64) if len(seen) else np.mean(channel.bounds)
        numeric = [place for place, channel in enumerate(channels) if num_codes(channel) is None]
        return cls(low=low, width=np.where(high > low, high - low, 1.0), middle=middle, numeric=numeric)

    def unit(self, panel: Panel) -> np.ndarray:
        """Returns [series, step, feature]: numbers scaled, categories one-hot, gaps closed by straight lines."""
        features = []
        for place, channel in enumerate(panel.schema.channels):
            codes, filled = num_codes(channel), _without_gaps(panel.values[:, :, place], self.middle[place])
            if codes is None:
                features.append(((filled - self.low[place]) / self.width[place])[:, :, None])
            else:
                features.append(np.eye(codes)[np.rint(filled).astype(int)])
        return np.concatenate(features, axis=2).astype(np.float32)


def _without_gaps(values: np.ndarray, otherwise: float) -> np.ndarray:
    """Returns [series, step] with gaps closed by straight lines, ends held, and empty series at `otherwise`."""
    filled, steps = np.array(values, dtype=np.float64), np.arange(values.shape[1])
    for row in np.flatnonzero(np.isnan(filled).any(axis=1)):
        seen = ~np.isnan(filled[row])
        filled[row] = np.interp(steps, steps[seen], filled[row][seen]) if seen.any() else otherwise
    return filled
