"""What a ledger's rows mean: charges, executions, and what is left."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from understudy.privacy.plan import SpendingPlan
from understudy.privacy.store import Row, Writer


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


def paid_charges(rows: tuple[Row, ...]) -> list[dict[str, Any]]:
    """Charges that cost something; a run without private data uses up neither budget nor runs."""
    return [row.body for row in rows if row.kind == "charge" and row.body["plan"]["entries"]]


def executed_totals(rows: tuple[Row, ...], run: int) -> dict[str, int]:
    """How often each label of a run has been executed."""
    totals: dict[str, int] = {}
    for row in rows:
        if row.kind == "executed" and row.body["run"] == run:
            totals[row.body["label"]] = max(totals.get(row.body["label"], 0), int(row.body["total"]))
    return totals


def append_executed(writer: Writer, run: int, label: str, total: int) -> None:
    """Writes down that `label` has now been executed `total` times."""
    writer.append("executed", {"run": run, "label": label, "total": total, "recorded_at": now()})


def entry_of(row: Row, rows: tuple[Row, ...]) -> Entry:
    """A charge row and what later rows say about the same run."""
    run = int(row.body["run"])
    resumed = [
        other.body["secure_noise"] for other in rows if other.kind == "resumed" and other.body["run"] == run
    ]
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
    )


def now() -> str:
    """The time of day for people who read a ledger; nothing is computed from it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
