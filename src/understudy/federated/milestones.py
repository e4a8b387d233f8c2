"""Iterations counted before they run and saved after, so that a side killed at any moment can take part again.

All sides save after the same iterations and keep the last two checkpoints: whoever is killed while saving has the one
before, and so has everybody else.

Privacy: what is saved is made from noisy gradients that were charged before (or in modes that protect nobody, from
anything). The state of noise is never saved, nor in `sound` that of dropout, which nobody may know.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as dump_tensors
from torch import Tensor

from understudy.errors import InputError
from understudy.federated.contract import Contract
from understudy.files import whole_folder
from understudy.privacy.events import to_json
from understudy.privacy.grant import Grant
from understudy.synthesizers.vflgan_ts.updates import Update
from understudy.training import checkpoint
from understudy.training.plan import TRAINING

_KEPT, _REST = 2, "rest.safetensors"


def reached(folder: Path) -> list[int]:
    """Returns the iterations after which there is a checkpoint."""
    return sorted(int(path.name) for path in folder.glob("*") if path.name.isdigit())


class Milestones:
    """One side's checkpoints of one run.

    Args:
        updates: All that is trained at this side, by name.
        coins: Where what is random but no noise comes from.
        losses: Public figures to keep along, if there are any.
    """

    def __init__(
        self,
        folder: Path,
        grant: Grant,
        contract: Contract,
        updates: Mapping[str, Update],
        coins: torch.Generator,
        losses: list[float] | None = None,
    ) -> None:
        self._folder, self._grant, self._contract = folder, grant, contract
        self._updates, self._coins, self._losses = updates, coins, losses
        self._start = self._last = 0

    def begin(self, done: int, last: int) -> None:
        """Goes back to the checkpoint after `done` iterations; later ones, which not all sides have, are dropped."""
        if done == last == 0:
            raise InputError(
                "All iterations of the run were counted before the first checkpoint was saved: none is left. Start a "
                "run of another name, with a smaller checkpoint_every."
            )
        if done and done not in reached(self._folder):
            raise InputError(f"'aggregator': it goes on from iteration {done}, which was not saved here.")
        self._start, self._last = done, last
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
        if self._contract.method.mode == "sound":
            self._grant.begin_block(TRAINING, min(self._contract.checkpoint_every, self._last - done))

    def end(self) -> None:
        """Saves the result, so that a crash after the last iteration costs none."""
        if self._last not in reached(self._folder):
            self._save(self._last)

    def _save(self, iteration: int) -> None:
        with whole_folder(self._folder / str(iteration)) as draft:
            for name, update in self._updates.items():
                checkpoint.save(draft / name, self._identity(update), iteration, update.flat, update.optimiser, None)
            (draft / _REST).write_bytes(dump_tensors(self._rest()))
        for old in reached(self._folder)[:-_KEPT]:
            shutil.rmtree(self._folder / str(old))

    def _load(self, iteration: int) -> None:
        folder = self._folder / str(iteration)
        executed = self._grant.executed[TRAINING] if self._contract.method.mode == "sound" else iteration
        for name, update in self._updates.items():
            checkpoint.load(folder / name, self._identity(update), executed, update.flat, update.optimiser, None)
        rest = load_tensors((folder / _REST).read_bytes())
        if "coins" in rest:
            self._coins.set_state(rest["coins"])
        if self._losses is not None:
            self._losses[:] = rest["losses"].tolist()

    def _rest(self) -> dict[str, Tensor]:
        rest = {"losses": torch.tensor(self._losses or [], dtype=torch.float64)}
        if self._contract.method.mode != "sound":
            rest["coins"] = self._coins.get_state()
        return rest

    def _identity(self, update: Update) -> checkpoint.Identity:
        receipt, plan = self._grant.receipt, self._grant.plan
        labelled = [entry for entry in plan.entries if entry.label == TRAINING]
        return checkpoint.Identity(
            ledger=receipt.ledger,
            run=receipt.run,
            label=self._contract.label,
            event=to_json(labelled[0].event) if labelled else {},
            clip_norm=self._contract.method.recipe.clip_norm,
            parameters=update.flat.values.numel(),
        )
