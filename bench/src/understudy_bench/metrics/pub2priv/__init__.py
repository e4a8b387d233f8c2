"""The metrics of Pub2Priv (section 6 and App. F)."""

from understudy.evaluation.metric import Metric
from understudy_bench.metrics.pub2priv.context import METRICS as _CONTEXT
from understudy_bench.metrics.pub2priv.distributions import METRICS as _DISTRIBUTIONS
from understudy_bench.metrics.pub2priv.neighbours import METRICS as _NEIGHBOURS
from understudy_bench.metrics.pub2priv.recurrent import METRICS as _RECURRENT

METRICS: tuple[Metric, ...] = (*_DISTRIBUTIONS, *_CONTEXT, *_RECURRENT, *_NEIGHBOURS)
