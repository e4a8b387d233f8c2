"""Audits of whole fits with canaries: made-up units as extreme as the schema allows, among made-up others.

A fit runs on two panels that differ by one canary. `answer_scores` reads the noisy answers at the border, and noisy
gradients, and knows where the canary moves them: no test tells neighbours apart better. `release_scores` reads the
released arrays alone, like a recipient, and learns where to look from its first runs; it also sees what never crossed
the border.

Privacy: only for made-up data. Under noise of constant zero the recorded answers are the statistics themselves.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from understudy.auditing.scores import Scores, counted
from understudy.data import Panel, Schema
from understudy.data.panel import broadcast_context
from understudy.privacy.border import Statistic
from understudy.privacy.budget import Guarantee
from understudy.privacy.certificate import Certificate
from understudy.privacy.grant import Grant
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.private_series import Private
from understudy.synthesizers.base import Synthesizer
from understudy.synthesizers.sampling import shared_context
from understudy.synthesizers.vflgan_ts import protocol
from understudy.training import loop
from understudy.training.private_gradient import NormalReserve

ALL = "all answers"
DIFFERENCES = "differences within answers"  # what noise that is shared by the coordinates of an answer can't hide
GRADIENTS = "gradients"  # label under which noisy sums of gradients are recorded, one after another
_SEED = 0
_LOUD = 1000.0  # deviations of noise to measure its scale with: whole-numbered noise is rounded to a thousandth
_QUIETEST = 1e-6  # of what a unit changes: noise below counts as so much, where a score has to be a number
Answers = Mapping[str, NDArray[np.float64]]
Series = NDArray[np.float64]  # [step, channel], as shares of the declared range


@dataclass(frozen=True, eq=False, kw_only=True)
class Fit:
    """What one fit answered at the border, by label, what it released, and what was promised about that."""

    answers: Answers
    arrays: Mapping[str, NDArray[Any]]
    certificate: Certificate


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

    def fit(self, panel: Panel, noise: NoiseSource | None = None, told: Answers | None = None) -> Fit:
        """Fits one of the panels under a ledger of its own; answers and noisy gradients are recorded."""
        with recorded_answers(told) as answers:
            release = self.method.fit(panel, Ledger.in_memory(self.guarantee), guarantee=self.guarantee, noise=noise)
        return Fit(answers=answers, arrays=release.arrays, certificate=release.certificate)


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
    found: dict[str, tuple[list[float], list[float]]]
    found = {label: ([], []) for label in (*reach.moved, ALL, DIFFERENCES)}
    for arm, panel in enumerate((neighbours.absent, neighbours.present)):
        for _ in range(runs):
            answers = neighbours.fit(panel, told=reach.told).answers
            shares = {label: float(np.sum(answers[label] * reach.weights[label])) for label in answers}
            common = sum(float(np.sum(answers[label]) * np.mean(reach.weights[label])) for label in answers)
            whole = sum(shares.values())
            for label, share in {**shares, ALL: whole, DIFFERENCES: whole - common}.items():
                found[label][arm].append(share)
    return {label: Scores(*map(np.array, arms)) for label, arms in found.items()}


def release_scores(neighbours: Neighbours, runs: int) -> Scores:
    """Projects released arrays on the difference of means in the half of the runs that chooses a test."""
    absent, present = (
        np.stack([_flat(neighbours.fit(panel)) for _ in range(runs)])
        for panel in (neighbours.absent, neighbours.present)
    )
    first = runs - counted(runs)
    spread = absent[:first].var(axis=0) + present[:first].var(axis=0)
    mean = absent[:first].mean(axis=0)
    axis = present[:first].mean(axis=0) - mean
    weight = axis / (spread + 1e-12 * np.maximum(1.0, mean**2))  # what never varies and yet differs outweighs all
    return Scores(absent @ weight, present @ weight)


def _weights(change: NDArray[np.float64], noise: NDArray[np.float64]) -> NDArray[np.float64]:
    """Change over variance, which no other weights beat (Neyman & Pearson); noise that is missing counts as little."""
    least = _QUIETEST * max(float(np.abs(change).max(initial=0.0)), 1e-12)
    return np.asarray(change / np.maximum(np.abs(noise), least) ** 2)


def _in_deviations(change: NDArray[np.float64], noise: NDArray[np.float64]) -> NDArray[np.float64]:
    """A change where there is no noise is infinitely far."""
    still = np.where(change == 0, 0.0, np.inf)
    return np.divide(change, noise, out=still, where=noise > 0)


def _flat(fit: Fit) -> NDArray[np.float64]:
    return np.concatenate([np.asarray(fit.arrays[name], dtype=np.float64).ravel() for name in sorted(fit.arrays)])


@contextmanager
def recorded_answers(told: Answers | None = None) -> Iterator[dict[str, NDArray[np.float64]]]:
    """Records what every grant answers and every noisy sum of gradients, by label and turn.

    Times, noises and masks at which losses are taken come from a fixed seed meanwhile, so that the gradient of a lone
    unit is known beforehand. Among others it is not: their numbers shift by one place when a unit is added.

    Args:
        told: What the method gets in place of its answers: later statistics depend on earlier answers, and neighbours
            have to be compared under the same ones.
    """
    turns: Counter[str] = Counter()
    answers: dict[str, NDArray[np.float64]] = {}
    release, distances, add_to = Grant.release, Grant.distances, NormalReserve.add_to

    def record(label: str, answer: NDArray[Any]) -> NDArray[Any]:
        turns[label] += 1
        name = label if turns[label] == 1 else f"{label} {turns[label]}"
        answers[name] = np.asarray(answer, dtype=np.float64)
        return answer if told is None else told[name].astype(answer.dtype)

    def released(grant: Grant, statistic: Statistic, private: Private) -> NDArray[np.float64]:
        return record(statistic.label, release(grant, statistic, private))

    def measured(grant: Grant, statistic: Statistic, private: Private, expected: Any) -> NDArray[np.float64]:
        return record(statistic.label, distances(grant, statistic, private, expected))

    def noised(reserve: NormalReserve, vector: Tensor) -> None:
        add_to(reserve, vector)
        own = record(GRADIENTS, vector.detach().cpu().double().numpy().copy())  # the vector is used again
        vector.copy_(torch.from_numpy(np.array(own)).reshape(vector.shape))

    seed = SimpleNamespace(randbits=lambda bits: _SEED)
    with (
        patch.object(Grant, "release", released),
        patch.object(Grant, "distances", measured),
        patch.object(NormalReserve, "add_to", noised),
        patch.object(loop, "secrets", seed),
        patch.object(protocol, "secrets", seed),
    ):
        yield answers


def panel_scenes(schema: Schema, *, num_others: int = 4, rng: np.random.Generator) -> dict[str, tuple[Panel, Panel]]:
    """Every canary series among every crowd: (without it, with it), by name.

    Canaries: everywhere at the upper bound, a single spike, alternating between the bounds, random. Crowds: nobody, the
    canary's likeness, its opposite, or ordinary others.
    """
    found = {}
    for name, canary in _canaries(schema, rng).items():
        for crowd, others in _crowds(canary, num_others, rng).items():
            found[f"{name}, others {crowd}"] = (
                _panel(schema, others),
                _panel(schema, np.concatenate([others, canary[None]])),
            )
    return found


def random_panel(schema: Schema, number: int, rng: np.random.Generator) -> Panel:
    """Units that jump between the bounds by coins, one series each: no two alike, and each as loud as can be."""
    return _panel(schema, rng.integers(0, 2, (number, schema.num_steps, schema.num_channels)).astype(np.float64))


def _canaries(schema: Schema, rng: np.random.Generator) -> Mapping[str, Series]:
    shape = schema.num_steps, schema.num_channels
    spike, alternating = np.zeros(shape), np.zeros(shape)
    spike[schema.num_steps // 2] = 1.0
    alternating[::2] = 1.0
    return {"ones": np.ones(shape), "spike": spike, "alternating": alternating, "random": rng.random(shape)}


def _crowds(canary: Series, number: int, rng: np.random.Generator) -> Mapping[str, Series]:
    return {
        "nobody": np.zeros((0, *canary.shape)),
        "aligned": np.tile(canary, (number, 1, 1)),
        "opposed": np.tile(1 - canary, (number, 1, 1)),
        "ordinary": rng.random((number, *canary.shape)),
    }


def _panel(schema: Schema, shares: Series) -> Panel:
    """One series per unit, from shares of the declared ranges; whole numbers where a column needs them."""
    bounds = np.array([channel.bounds for channel in schema.channels])
    values = bounds[:, 0] + shares * (bounds[:, 1] - bounds[:, 0])
    whole = [channel.kind != "continuous" for channel in schema.channels]
    values[..., whole] = np.rint(values[..., whole])
    static = np.tile([column.bounds[0] for column in schema.static], (len(shares), 1))
    return Panel(
        schema=schema,
        values=values.astype(np.float32),
        lengths=np.full(len(shares), schema.num_steps, dtype=np.int32),
        unit=np.arange(len(shares), dtype=np.int64),
        static=static.reshape(len(shares), len(schema.static)).astype(np.float32),
        context=broadcast_context(shared_context(schema), len(shares)) if schema.context else None,
    )
