"""What may be changed about a ledger after it was made: recorded in its chain, named in every later certificate."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from understudy.errors import InputError
from understudy.privacy.budget import Guarantee, at_most, check_delta
from understudy.privacy.charges import now
from understudy.privacy.composition import Composition
from understudy.privacy.declaration import Facts
from understudy.privacy.store import Row


def composition_of(facts: Facts, rows: Sequence[Row]) -> Composition:
    """Returns the rule by which runs add up, with the budget as it was last raised."""
    raised = next((row.body for row in reversed(rows) if row.kind == "raised"), None)
    if raised is None:
        return _composition(facts.composition, Guarantee(facts.epsilon, facts.delta), facts.max_runs, None)
    first, runs = Guarantee(facts.epsilon, facts.delta), int(raised["max_runs"])
    return _composition(facts.composition, Guarantee(float(raised["epsilon"]), _delta(facts, runs)), runs, first)


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
    return {"epsilon": epsilon, "max_runs": runs, "reason": reason.strip(), "recorded_at": now()}


def sentences(rows: Sequence[Row]) -> tuple[str, ...]:
    """Returns what was changed about a ledger after it was made, a sentence each."""
    told = {"raised": _told_raised, "adopted": _told_adopted}
    return tuple(told[row.kind](row.body) for row in rows if row.kind in told)


def _told_raised(body: dict[str, Any]) -> str:
    budget = f"epsilon = {at_most(float(body['epsilon']))} and {body['max_runs']} runs"
    return f"The budget was raised to {budget} on {body['recorded_at'][:10]}: {body['reason']}"


def _told_adopted(body: dict[str, Any]) -> str:
    return (
        f"An older copy of the ledger was adopted on {body['recorded_at'][:10]}; {body['runs']} runs that it had "
        f"forgotten count as spent: {body['reason']}"
    )


def _delta(facts: Facts, max_runs: int) -> float:
    """Each run keeps its share of delta, so that more runs need more of it."""
    return facts.delta * max_runs / facts.max_runs if facts.composition == "basic" else facts.delta


def require_reason(reason: str) -> None:
    if not reason.strip():
        raise InputError("reason: a text is expected; the ledger keeps it and every later certificate prints it.")
