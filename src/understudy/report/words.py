"""Numbers as a reader wants them: short figures, and verdicts in plain words, from records (plain JSON)."""

import math
from collections.abc import Mapping
from typing import Any

from understudy.privacy.budget import at_most

LIKE_REAL, NEAR_REAL, BETWEEN, BEYOND = "like real", "near real", "in between", "beyond real"
NO_BETTER, BLIND, UNKNOWN = "no better", "can't tell", "unknown"
COUNTED = (LIKE_REAL, NEAR_REAL, BETWEEN, BEYOND, NO_BETTER)  # verdicts that say something, from best to worst
VERDICTS = {
    LIKE_REAL: "scores as other real series do",
    NEAR_REAL: "apart from real series, and closer to them than to the control",
    BETWEEN: "apart from real series, and closer to the control or too far to be called near",
    BEYOND: "apart from real series on the side away from the control, as copies of training series would be",
    NO_BETTER: "scores no better than the control, which never saw private data",
    BLIND: "the control passes for real, too, so passing for real says little; not counted",
    UNKNOWN: "not measured, or not defined for these series; not counted",
}


def verdict(score: Mapping[str, Any]) -> str:
    """Returns how a score reads: one of `VERDICTS`."""
    if score["synthetic"]["value"] is None or score["like_real"] is None:
        return UNKNOWN
    if score["like_real"]:
        return LIKE_REAL if control_tells_apart(score) else BLIND
    position = score["position"]
    if position is None or position >= 1 or not control_tells_apart(score):
        return NO_BETTER
    if position < 0:
        return BEYOND
    return NEAR_REAL if position < 0.5 and _small_enough(score) else BETWEEN


def _small_enough(score: Mapping[str, Any]) -> bool:
    """Tells whether a figure may be called near real where the control is far off and proves nothing."""
    return score.get("near") is None or score["synthetic"]["value"] <= score["near"]


def is_no_better(score: Mapping[str, Any]) -> bool:
    """Tells whether the synthetic series score as badly as the control."""
    return verdict(score) == NO_BETTER


def control_tells_apart(score: Mapping[str, Any]) -> bool:
    """Tells whether a metric can tell the control from real series, so that doing no better than it means something."""
    control, held = score["independent"]["value"], score["holdout"]
    if control is None or held["low"] is None or held["high"] is None:
        return False
    beyond = {
        "lower": control > held["high"],
        "higher": control < held["low"],
        "near": not held["low"] <= control <= held["high"],
    }
    return bool(beyond[score["direction"]])


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
    if "e" in shown:
        mantissa, _, exponent = shown.partition("e")
        return f"{mantissa} × 10{str(int(exponent)).translate(_RAISED)}".replace("-", "−")
    return shown.replace("-", "−")


def interval(found: Mapping[str, Any]) -> str:
    """Returns a figure's interval, or nothing."""
    if found["low"] is None or found["high"] is None:
        return ""
    return f"{figure(found['low'])} to {figure(found['high'])}"


def share(value: float | None) -> str:
    """Returns a share in percent."""
    return "–" if value is None else f"{100 * value:.1f} %"


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def printable(name: Any, longest: int = 40) -> str:
    """Returns a user's name for a label: one line, no control characters, not endless."""
    plain = "".join(letter if letter.isprintable() else "\ufffd" for letter in str(name))
    return plain if len(plain) <= longest else plain[: longest - 1] + "…"
