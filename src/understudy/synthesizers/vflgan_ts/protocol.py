"""The protocol between parties and an aggregator: both sides are conversations, and a transport only moves frames.

A side computes, hands out a frame, waits, and goes on with the answer. It is written as a Python generator and knows
nothing of sockets, threads or clocks, so the same computation runs in one process (`converse`) or over any pair of
links (`take_part`, `preside`), and a fixed test seed gives the same losses everywhere.

Privacy: frames carry private features of single units and their gradients. Nothing here hides them: what a mode
promises about whoever sees a frame stands in its method's claim.
"""

import json
import math
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as dump_tensors
from torch import Tensor

from understudy.errors import InputError

END = "end"  # stage of the last answer


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
            shapes: What each tensor has to look like; None stands for any size.
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
        if not all(_is_finite(tensor) for tensor in self.tensors.values()):
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
PartySide = Generator[Frame, Frame, None]  # hands out frames, takes answers
AggregatorSide = Generator[Frames, Frames, None]  # primed with `next`; takes one frame of every party, answers each


class PartyLink(Protocol):
    """A party's way to the aggregator."""

    def exchange(self, frame: Frame) -> Frame:
        """Sends a frame and returns its answer, or raises when the aggregator is gone."""


class AggregatorLink(Protocol):
    """The aggregator's way to all parties."""

    def gather(self) -> Frames:
        """Returns the next frame of every party, or raises when one is gone."""

    def scatter(self, answers: Frames) -> None:
        """Sends every party its answer."""


def take_part(side: PartySide, link: PartyLink) -> None:
    """Runs a party's side over a link until the aggregator ends it."""
    try:
        frame = next(side)
        while True:
            frame = side.send(link.exchange(frame))
    except StopIteration:
        return


def preside(side: AggregatorSide, link: AggregatorLink, last: str = END) -> None:
    """Runs the aggregator's side over a link until it answers `last`; everybody has that answer on return."""
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
        answers = aggregator.send(frames)
        for name in frames:
            if watch is not None:
                watch(name, frames[name])
                watch(name, answers[name])
        frames = {name: frame for name in frames if (frame := _sent(parties[name], answers[name])) is not None}
    aggregator.close()


def _is_finite(tensor: Tensor) -> bool:
    """Says whether all numbers are; one that is not makes the sum so."""
    return not tensor.is_floating_point() or math.isfinite(tensor.sum().item())


def _fits(tensor: Tensor, shape: tuple[int | None, ...]) -> bool:
    sizes = len(tensor.shape) == len(shape) and all(
        wanted is None or size == wanted for size, wanted in zip(tensor.shape, shape, strict=True)
    )
    return sizes and tensor.dtype in (torch.float32, torch.int64, torch.uint8)


def _sent(side: PartySide, answer: Frame) -> Frame | None:
    """Returns what a party says next, None after its end."""
    try:
        return side.send(answer)
    except StopIteration:
        return None
