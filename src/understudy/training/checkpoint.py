"""Checkpoints that survive a kill at any moment and never hold the state of the noise.

One safetensors file, JSON in its header, replaced atomically: after a crash there is the old one or the new one.
All tensors are functions of noisy gradients that were charged before, so a checkpoint is no more private than
the release.
"""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save as dump_tensors
from torch import Tensor

from understudy.errors import ReleaseError
from understudy.files import whole_file
from understudy.privacy.grant import Receipt
from understudy.training.networks import ExponentialMovingAverage
from understudy.training.private_gradient import FlatParameters

FORMAT = 2
FILE = "checkpoint.safetensors"


def identity(
    receipt: Receipt, label: str, event: dict[str, Any], clipping_norm: float, parameters: int
) -> dict[str, Any]:
    """Returns what a checkpoint must agree on with the run that resumes from it."""
    run = {"ledger": receipt.ledger, "run": receipt.run, "label": label}
    return {**run, "event": event, "clipping_norm": clipping_norm, "parameters": parameters}


def save(
    directory: Path,
    identity: dict[str, Any],
    iteration: int,
    flat: FlatParameters,
    optimiser: torch.optim.Optimizer,
    average: ExponentialMovingAverage | None = None,
) -> None:
    """Writes the state after `iteration` useful iterations; on return it is on the disk."""
    state = optimiser.state_dict()
    facts = {
        "format": FORMAT,
        "identity": identity,
        "iteration": iteration,
        "groups": state["param_groups"],
        "average_updates": average.updates if average else None,
    }
    tensors = {"values": flat.values} | ({"average": average.values} if average else {})
    for index, entries in state["state"].items():
        tensors |= {f"optimiser.{index}.{name}": tensor for name, tensor in entries.items()}
    directory.mkdir(parents=True, exist_ok=True)
    with whole_file(directory / FILE) as draft:
        draft.write_bytes(dump_tensors(tensors, {"understudy": json.dumps(facts)}))


def load(
    directory: Path,
    identity: dict[str, Any],
    executed: int,
    flat: FlatParameters,
    optimiser: torch.optim.Optimizer,
    average: ExponentialMovingAverage | None = None,
) -> int:
    """Restores a run in place and returns its useful iterations; 0 where there is no checkpoint yet.

    Raises:
        ReleaseError: the file is damaged, of another run, or ahead of what the ledger says was executed.
    """
    path = directory / FILE
    if not path.exists():
        return 0
    facts, tensors = _read(path, str(flat.values.device))
    if facts["format"] != FORMAT or facts["identity"] != identity:
        raise ReleaseError(f"'{path}' belongs to another run. Name a directory of its own for each run.")
    if facts["iteration"] > executed:
        raise ReleaseError(f"'{path}' is ahead of its ledger: an old copy of the ledger was put back.")
    flat.values.copy_(tensors["values"])
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimiser."):
            _, index, entry = name.split(".")
            state.setdefault(int(index), {})[entry] = tensor
    optimiser.load_state_dict({"state": state, "param_groups": facts["groups"]})
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
