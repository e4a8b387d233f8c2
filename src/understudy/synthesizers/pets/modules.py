"""The three replaceable modules of PETS as small protocols, and the pack that carries trained ones.

Series are float32 [series, step, channel] in *working scale*: no gaps, each channel roughly within [−4, 4] by public
facts alone. A categorical channel of K codes is a group of K one-hot channels.
"""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as dump_tensors

from understudy.errors import InputError, MissingData
from understudy.synthesizers.packs import header, write_new

FORMAT = 1
METADATA_KEY = "understudy-pets-pack"  # one key: the order of several would change the file's hash
GENERAL_PACK = Path(__file__).parent / "packs" / "general.safetensors"


class Generation(Protocol):
    """Draws series without looking at private data."""

    def __call__(self, num_series: int, rng: np.random.Generator) -> np.ndarray: ...


class Variation(Protocol):
    """Returns a relative of each series; `degree` runs from 0 (near copies) to 100 (nearly unrelated)."""

    def __call__(self, series: np.ndarray, degree: float, rng: np.random.Generator) -> np.ndarray: ...


class Similarity(Protocol):
    """Embeds series as [series, dimension] float32; near in L2 means alike."""

    def __call__(self, series: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True, kw_only=True)
class Modules:
    """A pack's modules made to fit one panel.

    Attributes:
        adaptation: How the pack was made to fit, in words for plans and certificates.
    """

    variation: Variation
    similarity: Similarity
    adaptation: str


@dataclass(frozen=True, eq=False, kw_only=True)
class ModulePack:
    """Weights of a variation and a similarity module, trained on public data only.

    Attributes:
        weights: Arrays by name, `variation.…` and `similarity.…`.
        variation: Shape of the variation network.
        similarity: Kind and shape of the similarity network.
        num_steps: Length of the series it was trained on.
        num_channels: Channels it was trained on; 1 means each channel is treated alike and on its own.
        provenance: Where it comes from: command, public files with hashes, seed, versions.
    """

    weights: dict[str, np.ndarray]
    variation: dict[str, Any]
    similarity: dict[str, Any]
    num_steps: int
    num_channels: int
    provenance: dict[str, Any] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Returns the pack as one safetensors file; equal packs give equal bytes."""
        facts = {
            "format": FORMAT,
            "variation": self.variation,
            "similarity": self.similarity,
            "num_steps": self.num_steps,
            "num_channels": self.num_channels,
            "provenance": self.provenance,
        }
        arrays = {name: np.ascontiguousarray(array) for name, array in sorted(self.weights.items())}
        return dump_tensors(arrays, metadata={METADATA_KEY: json.dumps(facts, sort_keys=True)})

    @property
    def sha256(self) -> str:
        """Hash of the file `save` writes; certificates name it."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def save(self, path: str | Path) -> None:
        """Writes the pack; an existing file is never overwritten."""
        write_new(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | Path) -> "ModulePack":
        """Reads a pack that `save` wrote."""
        source = Path(path)
        if not source.is_file():
            raise MissingData(f"'{source}' is not there. Make a pack with `understudy pretrain pets`.")
        return cls.from_bytes(source.read_bytes(), f"'{source}'")

    @classmethod
    def from_bytes(cls, content: bytes, name: str = "This") -> "ModulePack":
        """Returns the pack that `to_bytes` wrote; `name` says in errors where it came from."""
        try:
            facts = header(content, METADATA_KEY)
            if facts.pop("format") != FORMAT:
                raise InputError(f"{name} was written by another version of Understudy. Make the pack anew.")
            return cls(weights=load_tensors(content), **facts)
        except (SafetensorError, KeyError, TypeError, UnicodeDecodeError, json.JSONDecodeError) as problem:
            raise InputError(f"{name} is no PETS module pack. Make one with `understudy pretrain pets`.") from problem

    @classmethod
    def general(cls) -> "ModulePack":
        """Returns the pack that ships with Understudy, trained on rule-based series: any length, any channels."""
        return cls.load(GENERAL_PACK)

    def fit_to(self, num_steps: int, num_channels: int) -> Modules:
        """Returns modules for series [series, num_steps, num_channels], or refuses and says why."""
        from understudy.synthesizers.pets.fitting import fit_pack

        return fit_pack(self, num_steps, num_channels)
