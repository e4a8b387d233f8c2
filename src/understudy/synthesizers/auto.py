"""What `--method auto` stands for: a rule from public facts, with its reasons.

The rule was fitted to the record of all methods on public tables (`auto.json`, written by `understudy-bench report
--rule`), and judged on tables that it was not fitted to. No private number enters it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from understudy.data import Schema
from understudy.privacy.budget import Guarantee

TASKS = ("series", "complete")  # share series; fill gaps and forecast
FIRST = "spectral"  # where nothing speaks for another
FOLLOWING = "pub2priv"  # where every series met a stretch of public context of its own


@dataclass(frozen=True)
class Choice:
    """A method and why."""

    method: str
    reasons: tuple[str, ...]


@cache
def record() -> dict[str, Any]:
    """Returns the rule and the figures that it was fitted to."""
    found: dict[str, Any] = json.loads(files("understudy.synthesizers").joinpath("auto.json").read_text("utf-8"))
    return found


def signal_of(units: int, epsilon: float, steps: int, channels: int) -> float:
    """Returns units times epsilon over the numbers in a series: how well a mean curve stands out of the noise."""
    return units * epsilon / (steps * channels)


def no_worse(judged: Mapping[str, int]) -> bool:
    """Whether a choice was near the best at least as often as always taking the first."""
    return judged["rule"] >= judged["rival"]


def choose(schema: Schema, guarantee: Guarantee, *, window_steps: int | None = None, task: str = "series") -> Choice:
    """Returns the method for a table of which only public facts are known."""
    if task == "complete":
        return Choice("dit", ("Its release fills gaps and forecasts; no other method's does.",))
    if schema.own_contexts and not _parties(schema) and no_worse(record()["own_contexts"]):
        return Choice(FOLLOWING, (_OWN, _tried("own_contexts_left_out", "such tables, each judged by the others,")))
    for apart in (_parties(schema), _context(schema), _unknown(schema)):
        if apart:
            return Choice(FIRST, (apart, f"Always taking {FIRST} would say the same."))
    rule = record()["rule"]
    if rule["below"] == rule["above"]:
        return Choice(rule["above"], ("Over all tables of the record its series trained forecasts best.", _tried()))
    steps, size = window_steps or schema.num_steps, schema.population.size or 1
    signal = signal_of(size, guarantee.epsilon, steps, schema.num_channels)
    low = signal < rule["threshold"]
    side = "below" if low else "not below"
    channels = f"{schema.num_channels} channel{'s' * (schema.num_channels > 1)}"
    return Choice(
        rule["below"] if low else rule["above"],
        (
            f"{size} units × epsilon {guarantee.epsilon:g} ÷ ({steps} steps × {channels}) = "
            f"{signal:.2g}, {side} {rule['threshold']:.2g}: on tables like that series of this method trained "
            "forecasts best.",
            _tried(),
        ),
    )


_OWN = "Every series met a stretch of public context of its own, and it learns how series follow theirs."


def _tried(where: str = "left_out", tables: str = "tables that the rule had not seen") -> str:
    """Says how good the rule was where it could not know, and its rival beside it."""
    judged = record()[where]
    return (
        f"On {tables} it came within 10 % of the best method in {judged['rule']} of "
        f"{judged['cells']} cells; always taking {FIRST} did in {judged['rival']}."
    )


def _parties(schema: Schema) -> str:
    named = {column.party for column in (*schema.channels, *schema.static)} - {None}
    return "Several parties hold columns; it needs their trust for the shortest time." if len(named) > 1 else ""


def _context(schema: Schema) -> str:
    return "The schema declares public context, and it learns how series respond." if schema.context else ""


def _unknown(schema: Schema) -> str:
    if schema.population.size is None:
        return "The number of units is to be bought, so the signal is not known yet."
    return "" if schema.unit.protects_a_person else "Windows of one series are protected, not persons."
