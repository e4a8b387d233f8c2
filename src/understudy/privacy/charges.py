"""What a ledger's rows mean: charges, executions, and what is left."""

import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any

import pydantic

from understudy.errors import BudgetExceeded, InputError, LedgerError
from understudy.privacy import canonical
from understudy.privacy.budget import check_delta
from understudy.privacy.composition import TOLERANCE, Composition
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import SpendingPlan
from understudy.privacy.store import Row, Writer
from understudy.privacy.workload import check_workload


@dataclass(frozen=True, kw_only=True)
class Remaining:
    """What is left: epsilon for one more run, the delta that run may use, and how many runs may follow."""

    epsilon: float
    delta: float
    runs: int | None


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One charge as `understudy ledger show` prints it."""

    run: int
    label: str
    epsilon: float
    delta: float
    amount: float
    recorded_at: str
    plan: SpendingPlan
    executed: dict[str, int]
    secure_noise: bool
    sequence: int


_Amount = Annotated[float, pydantic.Field(ge=0)]


@dataclass(frozen=True, kw_only=True)
class _Charge:
    """Body of a row that charges a run."""

    run: int
    label: str
    epsilon: _Amount
    delta: _Amount
    amount: _Amount
    plan: dict[str, Any]
    secure_noise: bool
    recorded_at: str


@dataclass(frozen=True, kw_only=True)
class _Executed:
    """Body of a row that counts executions."""

    run: int
    label: str
    total: int
    recorded_at: str


@dataclass(frozen=True, kw_only=True)
class _Resumed:
    """Body of a row that hands out a run again."""

    run: int
    secure_noise: bool
    recorded_at: str


@dataclass(frozen=True, kw_only=True)
class _Raised:
    """Body of a row that raises the budget; the later of two holds."""

    epsilon: _Amount
    max_runs: Annotated[int, pydantic.Field(ge=1)]
    reason: str
    recorded_at: str


@dataclass(frozen=True, kw_only=True)
class _Adopted:
    """Body of a row with which a person went on with an older copy; what the newer one had spent stays spent."""

    forgotten_sequence: int
    forgotten_head: str
    runs: Annotated[int, pydantic.Field(ge=0)]
    amount: _Amount
    reason: str
    recorded_at: str


_Body = _Charge | _Executed | _Resumed | _Raised | _Adopted


def check_rows(rows: tuple[Row, ...]) -> None:
    """Refuses what no ledger writes, even if its hashes fit: other fields, or executions that were not charged."""
    plans: list[SpendingPlan] = []
    for row in rows:
        body = _parsed(row)
        if isinstance(body, _Raised | _Adopted):
            continue
        if isinstance(body, _Charge):
            plans.append(SpendingPlan.from_json(body.plan))
        charged = body.run == len(plans) if isinstance(body, _Charge) else 1 <= body.run <= len(plans)
        if not charged or (isinstance(body, _Executed) and body.total > plans[body.run - 1].executions(body.label)):
            raise LedgerError(f"Row {row.sequence} speaks of a run that was not charged.")


def _parsed(row: Row) -> _Body:
    values = {key: canonical.number(value) if value == "inf" else value for key, value in row.body.items()}
    body: _Body = _bodies()[row.kind].validate_json(json.dumps(values), strict=True)
    return body


@cache
def _bodies() -> dict[str, pydantic.TypeAdapter[Any]]:
    kinds = {"charge": _Charge, "executed": _Executed, "resumed": _Resumed, "raised": _Raised, "adopted": _Adopted}
    return {kind: pydantic.TypeAdapter(body) for kind, body in kinds.items()}


def paid_charges(rows: tuple[Row, ...]) -> list[dict[str, Any]]:
    """Charges that cost something; a run without private data uses up neither budget nor runs."""
    paid = [row.body for row in rows if row.kind == "charge" and row.body["plan"]["entries"]]
    for row in rows:
        if row.kind == "adopted":  # what an older copy has forgotten
            paid += [{"amount": float(row.body["amount"]) / max(1, row.body["runs"])}] * row.body["runs"]
    return paid


def amount_left(composition: Composition, charges: list[dict[str, Any]]) -> float:
    """What the rule's own currency has left after these charges."""
    if math.isinf(composition.limit):
        return math.inf
    return composition.limit - sum(float(body["amount"]) for body in charges)


def check_price(
    composition: Composition, plan: SpendingPlan, label: str, population: int | None, reproduction: str | None
) -> float:
    """Returns what a run costs; refuses one that costs more than it promises or asks for too much delta."""
    if math.isfinite(plan.guarantee.epsilon):  # what promises nothing is not accounted for in detail
        check_workload(plan.events)
    if plan.epsilon() > plan.guarantee.epsilon * (1 + 1e-6):
        raise InputError(
            f"The plan '{label}' costs more than the epsilon = {plan.guarantee.epsilon:g} it promises. "
            "Calibrate its noise."
        )
    check_delta(plan.guarantee.delta, population, reproduction=reproduction)
    if plan.guarantee.delta > composition.run_delta * (1 + TOLERANCE) and plan.entries:
        share = f" (its delta divided by max_runs = {composition.max_runs})" if composition.kind == "basic" else ""
        raise BudgetExceeded(
            f"'{label}' asks for delta = {plan.guarantee.delta:g}, but this ledger gives each run at most "
            f"{composition.run_delta:g}{share}. Ask for that delta or less.",
            requested=plan.guarantee.delta,
            remaining=composition.run_delta,
            label=label,
        )
    return composition.price(plan)


def check_room(
    composition: Composition, charges: list[dict[str, Any]], plan: SpendingPlan, price: float, label: str
) -> None:
    """Refuses a run that the ledger can't pay for, by number of runs or by amount."""
    if not plan.entries:
        return
    if composition.kind == "basic" and len(charges) >= composition.max_runs:
        raise BudgetExceeded(
            f"'{label}' would be run {len(charges) + 1} of a ledger for {composition.max_runs}: its delta is "
            "shared among that many runs and is spent.",
            requested=price,
            remaining=0.0,
            label=label,
        )
    left = amount_left(composition, charges)
    if price > left + TOLERANCE * max(1.0, min(composition.limit, 1e6)):
        spendable = composition.epsilon_left(left)
        raise BudgetExceeded(
            f"'{label}' asks for epsilon = {plan.epsilon():.4g} at delta = {plan.guarantee.delta:g}, but "
            f"epsilon = {spendable:.4g} is left of {composition.guarantee.epsilon:g} in this ledger. "
            "Nothing was charged. Ask for less, or use a release already made.",
            requested=plan.epsilon(),
            remaining=spendable,
            label=label,
        )


def charge_body(run: int, plan: SpendingPlan, price: float, label: str, noise: NoiseSource) -> dict[str, Any]:
    """Returns the row that charges a run."""
    return {
        "run": run,
        "label": label,
        "epsilon": plan.epsilon(),
        "delta": plan.guarantee.delta if plan.entries else 0.0,
        "amount": price,
        "plan": plan.to_json(),
        "secure_noise": noise.is_secure,
        "recorded_at": now(),
    }


def executed_totals(rows: tuple[Row, ...], run: int) -> dict[str, int]:
    """How often each label of a run has been executed."""
    totals: dict[str, int] = {}
    for row in rows:
        if row.kind == "executed" and row.body["run"] == run:
            totals[row.body["label"]] = max(totals.get(row.body["label"], 0), int(row.body["total"]))
    return totals


def latest_total(rows: tuple[Row, ...], run: int, label: str) -> int:
    """How often one label of a run has been executed; looks from the end, because totals only grow."""
    for row in reversed(rows):
        if row.kind == "executed" and row.body["run"] == run and row.body["label"] == label:
            return int(row.body["total"])
    return 0


def append_executed(writer: Writer, run: int, label: str, total: int) -> None:
    """Writes down that `label` has now been executed `total` times."""
    writer.append("executed", {"run": run, "label": label, "total": total, "recorded_at": now()})


def entry_of(row: Row, rows: tuple[Row, ...]) -> Entry:
    """A charge row and what later rows say about the same run."""
    run = int(row.body["run"])
    resumed = [other.body["secure_noise"] for other in rows if other.kind == "resumed" and other.body["run"] == run]
    return Entry(
        run=run,
        label=str(row.body["label"]),
        epsilon=float(row.body["epsilon"]),
        delta=float(row.body["delta"]),
        amount=float(row.body["amount"]),
        recorded_at=str(row.body["recorded_at"]),
        plan=SpendingPlan.from_json(row.body["plan"]),
        executed=executed_totals(rows, run),
        secure_noise=bool(row.body["secure_noise"]) and all(resumed),
        sequence=row.sequence,
    )


def now() -> str:
    """The time of day for people who read a ledger; nothing is computed from it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
