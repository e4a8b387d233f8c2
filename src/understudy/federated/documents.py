"""Documents in frames: whatever sides tell each other beside tensors, as bytes that run nothing."""

from collections.abc import Generator, Mapping
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as dump_arrays
from torch import Tensor

from understudy.errors import InputError
from understudy.privacy import canonical
from understudy.synthesizers.vflgan_ts.protocol import Frame

Documents = Mapping[str, bytes]
Saying = Generator[Frame, Frame, Documents]  # one exchange of a party


def frame_of(round_number: int, stage: str, documents: Documents) -> Frame:
    """Returns a frame that holds documents by name."""
    return Frame(round_number, stage, {name: _tensor(content) for name, content in documents.items()})


def documents_of(frame: Frame, round_number: int, stage: str, names: set[str], sender: str) -> Documents:
    """Returns the documents of a frame, or refuses one that is not what was to come now."""
    tensors = frame.expect(round_number, stage, dict.fromkeys(names, (None,)), sender=sender)
    if any(tensor.dtype != torch.uint8 for tensor in tensors.values()):
        raise InputError(f"'{sender}': a frame '{stage}' holds no documents. Both sides need the same version.")
    return {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}


def say(stage: str, documents: Documents, answer: set[str], round_number: int = 0) -> Saying:
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
    return dump_arrays({name: np.ascontiguousarray(array) for name, array in arrays.items()})


def from_arrays(content: bytes, sender: str) -> dict[str, np.ndarray]:
    """Returns the arrays that `to_arrays` wrote, if their numbers are finite."""
    try:
        arrays = load_arrays(content)
    except (SafetensorError, KeyError, TypeError, ValueError) as problem:
        raise InputError(f"'{sender}': arrays are expected, got bytes that are none. The run is stopped.") from problem
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise InputError(f"'{sender}': its arrays hold numbers that are not finite. The run is stopped.")
    return arrays


def _tensor(content: bytes) -> Tensor:
    return torch.from_numpy(np.frombuffer(content, dtype=np.uint8).copy())
