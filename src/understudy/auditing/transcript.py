"""What an aggregator can make of the features that parties send it: single rows, value by value.

A feature is LeakyReLU of an affine map of a row. An aggregator that knows most rows, and sees all features, finds
the map by least squares and inverts it. The paper of VFLGAN-TS calls the leakage through features negligible because a
forest sees nothing in their means and correlations (Table 10); this attack looks at single rows instead.

Privacy: a transcript holds features of private rows. It stays in memory, and what comes out is internal.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from understudy.auditing.scores import Interval, rate
from understudy.data import Panel
from understudy.errors import InputError
from understudy.statistics.encoding import Encoding, linear_scales
from understudy.statistics.facts import Facts
from understudy.synthesizers.vflgan_ts import method
from understudy.synthesizers.vflgan_ts.partition import partition, rows_of
from understudy.synthesizers.vflgan_ts.protocol import AggregatorSide, Frame, PartySide
from understudy.synthesizers.vflgan_ts.published import Rows

Matrix = NDArray[np.float64]
_SLOPE = 0.2  # of LeakyReLU where it is below zero
_ROUNDS = 2  # before and after the one in question, over which extractors hardly move
_SIGHTINGS = 2  # of a row, that are averaged
_RIDGE = 1e-6
Extractor = tuple[Matrix, Matrix, float]  # an affine map [feature, value], its offsets, and its mean squared error


@dataclass(frozen=True, eq=False, repr=False)
class Sent:
    """Features [row, feature] that a party sent in one round, and of which rows."""

    rows: NDArray[np.int64]
    features: Matrix


@contextmanager
def recorded() -> Iterator[dict[str, list[Sent]]]:
    """Listens to every vertical run in this process: all that each party sends about real rows, in order."""
    asked: dict[str, NDArray[np.int64]] = {}
    sent: dict[str, list[Sent]] = {}
    genuine = method.converse

    def note(party: str, frame: Frame) -> None:
        if "rows" in frame.tensors:  # what the aggregator asks for comes before what it gets
            asked[party] = frame.tensors["rows"].numpy()
        elif frame.stage == "discriminate" and "real" in frame.tensors:
            features = frame.tensors["real"].detach().double().numpy()
            sent.setdefault(party, []).append(Sent(asked[party], features))

    def listening(parties: Mapping[str, PartySide], aggregator: AggregatorSide, watch: object = None) -> None:
        genuine(parties, aggregator, note)

    with patch.object(method, "converse", listening):
        yield sent


def rows_by_party(panel: Panel, arrays: Mapping[str, np.ndarray] | None = None) -> list[tuple[str, Rows]]:
    """Returns every party's whole series in working scale: that of a release's `arrays`, or of declared bounds."""
    schema = panel.schema
    marginals = () if arrays is None else Facts.from_arrays(dict(arrays)).marginals
    encoding = Encoding.of(schema, marginals, linear_scales(schema, None))
    return [(own.party, rows_of(own, panel, encoding)) for own in partition(schema)]


@dataclass(frozen=True, kw_only=True)
class Inversion:
    """Mean absolute errors of rows read off features, and of guessing their columns' means."""

    error: float
    guessing: float
    nearer: Interval  # share of the rows that came out nearer than the guess; one half or less is a failed attack
    rows: int

    @property
    def ratio(self) -> float:
        """Error in units of guessing: 0 is the row itself, 1 is nothing learned."""
        return self.error / self.guessing

    def sentence(self) -> str:
        """The finding in words."""
        return (
            f"{self.rows} unknown rows were reconstructed with a mean absolute error of {self.error:.2g}; guessing has "
            f"{self.guessing:.2g}. Nearer than the guess: {self.nearer}."
        )


def invert(sent: Sequence[Sent], rows: Matrix, unknown: Sequence[int]) -> Inversion:
    """Attacks one party's features, knowing all `rows` [row, value] that are not in `unknown`."""
    known = np.setdiff1d(np.arange(len(rows)), np.asarray(unknown))
    if len(known) < 2 or not len(unknown):
        raise InputError("Expected at least two known rows and one unknown, got fewer.")
    usual: Matrix = np.asarray(rows[known].mean(axis=0))
    spread = np.cov(rows[known].T).reshape(rows.shape[1], -1)
    ridge = _RIDGE * max(1e-12, float(np.trace(spread))) * np.eye(len(spread))
    inverse = np.asarray(np.linalg.inv(spread + ridge), dtype=np.float64)

    @cache
    def extractor(place: int) -> Extractor:
        return _extractor(sent[max(0, place - _ROUNDS) : place + _ROUNDS + 1], rows, known)

    found = ((row, _reconstructed(sent, row, extractor, usual, inverse)) for row in unknown)
    missed = [np.abs(np.stack([guess, usual]) - rows[row]).mean(axis=1) for row, guess in found if guess is not None]
    if not missed:
        raise InputError("None of the unknown rows was ever sent. Record more iterations.")
    errors, blind = np.array(missed).T
    nearer = rate(int((errors < blind).sum()), len(errors))
    return Inversion(error=float(errors.mean()), guessing=float(blind.mean()), nearer=nearer, rows=len(errors))


def _reconstructed(
    sent: Sequence[Sent], row: int, extractor: Callable[[int], Extractor], usual: Matrix, inverse: Matrix
) -> Matrix | None:
    """The mean over some rounds in which the row was sent; None if it never was."""
    rounds = [place for place, one in enumerate(sent) if row in one.rows][:_SIGHTINGS]
    guesses = []
    for place in rounds:
        (weights, offsets, blur), one = extractor(place), sent[place]
        features = one.features[int(np.flatnonzero(one.rows == row)[0])]
        kept = features != 0
        slopes, values = weights[kept], _before_activation(features[kept]) - offsets[kept]
        precision = slopes.T @ slopes / blur + inverse
        guesses.append(np.linalg.solve(precision, slopes.T @ values / blur + inverse @ usual))
    return np.mean(guesses, axis=0) if guesses else None


def _extractor(near: Sequence[Sent], rows: Matrix, known: NDArray[np.int64]) -> Extractor:
    """Fits one round's extractor by least squares over known rows of that round and those near it."""
    places = np.concatenate([one.rows for one in near])
    features = np.concatenate([one.features for one in near])
    usable = np.isin(places, known)
    inputs = np.concatenate([rows[places[usable]], np.ones((usable.sum(), 1))], axis=1)
    kept, values = features[usable] != 0, _before_activation(features[usable])
    pairs = (inputs[:, :, None] * inputs[:, None, :]).reshape(len(inputs), -1)
    moments = (kept.T.astype(float) @ pairs).reshape(-1, inputs.shape[1], inputs.shape[1])
    ridge = _RIDGE * np.einsum("fii->f", moments)[:, None, None] * np.eye(inputs.shape[1])
    found = np.linalg.solve(moments + ridge, ((kept * values).T @ inputs)[..., None])[..., 0]
    missed = (values - inputs @ found.T)[kept]
    return found[:, :-1], found[:, -1], float(np.mean(missed**2)) + 1e-12


def _before_activation(features: Matrix) -> Matrix:
    """LeakyReLU undone. Dropout's factor is the same for all, so it belongs to the map that is looked for."""
    return np.where(features > 0, features, features / _SLOPE)
