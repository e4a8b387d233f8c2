"""The protocol between parties and an aggregator: both sides are conversations, and a transport only moves frames.

A side computes, hands out a frame, waits, and goes on with the answer. It is written as a Python generator and knows
nothing of sockets, threads or clocks, so the same computation runs in one process (`converse`) or over any pair of
links (`take_part`, `preside`), and a fixed test seed gives the same losses everywhere.

Privacy: frames carry private features of single units and their gradients. Nothing here hides them: what a mode
promises a reader of frames is stated in its method's claim.
"""

import hashlib
import json
import math
import secrets
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load as load_numpy
from safetensors.numpy import save as dump_numpy
from safetensors.torch import load as load_tensors
from safetensors.torch import save as dump_tensors
from torch import Tensor

from understudy.data import Schema
from understudy.errors import InputError
from understudy.privacy import canonical
from understudy.synthesizers.vflgan_ts.recipe import DROPOUT, LATENT, Recipe

END = "end"  # stage of the last answer
_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True, eq=False)
class Frame:
    """Named tensors of one stage of one iteration.

    Attributes:
        iteration: Counts from 1; 0 is the greeting.
        stage: What the sender has done, or, in an answer, what the receiver is to do next.
    """

    iteration: int
    stage: str
    tensors: Mapping[str, Tensor]

    def expect(
        self, iteration: int, stage: str, shapes: Mapping[str, tuple[int | None, ...]], *, sender: str
    ) -> Mapping[str, Tensor]:
        """Returns the tensors if they are finite and just those that were to come now, or refuses the frame.

        A frame that is replayed, early, late, of another shape or not a number stops the run: going on would train on
        something else than was agreed.

        Args:
            shapes: What each tensor has to look like; None allows any size.
        """
        if (self.iteration, self.stage) != (iteration, stage):
            raise InputError(
                f"'{sender}': a frame '{stage}' of iteration {iteration} is expected, got '{self.stage}' of "
                f"{self.iteration}. It was replayed, lost or reordered: start again from the last checkpoint."
            )
        if set(self.tensors) != set(shapes) or not all(_fits(self.tensors[name], shapes[name]) for name in shapes):
            raise InputError(
                f"'{sender}': a frame '{stage}' holds other tensors than agreed ({', '.join(shapes)}). Both sides "
                "need the same version and the same options."
            )
        if not all(math.isfinite(tensor.sum().item()) for tensor in self.tensors.values()):  # one makes the sum so
            raise InputError(f"'{sender}': a frame '{stage}' holds numbers that are not finite. The run is stopped.")
        return self.tensors

    def to_bytes(self) -> bytes:
        """Returns the frame in the safetensors format: a JSON header and raw numbers, nothing that runs."""
        whole = {name: tensor.detach().contiguous() for name, tensor in self.tensors.items()}
        return dump_tensors(whole, {"iteration": str(self.iteration), "stage": self.stage})

    @classmethod
    def from_bytes(cls, content: bytes) -> "Frame":
        """Returns the frame that `to_bytes` wrote; anything else is refused."""
        try:
            size = int.from_bytes(content[:8], "little")
            facts = json.loads(content[8 : 8 + size])["__metadata__"]
            return cls(int(facts["iteration"]), str(facts["stage"]), load_tensors(content))
        except (SafetensorError, KeyError, TypeError, ValueError) as problem:
            raise InputError("A frame is expected, got bytes that are none. Both sides need one version.") from problem

    @property
    def num_bytes(self) -> int:
        """Bytes of the numbers, without the header."""
        return sum(tensor.numel() * tensor.element_size() for tensor in self.tensors.values())


Frames = Mapping[str, Frame]  # by party
Documents = Mapping[str, bytes]  # what sides send each other besides tensors, as bytes that run nothing
PartySide = Generator[Frame, Frame, None]  # hands out frames, takes answers
AggregatorSide = Generator[Frames, Frames, None]  # primed with `next`; takes one frame of every party, answers each


class PartyLink(Protocol):
    """A party's way to the aggregator: sends a frame and returns its answer, or raises when the aggregator is gone."""

    def exchange(self, frame: Frame) -> Frame: ...


class AggregatorLink(Protocol):
    """The aggregator's way to all parties: the next frame of every party, and an answer to each."""

    def gather(self) -> Frames: ...

    def scatter(self, answers: Frames) -> None: ...


def take_part(side: PartySide, link: PartyLink) -> None:
    """Runs a party's side over a link until the aggregator ends it."""
    with suppress(StopIteration):
        frame = next(side)
        while True:
            frame = side.send(link.exchange(frame))


def preside(side: AggregatorSide, link: AggregatorLink, last: str = END) -> None:
    """Runs the aggregator's side over a link until it answers `last`; all sides have that answer on return."""
    next(side)
    ended = False
    while not ended:
        answers = side.send(link.gather())
        link.scatter(answers)
        ended = all(answer.stage == last for answer in answers.values())
    side.close()


def converse(
    parties: Mapping[str, PartySide],
    aggregator: AggregatorSide,
    watch: Callable[[str, Frame], None] | None = None,
) -> None:
    """Runs all sides in one process, without copies, one after another.

    Args:
        watch: Is shown every frame with the name of its sender or receiver, for counting.
    """
    next(aggregator)
    frames = {name: next(side) for name, side in parties.items()}
    while frames:
        answers, said = aggregator.send(frames), frames
        frames = {}
        for name, frame in said.items():
            if watch is not None:
                watch(name, frame)
                watch(name, answers[name])
            with suppress(StopIteration):  # the party's end
                frames[name] = parties[name].send(answers[name])
    aggregator.close()


def _fits(tensor: Tensor, shape: tuple[int | None, ...]) -> bool:
    sizes = len(tensor.shape) == len(shape) and all(
        wanted is None or size == wanted for size, wanted in zip(tensor.shape, shape, strict=True)
    )
    return sizes and tensor.dtype in (torch.float32, torch.int64, torch.uint8)


class Stage(NamedTuple):
    """One exchange: its iteration and what is done in it."""

    iteration: int
    name: Literal["discriminate", "generate", "end"]


@dataclass(frozen=True)
class RunConfig:
    """What all parties and the aggregator agree on before they start, all of it public.

    Attributes:
        schema: Of the joined table.
        seed: Seed of everything but privacy noise and batches; in the mode `sound` of the initial weights alone.
        num_classes: Classes that condition the generators; 0 without a label.
    """

    schema: Schema
    recipe: Recipe
    mode: str
    seed: int
    num_classes: int

    @property
    def num_latent(self) -> int:
        """Size of a generator's input: noise, then the class."""
        return LATENT + self.num_classes

    @property
    def dropout(self) -> float:
        """Share of hidden numbers that are dropped; none where a guarantee is claimed."""
        return DROPOUT if self.mode in ("plain", "paper") else 0.0

    def randomness(self) -> torch.Generator:
        """Returns the source of latents and dropout; within `seeded` the same for the same seed, but for `sound`.

        Privacy: in `sound` the source starts from the operating system's randomness, so that no public seed shows what
        a run drew. It does not depend on rows: that mode has no dropout, whose masks would shift with one row more.
        """
        return torch.Generator().manual_seed(secrets.randbits(63) if self.mode == "sound" else torch.initial_seed())

    def stages(self, done: int = 0, last: int | None = None) -> list[Stage]:
        """Returns all exchanges of a run after `done` iterations, the end included.

        Args:
            last: The last iteration; None for that of the recipe. A run that was stopped ends earlier, because
                iterations that were counted and lost are not given back.
        """
        last = self.recipe.iterations if last is None else last
        stages: list[Stage] = []
        for iteration in range(done + 1, last + 1):
            stages += [Stage(iteration, "discriminate"), Stage(iteration, "generate")]
        return [*stages, Stage(last, "end")]

    def digest(self) -> bytes:
        """Returns a hash by which two sides find out whether they mean the same run."""
        facts = [self.schema.dumps(), asdict(self.recipe), self.mode, self.seed, self.num_classes]
        return hashlib.sha256(json.dumps(facts).encode()).digest()

    def greeting(self, num_rows: int) -> Mapping[str, Tensor]:
        """Returns what a party says first: which run it means and how many rows it has aligned.

        Privacy: the number of rows is private; parties and aggregator know it from the alignment.
        """
        digest = torch.frombuffer(bytearray(self.digest()), dtype=torch.uint8)
        return {"config": digest, "num_rows": torch.tensor([num_rows])}

    def check(self, greetings: Frames) -> int:
        """Returns how many rows all parties hold, or refuses parties that do not belong together."""
        sizes = set()
        own = self.greeting(0)["config"]
        for name, frame in greetings.items():
            said = frame.expect(0, "greeting", {"config": (len(own),), "num_rows": (1,)}, sender=name)
            if not torch.equal(said["config"], own):
                raise InputError(
                    f"'{name}': this run's schema and options are expected, got others. Give all the same."
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


def frame_of(round_number: int, stage: str, documents: Documents) -> Frame:
    """Returns a frame that holds documents by name."""
    bytes_of = {name: np.frombuffer(content, dtype=np.uint8).copy() for name, content in documents.items()}
    return Frame(round_number, stage, {name: torch.from_numpy(array) for name, array in bytes_of.items()})


def documents_of(frame: Frame, round_number: int, stage: str, names: set[str], sender: str) -> Documents:
    """Returns the documents of a frame, or refuses one that is not what was to come now."""
    tensors = frame.expect(round_number, stage, dict.fromkeys(names, (None,)), sender=sender)
    if any(tensor.dtype != torch.uint8 for tensor in tensors.values()):
        raise InputError(f"'{sender}': a frame '{stage}' holds no documents. Both sides need the same version.")
    return {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}


def say(
    stage: str, documents: Documents, answer: set[str], round_number: int = 0
) -> Generator[Frame, Frame, Documents]:
    """Hands documents to the aggregator and returns those of its answer."""
    heard = yield frame_of(round_number, stage, documents)
    return documents_of(heard, round_number, stage, answer, "aggregator")


def to_json(body: Any) -> bytes:
    """Returns facts as a document."""
    return canonical.dumps(body).encode()


def from_json(content: bytes, sender: str) -> Any:
    """Returns the facts that `to_json` wrote."""
    try:
        return canonical.loads(content)
    except ValueError as problem:
        raise InputError(f"'{sender}': facts are expected, got bytes that are none. The run is stopped.") from problem


def whole_numbers(content: bytes, sender: str) -> list[int]:
    """Returns the list of counts that `to_json` wrote."""
    body = from_json(content, sender)
    if not isinstance(body, list) or not all(type(number) is int and number >= 0 for number in body) or len(body) < 1:
        raise InputError(f"'{sender}': counts are expected, got other facts. Both sides need the same version.")
    return body


def to_arrays(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Returns arrays as a document."""
    return dump_numpy({name: np.ascontiguousarray(array) for name, array in arrays.items()})


def from_arrays(content: bytes, sender: str) -> dict[str, np.ndarray]:
    """Returns the arrays that `to_arrays` wrote, if their numbers are finite."""
    try:
        arrays = load_numpy(content)
    except (SafetensorError, KeyError, TypeError, ValueError) as problem:
        raise InputError(f"'{sender}': arrays are expected, got bytes that are none. The run is stopped.") from problem
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise InputError(f"'{sender}': its arrays hold numbers that are not finite. The run is stopped.")
    return arrays
