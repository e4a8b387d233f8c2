"""An audit states one ceiling: what it announced beforehand is what it prints beside its finding."""

import numpy as np
import pytest

from understudy.auditing.scores import Scores, audit_scores
from understudy.auditing.shadows import COUNTED, FEATURES, most_provable


@pytest.mark.parametrize("per_arm", [40, 41, 50, 60, 99, 100, 101, 250])
def test_the_ceiling_announced_is_the_ceiling_found(per_arm):
    scored = per_arm - per_arm // COUNTED
    rng = np.random.default_rng(0)
    family = {name: Scores(rng.normal(size=scored), rng.normal(size=scored) + 9) for name in FEATURES}
    assert audit_scores(family, delta=1e-5).ceiling == most_provable(per_arm, delta=1e-5)


def test_so_few_that_nothing_can_be_counted_can_prove_nothing():
    assert [most_provable(number, delta=1e-5) for number in range(6)] == [0.0] * 6
