"""Attacks on the release itself, without shadow models: membership, singling out, linkability and inference.

Series are compared as vectors scaled by their declared bounds; nothing is learned from data. Each attack runs on series
of the run and on series that the run never saw: only the difference can be the release's doing (Giomi et al. 2023,
arXiv:2211.10459). These are descriptions of one release, with intervals; no bound on epsilon follows from them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.auditing.scores import Interval, area_under_curve, excess_risk, rate
from understudy.data import Panel
from understudy.errors import InputError
from understudy.nn.nearest import nearest
from understudy.statistics.encoding import Encoding, linear_scales

_FEWEST, _NEIGHBOURS = 20, 5  # rows of either side; neighbours of a density estimate
_PREDICATE_FACTS = 4  # that one predicate names
_CLOSE = 0.05  # of a range: a guess so near counts as right
_LINKED_AMONG = 5
Vectors = NDArray[np.float32]


def vectors(panel: Panel) -> Vectors:
    """Returns one row per series: its steps, channel by channel, then its static columns; gaps bridged."""
    encoding = Encoding.of(panel.schema, [], linear_scales(panel.schema, None))
    series = encoding.series(panel, slice(None)).transpose(0, 2, 1)
    static = encoding.static(panel, slice(None))
    return np.concatenate([series.reshape(len(series), -1), static], axis=1).astype(np.float32)


def distances(queries: Vectors, base: Vectors, neighbours: int = 1) -> NDArray[np.float64]:
    """Returns Euclidean distances [query, neighbour] to the nearest rows of `base`, nearest first."""
    _, squared = nearest(queries, base, min(neighbours, len(base)))
    return np.sqrt(squared.astype(np.float64))


def isolation(rows: Vectors) -> NDArray[np.float64]:
    """Returns each row's distance to the nearest other row."""
    return distances(rows, rows, 2)[:, -1]


def membership(
    members: Vectors, others: Vectors, synthetic: Vectors, confidence: float = 0.95
) -> Mapping[str, Interval]:
    """Returns areas under the curve: 0.5 is what guessing gets.

    `closest record`: the distance to the nearest synthetic series. `density ratio`: that distance, compared with the
    distance to other real series, in the manner of DOMIAS (van Breugel et al. 2023, arXiv:2302.12580): a series can
    be near because it is ordinary. Half of the others serve as that reference.
    """
    _check_enough(members, others)
    reference, controls = others[::2], others[1::2]
    near = [distances(rows, synthetic)[:, 0] for rows in (controls, members)]
    usual = [distances(rows, reference, _NEIGHBOURS)[:, -1] for rows in (controls, members)]
    ratios = [np.log(np.maximum(b, 1e-9)) - np.log(np.maximum(a, 1e-9)) for a, b in zip(near, usual, strict=True)]
    return {
        "closest record": area_under_curve(-near[0], -near[1], confidence),
        "density ratio": area_under_curve(ratios[0], ratios[1], confidence),
    }


def _check_enough(members: Vectors, others: Vectors, *, alike: bool = False) -> None:
    if min(len(members), len(others)) < _FEWEST or (alike and len(members) != len(others)):
        raise InputError(
            f"Expected at least {_FEWEST} members and as many others, got fewer or unequal numbers. Hold more out."
        )


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Success rates of an attack: on series of the run, on other series, and without the release."""

    attacked: Interval
    control: Interval
    guessing: Interval
    attempts: int

    @property
    def risk(self) -> Interval:
        """What the release added; 0 means nothing beyond what the other series give away."""
        return excess_risk(self.attacked, self.control)


def _answer(attempts: int, *, attacked: int, control: int, guessing: int) -> Answer:
    rates = {"attacked": attacked, "control": control, "guessing": guessing}
    return Answer(attempts=attempts, **{name: rate(successes, attempts) for name, successes in rates.items()})


@dataclass(frozen=True, eq=False, kw_only=True)
class Parties:
    """Rows of the run, rows it never saw, and synthetic rows; equally many of the first two."""

    members: Vectors
    others: Vectors
    synthetic: Vectors

    def __post_init__(self) -> None:
        _check_enough(self.members, self.others, alike=True)


def singling_out(parties: Parties, attempts: int, rng: np.random.Generator) -> Answer:
    """Predicates like "mean about a, peak about hour b, …", read off a synthetic series: do they fit exactly one?"""
    made_up = _facts(parties.synthetic)
    low, width = made_up.min(axis=0), np.maximum(np.ptp(made_up, axis=0), 1e-9)
    members, others = ((_facts(rows) - low) / width for rows in (parties.members, parties.others))
    places = [rng.choice(made_up.shape[1], _PREDICATE_FACTS, replace=False) for _ in range(attempts)]
    read_off = (made_up[rng.integers(len(made_up), size=attempts)] - low) / width
    blind = rng.random(read_off.shape)

    def worked(rows: NDArray[np.float64], facts: NDArray[np.float64]) -> int:
        """Counts predicates that exactly one row of facts fits; facts are in units of their range."""
        fits = (np.abs(facts[:, own] - row[own]).max(axis=1) <= _CLOSE for own, row in zip(places, rows, strict=True))
        return sum(int(fit.sum()) == 1 for fit in fits)

    successes = {"attacked": worked(read_off, members), "control": worked(read_off, others)}
    return _answer(attempts, **successes, guessing=worked(blind, members))


def linkability(parties: Parties, attempts: int, rng: np.random.Generator) -> Answer:
    """Two tables hold different columns of the same people: do both point to the same synthetic series?"""
    width, synthetic = parties.members.shape[1] // 2, parties.synthetic
    chosen = rng.choice(len(parties.members), min(attempts, len(parties.members)), replace=False)
    among = min(_LINKED_AMONG, len(synthetic))

    def links(rows: Vectors) -> int:
        first, _ = nearest(rows[chosen, :width], synthetic[:, :width], among)
        second, _ = nearest(rows[chosen, width:], synthetic[:, width:], among)
        return int((first[:, :, None] == second[:, None, :]).any(axis=(1, 2)).sum())

    luck = int((rng.random(len(chosen)) < min(1.0, among**2 / len(synthetic))).sum())
    return _answer(len(chosen), attacked=links(parties.members), control=links(parties.others), guessing=luck)


def inference(parties: Parties, attempts: int, rng: np.random.Generator) -> Answer:
    """All but the mean of the last tenth of the columns is known: is the nearest synthetic series within 5 % of it?"""
    known = parties.members.shape[1] - max(1, parties.members.shape[1] // 10)
    chosen = rng.choice(len(parties.members), min(attempts, len(parties.members)), replace=False)
    answers = parties.synthetic[:, known:].mean(axis=1)

    def right(rows: Vectors, guesses: NDArray[np.float64] | None = None) -> int:
        if guesses is None:
            guesses = answers[nearest(rows[chosen, :known], parties.synthetic[:, :known])[0][:, 0]]
        errors = np.abs(rows[chosen, known:].mean(axis=1) - guesses)
        return int((errors <= _CLOSE * float(np.ptp(answers))).sum())

    blind = right(parties.members, rng.choice(answers, len(chosen)))
    return _answer(len(chosen), attacked=right(parties.members), control=right(parties.others), guessing=blind)


QUESTIONS: Mapping[str, Callable[[Parties, int, np.random.Generator], Answer]] = {
    "singling out": singling_out,
    "linkability": linkability,
    "inference": inference,
}


def _facts(rows: Vectors) -> NDArray[np.float64]:
    """Returns what an adversary may know about a series: level, spread, extremes, their places, mean change."""
    places = (rows.argmax(axis=1), rows.argmin(axis=1))
    moves = np.abs(np.diff(rows, axis=1)).mean(axis=1) if rows.shape[1] > 1 else np.zeros(len(rows))
    columns = (rows.mean(1), rows.std(1), rows.max(1), rows.min(1), moves, *places)
    return np.stack(columns, axis=1).astype(np.float64)
