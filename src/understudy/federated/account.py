"""A side's own ledger: charged before any of its data is used, found again when a run resumes."""

from dataclasses import dataclass
from pathlib import Path

from understudy.errors import InputError, LedgerError
from understudy.federated.contract import Contract
from understudy.privacy.budget import Guarantee
from understudy.privacy.charges import Entry
from understudy.privacy.grant import Grant
from understudy.privacy.ledger import Ledger
from understudy.training.plan import TRAINING


@dataclass(frozen=True, kw_only=True)
class Account:
    """The ledger of the people that one side answers for.

    Attributes:
        file: Made on first use.
        name: Of the population: all that is ever done to these people's data is charged to the ledger of that name.
        guarantee: All that may ever be spent on them.
    """

    file: Path
    name: str
    guarantee: Guarantee
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
        """Refuses, before anybody is connected, what the charge would refuse."""
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


def iterations_left(grant: Grant, contract: Contract) -> int:
    """Returns how many iterations may still run. Those that were counted and lost in a crash are not given back."""
    if contract.method.mode == "sound":
        return grant.remaining(TRAINING)
    return contract.method.recipe.iterations


def once(grant: Grant, label: str) -> bool:
    """Says whether a label that is executed once is still to be; what it gave must have been kept if not."""
    return grant.remaining(label) > 0


def lost(label: str, contract: Contract) -> InputError:
    """What to say where a crash came between a purchase and the disk."""
    return InputError(
        f"'{label}' was bought and lost in a crash before it was saved, and is not given twice. Start a run of "
        f"another name than '{contract.name}': it is charged anew."
    )


def _charged(ledger: Ledger, contract: Contract) -> Entry | None:
    found = next((entry for entry in ledger.entries() if entry.label == contract.label), None)
    if found is not None and found.plan != contract.plan:
        raise LedgerError(
            f"'{ledger.path}' has this run with another plan: it was charged by another version of Understudy. Go on "
            "with that version, or start a run of another name."
        )
    return found
