"""The headline of an evaluation: the worst of what matters. Rows that can't tell are named and not counted."""

from collections.abc import Mapping, Sequence
from typing import Any

from understudy.evaluate.matters import MATTERS
from understudy.report.words import BLIND, COUNTED, LIKE_REAL, UNKNOWN, figure, verdict

_TOO_LATE = "not measured"


def headline(card: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the worst verdict of what matters, what is apart from real (worst first), and a sentence.

    Something that matters and was not measured makes a verdict of *like real* unknown.
    """
    rows = {score["name"]: score for score in card["scores"] if score["name"] in MATTERS}
    by_verdict = {name: verdict(score) for name, score in rows.items()}
    counted = sorted((n for n in rows if by_verdict[n] in COUNTED), key=lambda n: _badness(rows[n]), reverse=True)
    apart = [name for name in counted if by_verdict[name] != LIKE_REAL]
    unmeasured = [name for name in MATTERS if name not in rows or _was_not_measured(rows[name])]
    worst = by_verdict[apart[0]] if apart else LIKE_REAL if counted and not unmeasured else UNKNOWN
    found = {
        "verdict": worst,
        "apart": [_told(name, rows[name], by_verdict[name]) for name in apart],
        "like_real": [MATTERS[name] for name in counted if name not in apart],
        "cannot_tell": [MATTERS[name] for name in rows if by_verdict[name] == BLIND],
        "not_measured": [MATTERS[name] for name in unmeasured],
    }
    return found | {"sentence": _sentence(found)}


def with_verdicts(card: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a scorecard with its headline, and with the verdict of every row."""
    return {
        "headline": headline(card),
        **card,
        "scores": [{**score, "verdict": verdict(score)} for score in card["scores"]],
    }


def _badness(score: Mapping[str, Any]) -> tuple[int, float]:
    position = score["position"]
    return COUNTED.index(verdict(score)), 0.0 if position is None else abs(position)


def _was_not_measured(score: Mapping[str, Any]) -> bool:
    return (score["synthetic"]["problem"] or "").startswith((_TOO_LATE, "failed"))


def _told(name: str, score: Mapping[str, Any], found: str) -> dict[str, Any]:
    held = score["holdout"]
    usual = held["low"] if score["direction"] == "higher" else held["high"]
    return {"name": name, "what": MATTERS[name], "verdict": found, "value": score["synthetic"]["value"], "usual": usual}


def _sentence(found: Mapping[str, Any]) -> str:
    parts = []
    if found["apart"]:
        parts.append(f"Worst of what matters: {found['verdict']}. Apart from real series in {_listed(found['apart'])}.")
    elif found["verdict"] == LIKE_REAL:
        parts.append(f"Like real in what matters: {', '.join(found['like_real'])}.")
    else:
        parts.append("Unknown: what matters was not measured, or can't tell here.")
    if found["cannot_tell"]:
        parts.append(f"Can't tell here: {', '.join(found['cannot_tell'])}.")
    if found["not_measured"]:
        parts.append(f"Not measured: {', '.join(found['not_measured'])}.")
    return " ".join(parts)


def _listed(apart: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(f"{one['what']} ({figure(one['value'])}; real series {figure(one['usual'])})" for one in apart)
