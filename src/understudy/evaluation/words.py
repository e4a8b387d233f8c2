"""Scorecards (as JSON has them) in words: short figures, verdicts, the headline of an evaluation, and cautions."""

import math
import re
from collections.abc import Mapping
from typing import Any

from understudy.evaluation.metric import ERROR_ON_CANDIDATE, ERROR_ON_REAL, FORECASTS, MATTERS
from understudy.privacy.budget import at_most

LIKE_REAL, NEAR_REAL, BETWEEN, BEYOND = "like real", "near real", "in between", "beyond real"
NO_BETTER, BLIND, UNKNOWN = "no better", "can't tell", "unknown"
COUNTED = (LIKE_REAL, NEAR_REAL, BETWEEN, BEYOND, NO_BETTER)  # verdicts that say something, from best to worst
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_TOO_LATE = "not measured"
WEAK_EPSILON = 5.0
_NUM_WEAKEST = 3
_ENOUGH = 3  # metrics that can tell the control from real series, before anything is said about all of them
VERDICTS = {
    LIKE_REAL: "scores as other real series do",
    NEAR_REAL: "apart from real series, and closer to them than to the control",
    BETWEEN: "apart from real series, and closer to the control or too far to be called near",
    BEYOND: "apart from real series on the side away from the control, as copies of training series would be",
    NO_BETTER: "scores no better than the control, which never saw private data",
    BLIND: "within what real series vary by, as the control is, or nearer to it than to them: says little; not counted",
    UNKNOWN: "not measured, or not defined for these series; not counted",
}


def worse(direction: str, found: float | None, low: float | None, high: float | None) -> bool | None:
    """Returns whether a figure is beyond what other real series have, on the bad side; None where that is unknown."""
    if found is None or low is None or high is None:
        return None
    return {"lower": found > high, "higher": found < low, "near": not low <= found <= high}[direction]


def verdict(score: Mapping[str, Any]) -> str:
    """Returns how a score reads: one of `VERDICTS`."""
    if score["synthetic"]["value"] is None or score["like_real"] is None:
        return UNKNOWN
    position = score["position"]
    if score["like_real"]:  # of few series the interval is so wide that it may hold what is nearer to the control
        near = position is None or position < 0.5
        return LIKE_REAL if near and control_tells_apart(score) else BLIND
    if position is None or position >= 1 or not control_tells_apart(score):
        return NO_BETTER
    if position < 0:
        return BEYOND
    # Where the control is far off, lying nearer than halfway proves nothing: the figure must be small, too.
    small = score.get("near") is None or score["synthetic"]["value"] <= score["near"]
    return NEAR_REAL if position < 0.5 and small else BETWEEN


def control_tells_apart(score: Mapping[str, Any]) -> bool:
    """Returns whether a metric separates the control from real series, so that beating the control means something."""
    held = score["holdout"]
    return bool(worse(score["direction"], score["independent"]["value"], held["low"], held["high"]))


def promise(value: float, digits: int = 3) -> str:
    """Returns an epsilon or a delta with a few digits, rounded up as everywhere."""
    return "∞" if math.isinf(value) else _typeset(at_most(float(value), digits))


def figure(value: float | None, digits: int = 3) -> str:
    """Returns a number with a few digits, or a dash."""
    if value is None:
        return "–"
    number = float(value)
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    return _typeset(f"{number:.{digits}g}" if number else "0")


def _typeset(shown: str) -> str:
    return powers(shown).replace("-", "−")


def powers(text: str) -> str:
    """Returns a text with its numbers in scientific notation as powers of ten."""
    return re.sub(r"(\d)e([-+]\d+)", lambda found: f"{found[1]} × 10{str(int(found[2])).translate(_RAISED)}", text)


def interval(found: Mapping[str, Any]) -> str:
    """Returns a figure's interval, or nothing."""
    if found["low"] is None or found["high"] is None:
        return ""
    return f"{figure(found['low'])} to {figure(found['high'])}"


def share(value: float | None) -> str:
    """Returns a share in percent."""
    return "–" if value is None else f"{100 * value:.1f} %"


def printable(name: Any, longest: int = 40) -> str:
    """Returns a user's name for a label: one line, no control characters, not endless."""
    plain = "".join(letter if letter.isprintable() else "\ufffd" for letter in str(name))
    return plain if len(plain) <= longest else plain[: longest - 1] + "…"


def headline(card: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the worst verdict of what matters, what is apart from real (worst first), and the finding in words.

    Something that matters and was not measured makes a verdict of *like real* unknown. `sentence` sums up all checks
    that can tell; `worst` says what is apart from real series in what matters, with figures.
    """
    rows = {score["name"]: score for score in card["scores"] if score["name"] in MATTERS}
    by_verdict = {name: verdict(score) for name, score in rows.items()}
    counted = sorted((n for n in rows if by_verdict[n] in COUNTED), key=lambda n: _badness(rows[n]), reverse=True)
    apart = [name for name in counted if by_verdict[name] != LIKE_REAL]
    problems = {name: score["synthetic"]["problem"] or "" for name, score in rows.items()}
    unmeasured = [name for name in MATTERS if problems.get(name, _TOO_LATE).startswith((_TOO_LATE, "failed"))]
    found = {
        "verdict": by_verdict[apart[0]] if apart else LIKE_REAL if counted and not unmeasured else UNKNOWN,
        "apart": [_told(name, rows[name], by_verdict[name]) for name in apart],
        "like_real": [MATTERS[name] for name in counted if name not in apart],
        "cannot_tell": [MATTERS[name] for name in rows if by_verdict[name] == BLIND],
        "not_measured": [MATTERS[name] for name in unmeasured],
    }
    return {"sentence": _summary(card), "worst": _worst(found), **found}


def with_verdicts(card: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a scorecard with its headline, and with the verdict of every row."""
    rows = [{**score, "verdict": verdict(score)} for score in card["scores"]]
    return {"headline": headline(card), **card, "scores": rows}


def weakest(card: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Returns the scores that are apart from real series, the farthest first."""
    return sorted((s for s in card["scores"] if verdict(s) in COUNTED[1:]), key=_badness, reverse=True)


def _badness(score: Mapping[str, Any]) -> tuple[int, float]:
    position = score["position"]
    return COUNTED.index(verdict(score)), 0.0 if position is None else abs(position)


def _told(name: str, score: Mapping[str, Any], found: str) -> dict[str, Any]:
    real = {key: score["holdout"][key] for key in ("value", "low", "high")}
    return {"name": name, "what": MATTERS[name], "verdict": found, "value": score["synthetic"]["value"], "real": real}


def _summary(card: Mapping[str, Any]) -> str:
    """Returns one sentence: what forecasts lose, how many checks can't tell the series from real ones, the weakest."""
    verdicts = [verdict(score) for score in card["scores"]]
    counted, alike = sum(one in COUNTED for one in verdicts), verdicts.count(LIKE_REAL)
    if not counted:
        return "No check can tell here, or none was measured."
    parts = [f"{alike} of {counted} checks {'is' if alike == 1 else 'are'} indistinguishable from real series"]
    factor = forecast_factor(card)
    if factor is not None:
        parts.insert(0, f"forecasts trained on it err {factor:.2f} times as much as on real series")
    apart = [MATTERS.get(s["name"], s["title"][0].lower() + s["title"][1:]) for s in weakest(card)[:_NUM_WEAKEST]]
    parts += [f"weakest: {', '.join(apart)}"] if apart else []
    sentence = "; ".join(parts)
    return f"{sentence[0].upper()}{sentence[1:]}."


def forecast_factor(card: Mapping[str, Any]) -> float | None:
    """Returns the forecasting error after training on the synthetic series, over that after training on real ones."""
    forecasts = [score["synthetic"].get("parts", {}) for score in card["scores"] if score["name"] == FORECASTS]
    parts: Mapping[str, float] = forecasts[0] if forecasts else {}
    on_synthetic, on_real = parts.get(ERROR_ON_CANDIDATE), parts.get(ERROR_ON_REAL)
    return on_synthetic / on_real if on_synthetic is not None and on_real else None


def _worst(found: Mapping[str, Any]) -> str:
    said = "Unknown: what matters was not measured, or can't tell here."
    if found["apart"]:
        shown = ((one["what"], figure(one["value"]), one["real"]) for one in found["apart"])
        listed = ", ".join(
            f"{what} ({value}; real series {figure(real['value'])}, {interval(real)})" for what, value, real in shown
        )
        said = f"Worst of what matters: {found['verdict']}. Apart from real series in {listed}."
    elif found["verdict"] == LIKE_REAL:
        said = f"Like real in what matters: {', '.join(found['like_real'])}."
    rest = {"Can't tell here": found["cannot_tell"], "Not measured": found["not_measured"]}
    return " ".join([said, *(f"{name}: {', '.join(listed)}." for name, listed in rest.items() if listed)])


def public_cautions(certificate: Mapping[str, Any] | None) -> list[str]:
    """Returns what public facts alone give cause to say."""
    if certificate is None:
        return ["No certificate came with these series: nothing is known about their privacy."]
    if certificate["status"] != "private":
        return [f"This release is {certificate['status']}."]
    cautions = []
    epsilon = float(certificate["epsilon"])
    if epsilon >= WEAK_EPSILON:
        cautions.append(
            f"Epsilon = {at_most(epsilon)} is weak: being in the data may make a conclusion {math.exp(epsilon):,.0f} "
            "times likelier."
        )
    if certificate["ledger"].get("kind") == "in-memory":
        cautions.append("The charge was kept in memory only: another run would not know of it.")
    cautions += [
        f"A rule was lifted by name: {name.replace('_', ' ')} ({reason})."
        for name, reason in certificate["overrides"].items()
    ]
    return cautions


def internal_cautions(card: Mapping[str, Any], certificate: Mapping[str, Any] | None) -> list[str]:
    """Returns what the scores give cause to say."""
    telling = [score for score in card["scores"] if control_tells_apart(score)]
    useless = [score for score in telling if verdict(score) == NO_BETTER]
    failed = [score["title"] for score in card["scores"] if (score["synthetic"]["problem"] or "").startswith("failed")]
    cautions = []
    if len(telling) >= _ENOUGH and len(useless) > len(telling) / 2:
        what = "This epsilon buys nothing here" if certificate else "These series are worth no more than no data at all"
        cautions.append(
            f"{what}: on {len(useless)} of the {len(telling)} measures that can tell, the synthetic series score no "
            "better than a control that never saw private data."
        )
    elif useless:
        cautions.append(f"No better than without private data: {', '.join(score['title'] for score in useless)}.")
    if failed:
        cautions.append(f"Could not be measured because of an internal error: {', '.join(failed)}.")
    return cautions
