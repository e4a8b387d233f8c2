"""Coins of baselines that train fall anew in every run, whatever the public seed."""

from typing import Any

import numpy as np
import pytest
from understudy_bench.audit.canaries import random_panel
from understudy_bench.audit.subjects import SUBJECTS

from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.training import UnitWindows


def test_which_windows_of_a_unit_are_shown_is_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """The generator that chooses them starts elsewhere in every run, with 128 bits of its own."""
    starts: list[int] = []
    begin = UnitWindows.__init__

    def watched(self: UnitWindows, arrays: Any, unit: Any, rng: np.random.Generator, cap: Any = None) -> None:
        starts.append(rng.bit_generator.state["state"]["state"])
        begin(self, arrays, unit, rng, cap)

    monkeypatch.setattr(UnitWindows, "__init__", watched)
    subject, guarantee = SUBJECTS["dp-gan"], Guarantee(200.0, 1e-7)
    panel = random_panel(subject.schema, 30, np.random.default_rng(0))
    for _ in range(2):
        ledger = Ledger.in_memory(guarantee)
        subject.make().fit(panel, ledger, guarantee=guarantee, noise=NoiseSource.constant(0.0))
    assert len(starts) >= 2
    assert len(set(starts)) == len(starts)
