"""The pages: the report of one run and the comparison of several, each one self-contained HTML file.

No script runs in them, so their content policy forbids scripts: the legend works by style rules, readouts by
pointing. Figures are vector graphics with the page's own colours, which is how one file serves light and dark
screens, phones and paper.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from understudy.privacy.certificate import Certificate
from understudy.report import views
from understudy.report.audit_pictures import audit_drawings
from understudy.report.drawing import Drawing
from understudy.report.figures import (
    Sides,
    channel_drawings,
    clouds,
    heat_maps,
    histogram,
    shares,
    utility_against_epsilon,
)
from understudy.report.record import RunRecord
from understudy.report.words import control_tells_apart, figure, printable, verdict

MAX_RELEASES = 6
_NUM_CHANNELS = 2
_SHOWN = ("values", "memory")  # figures of each channel that are put side by side


def render(record: RunRecord, public: bool = False) -> str:
    """Returns the page of a record.

    Args:
        public: Drop everything that was computed from real series.
    """
    shown = record.without_internal() if public else record
    facts, internal = shown.public, shown.internal
    sides = sides_of(shown)
    context = {
        "title": facts["title"],
        "software": facts["software"],
        "facts": views.headline(facts),
        "internal": internal is not None,
        "cautions": [*facts["cautions"], *(internal["cautions"] if internal else [])],
        "certificate": views.certificate(facts["certificate"]),
        "ledger": views.ledger(facts["ledger"]),
        "sides": [side for side, _ in sides],
        "notes": " ".join(dict.fromkeys(note for _, portrait in sides for note in portrait["notes"])),
        "channels": _channels(facts, sides),
        "static": _static(sides),
        "maps": heat_maps(sides),
        "clouds": clouds(internal["embedding"]) if internal else [],
        "cloud_notes": " ".join(internal["embedding"]["notes"]) if internal else "",
        "audit": views.audit(internal["audit"]) if internal else [],
        "audit_drawings": _audit(shown),
        "columns": views.columns(facts["schema"]),
        **(views.scores(internal["scorecard"]) if internal else {}),
    }
    sections = [
        ("privacy", "What is promised", True),
        ("quality", "Is the stand-in good?", internal is not None),
        ("looks", "What it looks like", True),
        ("together", "How things hang together", context["maps"] or context["clouds"]),
        ("scores", "All scores", internal is not None),
        ("audit", "Attempts to contradict it", context["audit"]),
        ("data", "What was declared", True),
    ]
    return filled("report.html", context | {"sections": [(a, n) for a, n, there in sections if there]})


def drawings(record: RunRecord, public: bool = False) -> list[Drawing]:
    """Returns all figures of a record, for papers."""
    shown = record.without_internal() if public else record
    sides = sides_of(shown)
    found = [drawing for channel in _channels(shown.public, sides) for drawing in channel["drawings"]]
    found += [*_static(sides), *heat_maps(sides)]
    return found + _audit(shown) + (clouds(shown.internal["embedding"]) if shown.internal else [])


def filled(template: str, context: Mapping[str, Any]) -> str:
    """Returns a template filled in, with the style sheet and a policy that lets it in and nothing else."""
    css = (files("understudy.report") / "templates" / "page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    sheet = {"css": _Verbatim(css), "style_hash": f"sha256-{digest}"}
    return _environment().get_template(template).render({**context, **sheet})


def sides_of(record: RunRecord) -> Sides:
    """Returns the portraits that may be shown, by whose they are."""
    if record.internal is None:
        return [("synthetic", record.public["synthetic"])]
    return [("real", record.internal["real"]), ("synthetic", record.internal["synthetic"])]


@cache
def _environment() -> Environment:
    loader = PackageLoader("understudy.report")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


class _Verbatim(str):
    """Our own text, which goes into a page as it is."""

    def __html__(self) -> str:
        return str(self)


def _channels(facts: Mapping[str, Any], sides: Sides) -> list[dict[str, Any]]:
    kinds = {column["name"]: column["kind"] for column in facts["schema"]["channels"]}
    return [
        {
            "name": name,
            "kind": kinds[name],
            "drawings": list(channel_drawings(name, number, sides)),
            "numbers": views.numbers(name, sides),
        }
        for number, name in enumerate(facts["synthetic"]["channels"], start=1)
    ]


def _static(sides: Sides) -> list[Drawing]:
    made = []
    for number, name in enumerate(sides[0][1]["static"], start=1):
        own = [(side, portrait["static"][name]) for side, portrait in sides]
        draw = shares if "shares" in own[0][1] else histogram
        made.append(draw(f"static-{number}", own, f"{printable(name)}: share of the series."))
    return made


def _audit(record: RunRecord) -> list[Drawing]:
    """Returns the pictures of an audit; none where there was none, or in the half that may leave."""
    certificate = record.public["certificate"]
    claimed = None if certificate is None else Certificate.from_json(dict(certificate)).epsilon
    return audit_drawings(record.internal["audit"], claimed) if record.internal else []


def render_comparison(records: Mapping[str, RunRecord], *, recorded: str, chosen: str | None = None) -> str:
    """Returns the page of several evaluations against the same real series.

    Args:
        records: By the name of the release.
        recorded: Where it was written down that this comparison was made.
        chosen: What a charged choice said, in a sentence; None without one.
    """
    cards = {name: _card(record) for name, record in records.items()}
    context = {
        "title": " · ".join(records),
        "software": next(iter(records.values())).public["software"],
        "recorded": recorded,
        "chosen": chosen,
        "releases": [_release(name, record) for name, record in records.items()],
        "utility": _utility(records),
        "names": list(records),
        "suites": _suites(cards),
        "looks": [{"name": name, "drawings": _looks(n, record)} for n, (name, record) in enumerate(records.items())],
        "notes": list(dict.fromkeys(note for card in cards.values() for note in card["notes"])),
    }
    return filled("compare.html", context)


def _card(record: RunRecord) -> Mapping[str, Any]:
    if record.internal is None:
        raise ValueError("Expected records with an internal half: a comparison is about scores.")
    card: Mapping[str, Any] = record.internal["scorecard"]
    return card


def _release(name: str, record: RunRecord) -> dict[str, Any]:
    guarantee, scores = views.certificate(record.public["certificate"]), views.scores(_card(record))
    return {
        "name": name,
        "method": record.public["method"] or "made elsewhere",
        "epsilon": "–" if guarantee is None else guarantee["epsilon"],
        "delta": "–" if guarantee is None else guarantee["delta"],
        "status": "no certificate" if guarantee is None else guarantee["status"],
        "headline": scores["verdict"]["sentence"],
        "tally": scores["tally"],
    }


def _suites(cards: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Returns rows of the same metric, one cell for each release, under the names of the suites."""
    suites: dict[str, list[dict[str, Any]]] = {}
    first, *others = cards.values()
    found = [{score["name"]: score for score in card["scores"]} for card in others]
    for score in first["scores"]:
        same = [score, *(card[score["name"]] for card in found)]
        suites.setdefault(score["suite"], []).append(
            {
                **views.line(score),
                "releases": [{"value": figure(s["synthetic"]["value"]), **_verdict(s)} for s in same],
                "holdout": figure(score["holdout"]["value"]),
                "control": figure(score["independent"]["value"]),
            }
        )
    return list(suites.items())


def _verdict(score: Mapping[str, Any]) -> dict[str, str]:
    return {"verdict": verdict(score), "tone": views.MARKS[verdict(score)][1]}


def _utility(records: Mapping[str, RunRecord]) -> Drawing | None:
    """Returns what epsilon buys, if the releases have at least two epsilons."""
    certified = [record for record in records.values() if record.public["certificate"] is not None]
    epsilons = [float(record.public["certificate"]["epsilon"]) for record in certified]
    kept = [pair for pair in zip(epsilons, certified, strict=True) if 0 < pair[0] < float("inf")]
    if len({epsilon for epsilon, _ in kept}) < 2:
        return None
    titles = [score["title"] for score in _card(kept[0][1])["scores"]]
    return utility_against_epsilon([(e, [_distance(score) for score in _card(r)["scores"]]) for e, r in kept], titles)


def _distance(score: Mapping[str, Any]) -> float | None:
    """Returns how far from real a score is, the control's being 1; None where that can't be told."""
    return abs(score["position"]) if score["position"] is not None and control_tells_apart(score) else None


def _looks(number: int, record: RunRecord) -> Sequence[Drawing]:
    sides = sides_of(record)
    names = list(record.public["synthetic"]["channels"])[:_NUM_CHANNELS]
    made = [d for place, name in enumerate(names) for d in channel_drawings(name, 100 * number + place, sides)]
    return [drawing for drawing in made if drawing.name.endswith((*_SHOWN, "shares"))]
