"""The report: one HTML file that needs nothing but itself.

No script runs in it, so its content policy forbids all of them: the legend works by style rules, readouts by
pointing. Figures are vector graphics with the page's own colours, which is how one file serves light and dark
screens, phones and paper.
"""

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from understudy.privacy.certificate import Certificate
from understudy.report import views
from understudy.report.audit_pictures import audit_drawings
from understudy.report.drawing import Drawing
from understudy.report.figures import Sides, channel_drawings, curve, histogram, shares
from understudy.report.maps import clouds, heat_maps
from understudy.report.record import RunRecord
from understudy.report.words import printable


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
        "training": _training(facts["training"]),
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
        ("training", "Training", context["training"]),
        ("audit", "Attempts to contradict it", context["audit"]),
        ("data", "What was declared", True),
    ]
    return filled("report.html", context | {"sections": [(a, n) for a, n, there in sections if there]})


def drawings(record: RunRecord, public: bool = False) -> list[Drawing]:
    """Returns all figures of a record, for papers."""
    shown = record.without_internal() if public else record
    sides = sides_of(shown)
    found = [drawing for channel in _channels(shown.public, sides) for drawing in channel["drawings"]]
    found += [*_static(sides), *heat_maps(sides), *_training(shown.public["training"])]
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


def _training(curves: Mapping[str, Any] | None) -> list[Drawing]:
    return [curve(f"training-{n}", title, values) for n, (title, values) in enumerate((curves or {}).items(), start=1)]
