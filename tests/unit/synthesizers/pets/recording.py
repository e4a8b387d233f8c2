"""Listens at the border: every statistic that a run of `pets` released, with its bound, and what was answered."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest import mock

import numpy as np

from understudy.data import Panel
from understudy.privacy.budget import Guarantee
from understudy.privacy.grant import Grant
from understudy.privacy.ledger import Ledger
from understudy.privacy.mechanisms import Bounded
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers.pets.method import Pets

BUDGET = Guarantee(2.0, 2e-6)


@dataclass
class Tape:
    """What crossed the border, in order."""

    labels: list[str] = field(default_factory=list)
    bounded: list[Bounded] = field(default_factory=list)
    answers: list[np.ndarray] = field(default_factory=list)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)

    def distances(self, other: "Tape") -> dict[str, float]:
        """The furthest that two runs' statistics are apart, by label, in units of the declared bound."""
        assert self.labels == other.labels
        furthest: dict[str, float] = {}
        for label, mine, theirs in zip(self.labels, self.bounded, other.bounded, strict=True):
            assert mine.l2_bound == theirs.l2_bound
            apart = float(np.linalg.norm(mine.value - theirs.value)) / mine.l2_bound
            furthest[label] = max(furthest.get(label, 0.0), apart)
        return furthest


@contextmanager
def listening(frozen: Tape | None = None) -> Iterator[Tape]:
    """Records both kinds of release; with `frozen`, the run hears the answers of that earlier run instead.

    Candidates depend on earlier answers, which are public by then; neighbours are compared with the same answers.
    """
    tape = Tape()

    def listener(name: str) -> object:
        genuine = getattr(Grant, name)

        def listen(grant: Grant, label: str, bounded: Bounded) -> np.ndarray:
            answer = genuine(grant, label, bounded)
            tape.labels.append(label)
            tape.bounded.append(bounded)
            tape.answers.append(answer)
            return answer if frozen is None else frozen.answers[len(tape.answers) - 1]

        return mock.patch.object(Grant, name, listen)

    with listener("gaussian"), listener("discrete_gaussian"):
        yield tape


def tape_of(
    panel: Panel,
    method: Pets,
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
