"""Checkpoints that survive a kill at any moment and never hold the state of the noise.

One safetensors file, JSON in its header, replaced atomically: after a crash there is the old one or the new one.
All tensors are functions of noisy gradients that were charged before, so a checkpoint is no more private than
the release.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save as dump_tensors
from torch import Tensor

from understudy.errors import ReleaseError
from understudy.files import whole_file
from understudy.privacy.events import to_json
from understudy.privacy.grant import Grant
from understudy.training.networks import ExponentialMovingAverage
from understudy.training.plan import DPSGDConfig
from understudy.training.private_gradient import FlatParameters

FORMAT = 1
FILE = "checkpoint.safetensors"


@dataclass(frozen=True, kw_only=True)
class Identity:
    """What a checkpoint must agree on with the run that resumes from it."""

    ledger: str
    run: int
    label: str
    event: dict[str, Any]
    clip_norm: float
    parameters: int

    @classmethod
    def of(cls, grant: Grant, label: str, plan: DPSGDConfig, flat: FlatParameters) -> "Identity":
        """Returns the identity of a run."""
        return cls(
            ledger=grant.receipt.ledger,
            run=grant.receipt.run,
            label=label,
            event=to_json(plan.event),
            clip_norm=plan.clip_norm,
            parameters=flat.values.numel(),
        )


def save(
    directory: Path,
    identity: Identity,
    iteration: int,
    flat: FlatParameters,
    optimiser: torch.optim.Optimizer,
    average: ExponentialMovingAverage | None,
) -> None:
    """Writes the state after `iteration` useful iterations; on return it is on the disk."""
    state = optimiser.state_dict()
    tensors: dict[str, Tensor] = {"values": flat.values}
    numbers: dict[str, Any] = {}
    for index, entries in state["state"].items():
        for name, value in entries.items():
            if isinstance(value, Tensor):
                tensors[f"optimiser.{index}.{name}"] = value
            else:
                numbers[f"{index}.{name}"] = value
    facts = {
        "format": FORMAT,
        "identity": asdict(identity),
        "iteration": iteration,
        "optimiser": {"groups": state["param_groups"], "numbers": numbers},
        "average_updates": average.updates if average else None,
    }
    if average:
        tensors["average"] = average.values
    contiguous = {name: tensor.contiguous() for name, tensor in tensors.items()}
    directory.mkdir(parents=True, exist_ok=True)
    with whole_file(directory / FILE) as draft:
        draft.write_bytes(dump_tensors(contiguous, {"understudy": json.dumps(facts)}))


def load(
    directory: Path,
    identity: Identity,
    executed: int,
    flat: FlatParameters,
    optimiser: torch.optim.Optimizer,
    average: ExponentialMovingAverage | None,
) -> int:
    """Restores a run in place and returns its useful iterations; 0 where there is no checkpoint yet.

    Raises:
        ReleaseError: the file is damaged, of another run, or ahead of what the ledger says was executed.
    """
    path = directory / FILE
    if not path.exists():
        return 0
    facts, tensors = _read(path, str(flat.values.device))
    if facts["format"] != FORMAT or facts["identity"] != asdict(identity):
        raise ReleaseError(f"'{path}' belongs to another run. Name a directory of its own for each run.")
    if facts["iteration"] > executed:
        raise ReleaseError(f"'{path}' is ahead of its ledger: an old copy of the ledger was put back.")
    flat.values.copy_(tensors["values"])
    optimiser.load_state_dict(_optimiser_state(facts["optimiser"], tensors))
    if average is not None and "average" in tensors:
        average.values.copy_(tensors["average"])
        average.updates = facts["average_updates"]
    return int(facts["iteration"])


def _read(path: Path, device: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    try:
        with safe_open(path, framework="pt", device=device) as opened:
            facts = json.loads(opened.metadata()["understudy"])
            return facts, {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except Exception as problem:  # safetensors raises a type of its own for a damaged file
        raise ReleaseError(f"'{path}' can't be read as a checkpoint. Delete it to start the run over.") from problem


def _optimiser_state(facts: dict[str, Any], tensors: dict[str, Tensor]) -> dict[str, Any]:
    state: dict[int, dict[str, Any]] = {}
    named: dict[str, Any] = {**facts["numbers"]}
    named |= {name.removeprefix("optimiser."): value for name, value in tensors.items() if "." in name}
    for name, value in named.items():
        index, _, entry = name.partition(".")
        state.setdefault(int(index), {})[entry] = value
    return {"state": state, "param_groups": facts["groups"]}
