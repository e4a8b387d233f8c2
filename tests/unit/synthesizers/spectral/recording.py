"""Listens at the border: which statistics a run released, with which bounds, and what was answered."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest import mock

import numpy as np

from tests.unit.synthesizers.heard import Heard, heard
from understudy.data import Panel
from understudy.privacy.border import Statistic
from understudy.privacy.budget import Guarantee
from understudy.privacy.grant import Grant
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.private_series import Private, PrivateSeries
from understudy.synthesizers.spectral import Spectral

MUCH = Guarantee(60.0, 1e-7)  # little noise, so that structure shows and every branch is walked


@dataclass
class Tape:
    """Statistics and answers of one run, by label, in order."""

    sums: dict[str, Heard] = field(default_factory=dict)
    answers: dict[str, np.ndarray] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)

    def distance(self, other: "Tape", label: str) -> float:
        """How far apart two runs' statistics are, in units of what one unit may move them by."""
        return self.sums[label].moved(other.sums[label])


@contextmanager
def listening(frozen: Tape | None = None) -> Iterator[Tape]:
    """Records what crosses the border; with `frozen`, the run sees the answers of that earlier run instead.

    Later statistics depend on earlier answers, which are public by then. Neighbours have to be compared with
    the same answers, or the comparison would mix a statistic's own sensitivity with what it was told before.
    """
    tape, genuine = Tape(), Grant.release

    def listen(grant: Grant, statistic: Statistic, private: Private) -> np.ndarray:
        label = statistic.label
        tape.sums[label] = heard(grant, statistic, private)
        tape.answers[label] = genuine(grant, statistic, private)
        return tape.answers[label] if frozen is None else frozen.answers[label]

    with mock.patch.object(Grant, "release", listen):
        yield tape


def tape_of(
    panel: Panel,
    *,
    frozen: Tape | None = None,
    noise: float | None = 0.0,
    method: Spectral | None = None,
    guarantee: Guarantee = MUCH,
) -> Tape:
    """Fits once and returns what crossed the border; `noise` is a constant, None is secure noise."""
    source = NoiseSource.secure() if noise is None else NoiseSource.constant(noise)
    with listening(frozen) as tape:
        release = (method or Spectral()).fit(panel, Ledger.in_memory(guarantee), noise=source)
    tape.arrays = release.arrays
    return tape


def tape_of_series(private: PrivateSeries, *, frozen: Tape | None = None, method: Spectral) -> Tape:
    """Learns from series that are already cut into windows."""
    plan = method.plan(private.schema, MUCH)
    grant = Ledger.in_memory(MUCH).charge(plan, label="windows", noise=NoiseSource.constant(0))
    with listening(frozen) as tape:
        tape.arrays = method.learn(private, grant, lambda stage, share: None)
    return tape
