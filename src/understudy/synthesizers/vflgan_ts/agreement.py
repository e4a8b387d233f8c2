"""What all parties and the aggregator agree on before they start, all of it public."""

import hashlib
import json
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import Tensor

from understudy.data import Schema
from understudy.errors import InputError
from understudy.synthesizers.vflgan_ts.protocol import END, Frame
from understudy.synthesizers.vflgan_ts.recipe import LATENT, Recipe

_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class Stage:
    """One exchange: its iteration, its name, and whether it is the first of its iteration."""

    iteration: int
    name: str
    opens_iteration: bool = False


@dataclass(frozen=True)
class Agreement:
    """The contract of a run.

    Attributes:
        schema: Of the joined table.
        seed: Of everything but privacy noise and draws; in the mode `sound` of initial weights alone.
        num_classes: Classes that generators are told; 0 without a label.
    """

    schema: Schema
    recipe: Recipe
    mode: str
    seed: int
    num_classes: int

    @property
    def num_latent(self) -> int:
        """Numbers that every generator is given: noise, then the class."""
        return LATENT + self.num_classes

    def randomness(self) -> torch.Generator:
        """Returns where dropout and latents come from; within `seeded` the same for the same seed, but for `sound`.

        Privacy: numbers follow one another in one stream, so with one row more everybody else's masks, and all later
        latents, are other ones. Whoever knew the stream would see more change than one clipped gradient. Where a
        guarantee is claimed nobody knows it: masks of every row are then coins of their own.
        """
        return torch.Generator().manual_seed(secrets.randbits(63) if self.mode == "sound" else torch.initial_seed())

    def stages(self, done: int = 0, last: int | None = None) -> list[Stage]:
        """Returns all exchanges of a run after `done` iterations, the end included.

        Args:
            last: The iteration to end with; None for that of the recipe. A run that was stopped ends earlier, because
                iterations that were counted and lost are not given back.
        """
        rounds, last = self.recipe.critic_rounds, self.recipe.iterations if last is None else last
        stages = []
        for iteration in range(done + 1, last + 1):
            stages += [Stage(iteration, "discriminate", place == 0) for place in range(rounds)]
            stages.append(Stage(iteration, "generate"))
        return [*stages, Stage(last, END)]

    def digest(self) -> bytes:
        """Returns a hash by which two sides find out whether they mean the same run."""
        facts = [self.schema.dumps(), asdict(self.recipe), self.mode, self.seed, self.num_classes]
        return hashlib.sha256(json.dumps(facts).encode()).digest()

    def greeting(self, num_rows: int) -> Mapping[str, Tensor]:
        """Returns what a party says first: which run it means and how many rows it has aligned.

        Privacy: the number of rows is private; parties and aggregator know it from the alignment.
        """
        digest = torch.frombuffer(bytearray(self.digest()), dtype=torch.uint8)
        return {"agreement": digest, "num_rows": torch.tensor([num_rows])}

    def check(self, greetings: Mapping[str, Frame]) -> int:
        """Returns how many rows all parties hold, or refuses parties that do not belong together."""
        sizes = set()
        own = self.greeting(0)["agreement"]
        for name, frame in greetings.items():
            said = frame.expect(0, "greeting", {"agreement": (len(own),), "num_rows": (1,)}, sender=name)
            if not torch.equal(said["agreement"], own):
                raise InputError(
                    f"'{name}' means another run: its schema or its options differ. Give all sides the same."
                )
            sizes.add(int(said["num_rows"]))
        if len(sizes) != 1:
            raise InputError("Parties hold different numbers of rows. Align them by entity before training.")
        return sizes.pop()


@contextmanager
def seeded(seed: int, name: str) -> Iterator[None]:
    """Makes torch's own generator, which all threads share, start from (seed, name) within the block."""
    own = np.random.SeedSequence([seed, *name.encode()]).generate_state(1, np.uint64)[0]
    with _ONE_AT_A_TIME, torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(own >> np.uint64(1)))
        yield
