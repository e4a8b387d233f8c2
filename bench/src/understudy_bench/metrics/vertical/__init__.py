"""The metrics of VFLGAN-TS (section 5)."""

from understudy.evaluation.metric import Metric
from understudy_bench.metrics.vertical.distances import METRICS as _DISTANCES
from understudy_bench.metrics.vertical.sine import METRICS as _SINE
from understudy_bench.metrics.vertical.tasks import METRICS as _TASKS

METRICS: tuple[Metric, ...] = (*_DISTANCES, *_TASKS, *_SINE)
