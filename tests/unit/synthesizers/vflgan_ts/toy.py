"""Two small parties and an aggregator, made by hand, for tests that look at single iterations."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from understudy.data import Continuous, Panel, Population, PrivacyUnit, Schema, Time
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers.vflgan_ts.protocol import AggregatorSide, PartySide, RunConfig
from understudy.synthesizers.vflgan_ts.published import Aggregator, Batches, Party, Rows
from understudy.synthesizers.vflgan_ts.recipe import Recipe
from understudy.synthesizers.vflgan_ts.updates import ClippedUpdate, MakeUpdate, PlainUpdate
from understudy.training.plan import DPSGDConfig

STEPS = 6
NAMES = ("bank", "shop")
SMALL = Recipe(iterations=1, batch=5, features=16)


def schema(steps: int = STEPS, population: int = 500) -> Schema:
    """Three channels: two at a bank, one at a shop."""
    return Schema(
        name="joined",
        population=Population(population),
        unit=PrivacyUnit(column="customer"),
        time=Time(column="when", steps=steps),
        channels=(
            Continuous("balance", -1.0, 1.0, party="bank"),
            Continuous("rate", -1.0, 1.0, party="bank"),
            Continuous("spending", -1.0, 1.0, party="shop"),
        ),
    )


def panel(num_units: int = 60, seed: int = 0) -> Panel:
    """Sines of one amplitude per unit."""
    rng = np.random.default_rng(seed)
    level, clock = rng.uniform(0.2, 0.8, (num_units, 1, 1)), np.arange(STEPS)[:, None]
    values = level * np.sin(2 * np.pi * clock / STEPS + np.arange(3))
    return Panel(
        schema=schema(),
        values=values.astype(np.float32),
        lengths=np.full(num_units, STEPS, dtype=np.int32),
        unit=np.arange(num_units),
        static=np.zeros((num_units, 0), dtype=np.float32),
        context=None,
    )


def rows(num_rows: int = 9, seed: int = 0, scale: float = 1.0) -> dict[str, Rows]:
    """Rows of two parties: two attributes, one attribute."""
    generator = torch.Generator().manual_seed(seed)
    made = {
        name: torch.randn(num_rows, number, STEPS, generator=generator)
        for name, number in zip(NAMES, (2, 1), strict=True)
    }
    return {name: Rows(scale * series, torch.zeros(num_rows, 0)) for name, series in made.items()}


def everyone(num_rows: int) -> Iterator[Tensor]:
    """Samples all rows, round after round."""
    while True:
        yield torch.arange(num_rows)


@dataclass(eq=False)
class World:
    """A run about to start."""

    parties: dict[str, Party]
    aggregator: Aggregator

    @property
    def sides(self) -> tuple[dict[str, PartySide], AggregatorSide]:
        """What a transport connects."""
        return {name: party.side(_ignore) for name, party in self.parties.items()}, self.aggregator.side(_ignore)

    @property
    def gradient(self) -> Tensor:
        """The last gradient of everything that has seen real rows, all blocks in one vector."""
        updates = [*(party.update for party in self.parties.values()), self.aggregator.update]
        return torch.cat([update.flat.gradient for update in updates])


def world(
    held: dict[str, Rows],
    recipe: Recipe = SMALL,
    party: MakeUpdate = PlainUpdate,
    aggregator: MakeUpdate | None = None,
    batches: Batches = everyone,
    seed: int = 0,
    mode: str = "test",
) -> World:
    """Returns parties and an aggregator that update as told."""
    config = RunConfig(schema(), recipe, mode, seed)
    parties = {name: Party(name, own, config, party) for name, own in held.items()}
    return World(parties, Aggregator(tuple(held), config, aggregator or party, batches, np.ones(1)))


def sound_plan(noise_multiplier: float = 2.0, clipping_norm: float = 1.5, iterations: int = 1) -> DPSGDConfig:
    """All units in every iteration; sums are divided by 7."""
    return DPSGDConfig(
        sampling_rate=1.0,
        iterations=iterations,
        expected_batch=7.0,
        clipping_norm=clipping_norm,
        noise_multiplier=noise_multiplier,
    )


def clipped(plan: DPSGDConfig, noise: NoiseSource, num_blocks: int = 3) -> MakeUpdate:
    """Updates of one of several owners."""
    return partial(ClippedUpdate, block=plan.split(num_blocks), noise=noise)


def _ignore(iteration: int) -> None:
    """Counts nothing."""
