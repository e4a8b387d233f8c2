"""Warnings in plain words: what a reader must not overlook."""

import math
from collections.abc import Mapping
from typing import Any

from understudy.privacy.budget import at_most
from understudy.report.words import control_tells_apart, is_no_better

WEAK_EPSILON = 5.0
_ENOUGH = 3  # metrics that can tell the control from real series, before anything is said about all of them


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
    useless = [score for score in telling if is_no_better(score)]
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
        cautions.append(f"Could not be measured because of a fault of ours: {', '.join(failed)}.")
    return cautions
