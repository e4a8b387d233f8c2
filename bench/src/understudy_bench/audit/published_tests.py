"""The statistics of VFLGAN-TS beside ones that say what they mean.

The paper repeats an attack ten times on the same shadows and compares two attacks by Wilcoxon's signed-rank test over
the ten. Such repeats differ in which shadows train the forest and in nothing else: they tell how steady one experiment
is, not what another would show. Ten of them can't give a p-value below 2/1024 = 0.002, nor a reason to believe it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import mannwhitneyu, wilcoxon
from sklearn.ensemble import RandomForestClassifier

from understudy.auditing.scores import Interval, area_under_curve
from understudy.auditing.shadows import ARMS, DISTANCES, Arm, Features

REPEATS = 10
_TRAINED = 90 / 128  # share of the shadows that train, as in the authors' published code
_TREES, _DEPTH = 200, 3  # a fifth of their trees
ByArm = Mapping[Arm, Mapping[str, Features]]


@dataclass(frozen=True, kw_only=True)
class Repeated:
    """Areas under the curve of one attack: ten repeats on the same shadows, and one count on shadows kept apart.

    Attributes:
        repeats: One area each; they overlap.
        area: On shadows that trained nothing, with its interval.
        p_value: That these would look so or more if the target left no trace (Mann & Whitney), one-sided.
    """

    repeats: NDArray[np.float64]
    area: Interval
    p_value: float


def repeated(features: ByArm, name: str, rng: np.random.Generator) -> Repeated:
    """Attacks by one feature, as published and as it should be."""
    number = min(len(features[arm][name]) for arm in ARMS)
    train = max(2, round(_TRAINED * number))
    found = []
    for _ in range(REPEATS):
        mixed = {arm: features[arm][name][rng.permutation(number)] for arm in ARMS}
        found.append(area_under_curve(*_scores(mixed, name, train)).estimate)
    absent, present = _scores({arm: features[arm][name] for arm in ARMS}, name, number // 2)
    return Repeated(
        repeats=np.array(found),
        area=area_under_curve(absent, present),
        p_value=float(mannwhitneyu(present, absent, alternative="greater").pvalue),
    )


def as_published(one: Repeated, other: Repeated) -> float:
    """Wilcoxon's test over paired repeats; two-sided, as its least value of 0.002 in Table 8 shows."""
    if np.allclose(one.repeats, other.repeats):
        return 1.0
    return float(wilcoxon(one.repeats, other.repeats).pvalue)


def valid(one: Repeated, other: Repeated) -> float:
    """Whether one area is larger, from intervals on shadows kept apart, which are independent for two targets."""
    deviation = math.hypot(*((each.area.high - each.area.low) / (2 * 1.96) for each in (one, other)))
    return float(2 * ndtr(-abs(one.area.estimate - other.area.estimate) / max(deviation, 1e-12)))


def _scores(features: Mapping[Arm, Features], name: str, train: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores of the shadows after the first `train`, high where the target seems present."""
    absent, present = features["absent"], features["present"]
    if name in DISTANCES:
        return -absent[train:, 0].astype(np.float64), -present[train:, 0].astype(np.float64)
    forest = RandomForestClassifier(_TREES, max_depth=_DEPTH, max_features="sqrt", random_state=0, n_jobs=1)
    forest.fit(np.concatenate([absent[:train], present[:train]]), np.repeat([0, 1], train))
    return forest.predict_proba(absent[train:])[:, 1], forest.predict_proba(present[train:])[:, 1]
