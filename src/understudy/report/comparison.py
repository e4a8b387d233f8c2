"""Several releases on one page. Choosing by it is covered by no guarantee, and the page says so first."""

from collections.abc import Mapping, Sequence
from typing import Any

from understudy.report import views
from understudy.report.drawing import Drawing
from understudy.report.figures import channel_drawings
from understudy.report.maps import utility_against_epsilon
from understudy.report.page import filled, sides_of
from understudy.report.record import RunRecord
from understudy.report.words import control_tells_apart, figure, verdict

MAX_RELEASES = 6
_NUM_CHANNELS = 2
_SHOWN = ("values", "memory")  # figures of each channel that are put side by side


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
