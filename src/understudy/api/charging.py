"""The ledger that a run charges: found, checked before any table is read, and opened when the charge is due."""

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
from understudy.planning.choices import existing_ledger, require_budget
from understudy.privacy.budget import Guarantee
from understudy.privacy.charges import NOT_COVERED, declared
from understudy.privacy.ledger import Ledger, record_uncovered
from understudy.privacy.plan import SpendingPlan

Payer = Ledger | str | Path  # an open ledger, or the file, folder or address of one


def payer_of(ledger: Payer | None, schema: Schema, schema_file: Path | None) -> Payer:
    """Returns who pays for a run: the ledger that was named, or the one in the folder of the schema's file."""
    remedy = "Name the file of the ledger, such as ledger='meters.ledger': the first run makes it, later runs charge it"
    if ledger is None:
        if schema_file is None:
            raise InputError(f"ledger: a file is expected, because the schema comes from no file. {remedy}.")
        require_budget(schema)
        return schema_file.absolute().parent
    require_argument(ledger, Ledger | str | Path, "ledger", f"{remedy}; on simulated data pass Ledger.scratch().")
    return ledger


def named_by(schema: Schema, ledger: Payer | None) -> Schema:
    """Returns the schema with the name of its ledger's file where a draft left its population without one.

    Two tables of two ledgers are two populations, and the registry knows a population by its name.
    """
    if schema.name != NAMELESS or ledger is None:
        return schema
    if isinstance(ledger, Ledger):
        return schema if ledger.path is None else replace(schema, name=ledger.name)
    return replace(schema, name=Path(ledger).stem) if Path(ledger).suffix == ".ledger" else schema


def run_delta(payer: Payer) -> float | None:
    """Returns the delta that an open ledger gives each run; None for a file, whose schema says it."""
    return payer.composition.run_delta if isinstance(payer, Ledger) else None


def with_budget(schema: Schema, payer: Payer, epsilon: float | None) -> Schema:
    """Returns the schema with a budget: its own, that of its ledger, or that of this one run.

    A ledger that is made for a schema without a budget holds what the first run asks for and nothing more; raising it
    is recorded.
    """
    if schema.budget is not None or (isinstance(payer, Ledger) and payer.path is None):
        return schema
    ledger = payer if isinstance(payer, Ledger) else Ledger.find(schema.name, payer)
    if ledger is None:
        if epsilon is None or not math.isfinite(epsilon):
            raise InputError("epsilon: a finite number is expected, because the schema declares no budget. Try 1.")
        return replace(schema, budget=BudgetDeclaration(epsilon=epsilon))
    rule = ledger.composition
    budget: dict[str, Any] = {"max_runs": rule.max_runs, "composition": rule.kind, **asdict(rule.guarantee)}
    return replace(schema, budget=BudgetDeclaration(**budget))


def check_budget(payer: Payer, schema: Schema, plan: SpendingPlan, label: str) -> None:
    """Refuses what the ledger can't pay, before the table is read.

    A ledger that does not exist yet, because the run will make it, is judged by what it would declare.
    """
    ledger = payer if isinstance(payer, Ledger) else existing_ledger(payer, schema)
    ledger = ledger or Ledger.in_memory(**declared(schema))
    ledger.check(plan, label=label)


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
