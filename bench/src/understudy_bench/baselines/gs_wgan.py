"""`gs-wgan`: critics on disjoint shards that nobody noises, and a generator that hears them through noise.

Idea. What a critic knows is private, what it tells the generator need not be: the slope of its score at each
generated series is clipped and noised, and the generator learns from that (Chen, Orekondy & Fritz).

Private data is touched by the small releases of `frame.facts` and by noisy sums of slopes over all critics. A unit is
in one shard, whose critic it may change as much as it likes, but that critic's B slopes have length one at most, so a
unit moves their sum by at most 2√B (an event, which makes its owner change shards, twice as far).
Cost: a minute. Choose it to compare with.
Not to be confused with the published loop, which draws one critic in secret each time and prices that as subsampling.
A critic that learns only when drawn remembers earlier draws, which no theorem on subsampling covers. Here all critics
learn and answer every time, and their slopes are added up: the same signal for the same noise, and a proof in three
lines (`docs/claims/gs-wgan.md`).

References: Chen, Orekondy & Fritz, arXiv:2006.08265 (GS-WGAN); Gulrajani et al., arXiv:1704.00028 (WGAN-GP).
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from understudy.data import Panel, Schema
from understudy.privacy.border import Given, Statistic
from understudy.privacy.budget import Guarantee
from understudy.privacy.contributions import Rows, shortened
from understudy.privacy.grant import Grant
from understudy.privacy.plan import SpendingPlan
from understudy.privacy.private_series import PrivateSeries
from understudy.synthesizers.base import Progress, SampleRequest, Synthesizer
from understudy.synthesizers.options import require_above_zero
from understudy_bench.baselines import rows
from understudy_bench.baselines.repeating import repeated
from understudy_bench.baselines.rows import Layout, generated
from understudy_bench.baselines.shards import shards, touched

SLOPES = "slopes"
_PENALTY = 10.0  # on slopes of a critic that are not one (WGAN-GP)
_BETAS = (0.5, 0.9)
_ROWS = 16  # of a shard that its critic sees in an update


@dataclass(frozen=True, kw_only=True)
class GsWgan(Synthesizer):
    """GS-WGAN for series.

    Attributes:
        critics: Shards; more of them outvote more noise, and each knows less.
        iterations: Updates of the generator.
        questions: Generated series at which slopes are taken in an iteration.
        updates: Of every critic in an iteration.
        width: Of hidden layers.
        rate: Learning rate of generator and critics.
        seed: Of everything but privacy noise.
    """

    name: ClassVar[str] = "gs-wgan"
    rehearsed: ClassVar[str] = "iterations"
    critics: int = 50
    iterations: int = 30
    questions: int = 16
    updates: int = 5
    width: int = 64
    rate: float = 1e-3
    seed: int = 0

    def __post_init__(self) -> None:
        require_above_zero(self, "critics", "iterations", "questions", "updates", "width", "rate")

    def plan(self, schema: Schema, guarantee: Guarantee) -> SpendingPlan:
        """Facts, then as many sums of slopes as there are iterations, with all that is left."""
        return SpendingPlan(repeated(rows.fact_entries(schema, guarantee, SLOPES), self.iterations, SLOPES), guarantee)

    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        """Buys the facts, then lets critics learn and the generator hear them, in turn.

        Privacy: unit and neighbours as the schema says. A critic follows from its shard, from earlier noisy sums and
        from public random numbers; nobody sees critics but through `slopes`.
        """
        bought = rows.buy_facts(private, grant)
        layout = Layout.of(private.panel.schema, bought)
        bench = Bench(
            layout.critic(self.width, self.seed + 1), self, layout.rows(private), shards(private, self.critics)
        )
        generator, rng = layout.generator(self.width, self.seed), np.random.default_rng(self.seed)
        source = torch.Generator().manual_seed(self.seed)
        optimiser = torch.optim.Adam(generator.parameters(), lr=self.rate, betas=_BETAS)
        reach, bound = 2 * touched(private.schema), math.sqrt(self.questions)
        for iteration in range(self.iterations):
            for _ in range(self.updates):
                classes = rows.some_classes(bought, layout, _ROWS, rng)
                with torch.no_grad():
                    bench.update(generated(generator, classes, source), classes, source)
            classes = rows.some_classes(bought, layout, self.questions, rng)
            fake = generated(generator, classes, source)
            slopes = bench.slopes(fake.detach(), classes)
            statistic = Statistic(label=SLOPES, shape=slopes.shape[1:], bound=bound)
            heard = grant.release(statistic, Given(Rows(slopes), reach))
            optimiser.zero_grad()
            fake.backward(torch.from_numpy(-heard / (self.critics * len(fake))).float())
            optimiser.step()
            progress("slopes", (iteration + 1) / self.iterations)
        return rows.arrays_of(bought, layout, generator, self.seed)

    def sample(self, arrays: dict[str, np.ndarray], schema: Schema, request: SampleRequest) -> Panel:
        """Returns series of the generator."""
        return rows.draw(arrays, schema, request, self.width)


class Bench:
    """All critics side by side, each with its own shard. Private."""

    def __init__(self, critic: nn.Module, method: GsWgan, held: dict[str, np.ndarray], dealt: list[np.ndarray]) -> None:
        self._critic, self._rng = critic, np.random.default_rng(method.seed)
        self._weights = {
            name: torch.stack([weight.detach()] * len(dealt)).requires_grad_()
            for name, weight in critic.named_parameters()
        }
        self._optimiser = torch.optim.Adam(self._weights.values(), lr=method.rate, betas=_BETAS)
        padded = _padded(held)  # an empty shard has a row of zeros, from which its critic learns nothing about anybody
        self._shards = [{name: each[own if len(own) else [-1]] for name, each in padded.items()} for own in dealt]

    def update(self, fake: Tensor, classes: Tensor, source: torch.Generator) -> None:
        """Updates every critic once, on rows of its own shard against generated ones."""
        shares = self._rng.random((len(self._shards), len(fake)))  # the same numbers, whoever is in a shard
        chosen = [
            {name: own[(share * len(own)).astype(np.int64)] for name, own in shard.items()}
            for shard, share in zip(self._shards, shares, strict=True)
        ]
        real, own = (torch.from_numpy(np.stack([shard[name] for shard in chosen])) for name in ("row", "class"))
        share = torch.rand(len(fake), 1, generator=source)
        slopes = vmap(grad(self._loss), in_dims=(0, 0, 0, None, None, None))(
            self._weights, real, own, fake, classes, share
        )
        for name, weight in self._weights.items():
            weight.grad = slopes[name].detach()
        self._optimiser.step()

    def slopes(self, fake: Tensor, classes: Tensor) -> np.ndarray:
        """Returns the slopes [critic, row, number] of all critics at generated rows, each shortened to length one.

        Privacy: private. One unit moves one critic, from slopes to others: by twice their length.
        """
        found = vmap(self._slope, in_dims=(0, None, None))(self._weights, fake, classes).detach()
        return shortened(found.flatten(0, 1).double().numpy(), 1.0).reshape(found.shape)

    def _loss(
        self, weights: dict[str, Tensor], real: Tensor, own: Tensor, fake: Tensor, classes: Tensor, share: Tensor
    ) -> Tensor:
        apart = self._scores(weights, fake, classes).mean() - self._scores(weights, real, own).mean()
        at = share * real + (1 - share) * fake
        length = (self._slope(weights, at, own).square().sum(1) + 1e-12).sqrt()
        return apart + _PENALTY * (length - 1).square().mean()

    def _slope(self, weights: dict[str, Tensor], at: Tensor, classes: Tensor) -> Tensor:
        found: Tensor = grad(lambda here: self._scores(weights, here, classes).sum())(at)
        return found

    def _scores(self, weights: dict[str, Tensor], at: Tensor, classes: Tensor) -> Tensor:
        scores: Tensor = functional_call(self._critic, weights, (at, classes if classes.shape[1] else None))
        return scores


def _padded(held: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns arrays with a row of zeros at their end."""
    return {name: np.concatenate([own, np.zeros_like(own, shape=(1, *own.shape[1:]))]) for name, own in held.items()}
