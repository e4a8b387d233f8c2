"""What a ledger is about and what its rows mean: declared facts, composition of runs, charges and amendments.

Inside a run all parameters are frozen first, so the run has one privacy loss distribution. Across runs each may be
chosen after seeing the results of the last, and then only some rules hold: basic composition of each run's (epsilon,
delta) (Rogers et al. 2016), Rényi divergence at one order chosen beforehand (Feldman & Zrnic 2021), and concentrated
DP. Adding up privacy loss distributions of adaptively chosen runs is *not* among them.
"""

import math
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, Unpack

import pydantic

from understudy.data.type_checks import require_argument
from understudy.errors import BudgetExceeded, InputError, LedgerError, SchemaError
from understudy.privacy import canonical
from understudy.privacy.accounting import (
    ORDERS,
    check_workload,
    concentrated_budget,
    concentrated_rho,
    gaussian_epsilon,
    renyi_at,
)
from understudy.privacy.budget import Guarantee, at_least, at_most, check_delta
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import SpendingPlan
from understudy.privacy.store import Row

if TYPE_CHECKING:
    from understudy.data import Schema

COMPOSITIONS = ("basic", "rdp", "zcdp")
TOLERANCE = 1e-9  # rounding only: a budget of 2 must pay for two runs of 1


@dataclass(frozen=True, kw_only=True)
class Composition:
    """The rule a ledger was created with. Its kind never changes; its budget may be raised, on the record.

    Attributes:
        first: The budget before it was raised, for which an "rdp" ledger chose its order; None if it never was.
    """

    kind: str
    guarantee: Guarantee
    max_runs: int = 1
    first: Guarantee | None = None

    def __post_init__(self) -> None:
        if self.kind not in COMPOSITIONS:
            raise InputError(f"composition must be one of {', '.join(COMPOSITIONS)}, got '{self.kind}'.")
        if self.max_runs < 1:
            raise InputError(f"max_runs must be at least 1, got {self.max_runs}.")
        if self.kind != "basic" and math.isinf(self.guarantee.epsilon):
            raise InputError("An infinite budget (for runs that are not private) needs composition = 'basic'.")

    @property
    def run_delta(self) -> float:
        """The most delta one run may use: an equal slice under basic composition, else all of it."""
        return self.guarantee.delta / self.max_runs if self.kind == "basic" else self.guarantee.delta

    @cached_property
    def order(self) -> float:
        """The one Rényi order of an "rdp" ledger: where Gaussian releases get most out of the budget."""
        chosen_for = self.first or self.guarantee  # what was charged at one order can't be told at another
        room = [(_renyi_room(chosen_for, order) / order, order) for order in ORDERS]
        return float(max(room)[1])

    @cached_property
    def limit(self) -> float:
        """The whole budget in the rule's own currency: epsilon, Rényi divergence or rho."""
        if self.kind == "basic":
            return self.guarantee.epsilon
        if self.kind == "rdp":
            return max(0.0, _renyi_room(self.guarantee, self.order))
        return concentrated_budget(self.guarantee.epsilon, self.guarantee.delta)

    def price(self, plan: SpendingPlan) -> float:
        """What a run costs in the rule's own currency."""
        if self.kind == "basic":
            return plan.epsilon()
        if self.kind == "rdp":
            return renyi_at(plan.events, self.order)
        rho = concentrated_rho(plan.events)
        if rho is None:
            raise InputError(
                "This ledger composes by zCDP, which holds only un-subsampled Gaussian (and pure) releases; "
                "DP-SGD would lose its amplification. Use a ledger with composition = 'basic'."
            )
        return rho

    def epsilon_left(self, left: float) -> float:
        """Epsilon that one more run may ask for: exact under "basic", else for one Gaussian release."""
        if self.kind == "basic" or left <= 0:
            return max(0.0, left)
        rho = left / self.order if self.kind == "rdp" else left
        return gaussian_epsilon(math.sqrt(2 * rho), self.run_delta)


def _renyi_room(guarantee: Guarantee, order: float) -> float:
    """Divergence at `order` that (epsilon, delta) pays for (arXiv:2004.00010v4, Proposition 12, inverted)."""
    return guarantee.epsilon - math.log1p(-1 / order) + math.log(guarantee.delta * order) / (order - 1)


class Options(TypedDict, total=False):
    """Options of a new ledger, which `Ledger.create` and `Ledger.in_memory` take.

    Attributes:
        max_runs: Largest number of runs; basic composition splits delta over them.
        composition: "basic", "rdp" or "zcdp", as in a schema.
        population: Declared number of units, by which a delta that is too large is refused.
        reproduction: A paper whose own delta is wanted; every certificate will say *not private*.
    """

    max_runs: int
    composition: str
    population: int | None
    reproduction: str | None


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the first row of a ledger states; the types hold whichever program wrote the file."""

    identity: str
    name: str
    unit: str
    epsilon: canonical.Number
    delta: float
    max_runs: int
    composition: str
    population: int | None
    reproduction: str | None

    def __post_init__(self) -> None:
        check_delta(self.delta, self.population, reproduction=self.reproduction)
        Composition(kind=self.composition, guarantee=self.guarantee, max_runs=self.max_runs)

    @property
    def guarantee(self) -> Guarantee:
        """The budget before it was raised."""
        return Guarantee(self.epsilon, self.delta)

    @classmethod
    def new(cls, name: str, unit_sentence: str, guarantee: Guarantee, **options: Unpack[Options]) -> "Facts":
        """Return the facts of a new ledger."""
        usual = {"max_runs": 1, "composition": "basic", "population": None, "reproduction": None}
        chosen: dict[str, Any] = {**usual, **options}
        require_argument(guarantee, Guarantee, "guarantee", "Write Guarantee(1.0, 1e-6).")
        require_argument(chosen["max_runs"], int, "max_runs", "Write max_runs=5.")
        require_argument(chosen["population"], int | None, "population", "Write population=10000.")
        chosen |= {"epsilon": guarantee.epsilon, "delta": guarantee.delta}
        return cls(identity=uuid.uuid4().hex, name=name, unit=unit_sentence, **chosen)


def declared(schema: "Schema") -> dict[str, Any]:
    """What a schema says about its ledger."""
    budget = schema.budget
    if budget is None:
        raise SchemaError(
            "The schema declares no [budget]: add epsilon, max_runs and, if you like, delta.", key="budget"
        )
    if budget.delta is None and schema.population.size is None:
        raise SchemaError(
            "Declare budget.delta, or population.size from which it follows as 1/(100·size).", key="budget.delta"
        )
    return {
        "name": schema.name,
        "unit_sentence": schema.unit.sentence(),
        "guarantee": Guarantee(budget.epsilon, schema.delta if budget.delta is None else budget.delta),
        "max_runs": budget.max_runs,
        "composition": budget.composition,
        "population": schema.protected_units,
    }


def ledger_file(place: Path | str | None, name: str) -> Path:
    """The file of a population's ledger: `place` if it is one, else `<name>.ledger` in that folder."""
    path = Path("." if place is None else place).absolute()
    return path if path.suffix == ".ledger" else path / f"{file_name(name)}.ledger"


def file_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise SchemaError(
            f"The population name '{name}' can't be a file name: use letters, digits, '.', '_' and '-'.",
            key="name",
        )
    return name


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


NOT_COVERED = "not private, covered by no guarantee"  # how the label of such a run ends
_Amount, _Count = Annotated[canonical.Number, pydantic.Field(ge=0)], Annotated[int, pydantic.Field(ge=0)]
_PRICE = {"epsilon": _Amount, "delta": _Amount, "amount": _Amount}
_FIELDS: dict[str, dict[str, Any]] = {  # of the body of each kind of row, besides `recorded_at`
    "charge": {"run": int, "label": str, "plan": dict[str, Any], "secure_noise": bool, **_PRICE},
    "executed": {"run": int, "label": str, "total": int},
    "resumed": {"run": int, "secure_noise": bool},  # a run is handed out again
    "raised": {"epsilon": _Amount, "max_runs": Annotated[int, pydantic.Field(ge=1)], "reason": str},  # the last holds
    # a person went on with an older copy; what the newer had spent is spent
    "adopted": {
        "forgotten_sequence": int,
        "forgotten_head": str,
        "releases": tuple[str, ...],
        "runs": _Count,
        "amount": _Amount,
        "reason": str,
    },
    "moved": {"place": str},  # closed here: the ledger goes on at that place
    "arrived": {"place": str},  # and this is the place
}


@cache
def _model(kind: str) -> type[pydantic.BaseModel]:
    typed: dict[str, Any] = {name: (type_, ...) for name, type_ in {**_FIELDS[kind], "recorded_at": str}.items()}
    return pydantic.create_model(kind, **typed)


def check_rows(rows: tuple[Row, ...]) -> None:
    """Refuses what no ledger writes, even if its hashes fit: other fields, or executions that were not charged."""
    plans: list[SpendingPlan] = []
    for row in rows:
        body = _parsed(row)
        if row.kind == "charge":
            plans.append(SpendingPlan.from_json(body["plan"]))
        run = body.get("run", 1)
        charged = run == len(plans) if row.kind == "charge" else "run" not in body or 1 <= run <= len(plans)
        if not charged or (row.kind == "executed" and body["total"] > plans[run - 1].executions(body["label"])):
            raise LedgerError(f"Row {row.sequence} speaks of a run that was not charged.")


def is_closed(rows: Sequence[Row]) -> bool:
    """Whether the ledger goes on at another place."""
    return next((row.kind for row in reversed(rows) if row.kind in ("moved", "arrived")), "") == "moved"


def require_open(rows: Sequence[Row], place: str) -> None:
    """Refuses the place that a ledger has left."""
    if is_closed(rows):
        to = next(row.body["place"] for row in reversed(rows) if row.kind == "moved")
        raise LedgerError(
            f"The ledger '{place}' was moved to '{to}' and is closed here. Open it there once: "
            f"`understudy ledger show '{to}'`. A move that was cut short is completed by the same `understudy ledger "
            "move`."
        )


def adopted_heads(rows: Sequence[Row]) -> set[str]:
    """Heads of releases that the ledger has forgotten and that were counted as spent."""
    return {head for row in rows if row.kind == "adopted" for head in row.body["releases"]}


def _parsed(row: Row) -> dict[str, Any]:
    return canonical.typed(_model(row.kind), row.body).model_dump()


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
            f"'{label}' asks for epsilon = {at_most(plan.epsilon(), 4)} at delta = {plan.guarantee.delta:g}, but "
            f"epsilon = {at_least(spendable)} is left of {composition.guarantee.epsilon:g} in this ledger. "
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
    }


def latest_total(rows: tuple[Row, ...], run: int, label: str) -> int:
    """How often one label of a run has been executed; looks from the end, because totals only grow."""
    for row in reversed(rows):
        if row.kind == "executed" and row.body["run"] == run and row.body["label"] == label:
            return int(row.body["total"])
    return 0


def entry_of(row: Row, rows: tuple[Row, ...]) -> Entry:
    """A charge row and what later rows say about the same run."""
    body = _parsed(row)
    run, plan = body["run"], SpendingPlan.from_json(body["plan"])
    resumed = [other.body["secure_noise"] for other in rows if other.kind == "resumed" and other.body["run"] == run]
    secure = body["secure_noise"] and all(resumed)
    totals = {entry.label: latest_total(rows, run, entry.label) for entry in plan.entries}
    executed = {label: total for label, total in totals.items() if total}
    return Entry(**body | {"plan": plan, "executed": executed, "secure_noise": secure, "sequence": row.sequence})


def composition_of(facts: Facts, rows: Sequence[Row]) -> Composition:
    """Returns the rule by which runs add up, with the budget as it was last raised."""
    raised = next((row.body for row in reversed(rows) if row.kind == "raised"), None)
    if raised is None:
        return _composition(facts.composition, facts.guarantee, facts.max_runs, None)
    now = Guarantee(float(raised["epsilon"]), _delta(facts, raised["max_runs"]))
    return _composition(facts.composition, now, raised["max_runs"], facts.guarantee)


@lru_cache(maxsize=64)
def _composition(kind: str, guarantee: Guarantee, max_runs: int, first: Guarantee | None) -> Composition:
    return Composition(kind=kind, guarantee=guarantee, max_runs=max_runs, first=first)


def raised_body(
    facts: Facts, current: Composition, epsilon: float | None, max_runs: int | None, reason: str
) -> dict[str, Any]:
    """Returns the row that raises a budget; refuses one that lowers it, gives no reason or too large a delta."""
    epsilon = current.guarantee.epsilon if epsilon is None else epsilon
    runs = current.max_runs if max_runs is None else max_runs
    require_reason(reason)
    if current.kind != "basic" and runs != current.max_runs:
        raise InputError("max_runs: only a ledger with composition = 'basic' counts runs. Leave it out.")
    grows = epsilon >= current.guarantee.epsilon and runs >= current.max_runs
    if not grows or (epsilon, runs) == (current.guarantee.epsilon, current.max_runs) or not epsilon < float("inf"):
        raise InputError(
            f"A finite epsilon or max_runs above the ledger's {current.guarantee.epsilon:g} and {current.max_runs} is "
            f"expected, got {epsilon:g} and {runs}. A budget is raised, never lowered."
        )
    check_delta(_delta(facts, runs), facts.population, reproduction=facts.reproduction)
    return {"epsilon": epsilon, "max_runs": runs, "reason": reason.strip()}


def sentences(rows: Sequence[Row]) -> tuple[str, ...]:
    """Returns what changed a ledger after it was made, and releases that it does not cover, a sentence each."""
    found = []
    for kind, body in ((row.kind, row.body) for row in rows):
        if kind == "charge" and body["label"].endswith(NOT_COVERED):
            found.append(f"A release of {body['recorded_at'][:10]} about the same units is {NOT_COVERED}.")
        if kind == "raised":
            budget = f"epsilon = {at_most(float(body['epsilon']))} and {body['max_runs']} runs"
            found.append(f"The budget was raised to {budget} on {body['recorded_at'][:10]}: {body['reason']}")
        if kind == "adopted":
            found.append(
                f"An older copy of the ledger was adopted on {body['recorded_at'][:10]}; {body['runs']} runs that it "
                f"had forgotten count as spent: {body['reason']}"
            )
    return tuple(found)


def _delta(facts: Facts, max_runs: int) -> float:
    """Each run keeps its share of delta, so that more runs need more of it."""
    return facts.delta * max_runs / facts.max_runs if facts.composition == "basic" else facts.delta


def require_reason(reason: str) -> None:
    if not reason.strip():
        raise InputError("reason: a text is expected; the ledger keeps it and every later certificate prints it.")
