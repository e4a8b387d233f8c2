"""The metrics of PETS: distances between learned representations, and forecasting with an MLP."""

from understudy.evaluation.metric import Metric
from understudy_bench.metrics.pets.embedding import METRICS as _EMBEDDING
from understudy_bench.metrics.pets.embedding import frechet_distance as frechet_distance
from understudy_bench.metrics.pets.forecast import METRICS as _FORECAST

METRICS: tuple[Metric, ...] = (*_EMBEDDING, *_FORECAST)
