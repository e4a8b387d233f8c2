"""The largest record that portraits can make."""

import numpy as np

from tests.unit.evaluation.sets import waves
from tests.unit.report.toy import toy_record
from understudy.data import Categorical, Continuous, Panel, Population, PrivacyUnit, Schema, Time
from understudy.evaluation.portraits import Frame, portrait
from understudy.report.record import RunRecord, public_record

NUM_SERIES, STEPS, CHANNELS, CATEGORIES = 60, 400, 12, 90


def largest_record() -> RunRecord:
    """More of everything than is shown."""
    first, second = _panel(0), _panel(1)
    frame, small = Frame.of(first, second), toy_record()
    assert small.internal is not None
    card = small.internal["scorecard"]
    points = {side: waves(400, seed=3).values[:, 0].tolist() for side in ("real", "synthetic")}
    internal = {
        **small.internal,
        "scorecard": {**card, "scores": card["scores"] * 40},
        "real": portrait(first, frame),
        "synthetic": portrait(second, frame),
        "embedding": {**small.internal["embedding"], "pca": points, "tsne": points},
    }
    return RunRecord(public=public_record(None, second).public, internal=internal)


def _panel(seed: int) -> Panel:
    rng = np.random.default_rng(seed)
    names = tuple(f"category {number} of a long list" for number in range(CATEGORIES))
    schema = Schema(
        name="largest",
        population=Population(NUM_SERIES),
        unit=PrivacyUnit(column="person"),
        time=Time(column="when", frequency="1h", start="2024-01-01T00:00:00", steps=STEPS),
        channels=tuple(Continuous(f"a channel with a long name {n}", -1e6, 1e6) for n in range(CHANNELS)),
        static=tuple(Categorical(f"column {n}", names) for n in range(10)),
    )
    return Panel(
        schema=schema,
        values=(1e3 * rng.standard_normal((NUM_SERIES, STEPS, CHANNELS)).cumsum(axis=1)).astype(np.float32),
        lengths=np.full(NUM_SERIES, STEPS, dtype=np.int32),
        unit=np.arange(NUM_SERIES),
        static=rng.integers(0, CATEGORIES, (NUM_SERIES, 10)).astype(np.float32),
        private=False,
    )
