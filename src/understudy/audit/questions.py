"""The three questions of a regulator: can somebody be singled out, linked, or have a secret inferred?

Article 29 Working Party, Opinion 05/2014 on anonymisation techniques (WP216), section 2. Each attack uses the synthetic
series and is made twice: on series of the run, and on series that it never saw. What it gets right on the latter it
got right by knowing the world, so only the excess is the release's doing (Giomi et al. 2023, arXiv:2211.10459).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.audit.intervals import Interval, excess_risk, rate
from understudy.audit.records import Vectors
from understudy.errors import InputError
from understudy.nn.nearest import nearest

_PREDICATE_FACTS = 4  # that one predicate names
_CLOSE = 0.05  # of a range: a guess so near counts as right
_LINKED_AMONG = 5


@dataclass(frozen=True, kw_only=True)
class Answer:
    """How often an attack worked: on series of the run, on other series, and without the release."""

    attacked: Interval
    control: Interval
    guessing: Interval
    attempts: int

    @property
    def risk(self) -> Interval:
        """What the release added; 0 means nothing beyond what knowing the world gives."""
        return excess_risk(self.attacked, self.control)


@dataclass(frozen=True, eq=False, kw_only=True)
class Parties:
    """Rows of the run, rows it never saw, and synthetic rows; equally many of the first two."""

    members: Vectors
    others: Vectors
    synthetic: Vectors

    def __post_init__(self) -> None:
        if len(self.members) != len(self.others) or len(self.members) < 20:
            raise InputError("Expected at least 20 members and as many others, got fewer or unequal numbers.")


def singling_out(parties: Parties, attempts: int, rng: np.random.Generator) -> Answer:
    """Predicates like "mean about a, peak about hour b, …", read off a synthetic series: do they fit exactly one?"""
    made_up = _facts(parties.synthetic)
    low, width = made_up.min(axis=0), np.maximum(np.ptp(made_up, axis=0), 1e-9)
    members, others = ((_facts(rows) - low) / width for rows in (parties.members, parties.others))
    places = [rng.choice(made_up.shape[1], _PREDICATE_FACTS, replace=False) for _ in range(attempts)]
    told = (made_up[rng.integers(len(made_up), size=attempts)] - low) / width
    blind = rng.random(told.shape)

    def worked(rows: NDArray[np.float64], facts: NDArray[np.float64]) -> Interval:
        return rate(sum(_fits_one(*predicate, facts) for predicate in zip(places, rows, strict=True)), attempts)

    return Answer(
        attacked=worked(told, members),
        control=worked(told, others),
        guessing=worked(blind, members),
        attempts=attempts,
    )


def linkability(parties: Parties, attempts: int, rng: np.random.Generator) -> Answer:
    """Two tables hold different columns of the same people: do both point to the same synthetic series?"""
    width = parties.members.shape[1] // 2
    chosen = rng.choice(len(parties.members), min(attempts, len(parties.members)), replace=False)

    def links(rows: Vectors) -> int:
        halves = (
            (rows[chosen, :width], parties.synthetic[:, :width]),
            (rows[chosen, width:], parties.synthetic[:, width:]),
        )
        first, second = (nearest(own, base, min(_LINKED_AMONG, len(base)))[0] for own, base in halves)
        return int((first[:, :, None] == second[:, None, :]).any(axis=(1, 2)).sum())

    share = min(_LINKED_AMONG, len(parties.synthetic)) ** 2 / len(parties.synthetic)
    luck = rng.random(len(chosen)) < min(1.0, share)
    return Answer(
        attacked=rate(links(parties.members), len(chosen)),
        control=rate(links(parties.others), len(chosen)),
        guessing=rate(int(luck.sum()), len(chosen)),
        attempts=len(chosen),
    )


def inference(parties: Parties, attempts: int, rng: np.random.Generator, secret: slice | None = None) -> Answer:
    """All but a secret is known: does the nearest synthetic series tell the secret?

    Args:
        secret: Columns whose mean is the secret; the last tenth by default. Right is a guess within 5 % of its range.
    """
    hidden = np.arange(parties.members.shape[1])[secret or slice(-max(1, parties.members.shape[1] // 10), None)]
    known = np.setdiff1d(np.arange(parties.members.shape[1]), hidden)
    chosen = rng.choice(len(parties.members), min(attempts, len(parties.members)), replace=False)
    answers = parties.synthetic[:, hidden].mean(axis=1)
    close = _CLOSE * float(np.ptp(answers))

    def right(rows: Vectors, guesses: NDArray[np.float64]) -> int:
        return int((np.abs(rows[chosen][:, hidden].mean(axis=1) - guesses) <= close).sum())

    def told(rows: Vectors) -> NDArray[np.float64]:
        return answers[nearest(rows[chosen][:, known], parties.synthetic[:, known])[0][:, 0]]

    return Answer(
        attacked=rate(right(parties.members, told(parties.members)), len(chosen)),
        control=rate(right(parties.others, told(parties.others)), len(chosen)),
        guessing=rate(right(parties.members, rng.choice(answers, len(chosen))), len(chosen)),
        attempts=len(chosen),
    )


QUESTIONS: Mapping[str, Callable[[Parties, int, np.random.Generator], Answer]] = {
    "singling out": singling_out,
    "linkability": linkability,
    "inference": inference,
}


def _facts(rows: Vectors) -> NDArray[np.float64]:
    """What somebody may know about a series: level, spread, extremes, where they are, and how much it moves."""
    places = (rows.argmax(axis=1), rows.argmin(axis=1))
    moves = np.abs(np.diff(rows, axis=1)).mean(axis=1) if rows.shape[1] > 1 else np.zeros(len(rows))
    columns = (rows.mean(1), rows.std(1), rows.max(1), rows.min(1), moves, *places)
    return np.stack(columns, axis=1).astype(np.float64)


def _fits_one(places: NDArray[np.int64], row: NDArray[np.float64], facts: NDArray[np.float64]) -> bool:
    """Whether exactly one row of facts is like the given one in some places; facts are in units of their range."""
    return int((np.abs(facts[:, places] - row[places]) <= _CLOSE).all(axis=1).sum()) == 1
