"""Reads features of shadows as scores: a forest that has learned from some of the shadows, or a distance as it is.

The first third of the shadows trains, the second chooses a threshold, the last is counted; no shadow does two jobs.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from understudy.audit.intervals import Interval, area_under_curve
from understudy.audit.result import AuditResult
from understudy.audit.scores import Scores, audit_scores, ceiling, counted
from understudy.audit.shadow.features import FEATURES, Features
from understudy.audit.shadow.models import Arm
from understudy.errors import InputError

COUNTED = 3  # one third of the shadows trains, one chooses a threshold, one is counted
_TREES, _DEPTH = 1000, 3  # as in the authors' published code
DISTANCES = ("knn",)  # scores already; everything else is read by a forest


@dataclass(frozen=True, kw_only=True)
class ShadowAudit:
    """Areas under the curve by attack, the strongest bound that all of them together prove, and all scores."""

    areas: Mapping[str, Interval]
    result: AuditResult
    scores: Mapping[str, Scores]


def attack(features: Mapping[Arm, Mapping[str, Features]], *, delta: float, confidence: float = 0.95) -> ShadowAudit:
    """Audits one target by all features."""
    number = min(len(next(iter(own.values()))) for own in features.values())
    require_enough(number, delta=delta, confidence=confidence)
    family = {name: scores(features, name, number // COUNTED) for name in features["absent"]}
    areas = {name: area_under_curve(own.absent, own.present, confidence) for name, own in family.items()}
    return ShadowAudit(areas=areas, result=audit_scores(family, delta=delta, confidence=confidence), scores=family)


def require_enough(per_arm: int, *, delta: float, confidence: float = 0.95) -> None:
    """Refuses so few shadows that nothing could follow, whatever they show."""
    if most_provable(per_arm, delta=delta, confidence=confidence) == 0:
        raise InputError(f"Expected more shadows, got {per_arm} per arm: so few can't prove anything.")


def most_provable(per_arm: int, *, delta: float, confidence: float = 0.95) -> float:
    """Returns the epsilon that a perfect attack on this many shadows would certify, as the audit will state it."""
    scored = per_arm - per_arm // COUNTED
    return ceiling(counted(scored), delta=delta, confidence=confidence, family=len(FEATURES)) if scored > 3 else 0.0


def scores(features: Mapping[Arm, Mapping[str, Features]], name: str, trained_on: int) -> Scores:
    """Returns scores of the shadows that did not train, high where the target seems present."""
    absent, present = (features[arm][name] for arm in ("absent", "present"))
    if name in DISTANCES:
        return Scores(*(-own[trained_on:, 0].astype(np.float64) for own in (absent, present)))
    forest = RandomForestClassifier(_TREES, max_depth=_DEPTH, max_features="sqrt", random_state=0, n_jobs=1)
    rows = np.concatenate([absent[:trained_on], present[:trained_on]])
    forest.fit(rows, np.repeat([0, 1], trained_on))
    return Scores(*(forest.predict_proba(own[trained_on:])[:, 1] for own in (absent, present)))
