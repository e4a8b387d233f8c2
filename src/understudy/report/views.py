"""Records in the form that templates print: text and places, nothing left to decide."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from understudy.privacy.certificate import Certificate
from understudy.report import words
from understudy.report.figures import Sides
from understudy.report.words import figure, interval, promise, share, verdict

Facts = Mapping[str, Any]
MARKS = {
    words.LIKE_REAL: ("v-like", "good"),
    words.NEAR_REAL: ("v-near", ""),
    words.BETWEEN: ("v-between", "warn"),
    words.BEYOND: ("v-beyond", "warn"),
    words.NO_BETTER: ("v-no", "bad"),
    words.BLIND: ("v-unknown", ""),
    words.UNKNOWN: ("v-unknown", ""),
}
_BETTER = {"lower": "lower is better", "higher": "higher is better", "near": "near the real figure is better"}
_BLIND = "Says little here: the control passes for real, too."
_NUMBERS = ("mean", "least", "greatest")
_NUM_FARTHEST = 3
_MAX_CHARGES = 60
_MAX_NAMES = 24
_LEFT, _WIDTH = 50.0, 140.0  # where other real series stand on the line, and how far away the control


def headline(facts: Facts) -> str:
    """Returns what the series are, in one line."""
    schema, number = facts["schema"], facts["synthetic"]["num_series"]
    channels = f"{len(schema['channels'])} channel{'s' if len(schema['channels']) != 1 else ''}"
    method = f", made by {facts['method']}" if facts["method"] else ", made elsewhere"
    return f"{number:,} synthetic series of {schema['steps']} steps ({schema['frequency']}), {channels}{method}."


def certificate(body: Facts | None) -> dict[str, Any] | None:
    """Returns the guarantee as a card prints it."""
    if body is None:
        return None
    found = Certificate.from_json(dict(body))
    size = "bought with differential privacy" if found.population_size is None else f"{found.population_size:,} units"
    return {
        "sentence": found.sentence(),
        "private": found.is_private,
        "status": "private" if found.is_private else "not private",
        "epsilon": promise(found.epsilon),
        "delta": promise(found.delta, 2),
        "belief": share(1 / (1 + math.exp(-found.epsilon))) if found.is_private else None,
        "unit": found.unit,
        "population": f"{found.population} ({size})",
        "adjacency": found.adjacency,
        "doubted": "a unit is in the data" if found.hides_presence else "a unit's values are in the data",
        "replace_one": promise(found.replace_one_epsilon),
        "deltas": "; ".join(f"{promise(cost)} at δ = {promise(at, 2)}" for at, cost in found.epsilon_at_delta),
        "method": found.method,
        "noise": found.noise,
        "arithmetic": "; ".join(f"{label} {kind}" for label, kind in found.arithmetic.items()),
        "threat_model": found.threat_model,
        "not_protected": found.not_protected,
        "obfuscation": found.marginal_obfuscation,
    }


def ledger(facts: Facts | None) -> dict[str, Any] | None:
    """Returns the ledger as a table prints it."""
    if facts is None:
        return None
    rows = [
        (
            str(entry["run"]),
            entry["label"],
            promise(entry["epsilon"], 4),
            promise(entry["delta"]),
            entry["recorded_at"][:16].replace("T", "\N{NO-BREAK SPACE}"),
            ", ".join(f"{label} {count}" for label, count in entry["executed"].items()) or "nothing yet",
            "secure" if entry["secure_noise"] else "reproducible",
        )
        for entry in facts["charges"][-_MAX_CHARGES:]
    ]
    older = len(facts["charges"]) - len(rows)
    return {
        "total": figure(facts["epsilon"]),
        "left": figure(facts["remaining"]["epsilon"], 4),
        "older": f"{older} older charges are not listed here." if older else "",
        "rows": rows,
    }


def scores(card: Facts) -> dict[str, Any]:
    """Returns the score table, its tally and its notes."""
    suites: dict[str, list[dict[str, Any]]] = {}
    for score in card["scores"]:
        suites.setdefault(score["suite"], []).append(line(score))
    effort = f"Effort: {card['effort']}. Seed of splits and trainings: {card['seed']}."
    found = [verdict(score) for score in card["scores"]]
    return {
        "suites": list(suites.items()),
        "verdict": words.headline(card),
        "tally": _tally([one for one in found if one in words.COUNTED]),
        "uncounted": sum(one not in words.COUNTED for one in found),
        "farthest": _farthest(card["scores"]),
        "verdicts": list(words.VERDICTS.items()),
        "score_notes": [*card["notes"], effort, *_notes(card["scores"])],
    }


def _farthest(found: Sequence[Facts]) -> list[str]:
    """Returns the measures on which the synthetic series are farthest from real ones."""
    apart = [s for s in found if verdict(s) in words.COUNTED[1:] and words.control_tells_apart(s)]
    ordered = sorted(apart, key=lambda score: -abs(score["position"]))
    return [score["title"] for score in ordered[:_NUM_FARTHEST]]


def _notes(found: Sequence[Facts]) -> list[str]:
    noted = [score for score in found if score["synthetic"]["notes"]]
    return [f"{score['title']}: {' '.join(score['synthetic']['notes'])}" for score in noted]


def line(score: Facts) -> dict[str, Any]:
    """Returns one row of the score table."""
    cells = (("Synthetic", "synthetic"), ("Other real series", "holdout"), ("No private data", "independent"))
    found = verdict(score)
    return {
        "title": score["title"],
        "better": _BETTER[score["direction"]],
        "reference": score["reference"],
        "cells": [
            (label, {"value": figure(score[key]["value"]), "interval": interval(score[key])}) for label, key in cells
        ],
        "verdict": found,
        "tone": MARKS[found][1],
        "at": standing(score),
        "why": score["synthetic"]["problem"] or ("" if words.control_tells_apart(score) else _BLIND),
    }


def standing(score: Facts) -> dict[str, Any] | None:
    """Returns places on a line from other real series to the control; None where there is no such line."""
    held, control, position = score["holdout"], score["independent"]["value"], score["position"]
    if position is None or not words.control_tells_apart(score):
        return None
    usual = None
    if held["low"] is not None and held["high"] is not None:
        ends = sorted(_place((end - held["value"]) / (control - held["value"])) for end in (held["low"], held["high"]))
        usual = (ends[0], max(2.0, round(ends[1] - ends[0], 1)))
    return {"real": _LEFT, "control": _LEFT + _WIDTH, "synthetic": _place(position), "usual": usual}


def _place(position: float) -> float:
    return round(min(230.0, max(10.0, _LEFT + _WIDTH * position)), 1)


def _tally(found: Sequence[str]) -> list[dict[str, Any]]:
    parts, start = [], 0.0
    for name, meaning in words.VERDICTS.items():
        number = sum(one == name for one in found)
        if number:
            width = 100 * number / len(found)
            said = {"number": number, "meaning": name, "why": meaning, "mark": MARKS[name][0]}
            parts.append({**said, "start": start, "width": width})
            start += width
    return parts


def numbers(name: str, sides: Sides) -> dict[str, Any]:
    """Returns one channel in a few numbers, side by side."""
    own = [portrait["channels"][name] for _, portrait in sides]
    rows = []
    if "quantiles" in own[0]:
        for place, words_for in enumerate(("5 %", "25 %", "median", "75 %", "95 %")):
            rows.append((words_for, *(figure(channel["quantiles"][place]) for channel in own)))
        rows += [(name, *(figure(channel[name], 4) for channel in own)) for name in _NUMBERS if name in own[0]]
    else:
        rows.append(("changes of category", *(share(channel["changes"]) for channel in own)))
    rows.append(("missing", *(share(channel["missing"]) for channel in own)))
    return {"header": ("All values", *(side for side, _ in sides)), "rows": rows}


def audit(findings: Sequence[Facts] | None) -> list[tuple[str, ...]]:
    """Returns the rows of an audit."""
    return [
        (
            str(found["attack"]),
            figure(found["epsilon"]),
            figure(found["ceiling"]),
            share(found["confidence"]),
            str(found["runs"]),
            "yes" if found["contradicts"] else "no",
        )
        for found in findings or ()
    ]


def columns(schema: Facts) -> list[tuple[str, ...]]:
    """Returns the declared columns as rows."""
    roles = {"channels": "private, over time", "static": "private, once", "context": "public, over time"}
    rows = []
    for group, role in roles.items():
        for column in schema[group]:
            numeric = column["categories"] is None and column["kind"] != "binary"
            ends = [figure(end, 6) for end in column["bounds"]] if numeric else ["–", "–"]
            rows.append((column["name"], role, column["kind"], *ends, _listed(column["categories"] or [])))
    return rows


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return (", ".join(names[:_MAX_NAMES]) or "–") + more
