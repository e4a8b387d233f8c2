"""A pack: weights trained on public data, in one safetensors file that says where they come from."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as dump_tensors

from understudy.errors import InputError, MissingData

GENERAL = "general"  # name of the pack that ships with a method
UNREADABLE = (SafetensorError, KeyError, TypeError, UnicodeDecodeError, json.JSONDecodeError)
_KEY, _FORMAT = "understudy", 1


@dataclass(frozen=True, eq=False, kw_only=True)
class Pack:
    """Arrays by name and public facts about them."""

    method: str
    arrays: dict[str, np.ndarray]
    shape: Mapping[str, Any]  # of the network or networks, as their constructors take it
    provenance: Mapping[str, Any]  # command, public files with hashes, seed, versions, quality

    def to_bytes(self) -> bytes:
        """Returns the pack as one file; equal packs give equal bytes."""
        facts = {"format": _FORMAT, "method": self.method, "shape": self.shape, "provenance": self.provenance}
        return to_file(facts, self.arrays)

    @property
    def sha256(self) -> str:
        """Hash of the file `save` writes; certificates name it."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def save(self, path: str | Path) -> None:
        """Writes the pack; an existing file is never overwritten."""
        target = Path(path)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                file.write(self.to_bytes())
        except OSError as problem:
            why = (
                "exists already"
                if isinstance(problem, FileExistsError)
                else f"could not be written ({problem.strerror})"
            )
            raise InputError(f"'{target}' {why}. Choose another file for the pack.") from problem

    def carried(self) -> np.ndarray:
        """Returns the pack as an array, so that a release works without its file."""
        return np.frombuffer(self.to_bytes(), dtype=np.uint8).copy()

    @classmethod
    def load(cls, path: str | Path, method: str) -> "Pack":
        """Reads a pack of a method that `save` wrote."""
        source = Path(path)
        if not source.is_file():
            raise MissingData(f"pack: '{source}' is not there. Make one with `understudy pretrain {method}`.")
        return cls.from_bytes(source.read_bytes(), method, f"'{source}'")

    @classmethod
    def from_bytes(cls, content: bytes, method: str, name: str = "The release's pack") -> "Pack":
        """Returns the pack that `to_bytes` wrote; `name` says in errors where it came from."""
        try:
            facts, arrays = from_file(content)
            if facts["format"] != _FORMAT or facts["method"] != method:
                raise InputError(f"{name} is a pack of another method or version. Pretrain one for {method} again.")
            return cls(method=method, arrays=arrays, shape=facts["shape"], provenance=facts["provenance"])
        except UNREADABLE as problem:
            raise InputError(f"{name} is no pack. Make one with `understudy pretrain {method}`.") from problem


def to_file(facts: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return a safetensors file of arrays, with one JSON text of facts; equal ones give equal bytes."""
    ordered = {name: np.ascontiguousarray(array) for name, array in sorted(arrays.items())}
    return dump_tensors(ordered, metadata={_KEY: json.dumps(facts, sort_keys=True)})


def from_file(content: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the facts and the arrays of such a file; raises one of `UNREADABLE` for any other."""
    length = int.from_bytes(content[:8], "little")  # of the header, in the safetensors format
    facts: dict[str, Any] = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][_KEY])
    return facts, load_tensors(content)


def load_pack(pack: str, method: str) -> Pack:
    """Return the pack that ships with a method, or the one in a file."""
    shipped = Path(__file__).parent / method / "packs" / f"{GENERAL}.safetensors"
    return Pack.load(shipped if pack == GENERAL else pack, method)


def versions() -> dict[str, str]:
    """Return the versions that a pack was trained with."""
    packages = ("understudy", "torch", "numpy")
    return {name: version(name).split("+")[0] for name in packages} | {"python": python_version()}
