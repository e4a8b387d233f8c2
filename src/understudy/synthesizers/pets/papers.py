"""The two kinds of file that travel when the data holder and the evolution run apart: ballots and proposals.

Both are safetensors with one JSON text of facts. Both are public: a ballot holds what was bought with a charge, a
proposal holds what was computed from ballots. Neither side has to trust the other's file for privacy: whatever a
proposal says, a unit's vote has length one and noise of the charged size goes on it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save

from understudy.errors import InputError, MissingData
from understudy.files import whole_file
from understudy.synthesizers.pets.method import Pets

FORMAT = 1
BOUGHT, LATTICE = "bought.", "lattice."  # prefixes of arrays
_KEY = "understudy-pets"


@dataclass(frozen=True, eq=False, kw_only=True)
class Paper:
    """Arrays and facts of one kind ("ballot", "proposal" or "state")."""

    kind: str
    facts: Mapping[str, Any]
    arrays: dict[str, np.ndarray] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Writes the file whole or not at all; an existing one is not overwritten, except a state."""
        facts = json.dumps({"format": FORMAT, "kind": self.kind, **self.facts}, sort_keys=True)
        content = save({name: np.ascontiguousarray(array) for name, array in self.arrays.items()}, {_KEY: facts})
        if self.kind != "state" and path.exists():
            raise InputError(f"'{path}' exists already. Choose another name.")
        with whole_file(path) as draft:
            draft.write_bytes(content)

    @classmethod
    def load(cls, path: Path, kind: str) -> "Paper":
        """Reads a file of the expected kind."""
        if not path.is_file():
            raise MissingData(f"'{path}' is not there: a {kind} file is expected.")
        try:
            with safe_open(path, framework="numpy") as file:
                facts = json.loads((file.metadata() or {})[_KEY])
            if facts.pop("format") != FORMAT or facts.pop("kind") != kind:
                raise KeyError(kind)
            return cls(kind=kind, facts=facts, arrays=load_file(path))
        except (SafetensorError, KeyError, ValueError, TypeError) as problem:
            raise InputError(f"'{path}' is not a {kind} of this version. Ask for the right file.") from problem

    def part(self, prefix: str) -> dict[str, np.ndarray]:
        """Returns the arrays below a prefix, without it."""
        return {name.removeprefix(prefix): array for name, array in self.arrays.items() if name.startswith(prefix)}

    def whole_number(self, name: str) -> int:
        """Returns a fact that has to be a whole number."""
        value = self.facts.get(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise InputError(f"The {self.kind} lacks '{name}': it was altered. Get it anew.")
        return value


def options_of(paper: Paper) -> Pets:
    """Returns the method as a paper describes it."""
    try:
        return Pets(**paper.facts["options"])
    except (KeyError, TypeError) as problem:
        raise InputError(f"The {paper.kind} lacks the method's options: it was altered. Get it anew.") from problem
