"""What one side keeps on its own disk: its ledger, charged before any of its data is used, and its checkpoints.

Iterations are counted before they run and saved after, so that a side killed at any moment can take part again. All
sides save after the same iterations and keep the last two checkpoints: a side that is killed while saving has the one
before, and so have all others.

Privacy: checkpoints are made from noisy gradients that were charged before (or in modes that protect no unit, from
anything). The state of noise is never saved, nor in `sound` that of latents.
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as dump_tensors

from understudy.errors import InputError
from understudy.federated.config import Contract
from understudy.files import whole_file, whole_folder
from understudy.privacy.events import to_json
from understudy.privacy.grant import Grant
from understudy.synthesizers.vflgan_ts.updates import Update
from understudy.training import checkpoint
from understudy.training.plan import TRAINING

_KEPT, _REST = 2, "rest.safetensors"
Progress = Callable[[str, float], None]  # is told the stage and the share of all iterations


def kept(file: Path, make: Callable[[], bytes]) -> bytes:
    """Returns what a run made before, or makes it and keeps it, so that a resumed run has the same."""
    if not file.exists():
        content = make()
        with whole_file(file) as draft:
            draft.write_bytes(content)
    return file.read_bytes()


def known(grant: Grant, contract: Contract, checkpoints: Path) -> list[int]:
    """Returns how many iterations may still run, then those after which there is a checkpoint.

    Iterations that were counted and lost in a crash are not given back.
    """
    left = contract.method.recipe.iterations
    if contract.sound:
        left = grant.remaining(TRAINING)
    return [left, *reached(checkpoints)]


def require_unused(grant: Grant, label: str, contract: Contract) -> None:
    """Refuses to release a label a second time, where a crash came between its release and the disk."""
    if not grant.remaining(label):
        raise InputError(
            f"'{label}' was bought and lost in a crash before it was saved, and is not given twice. Start a run of "
            f"another name than '{contract.name}'; it has its own charge."
        )


def reached(folder: Path) -> list[int]:
    """Returns the iterations after which there is a checkpoint."""
    return sorted(int(path.name) for path in folder.glob("*") if path.name.isdigit())


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Checkpoints:
    """One side's checkpoints of one run, from the one after `done` iterations on; not all sides have later ones."""

    folder: Path
    grant: Grant
    contract: Contract
    updates: Mapping[str, Update]  # all that is trained at this side, by name
    randomness: torch.Generator  # of latents and dropout
    losses: list[float]  # public figures to save with them
    progress: Progress
    done: int
    last: int

    def __post_init__(self) -> None:
        if self.done == self.last == 0:
            raise InputError(
                "All iterations of the run were counted before the first checkpoint was saved: none is left. Start a "
                "run of another name, with a smaller checkpoint_every."
            )
        if self.done and self.done not in reached(self.folder):
            raise InputError(f"'aggregator': it goes on from iteration {self.done}, which was not saved here.")
        for path in self.folder.glob("*"):
            if not path.name.isdigit() or int(path.name) > self.done:  # drafts of a crash, too
                shutil.rmtree(path)
        if self.done:
            self._load()

    def before(self, iteration: int) -> None:
        """Saves what a whole block of iterations has made, then counts the next block as executed."""
        self.progress("training", iteration / max(1, self.last))
        done = iteration - 1
        if (done - self.done) % self.contract.checkpoint_every:
            return
        if done > self.done:
            self._save(done)
        if self.contract.sound:
            self.grant.begin_block(TRAINING, min(self.contract.checkpoint_every, self.last - done))

    def end(self) -> None:
        """Saves the result, so that a crash after the last iteration costs none."""
        if self.last not in reached(self.folder):
            self._save(self.last)

    def _save(self, iteration: int) -> None:
        with whole_folder(self.folder / str(iteration)) as draft:
            for name, update in self.updates.items():
                checkpoint.save(draft / name, self._identity(update), iteration, update.flat, update.optimiser, None)
            rest = {"losses": torch.tensor(self.losses, dtype=torch.float64)}
            if not self.contract.sound:
                rest["randomness"] = self.randomness.get_state()
            (draft / _REST).write_bytes(dump_tensors(rest))
        for old in reached(self.folder)[:-_KEPT]:
            shutil.rmtree(self.folder / str(old))

    def _load(self) -> None:
        folder = self.folder / str(self.done)
        executed = self.grant.executed[TRAINING] if self.contract.sound else self.done
        for name, update in self.updates.items():
            checkpoint.load(folder / name, self._identity(update), executed, update.flat, update.optimiser, None)
        rest = load_tensors((folder / _REST).read_bytes())
        if "randomness" in rest:
            self.randomness.set_state(rest["randomness"])
        self.losses[:] = rest["losses"].tolist()

    def _identity(self, update: Update) -> checkpoint.Identity:
        receipt = self.grant.receipt
        events = [to_json(entry.event) for entry in self.grant.plan.entries if entry.label == TRAINING]
        return checkpoint.Identity(
            ledger=receipt.ledger,
            run=receipt.run,
            label=self.contract.label,
            event=events[0] if events else {},
            clip_norm=self.contract.method.recipe.clip_norm,
            parameters=update.flat.values.numel(),
        )
