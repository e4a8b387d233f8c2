"""Releases that can impute are judged on it, on real series they never saw."""

import numpy as np

from tests.unit.synthesizers.dit.small import SMALL, waves
from understudy.evaluation.fillings import KINDS, with_completions
from understudy.evaluation.metric import QUICK, metrics_of
from understudy.evaluation.panels import Panels
from understudy.evaluation.scorecard import scorecard_of
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.synthesizers.independent import Independent


def test_fillings_of_other_series_reach_the_metrics_of_the_release_only() -> None:
    real, holdout = waves(60), waves(80, seed=5)
    release = SMALL.fit(real, Ledger.in_memory(Guarantee(1.0, 1e-4)))
    panels = Panels.prepare(real, release.sample(60), holdout, max_series=500)
    filled = with_completions(panels, release)
    assert [completion.kind for completion in filled.completions] == list(KINDS)
    for completion in filled.completions:
        assert completion.truth.tobytes() == panels.other.values.tobytes()
        shown = ~completion.hidden
        assert np.array_equal(completion.draws[0][shown], completion.truth[shown])
    card = scorecard_of(filled, [m for m in metrics_of(("conditional",)) if m.name in ("conditional.rmse",)], QUICK)
    score = card["conditional.rmse"]
    assert score.synthetic.value is not None
    assert {*KINDS} <= set(score.synthetic.parts)
    assert score.independent.value is None  # the control fills nothing


def test_a_release_that_only_generates_changes_nothing() -> None:
    real = waves(60)
    release = Independent().fit(real, Ledger.in_memory(Guarantee(1.0, 1e-4)))
    panels = Panels.prepare(real, release.sample(60), waves(80, seed=5), max_series=500)
    assert with_completions(panels, release) is panels
    assert with_completions(panels, None) is panels
