"""What is fixed when a ledger is made: whose data, which unit, how much, and how runs add up."""

import json
import re
import uuid
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pydantic

from understudy.data.type_checks import require_argument
from understudy.errors import LedgerError, SchemaError
from understudy.privacy import canonical
from understudy.privacy.budget import Guarantee, check_delta
from understudy.privacy.composition import Composition

if TYPE_CHECKING:
    from understudy.data.schema import Schema


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the first row of a ledger states; the types hold, whoever wrote the file."""

    identity: str
    name: str
    unit: str
    epsilon: float
    delta: float
    max_runs: int
    composition: str
    population: int | None
    reproduction: str | None

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> "Facts":
        """The facts that `ledger_facts` wrote; anything else is a `ValueError` or a `KeyError`."""
        values = body | {"epsilon": canonical.number(body["epsilon"])}
        return _typed().validate_json(json.dumps(values), strict=True)


@cache
def _typed() -> pydantic.TypeAdapter[Facts]:
    return pydantic.TypeAdapter(Facts)


def ledger_facts(
    name: str,
    unit_sentence: str,
    guarantee: Guarantee,
    max_runs: int,
    composition: str,
    population: int | None,
    reproduction: str | None,
) -> dict[str, Any]:
    require_argument(guarantee, Guarantee, "guarantee", "Write Guarantee(1.0, 1e-6).")
    require_argument(max_runs, int, "max_runs", "Write max_runs=5.")
    require_argument(population, int | None, "population", "Write population=10000.")
    check_delta(guarantee.delta, population, reproduction=reproduction)
    Composition(kind=composition, guarantee=guarantee, max_runs=max_runs)
    return {
        "identity": uuid.uuid4().hex,
        "name": name,
        "unit": unit_sentence,
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "max_runs": max_runs,
        "composition": composition,
        "population": population,
        "reproduction": reproduction,
    }


def declared(schema: "Schema") -> dict[str, Any]:
    """What a schema says about its ledger."""
    if schema.budget is None:
        raise SchemaError(
            "The schema declares no [budget]: add epsilon, max_runs and, if you like, delta.", key="budget"
        )
    delta = schema.budget.delta
    if delta is None and schema.population.size is None:
        raise SchemaError(
            "Declare budget.delta, or population.size from which it follows as 1/(100·size).",
            key="budget.delta",
        )
    return {
        "name": schema.name,
        "unit_sentence": schema.unit.sentence(),
        "guarantee": Guarantee(schema.budget.epsilon, schema.delta if delta is None else delta),
        "max_runs": schema.budget.max_runs,
        "composition": schema.budget.composition,
        "population": schema.protected_units,
    }


def other_declaration(path: Path | None, facts: Facts, current: Composition) -> LedgerError:
    """What to say about a schema that declares other people, another unit or another budget than the ledger's."""
    return LedgerError(
        f"'{path}' was made for the population '{facts.name}' with epsilon = {current.guarantee.epsilon:g}, delta = "
        f"{current.guarantee.delta:g}, max_runs = {current.max_runs}, composition = '{current.kind}' and the unit: "
        f"{facts.unit} The schema now says otherwise. Put the declaration back: what was promised about spent budget "
        "can't be changed by an edit. `understudy ledger raise` raises a budget on the record."
    )


def file_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise SchemaError(
            f"The population name '{name}' can't be a file name: use letters, digits, '.', '_' and '-'.",
            key="name",
        )
    return name
