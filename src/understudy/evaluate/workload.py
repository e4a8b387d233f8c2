"""How long an evaluation takes: expected work of each metric, corrected by what the metrics before it took."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from understudy.evaluate.metric import Metric

REFERENCE_VALUES = 500 * 48 * 2  # of the panel on which the seconds below were measured
_SECONDS = {
    "general.trees_raw": 3.4,
    "general.trees_summary": 2.7,
    "general.forecast_skill": 0.3,
    "general.mean": 0.3,
    "general.tails": 0.3,
    "general.copied_warped": 1.1,
    "pub2priv.discriminative": 34.0,
    "pub2priv.predictive": 28.0,
    "pub2priv.classification": 20.0,
    "pets.context_fid": 19.0,
    "pets.wasserstein": 3.6,
    "pets.forecast_rmse": 1.9,
    "pets.forecast_mae": 0.5,
    "vertical.awd_nd": 12.0,
    "vertical.forecast_tpd": 80.0,
    "ppem.mmd": 0.7,
    "ppem.ksd": 0.4,
}
FILLINGS = tuple(f"conditional.{name}" for name in ("rmse", "mae", "mape", "r2", "crps", "coverage"))
_SECONDS |= dict.fromkeys(FILLINGS, 4.0)  # with the time to make the fillings
_OTHERS = {True: 20.0, False: 0.1}  # by whether networks are trained


def expected_seconds(metric: Metric, num_values: int) -> float:
    """Returns the seconds that a metric is expected to take at quick effort on panels of this many values."""
    seconds = _SECONDS.get(metric.name, _OTHERS[metric.trained])
    return seconds * max(0.2, num_values / REFERENCE_VALUES)


@dataclass
class Workload:
    """The metrics still to be measured, and how much slower or faster than expected the others were.

    Attributes:
        ahead: Expected seconds by metric's name, in the order of the work.
        kinds: Whether each metric trains networks; what one kind took says little about the other.
    """

    ahead: dict[str, float]
    kinds: dict[str, bool]
    taken: dict[bool, tuple[float, float]] = field(default_factory=dict)  # by kind: seconds expected, seconds taken

    @classmethod
    def of(cls, metrics: Sequence[Metric], num_values: int) -> "Workload":
        """Returns the work of all metrics on panels of this many values."""
        ahead = {metric.name: expected_seconds(metric, num_values) for metric in metrics}
        return cls(ahead=ahead, kinds={metric.name: metric.trained for metric in metrics})

    def done(self, name: str, seconds: float) -> None:
        """Takes note of what a metric took."""
        expected, taken = self.taken.get(self.kinds[name], (0.0, 0.0))
        self.taken[self.kinds[name]] = (expected + self.ahead.pop(name), taken + seconds)

    def seconds_left(self, current: str | None = None, share: float = 0.0, spent: float = 0.0) -> float:
        """Returns the expected seconds of all that is still ahead.

        Args:
            current: The metric at work, of which `share` is done after `spent` seconds.
        """
        left = sum(seconds * self._factor(self.kinds[name]) for name, seconds in self.ahead.items() if name != current)
        if current is None:
            return left
        usual = self.ahead[current] * self._factor(self.kinds[current])
        return left + (spent * (1 - share) / share if share > 0 else max(usual - spent, 0.0))

    def _factor(self, kind: bool) -> float:
        expected, taken = self.taken.get(kind, (0.0, 0.0))
        return taken / expected if expected > 0 else 1.0
