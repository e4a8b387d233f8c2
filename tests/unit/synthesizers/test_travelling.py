"""What is summed can travel to other processes, and sums nothing else there."""

import pickle
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from joblib.externals.loky.backend.reduction import dumps

from tests.unit.synthesizers.spectral.recording import MUCH
from tests.unit.synthesizers.test_clipping import RUNS
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.private_series import PrivateSeries
from understudy.synthesizers.contract.panels import make_panel

AT_HAND = ("independent",)  # no sums


@pytest.mark.parametrize("name", RUNS)
def test_a_statistic_that_travelled_has_the_same_sum(name: str) -> None:
    labels, genuine = [], PrivateSeries.total

    def travelled(private: PrivateSeries, statistic: object, step: float) -> np.ndarray:
        view, there = pickle.loads(dumps((private.view, statistic)))  # as workers get them
        labels.append(there.label)
        total = genuine(replace(private, view=view), there, step)
        assert np.array_equal(total, genuine(private, statistic, step)), there.label  # type: ignore[arg-type]
        return total

    method, schema = RUNS[name]
    with mock.patch.object(PrivateSeries, "total", travelled):
        method.fit(make_panel(schema, 30), Ledger.in_memory(MUCH), noise=NoiseSource.constant(0))
    assert labels or name in AT_HAND
