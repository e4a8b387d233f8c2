"""`pate-gan`: teachers on disjoint shards vote on generated series, a student learns from noisy votes.

Idea. Every teacher tells real series of its own shard from generated ones. A student sees generated series only, with
the teachers' noisy count of votes for "real", and the generator learns to please the student (Jordon et al.).

Private data is touched by the small releases of `frame.facts` and by the counts of votes: a unit is in one shard, so
it moves one vote on each of the B questions of a round, and the counts by at most √B (an event: two votes). Noise is
Gaussian, as in GNMax (Papernot et al.), but the student sees noisy counts and no majority; the price does not depend on
how the votes fell.
Cost: seconds. Choose it to compare with: at ε = 1 a few hundred questions can be asked, whatever the number of units.
Not to be confused with public codes of PATE-GAN. One trains all teachers on the same last partition; noise of scale λ
is accounted for as if it were 1/λ; the ε at which they stop follows from the votes themselves and is shown without
noise; another clamps the moment generating function where its logarithm is meant.

References: Jordon, Yoon & van der Schaar, ICLR 2019 (PATE-GAN); Papernot et al., arXiv:1802.08908 (GNMax).
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from understudy.data import Panel, Schema
from understudy.privacy.border import Given, Statistic
from understudy.privacy.budget import Guarantee
from understudy.privacy.contributions import Rows
from understudy.privacy.grant import Grant
from understudy.privacy.plan import SpendingPlan
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics.facts import Facts
from understudy.synthesizers.base import Progress, SampleRequest, Synthesizer
from understudy.synthesizers.options import require_above_zero
from understudy_bench.baselines import rows
from understudy_bench.baselines.repeating import repeated
from understudy_bench.baselines.rows import Layout, generated, scored
from understudy_bench.baselines.shards import shards, touched

VOTES = "votes"
_BESIDE = 64  # generated rows that a teacher compares its shard with
_RIDGE = 1.0


@dataclass(frozen=True, kw_only=True)
class PateGan(Synthesizer):
    """PATE-GAN for series.

    Attributes:
        teachers: Shards; more of them outvote more noise, and each knows less.
        rounds: How often teachers are asked, about series that the generator makes by then.
        questions: Series in each round.
        updates: Of student and generator after each round.
        width: Of hidden layers.
        rate: Learning rate of both.
        seed: Of everything but privacy noise.
    """

    name: ClassVar[str] = "pate-gan"
    rehearsed: ClassVar[str] = "rounds"
    teachers: int = 50
    rounds: int = 8
    questions: int = 32
    updates: int = 40
    width: int = 64
    rate: float = 1e-3
    seed: int = 0

    def __post_init__(self) -> None:
        require_above_zero(self, "teachers", "rounds", "questions", "updates", "width", "rate")

    def plan(self, schema: Schema, guarantee: Guarantee) -> SpendingPlan:
        """Facts, then as many counts of votes as there are rounds, with all that is left."""
        return SpendingPlan(repeated(rows.fact_entries(schema, guarantee, VOTES), self.rounds, VOTES), guarantee)

    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        """Buys the facts, asks, and teaches.

        Privacy: unit and neighbours as the schema says. Teachers see one shard each and nobody sees teachers: what
        leaves them are noisy counts. Student and generator read generated series and these counts.
        """
        bought = rows.buy_facts(private, grant)
        layout = Layout.of(private.panel.schema, bought)
        held = layout.rows(private)
        real = np.concatenate([held["row"], held["class"]], axis=1)
        school = School(self, layout, bought)
        dealt, reach = [real[own] for own in shards(private, self.teachers)], 2 * touched(private.schema)
        for round_ in range(self.rounds):
            asked, beside = school.some_rows(self.questions), school.some_rows(_BESIDE)
            votes = np.stack([votes_of(own, beside.numpy(), asked.numpy()) for own in dealt])
            statistic = Statistic(label=VOTES, shape=votes.shape[1:], bound=math.sqrt(self.questions) / 2)
            noisy = grant.release(statistic, Given(Rows(votes - 0.5), reach)) + len(votes) / 2
            school.teach(asked, noisy / self.teachers)
            progress("votes", (round_ + 1) / self.rounds)
        return rows.arrays_of(bought, layout, school.generator, self.seed)

    def sample(self, arrays: dict[str, np.ndarray], schema: Schema, request: SampleRequest) -> Panel:
        """Returns series of the generator."""
        return rows.draw(arrays, schema, request, self.width)


def votes_of(own: np.ndarray, beside: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Returns a teacher's votes, 1 for each row that looks real to it; none where its shard is empty.

    A ridge regression of ±1: closed, so that it never has anything to say about how hard its shard was to learn.
    """
    if not len(own):
        return np.zeros(len(asked))
    weight = np.repeat(np.sqrt([0.5 / len(own), 0.5 / len(beside)]), [len(own), len(beside)])
    seen = _seen(np.concatenate([own, beside])) * weight[:, None]
    wanted = np.repeat([1.0, -1.0], [len(own), len(beside)]) * weight
    left = seen.T if len(seen) < seen.shape[1] else seen  # the smaller of two equal systems
    gram = left.T @ left + _RIDGE * np.eye(left.shape[1])
    slope = left @ np.linalg.solve(gram, wanted) if left is not seen else np.linalg.solve(gram, seen.T @ wanted)
    return (_seen(asked) @ slope > 0).astype(np.float64)


def _seen(real: np.ndarray) -> np.ndarray:
    """Returns rows, their squares and a constant: of rows alone a linear teacher would see means only."""
    return np.concatenate([real, np.square(real), np.ones((len(real), 1))], axis=1).astype(np.float64)


class School:
    """A student that learns from votes, and a generator that learns from the student. Sees no private row."""

    def __init__(self, method: PateGan, layout: Layout, bought: Facts) -> None:
        self.generator = layout.generator(method.width, method.seed)
        self._student = layout.critic(method.width, method.seed + 1)
        self._optimisers = [
            torch.optim.Adam(network.parameters(), lr=method.rate, betas=(0.5, 0.9))
            for network in (self._student, self.generator)
        ]
        self._method, self._layout, self._bought = method, layout, bought
        self._rng, self._source = np.random.default_rng(method.seed), torch.Generator().manual_seed(method.seed)

    @torch.no_grad()
    def some_rows(self, number: int) -> Tensor:
        """Returns generated rows beside their classes."""
        classes = rows.some_classes(self._bought, self._layout, number, self._rng)
        return torch.cat([generated(self.generator, classes, self._source), classes], 1)

    def teach(self, asked: Tensor, shares: np.ndarray) -> None:
        """Updates the student on answers, then the generator on the student, several times."""
        cut = asked.shape[1] - self._layout.num_classes
        wanted = torch.from_numpy(np.clip(shares, 0, 1)).float()
        student, generator = self._optimisers
        for _ in range(self._method.updates):
            told = scored(self._student, asked[:, :cut], asked[:, cut:])
            _update(student, functional.binary_cross_entropy_with_logits(told, wanted))
            classes = rows.some_classes(self._bought, self._layout, self._method.questions, self._rng)
            fake = generated(self.generator, classes, self._source)
            _update(generator, functional.softplus(-scored(self._student, fake, classes)).mean())


def _update(optimiser: torch.optim.Optimizer, loss: Tensor) -> None:
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
