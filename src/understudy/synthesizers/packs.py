"""A pack: weights trained on public data, in one safetensors file that says where they come from."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as dump_tensors

from understudy.errors import InputError, MissingData

_KEY, _FORMAT = "understudy", 1


@dataclass(frozen=True, eq=False, kw_only=True)
class Pack:
    """Arrays by name and public facts about them.

    Attributes:
        method: Whose pack it is.
        shape: Shape of the network, as its constructor takes it.
        provenance: Where it comes from: command, public files with hashes, seed, versions, quality.
    """

    method: str
    arrays: dict[str, np.ndarray]
    shape: Mapping[str, int]
    provenance: Mapping[str, Any]

    def to_bytes(self) -> bytes:
        """Returns the pack as one file; equal packs give equal bytes."""
        facts = {"format": _FORMAT, "method": self.method, "shape": self.shape, "provenance": self.provenance}
        arrays = {name: np.ascontiguousarray(array) for name, array in sorted(self.arrays.items())}
        return dump_tensors(arrays, metadata={_KEY: json.dumps(facts, sort_keys=True)})

    @property
    def sha256(self) -> str:
        """Hash of the file `save` writes; certificates name it."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def save(self, path: str | Path) -> None:
        """Writes the pack; an existing file is never overwritten."""
        write_new(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | Path, method: str) -> "Pack":
        """Reads a pack of a method that `save` wrote."""
        source = Path(path)
        if not source.is_file():
            raise MissingData(f"pack: '{source}' is not there. Make one with `understudy pretrain {method}`.")
        return cls.from_bytes(source.read_bytes(), method, f"'{source}'")

    @classmethod
    def from_bytes(cls, content: bytes, method: str, name: str = "This") -> "Pack":
        """Returns the pack that `to_bytes` wrote; `name` says in errors where it came from."""
        try:
            facts, arrays = header(content, _KEY), load_tensors(content)
            if facts["format"] != _FORMAT or facts["method"] != method:
                raise InputError(f"{name} is a pack of another method or version. Pretrain one for {method} again.")
            return cls(method=method, arrays=arrays, shape=facts["shape"], provenance=facts["provenance"])
        except (SafetensorError, KeyError, TypeError, UnicodeDecodeError, json.JSONDecodeError) as problem:
            raise InputError(f"{name} is no pack. Make one with `understudy pretrain {method}`.") from problem


def write_new(path: str | Path, content: bytes) -> None:
    """Writes a pack's file; an existing one is never overwritten."""
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            file.write(content)
    except FileExistsError as problem:
        raise InputError(f"'{target}' exists already. Choose another file for the pack.") from problem
    except OSError as problem:
        raise InputError(f"'{target}' could not be written ({problem.strerror}). Choose another place.") from problem


def header(content: bytes, key: str) -> dict[str, Any]:
    """Returns the facts under `key`: eight bytes with the header's length, then JSON (the safetensors format)."""
    length = int.from_bytes(content[:8], "little")
    facts: dict[str, Any] = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][key])
    return facts
