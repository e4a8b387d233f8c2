"""The ledger that a run charges: found once, checked before any table is read, made when the first charge is due."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from understudy.data import BudgetDeclaration, Schema
from understudy.data.draft import NAMELESS
from understudy.data.type_checks import require_argument
from understudy.errors import BudgetExceeded, InputError, LedgerError
from understudy.planning.choices import require_budget
from understudy.privacy.budget import Guarantee
from understudy.privacy.charges import NOT_COVERED, declared
from understudy.privacy.ledger import Ledger, record_uncovered
from understudy.privacy.plan import SpendingPlan

Payer = Ledger | str | Path  # an open ledger, or the file, folder or address of one


def payer_of(ledger: Payer | None, schema: Schema, schema_file: Path | None) -> tuple[Payer, Schema]:
    """Returns who pays for a run, open if it exists already, and the schema with the name of its ledger.

    A draft that left its population without a name gets that of its ledger's file: two tables of two ledgers are two
    populations, and the registry knows a population by its name.
    """
    remedy = "Name the file of the ledger, such as ledger='meters.ledger': the first run makes it, later runs charge it"
    if ledger is None:
        if schema_file is None:
            raise InputError(f"ledger: a file is expected, because the schema comes from no file. {remedy}.")
        require_budget(schema)
        ledger = schema_file.absolute().parent
    require_argument(ledger, Ledger | str | Path, "ledger", f"{remedy}; on simulated data pass Ledger.scratch().")
    if schema.name == NAMELESS and isinstance(ledger, Ledger) and ledger.path is not None:
        schema = replace(schema, name=ledger.name)
    elif schema.name == NAMELESS and isinstance(ledger, str | Path) and Path(ledger).suffix == ".ledger":
        schema = replace(schema, name=Path(ledger).stem)
    if isinstance(ledger, Ledger):
        return ledger, schema
    found = Ledger.find(schema.name, ledger) if schema.budget is None else Ledger.find_for(schema, ledger)
    return found or ledger, schema


def with_budget(schema: Schema, payer: Payer, epsilon: float | None) -> Schema:
    """Returns the schema with a budget: its own, that of its ledger, or that of this one run.

    A ledger that is made for a schema without a budget holds what the first run asks for and nothing more; raising it
    is recorded.
    """
    if schema.budget is not None or (isinstance(payer, Ledger) and payer.path is None):
        return schema
    if isinstance(payer, Ledger):
        rule = payer.composition
        budget: dict[str, Any] = {"max_runs": rule.max_runs, "composition": rule.kind, **asdict(rule.guarantee)}
        return replace(schema, budget=BudgetDeclaration(**budget))
    if epsilon is None or not math.isfinite(epsilon):
        raise InputError("epsilon: a finite number is expected, because the schema declares no budget. Try 1.")
    return replace(schema, budget=BudgetDeclaration(epsilon=epsilon))


def check_budget(payer: Payer, schema: Schema, plan: SpendingPlan, label: str) -> None:
    """Refuses what the ledger can't pay, before the table is read; one that is yet to be made, by what it declares."""
    found = payer if isinstance(payer, Ledger) else Ledger.find_for(schema, payer)
    (found or Ledger.in_memory(**declared(schema))).check(plan, label=label)


def without_limit(ledger: Ledger, schema: Schema, guarantee: Guarantee, label: str) -> Ledger:
    """Returns the ledger of one run that is not private, after the population's ledger has recorded that run."""
    record_uncovered(ledger, f"{label}: {NOT_COVERED}")
    who, size = schema.unit.sentence(), schema.protected_units
    return Ledger.in_memory(guarantee, name=schema.name, unit_sentence=who, population=size)


@contextmanager
def charging(payer: Payer, schema: Schema) -> Iterator[Ledger]:
    """Yields the population's ledger; adds to any error whether it had been charged: a charge is never given back."""
    ledger = payer if isinstance(payer, Ledger) else Ledger.open_for(schema, payer)
    before = ledger.head()
    try:
        yield ledger
    except BudgetExceeded:  # nothing was charged; what the ledger recorded meanwhile is another run's
        raise
    except BaseException as problem:
        try:
            if ledger.head() != before:
                problem.add_note("The run had been charged and stays charged: `understudy ledger show` prints it.")
        except LedgerError:  # the disk fails
            problem.add_note("Whether the run was charged can't be read now: run `understudy ledger show` later.")
        raise
