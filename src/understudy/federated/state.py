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
from typing import Any

import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as dump_tensors

from understudy.errors import InputError, LedgerError
from understudy.federated.contract import Contract
from understudy.files import whole_file, whole_folder
from understudy.privacy.budget import Guarantee
from understudy.privacy.charges import Entry
from understudy.privacy.events import to_json
from understudy.privacy.grant import Grant
from understudy.privacy.ledger import Ledger
from understudy.synthesizers.vflgan_ts.updates import Update
from understudy.training import checkpoint
from understudy.training.plan import TRAINING

_KEPT, _REST = 2, "rest.safetensors"


@dataclass(frozen=True, kw_only=True)
class Account:
    """The ledger of the people that one side answers for: all that is ever done to their data is charged to it."""

    file: Path  # made on first use
    name: str  # of the population
    guarantee: Guarantee  # all that may ever be spent on them
    max_runs: int = 1

    def ledger(self, contract: Contract) -> Ledger:
        """Opens the ledger, or makes it; one that was made for another budget is refused."""
        unit, size = contract.schema.unit.sentence(), contract.schema.protected_units
        if not self.file.exists():
            self.file.parent.mkdir(parents=True, exist_ok=True)
            return Ledger.create(
                self.file, name=self.name, unit_sentence=unit, guarantee=self.guarantee, max_runs=self.max_runs,
                population=size,
            )  # fmt: skip
        ledger = Ledger.open(self.file)
        if not ledger.is_declared_as(self.name, unit, self.guarantee, self.max_runs):
            raise LedgerError(
                f"'{self.file}' was made for other people or with another budget than [ledger] says. Put the "
                "declaration back: what was promised about spent budget can't be changed afterwards."
            )
        return ledger

    def check(self, contract: Contract) -> None:
        """Refuses, before a connection is opened, what the charge would refuse."""
        ledger = self.ledger(contract)
        if _charged(ledger, contract) is None:
            ledger.check(contract.plan, label=contract.label)

    def grant(self, contract: Contract, side: str) -> Grant:
        """Charges the run, or takes up what is left of it if it was charged before.

        Privacy: on return the whole run is on the disk. Nothing is given back, whatever happens later.
        """
        ledger, noise = self.ledger(contract), contract.noise(side)
        entry = _charged(ledger, contract)
        if entry is None:
            return ledger.charge(contract.plan, label=contract.label, noise=noise)
        return ledger.resume(entry.run, noise=noise)


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
    if contract.method.mode == "sound":
        left = grant.remaining(TRAINING)
    return [left, *reached(checkpoints)]


def require_unused(grant: Grant, label: str, contract: Contract) -> None:
    """Refuses to release a label a second time, where a crash came between its release and the disk."""
    if not grant.remaining(label):
        raise InputError(
            f"'{label}' was bought and lost in a crash before it was saved, and is not given twice. Start a run of "
            f"another name than '{contract.name}'; it has its own charge."
        )


def _charged(ledger: Ledger, contract: Contract) -> Entry | None:
    found = next((entry for entry in ledger.entries() if entry.label == contract.label), None)
    if found is not None and found.plan != contract.plan:
        raise LedgerError(
            f"'{ledger.path}' has this run with another plan: it was charged by another version of Understudy. Resume "
            "with that version, or start a run of another name."
        )
    return found


def reached(folder: Path) -> list[int]:
    """Returns the iterations after which there is a checkpoint."""
    return sorted(int(path.name) for path in folder.glob("*") if path.name.isdigit())


class Checkpoints:
    """One side's checkpoints of one run, from the one after `done` iterations on; not all sides have later ones.

    Args:
        updates: All that is trained at this side, by name.
        randomness: The source of latents and dropout.
        losses: Public figures to save with them.
    """

    def __init__(
        self,
        folder: Path,
        grant: Grant,
        contract: Contract,
        updates: Mapping[str, Update],
        randomness: torch.Generator,
        losses: list[float],
        *,
        done: int,
        last: int,
    ) -> None:
        self._folder, self._grant, self._contract, self._start, self._last = folder, grant, contract, done, last
        self._updates, self._randomness, self._losses = updates, randomness, losses
        self._sound = contract.method.mode == "sound"
        if done == last == 0:
            raise InputError(
                "All iterations of the run were counted before the first checkpoint was saved: none is left. Start a "
                "run of another name, with a smaller checkpoint_every."
            )
        if done and done not in reached(self._folder):
            raise InputError(f"'aggregator': it goes on from iteration {done}, which was not saved here.")
        for path in self._folder.glob("*"):
            if not path.name.isdigit() or int(path.name) > done:  # drafts of a crash, too
                shutil.rmtree(path)
        if done:
            self._load(done)

    def before(self, iteration: int) -> None:
        """Saves what a whole block of iterations has made, then counts the next block as executed."""
        done = iteration - 1
        if (done - self._start) % self._contract.checkpoint_every:
            return
        if done > self._start:
            self._save(done)
        if self._sound:
            self._grant.begin_block(TRAINING, min(self._contract.checkpoint_every, self._last - done))

    def end(self) -> None:
        """Saves the result, so that a crash after the last iteration costs none."""
        if self._last not in reached(self._folder):
            self._save(self._last)

    def _save(self, iteration: int) -> None:
        with whole_folder(self._folder / str(iteration)) as draft:
            for name, update in self._updates.items():
                checkpoint.save(draft / name, self._identity(update), iteration, update.flat, update.optimiser)
            rest = {"losses": torch.tensor(self._losses, dtype=torch.float64)}
            if not self._sound:
                rest["randomness"] = self._randomness.get_state()
            (draft / _REST).write_bytes(dump_tensors(rest))
        for old in reached(self._folder)[:-_KEPT]:
            shutil.rmtree(self._folder / str(old))

    def _load(self, iteration: int) -> None:
        folder = self._folder / str(iteration)
        executed = self._grant.executed[TRAINING] if self._sound else iteration
        for name, update in self._updates.items():
            checkpoint.load(folder / name, self._identity(update), executed, update.flat, update.optimiser)
        rest = load_tensors((folder / _REST).read_bytes())
        if "randomness" in rest:
            self._randomness.set_state(rest["randomness"])
        self._losses[:] = rest["losses"].tolist()

    def _identity(self, update: Update) -> dict[str, Any]:
        events = [to_json(entry.event) for entry in self._grant.plan.entries if entry.label == TRAINING]
        clip_norm, size = self._contract.method.recipe.clip_norm, update.flat.values.numel()
        event = events[0] if events else {}
        return checkpoint.identity(self._grant.receipt, self._contract.label, event, clip_norm, size)
