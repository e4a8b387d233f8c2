"""The pages: the report of one run and the comparison of several, each one self-contained HTML file.

Their content policy forbids scripts, but for the one that zooms figures where a page is asked to be interactive: the
legend works by style rules, readouts by pointing. Figures are vector graphics with the page's own colours, which is how
one file serves light and dark screens, phones and paper.
"""

import base64
import hashlib
import math
from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache
from importlib.resources import files
from itertools import accumulate
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from understudy.evaluation import words
from understudy.evaluation.words import control_tells_apart, figure, printable, share, verdict
from understudy.privacy.certificate import Certificate
from understudy.report import figures
from understudy.report.figures import Drawing, Sides
from understudy.report.record import Facts, RunRecord

_NUM_CHANNELS = 2
_SHOWN = ("values", "memory", "shares")  # figures of each channel that are put side by side
_LEFT, _WIDTH = 50.0, 140.0  # where other real series stand on the line, and how far away the control
_BETTER = {"lower": "lower is better", "higher": "higher is better", "near": "near the real figure is better"}
_MARKS = {  # class of a verdict in the tally, tone of its badge
    words.LIKE_REAL: ("v-like", "good"),
    words.NEAR_REAL: ("v-near", ""),
    words.BETWEEN: ("v-between", "warn"),
    words.BEYOND: ("v-beyond", "warn"),
    words.NO_BETTER: ("v-no", "bad"),
    words.BLIND: ("v-unknown", ""),
    words.UNKNOWN: ("v-unknown", ""),
}


def render(record: RunRecord, *, interactive: bool = False) -> str:
    """Returns the page of a record; without an internal half nothing in it was computed from real series.

    Args:
        interactive: Embed a script by which figures zoom; it asks nothing of any network either.
    """
    facts, internal, sides, drawn = record.public, record.internal, sides_of(record), _drawn(record)
    numbers = [_numbers(name, sides) for name in facts["synthetic"]["channels"]]
    sections = [
        ("privacy", "Privacy guarantee", True),
        ("quality", "Fidelity and utility", internal),
        ("looks", "Marginals and dynamics", True),
        ("together", "Correlations and embeddings", drawn["maps"] or drawn["clouds"]),
        ("scores", "All metrics", internal),
        ("audit", "Privacy audit", internal and internal["audit"]),
        ("data", "Declared schema", True),
    ]
    context = {
        **facts,
        **drawn,
        "num_series": facts["synthetic"]["num_series"],
        "internal": internal is not None,
        "cautions": [*facts["cautions"], *(internal["cautions"] if internal else [])],
        "certificate": _certificate(record),
        "sides": [side for side, _ in sides],
        "notes": " ".join(dict.fromkeys(note for _, portrait in sides for note in portrait["notes"])),
        "channels": list(zip(facts["schema"]["channels"], drawn["channels"], numbers, strict=False)),
        "cloud_notes": " ".join(internal["embedding"]["notes"]) if internal else "",
        "audit": internal["audit"] if internal else None,
        "sections": [(anchor, name) for anchor, name, there in sections if there],
        "script": _template("zoom.js") if interactive else None,
    }
    return filled("report.html", context | (scores(internal["scorecard"]) if internal else {}))


def drawings(record: RunRecord) -> list[Drawing]:
    """Returns all figures of a record, for papers."""
    drawn = _drawn(record)
    own = [drawing for channel in drawn["channels"] for drawing in channel]
    return [*own, *drawn["static"], *drawn["maps"], *drawn["audit_drawings"], *drawn["clouds"]]


def _drawn(record: RunRecord) -> dict[str, list[Any]]:
    """Returns all figures of a record by where they stand; those of channels one list for each channel."""
    sides, internal, certificate = sides_of(record), record.internal, record.public["certificate"]
    claimed = None if certificate is None else float(certificate["epsilon"])
    channels = enumerate(record.public["synthetic"]["channels"], start=1)
    return {
        "channels": [list(figures.channel_drawings(name, number, sides)) for number, name in channels],
        "static": _static(sides),
        "maps": figures.heat_maps(sides),
        "clouds": figures.clouds(internal["embedding"]) if internal else [],
        "audit_drawings": figures.audit_drawings(internal["audit"], claimed) if internal else [],
    }


def filled(template: str, context: Mapping[str, Any]) -> str:
    """Returns a template filled in, with the style sheet and a policy that lets it in and nothing else."""
    css, script = _template("page.css"), context.get("script")
    policy = "default-src 'none'; style-src " + _hash(css) + (f"; script-src {_hash(script)}" if script else "")
    policy += "; base-uri 'none'; form-action 'none'"
    return environment().get_template(template).render({"script": None, **context, "css": css, "policy": policy})


def _template(name: str) -> str:
    return (files("understudy.report") / "templates" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def sides_of(record: RunRecord) -> Sides:
    """Returns the portraits that may be shown, by whose they are."""
    if record.internal is None:
        return [("synthetic", record.public["synthetic"])]
    return [("real", record.internal["real"]), ("synthetic", record.internal["synthetic"])]


@cache
def environment() -> Environment:
    """Returns the templates with what they need to print records: figures in words, verdicts, places on a line."""
    loader = PackageLoader("understudy.report")
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters |= {
        "figure": figure,
        "promise": words.promise,
        "powers": words.powers,
        "share": share,
        "interval": words.interval,
        "verdict": verdict,
        "standing": standing,
        "why": _why,
        "better": lambda score: _BETTER[score["direction"]],
        "belief": lambda epsilon: 1 / (1 + math.exp(-epsilon)),
        "day": lambda text: f"{date.fromisoformat(text[:10]):%d %B %Y}",
        "status": lambda certificate: "private" if certificate.is_private else "not private",
    }
    made.globals |= {"marks": _MARKS, "verdicts": words.VERDICTS}
    return made


def _certificate(record: RunRecord) -> Certificate | None:
    body = record.public["certificate"]
    return None if body is None else Certificate.from_json(dict(body))


def _numbers(name: str, sides: Sides) -> dict[str, Any]:
    """Returns one channel in a few numbers, side by side."""
    own = [portrait["channels"][name] for _, portrait in sides]
    if "quantiles" in own[0]:
        labels = ("5 %", "25 %", "median", "75 %", "95 %")
        rows = [(label, *(figure(channel["quantiles"][k]) for channel in own)) for k, label in enumerate(labels)]
        rows += [(at, *(figure(c.get(at), 4) for c in own)) for at in ("mean", "minimum", "maximum")]
    else:
        rows = [("changes of category", *(share(channel["changes"]) for channel in own))]
    rows.append(("missing", *(share(channel["missing"]) for channel in own)))
    return {"header": ("All values", *(side for side, _ in sides)), "rows": rows}


def _static(sides: Sides) -> list[Drawing]:
    made = []
    for number, name in enumerate(sides[0][1]["static"], start=1):
        own = [(side, portrait["static"][name]) for side, portrait in sides]
        draw = figures.shares if "shares" in own[0][1] else figures.histogram
        made.append(draw(f"static-{number}", own, f"Marginal distribution of {printable(name)} over series."))
    return made


def scores(card: Facts) -> dict[str, Any]:
    """Returns the score table, its tally and its notes."""
    counted = [score for score in card["scores"] if verdict(score) in words.COUNTED]
    silent = [score for score in card["scores"] if score not in counted]
    noted = [score for score in card["scores"] if score["synthetic"]["notes"]]
    return {
        "suites": _by_suite([{**card, "scores": counted}]),
        "silent": _by_suite([{**card, "scores": silent}]),
        "uncounted": len(silent),
        "headline": words.headline(card),
        "tally": _tally([verdict(score) for score in counted]),
        "score_notes": [
            *card["notes"],
            f"Effort: {card['effort']}. Seed of splits and trainings: {card['seed']}.",
            *(f"{score['title']}: {' '.join(score['synthetic']['notes'])}" for score in noted),
        ],
    }


def standing(score: Facts) -> dict[str, Any] | None:
    """Returns places on a line from other real series to the control; None where there is no such line."""
    held, control, position = score["holdout"], score["independent"]["value"], score["position"]
    if position is None or not control_tells_apart(score):
        return None

    def place(position: float) -> float:
        return round(min(230.0, max(10.0, _LEFT + _WIDTH * position)), 1)

    usual = None
    if held["low"] is not None and held["high"] is not None:
        ends = sorted(place((end - held["value"]) / (control - held["value"])) for end in (held["low"], held["high"]))
        usual = (ends[0], max(2.0, round(ends[1] - ends[0], 1)))
    return {"real": _LEFT, "control": _LEFT + _WIDTH, "synthetic": place(position), "usual": usual}


def _why(score: Facts) -> str:
    blind = "Says little here: the control passes for real, too." if verdict(score) == words.BLIND else ""
    return score["synthetic"]["problem"] or blind


def _tally(found: Sequence[str]) -> list[dict[str, Any]]:
    counts = [(name, found.count(name)) for name in words.VERDICTS if name in found]
    starts = accumulate((100 * number / len(found) for _, number in counts), initial=0.0)
    return [
        {"number": number, "meaning": name, "start": start, "width": 100 * number / len(found)}
        for (name, number), start in zip(counts, starts, strict=False)
    ]


def render_comparison(records: Mapping[str, RunRecord], *, recorded: str, chosen: str | None = None) -> str:
    """Returns the page of several evaluations against the same real series, by the name of the release.

    Args:
        recorded: Where it was written down that this comparison was made.
        chosen: What a charged choice said, in a sentence; None without one.
    """
    cards = [_card(record) for record in records.values()]
    context = {
        "title": " · ".join(records),
        "software": next(iter(records.values())).public["software"],
        "recorded": recorded,
        "chosen": chosen,
        "releases": [
            {"name": name, "method": record.public["method"], "certificate": _certificate(record), **scores(card)}
            for (name, record), card in zip(records.items(), cards, strict=True)
        ],
        "utility": _utility(records),
        "names": list(records),
        "suites": _by_suite(cards),
        "looks": [{"name": name, "drawings": _looks(n, record)} for n, (name, record) in enumerate(records.items())],
        "notes": list(dict.fromkeys(note for card in cards for note in card["notes"])),
    }
    return filled("compare.html", context)


def _card(record: RunRecord) -> Facts:
    assert record.internal is not None  # a comparison is about scores
    card: Facts = record.internal["scorecard"]
    return card


def _by_suite(cards: Sequence[Facts]) -> list[tuple[str, list[list[Facts]]]]:
    """Returns the scores of the same metric in all cards, under the names of the suites."""
    suites: dict[str, list[list[Facts]]] = {}
    others = [{score["name"]: score for score in card["scores"]} for card in cards[1:]]
    for score in cards[0]["scores"]:
        suites.setdefault(score["suite"], []).append([score, *(card[score["name"]] for card in others)])
    return list(suites.items())


def _utility(records: Mapping[str, RunRecord]) -> Drawing | None:
    """Returns what epsilon buys, if the releases have at least two epsilons and a metric that tells."""
    certified = [record for record in records.values() if record.public["certificate"] is not None]
    epsilons = [float(record.public["certificate"]["epsilon"]) for record in certified]
    kept = [pair for pair in zip(epsilons, certified, strict=True) if 0 < pair[0] < float("inf")]
    if len({epsilon for epsilon, _ in kept}) < 2:
        return None
    titles = [score["title"] for score in _card(kept[0][1])["scores"]]
    distances = [(epsilon, [_distance(score) for score in _card(record)["scores"]]) for epsilon, record in kept]
    if all(None in metric for metric in zip(*(found for _, found in distances), strict=True)):
        return None
    return figures.utility_against_epsilon(distances, titles)


def _distance(score: Facts) -> float | None:
    """Returns how far from real a score is, the control's being 1; None where that can't be told."""
    return abs(score["position"]) if score["position"] is not None and control_tells_apart(score) else None


def _looks(number: int, record: RunRecord) -> Sequence[Drawing]:
    sides = sides_of(record)
    names = list(record.public["synthetic"]["channels"])[:_NUM_CHANNELS]
    made = [d for place, name in enumerate(names) for d in figures.channel_drawings(name, 100 * number + place, sides)]
    return [drawing for drawing in made if drawing.name.endswith(_SHOWN)]
