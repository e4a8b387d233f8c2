"""The protocol between parties and an aggregator: both sides are conversations, and a transport only moves frames.

A side computes, hands out a frame, waits, and goes on with the answer: a Python generator, which knows nothing of
sockets or threads. So the same computation runs in one process (`converse`) or over links (`take_part`, `preside`), and
a fixed test seed gives the same losses everywhere.

Privacy: frames carry private features of single units and their gradients, and nothing here hides them.
"""

import json
import math
import secrets
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pydantic
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
from understudy.statistics.columns import num_labels
from understudy.synthesizers.vflgan_ts.recipe import DROPOUT, LATENT, Recipe

MAX_FREQUENCIES = 64
_ONE_VERSION = "All sides need the same version and the same options."
END = "end"  # stage of the last answer
_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True, eq=False)
class Frame:
    """Named tensors of one stage of one iteration."""

    iteration: int  # counts from 1; 0 is the greeting
    stage: str  # what the sender has done, or, in an answer, what the receiver is to do next
    tensors: Mapping[str, Tensor]

    def expect(
        self, iteration: int, stage: str, shapes: Mapping[str, tuple[int | None, ...]], *, sender: str
    ) -> Mapping[str, Tensor]:
        """Returns the tensors, if they are finite and just those that were to come now; None in `shapes` is any size.

        Anything else stops the run: going on would train on something else than was agreed.
        """
        if (self.iteration, self.stage) != (iteration, stage):
            raise InputError(
                f"'{sender}': a frame '{stage}' of iteration {iteration} is expected, got '{self.stage}' of "
                f"{self.iteration}. It was replayed, lost or reordered: start again from the last checkpoint."
            )
        if set(self.tensors) != set(shapes) or not all(_fits(self.tensors[name], shapes[name]) for name in shapes):
            raise InputError(
                f"'{sender}': a frame '{stage}' holds other tensors than agreed ({', '.join(shapes)}). {_ONE_VERSION}"
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
            facts = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]
            return cls(int(facts["iteration"]), str(facts["stage"]), load_tensors(content))
        except (SafetensorError, KeyError, TypeError, ValueError) as problem:
            raise InputError(f"A frame is expected, got bytes that are none. {_ONE_VERSION}") from problem


Frames = Mapping[str, Frame]  # by party
Documents = Mapping[str, bytes]  # what sides send each other besides tensors, as bytes that run nothing
PartySide = Generator[Frame, Frame, None]  # hands out frames, takes answers
AggregatorSide = Generator[Frames, Frames, None]  # primed with `next`; takes one frame of every party, answers each


def take_part(side: PartySide, exchange: Callable[[Frame], Frame]) -> None:
    """Runs a party's side until the aggregator ends it; `exchange` sends a frame and returns its answer."""
    with suppress(StopIteration):
        frame = next(side)
        while True:
            frame = side.send(exchange(frame))


def preside(
    side: AggregatorSide, gather: Callable[[], Frames], scatter: Callable[[Frames], None], last: str = END
) -> None:
    """Runs the aggregator's side until all have its answer `last`; `scatter` sends each answer to its party."""
    next(side)
    ended = False
    while not ended:
        answers = side.send(gather())
        scatter(answers)
        ended = all(answer.stage == last for answer in answers.values())
    side.close()


def converse(
    parties: Mapping[str, PartySide],
    aggregator: AggregatorSide,
    watch: Callable[[str, Frame], None] | None = None,
) -> None:
    """Runs all sides in one process; `watch` is shown every frame with the name of its sender or receiver."""
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
    known = tensor.dtype in (torch.float32, torch.int64, torch.uint8) and len(tensor.shape) == len(shape)
    return known and all(wanted in (None, size) for size, wanted in zip(tensor.shape, shape, strict=True))


def num_classes(schema: Schema) -> int:
    """Returns how many classes generators are told; 0 without a label."""
    return num_labels(schema) if schema.label_column is not None else 0


class Stage(NamedTuple):
    """One exchange."""

    iteration: int
    name: str  # "discriminate", "generate", or "end"


@dataclass(frozen=True)
class RunConfig:
    """What all parties and the aggregator agree on before they start, all of it public."""

    schema: Schema  # of the joined table
    recipe: Recipe
    mode: str
    seed: int  # of everything but privacy noise and batches; in the mode `sound` of the initial weights alone

    @property
    def num_classes(self) -> int:
        """Classes that condition the generators; 0 without a label."""
        return num_classes(self.schema)

    @property
    def num_latent(self) -> int:
        """Size of a generator's input: noise, then the class."""
        return LATENT + self.num_classes

    @property
    def critic_steps(self) -> int:
        """Iterations, each an update of all critics, for one update of the generators."""
        return 5 if self.mode == "sound" else 1

    @property
    def frequencies(self) -> int | None:
        """Coefficients in which attributes are learned in the mode `sound`; None for steps, as published."""
        return min(self.schema.num_steps, MAX_FREQUENCIES) if self.mode == "sound" else None

    @property
    def dropout(self) -> float:
        """Share of hidden numbers that are dropped; none where a guarantee is claimed."""
        return DROPOUT if self.mode in ("plain", "paper") else 0.0

    def randomness(self) -> torch.Generator:
        """Returns the source of latents and dropout; within `seeded` the same for the same seed, but for `sound`.

        Privacy: in `sound` it starts from the operating system's randomness, so that no public seed shows what was
        drawn, and has no dropout, whose masks would shift with one row more.
        """
        return torch.Generator().manual_seed(secrets.randbits(63) if self.mode == "sound" else torch.initial_seed())

    def stages(self, done: int = 0, last: int | None = None) -> list[Stage]:
        """Returns all exchanges after `done` iterations up to the last one, by default that of the recipe."""
        last = self.recipe.iterations if last is None else last
        stages = []
        for iteration in range(done + 1, last + 1):
            stages.append(Stage(iteration, "discriminate"))
            if iteration % self.critic_steps == 0 or iteration == last:
                stages.append(Stage(iteration, "generate"))
        return [*stages, Stage(last, END)]


def common_rows(greetings: Frames) -> int:
    """Returns how many aligned rows all parties hold, or refuses parties whose rows do not belong together."""
    shape = {"num_rows": (1,)}
    sizes = {int(said.expect(0, "greeting", shape, sender=name)["num_rows"]) for name, said in greetings.items()}
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
    numbers = {name: torch.from_numpy(np.frombuffer(text, np.uint8).copy()) for name, text in documents.items()}
    return Frame(round_number, stage, numbers)


def documents_of(frame: Frame, round_number: int, stage: str, names: set[str], sender: str) -> Documents:
    """Returns the documents of a frame, or refuses one that is not what was to come now."""
    tensors = frame.expect(round_number, stage, dict.fromkeys(names, (None,)), sender=sender)
    if any(tensor.dtype != torch.uint8 for tensor in tensors.values()):
        raise InputError(f"'{sender}': a frame '{stage}' holds no documents. {_ONE_VERSION}")
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


def from_json(content: bytes, sender: str, kind: Any = Any) -> Any:
    """Returns the facts of a kind that `to_json` wrote."""
    try:
        return pydantic.TypeAdapter(kind).validate_python(canonical.loads(content), strict=True)
    except ValueError as problem:  # pydantic's own is one
        raise InputError(f"'{sender}': facts are expected, got others. {_ONE_VERSION}") from problem


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
