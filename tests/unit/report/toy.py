"""A record that takes a second to make: invented waves with a release, a scorecard of two measures and real marks."""

from dataclasses import replace
from functools import cache

import numpy as np

from tests.unit.evaluation.sets import waves
from understudy.data import Categorical, Continuous, Panel
from understudy.evaluation.metric import QUICK, Measured, Metric, Undefined
from understudy.evaluation.panels import Panels
from understudy.evaluation.scorecard import Judged, scorecard_of
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.report.record import RunRecord, make_record
from understudy.synthesizers import METHODS, Release

PLANTED = 0.86753  # a value that every real series takes, and no synthetic one
HOSTILE = '<script>alert("x")</script>&"\'$\\bad{ \x07'


def real_waves(number: int = 60, *, seed: int = 0, planted: float | None = PLANTED, name: str = "wave0") -> Panel:
    """Real series in three channels, one of them categories, and a label; the second channel is `planted` at times."""
    panel = waves(number, seed=seed)
    values = np.concatenate([panel.values, (panel.values[:, :, :1] > 0.5)], axis=2).astype(np.float32)
    if planted is not None:
        values[:, ::3, 1] = planted
    static = np.stack([np.arange(number) % 2, np.linspace(0, 1, number)], axis=1).astype(np.float32)
    schema = replace(
        panel.schema,
        channels=(
            Continuous(name, 0.0, 1.0, missing=True),
            Continuous("wave1", 0.0, 1.0),
            Categorical("mode", ("off", "on")),
        ),
        static=(Categorical("ward", ("north", "south")), Continuous("age", 0.0, 1.0)),
        label="ward",
    )
    return replace(panel, schema=schema, values=values, static=static)


@cache
def release(name: str = "wave0") -> Release:
    """A certified release that never saw the real series."""
    panel = replace(real_waves(name=name), private=True)
    return METHODS["independent"]().fit(panel, Ledger.in_memory(Guarantee(2.0, 1e-4)))


@cache
def toy_record(number: int = 60, seed: int = 0, planted: float | None = PLANTED, name: str = "wave0") -> RunRecord:
    """The record of an evaluation; the synthetic series do not depend on the real ones."""
    real, made = real_waves(number, seed=seed, planted=planted, name=name), release(name)
    synthetic = made.sample(80, rng=np.random.default_rng(5))
    panels = Panels.prepare(real, synthetic, max_series=500)
    card = scorecard_of(panels, METRICS, replace(QUICK, splits=3))
    judged = Judged(release=made, synthetic=synthetic, panels=panels)
    return make_record(replace(card, judged=judged), audit=AUDIT)


def _gap_of_means(comparison, effort, seed):
    gap = abs(float(np.nanmean(comparison.real.values) - np.nanmean(comparison.candidate.values)))
    return Measured(value=gap, replicates=np.array([gap, gap + 0.01, gap + 0.02]), notes=("Means only.",))


def _undefined(comparison, effort, seed):
    raise Undefined("needs a year of steps; bring longer series.")


_COMMON = {"direction": "lower", "range": (0.0, np.inf), "reference": "a textbook"}
METRICS = (
    Metric(name="toy.mean", title="Gap of means", measure=_gap_of_means, **_COMMON),
    Metric(name="toy.year", title="Yearly rhythm", measure=_undefined, **_COMMON),
)
AUDIT = [
    {"attack": "canary", "epsilon": 0.2, "ceiling": 3.98, "confidence": 0.95, "runs": 200, "contradicts": False},
]
