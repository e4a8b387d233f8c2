"""Listens at the border: every sum that a run of `pets` released, how far a unit moves it, what was answered."""

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
from understudy.privacy.private_series import Private
from understudy.synthesizers.pets import PETS

BUDGET = Guarantee(2.0, 2e-6)


@dataclass
class Tape:
    """What crossed the border, in order."""

    labels: list[str] = field(default_factory=list)
    sums: list[Heard] = field(default_factory=list)
    answers: list[np.ndarray] = field(default_factory=list)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)

    def distances(self, other: "Tape") -> dict[str, float]:
        """The furthest that two runs' statistics are apart, by label, in units of what one unit may move."""
        assert self.labels == other.labels
        furthest: dict[str, float] = {}
        for label, mine, theirs in zip(self.labels, self.sums, other.sums, strict=True):
            furthest[label] = max(furthest.get(label, 0.0), mine.moved(theirs))
        return furthest


@contextmanager
def listening(frozen: Tape | None = None) -> Iterator[Tape]:
    """Records every release; with `frozen`, the run hears the answers of that earlier run instead.

    Candidates depend on earlier answers, which are public by then; neighbours are compared with the same answers.
    """
    tape, genuine = Tape(), Grant.release

    def listen(grant: Grant, statistic: Statistic, private: Private) -> np.ndarray:
        tape.labels.append(statistic.label)
        tape.sums.append(heard(grant, statistic, private))
        tape.answers.append(genuine(grant, statistic, private))
        return (tape if frozen is None else frozen).answers[len(tape.answers) - 1]

    with mock.patch.object(Grant, "release", listen):
        yield tape


def tape_of(
    panel: Panel,
    method: PETS,
    *,
    frozen: Tape | None = None,
    noise: float | None = 0.0,
    guarantee: Guarantee = BUDGET,
) -> Tape:
    """Fits once and returns what crossed the border; `noise` is a constant, None is secure noise."""
    source = NoiseSource.secure() if noise is None else NoiseSource.constant(noise)
    with listening(frozen) as tape:
        release = method.fit(panel, Ledger.in_memory(guarantee), noise=source)
    tape.arrays = release.arrays
    return tape
