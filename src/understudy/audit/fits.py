"""A whole fit as a mechanism: what it answered, or what it released, with and without one unit.

Two tests. `answer_scores` looks at the noisy statistics at the border and knows where the unit moves them: nothing
tells neighbours apart better. `release_scores` looks at the released arrays alone, like whoever receives them, and
learns where to look from its first runs; it also sees what never went through the border.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.audit.overhearing import overheard
from understudy.audit.scores import Scores
from understudy.audit.witness import Answers, Witness
from understudy.data import Panel
from understudy.errors import InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.certificate import Certificate
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers.base import Synthesizer

ALL = "all answers"
DIFFERENCES = "differences within answers"  # what noise that is shared by the coordinates of an answer can't hide
_LOUD = 1000.0  # deviations of noise to measure its scale with: whole-numbered noise is rounded to a thousandth
_QUIETEST = 1e-6  # of what a unit changes: noise below counts as so much, where a score has to be a number


@dataclass(frozen=True, eq=False, kw_only=True)
class Neighbours:
    """A method, and two panels of made-up series that differ by one unit.

    Attributes:
        guarantee: what each fit is charged; large ones need fewer runs to test, and test the same code.
    """

    method: Synthesizer
    absent: Panel
    present: Panel
    guarantee: Guarantee

    def fit(self, panel: Panel, noise: NoiseSource | None = None, told: Answers | None = None) -> "Fit":
        """Fits one of the panels."""
        return heard_fit(self.method, panel, self.guarantee, noise=noise, told=told)


@dataclass(frozen=True, eq=False, kw_only=True)
class Fit:
    """What one fit answered at the border, by label, what it released, and what was promised about that."""

    answers: Answers
    arrays: Mapping[str, NDArray[Any]]
    certificate: Certificate


@dataclass(frozen=True, eq=False, kw_only=True)
class Reach:
    """Where one unit moves the answers of a fit, as long as earlier answers stay the same.

    Attributes:
        told: the earlier answers that all fits are told.
        moved: by label, what the unit adds to the statistic, in standard deviations of the noise.
        weights: by label, what each coordinate counts in a score: the more it moves and the less noise it has.
    """

    told: Answers
    moved: Answers
    weights: Answers

    def mu(self, label: str | None = None) -> float:
        """How far apart the answers are: of one label, or of all together. No statistics needed."""
        labels = list(self.moved) if label is None else [label]
        return float(np.sqrt(sum(np.square(self.moved[each]).sum() for each in labels)))


def heard_fit(
    method: Synthesizer,
    panel: Panel,
    guarantee: Guarantee,
    *,
    noise: NoiseSource | None = None,
    told: Answers | None = None,
    known: bool = True,
) -> Fit:
    """Fits once under a ledger of its own; answers and noisy gradients are heard.

    Args:
        known: Whether the random numbers of losses are known beforehand, as `overheard` says.
    """
    witness = Witness(Ledger.in_memory(guarantee), told)
    with overheard(witness.hear, known=known):
        release = method.fit(panel, witness.as_ledger, guarantee=guarantee, noise=noise)
    return Fit(answers=witness.answers, arrays=release.arrays, certificate=release.certificate)


def reach_of(neighbours: Neighbours, told: Answers | None = None) -> Reach:
    """Follows the unit through a fit, without noise.

    Args:
        told: answers of an earlier fit; None fits once, with noise, over the panel without the unit.
    """
    told = neighbours.fit(neighbours.absent).answers if told is None else told
    silent, loud = NoiseSource.constant(0.0), NoiseSource.constant(_LOUD)
    before, after = (neighbours.fit(panel, silent, told).answers for panel in (neighbours.absent, neighbours.present))
    noisy = neighbours.fit(neighbours.absent, loud, told).answers
    noise = {label: (noisy[label] - before[label]) / _LOUD for label in before}
    change = {label: after[label] - before[label] for label in noise}
    return Reach(
        told=told,
        moved={label: _in_deviations(change[label], noise[label]) for label in noise},
        weights={label: _weights(change[label], noise[label]) for label in noise},
    )


def answer_scores(neighbours: Neighbours, reach: Reach, runs: int) -> dict[str, Scores]:
    """Projects the answers of real fits on where the unit moves them: each label, and all of them together.

    `DIFFERENCES` leaves out what all coordinates of an answer have in common.
    """
    absent, present = (
        _projections(neighbours, panel, reach, runs) for panel in (neighbours.absent, neighbours.present)
    )
    return {label: Scores(absent[label], present[label]) for label in absent}


def release_scores(neighbours: Neighbours, runs: int, chosen_on: float = 0.5) -> Scores:
    """Projects the released arrays on the difference of means, as the first share of the runs shows it.

    Hand the same share to `audit_scores`: those runs have chosen the axis already.
    """
    absent, present = (
        _equally_long([_flat(neighbours.fit(panel)) for _ in range(runs)])
        for panel in (neighbours.absent, neighbours.present)
    )
    first = max(2, round(chosen_on * runs))
    spread = absent[:first].var(axis=0) + present[:first].var(axis=0)
    mean = absent[:first].mean(axis=0)
    axis = present[:first].mean(axis=0) - mean
    weight = axis / (spread + 1e-12 * np.maximum(1.0, mean**2))  # what never varies and yet differs outweighs all
    return Scores(absent @ weight, present @ weight)


def _projections(neighbours: Neighbours, panel: Panel, reach: Reach, runs: int) -> dict[str, NDArray[np.float64]]:
    found: dict[str, list[float]] = {label: [] for label in (*reach.moved, ALL, DIFFERENCES)}
    for _ in range(runs):
        answers = neighbours.fit(panel, told=reach.told).answers
        shares = {label: float(np.sum(answers[label] * reach.weights[label])) for label in answers}
        common = sum(float(np.sum(answers[label]) * np.mean(reach.weights[label])) for label in answers)
        whole = sum(shares.values())
        for label, share in {**shares, ALL: whole, DIFFERENCES: whole - common}.items():
            found[label].append(share)
    return {label: np.array(values) for label, values in found.items()}


def _weights(change: NDArray[np.float64], noise: NDArray[np.float64]) -> NDArray[np.float64]:
    """Change over variance, which no other weights beat (Neyman & Pearson); noise that is missing counts as little."""
    least = _QUIETEST * max(float(np.abs(change).max(initial=0.0)), 1e-12)
    return np.asarray(change / np.maximum(np.abs(noise), least) ** 2)


def _in_deviations(change: NDArray[np.float64], noise: NDArray[np.float64]) -> NDArray[np.float64]:
    """A change where there is no noise is infinitely far."""
    still = np.where(change == 0, 0.0, np.inf)
    return np.divide(change, noise, out=still, where=noise > 0)


def _equally_long(rows: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    if len({len(row) for row in rows}) > 1:
        raise InputError("Expected released arrays of one size, got several: noise chose them. Use answer_scores.")
    return np.stack(rows)


def _flat(fit: Fit) -> NDArray[np.float64]:
    return np.concatenate([np.asarray(fit.arrays[name], dtype=np.float64).ravel() for name in sorted(fit.arrays)])
