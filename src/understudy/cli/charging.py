"""The population's ledger in a command: asked early, opened once, and named in every error after a charge."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from understudy.data import Schema
from understudy.errors import LedgerError
from understudy.planning.choices import existing_ledger
from understudy.privacy.budget import Guarantee
from understudy.privacy.charges import NOT_COVERED, declared
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import SpendingPlan


def check_budget(schema_file: Path, schema: Schema, plan: SpendingPlan, label: str) -> None:
    """Refuses what the ledger can't pay, before the table is read.

    A ledger that does not exist yet, because the run will make it, is judged by what it would declare.
    """
    ledger = existing_ledger(schema_file, schema) or Ledger.in_memory(**declared(schema))
    ledger.check(plan, label=label)


def left_in(ledger: Ledger) -> dict[str, Any]:
    """Returns what the ledger has left, as every command that charges it reports it."""
    left = ledger.remaining()
    return {"file": str(ledger.path), "epsilon_left": left.epsilon, "runs_left": left.runs}


def record_uncovered(ledger: Ledger, what: str) -> None:
    """Writes into the population's ledger, as a charge of nothing, what no guarantee covers."""
    nothing = SpendingPlan((), Guarantee(ledger.guarantee.epsilon, ledger.composition.run_delta))
    ledger.charge(nothing, label=what, noise=NoiseSource.secure())


def without_limit(ledger: Ledger, schema: Schema, guarantee: Guarantee, label: str) -> Ledger:
    """Returns the ledger of one run that is not private, after the population's ledger has recorded that run."""
    record_uncovered(ledger, f"{label}: {NOT_COVERED}")
    who, size = schema.unit.sentence(), schema.protected_units
    return Ledger.in_memory(guarantee, name=schema.name, unit_sentence=who, population=size)


@contextmanager
def charging(schema_file: Path, schema: Schema) -> Iterator[Ledger]:
    """Yields the population's ledger; adds to any error whether it had been charged: a charge is never given back."""
    ledger = Ledger.open_for(schema, schema_file.absolute().parent)
    before = ledger.head()
    try:
        yield ledger
    except BaseException as problem:
        try:
            if ledger.head() != before:
                problem.add_note("The run had been charged and stays charged: `understudy ledger show` prints it.")
        except LedgerError:  # the disk fails
            problem.add_note("Whether the run was charged can't be read now: run `understudy ledger show` later.")
        raise
