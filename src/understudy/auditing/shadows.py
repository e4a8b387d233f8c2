"""Shadow models: the method fitted again and again with and without one target, and attacks that tell both apart.

ASSD of VFLGAN-TS (section 4.6): choose a target, fit shadows, measure what they release, read the features as scores. A
third of the shadows trains the attack, a third chooses its threshold, a third is counted; no shadow does two jobs. Each
shadow is a file of its own, so that a run that was killed resumes.

Privacy: reads private series without a charge. The output is internal, for the data holder.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import joblib
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from sklearn.ensemble import RandomForestClassifier

from understudy.auditing.attacks import Vectors, distances, isolation, vectors
from understudy.auditing.scores import Interval, LowerBound, Scores, area_under_curve, audit_scores, ceiling, counted
from understudy.data import Panel, windows
from understudy.errors import InputError
from understudy.files import whole_file
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.synthesizers.base import Synthesizer
from understudy.workers import Workers, pool

Arm = Literal["absent", "present"]
ARMS: tuple[Arm, ...] = ("absent", "present")
Job = tuple[Arm, int]  # one shadow: with or without the target, and its number
Report = Callable[[int, int], None]  # shadows made, shadows planned
Features = NDArray[np.float32]
CANDIDATES, NEIGHBOURS = 100, 20  # m and k of Eq. 19 and 20, as in the authors' published code
_QUANTILES = (0.025, 0.975)
_MOST_COLUMNS = 256  # of a correlation matrix: 32,640 pairs
COUNTED = 3  # one third of the shadows trains, one chooses a threshold, one is counted
_TREES, _DEPTH = 1000, 3  # as in the authors' published code
DISTANCES = ("knn",)  # scores already; everything else is read by a forest
_NOT_OF_A_SHADOW = ("panel", "context", "per_arm", "at_once")  # arrays, and how many are made


def most_isolated(real: Vectors, synthetic: Vectors) -> int:
    """The series furthest from its nearest neighbour (Eq. 18)."""
    return int(isolation(real).argmax())


def most_influential(real: Vectors, synthetic: Vectors) -> int:
    """Of the most isolated series, the one that synthetic series came nearest to (Eq. 19 and 20)."""
    candidates = np.argsort(-isolation(real), kind="stable")[:CANDIDATES]  # Eq. 19
    near = distances(real[candidates], synthetic, NEIGHBOURS).sum(axis=1)  # Eq. 20
    return int(candidates[near.argmin()])


def most_extreme(real: Vectors, synthetic: Vectors, record: int = 1) -> int:
    """The series with the most, or second most, columns in the outer 5 % (records 1 and 2 of the original ASSD)."""
    low, high = np.quantile(real, _QUANTILES, axis=0)
    number = ((real < low) | (real > high)).sum(axis=1)
    return int(np.argsort(-number, kind="stable")[min(record, len(real)) - 1])


Target = Callable[[Vectors, Vectors], int]
TARGETS: Mapping[str, Target] = {
    "isolated": most_isolated,
    "influential": most_influential,
    "record-1": most_extreme,
    "record-2": partial(most_extreme, record=2),
}
SCHEMES: Mapping[str, tuple[str, ...]] = {"assd": ("record-1", "record-2"), "assd+": ("isolated", "influential")}


def naive(synthetic: Vectors, target: Vectors) -> Features:
    """Mean, median and variance of every column."""
    return np.concatenate([synthetic.mean(axis=0), np.median(synthetic, axis=0), synthetic.var(axis=0)])


def correlations(synthetic: Vectors, target: Vectors) -> Features:
    """Correlations of all pairs of columns; of evenly spaced ones where there are many. 0 where one is constant."""
    chosen = np.unique(np.linspace(0, synthetic.shape[1] - 1, _MOST_COLUMNS).round().astype(int))
    columns = synthetic[:, chosen].astype(np.float64)
    centred = columns - columns.mean(axis=0)
    length = np.sqrt((centred**2).sum(axis=0))
    moments = centred.T @ centred
    known = np.outer(length, length)
    matrix = np.divide(moments, known, out=np.zeros_like(moments), where=known > 1e-12)
    return matrix[np.triu_indices(len(chosen), 1)].astype(np.float32)


def nearest_neighbours(synthetic: Vectors, target: Vectors) -> Features:
    """Sum of the target's distances to the 20 nearest synthetic series (Eq. 21), for its nearest row."""
    return distances(target, synthetic, NEIGHBOURS).sum(axis=1).min(keepdims=True).astype(np.float32)


FEATURES: Mapping[str, Callable[[Vectors, Vectors], Features]] = {
    "naive": naive,
    "correlation": correlations,
    "knn": nearest_neighbours,
}


def measured(synthetic: Vectors, target: Vectors) -> dict[str, Features]:
    """Returns all features of one shadow's series; `target` holds the target's rows."""
    return {name: np.ascontiguousarray(feature(synthetic, target), np.float32) for name, feature in FEATURES.items()}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Shadows:
    """What is fitted how often."""

    method: Synthesizer
    panel: Panel  # the series of a run, the target among them
    target: int  # unit whose presence is to be noticed
    guarantee: Guarantee  # what each fit is charged, in a ledger of its own
    per_arm: int  # shadows with and without the target, each
    num_samples: int  # synthetic series that an attacker gets from each
    reproduction: str | None = None  # why rules for a ledger are lifted, if the audited run lifted them
    context: np.ndarray | None = None  # public context of the samples, [step, context]; None takes that of the fit
    at_once: int = 1  # shadows that a process makes together

    def identity(self) -> str:
        """Returns a digest of everything that decides what a shadow is; for internal files only."""
        own = {name: value for name, value in vars(self).items() if name not in _NOT_OF_A_SHADOW}
        digest = hashlib.sha256(repr(own).encode())
        for array in (self.panel.values, self.panel.static, self.panel.unit, self.context):
            digest.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def make(self, jobs: Sequence[Job]) -> list[dict[str, Features]]:
        """Fits one shadow after another."""
        return [self.fit(arm) for arm, _ in jobs]

    def fit(self, arm: Arm) -> dict[str, Features]:
        """Fits one shadow, draws from it and measures what it drew."""
        others = np.delete(np.arange(self.panel.num_units), self.target)
        panel = self.panel if arm == "present" else self.panel.take_units(others)
        ledger = Ledger.in_memory(self.guarantee, reproduction=self.reproduction)
        release = self.method.fit(panel, ledger, guarantee=self.guarantee)
        drawn = release.sample(self.num_samples, context=self.context)
        target, steps = self.panel.take_units([self.target]), self.method.window_steps
        return measured(vectors(drawn), vectors(target if steps is None else windows.cut(target, steps, steps)))


def fit_shadows(
    shadows: Shadows, folder: Path, *, workers: Workers = 1, progress: Report | None = None
) -> dict[Arm, dict[str, Features]]:
    """Returns features [shadow, feature] of both arms, by name; fits what the folder does not hold yet."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    note, identity = folder / "shadows.json", shadows.identity()
    if note.exists() and json.loads(note.read_text())["identity"] != identity:
        raise InputError("shadows: a folder of this audit is expected, got one of another. Name an empty folder.")
    with whole_file(note) as draft:
        draft.write_text(json.dumps({"identity": identity}))
    planned: list[Job] = [(arm, number) for number in range(shadows.per_arm) for arm in ARMS]  # both grow together
    missing = [job for job in planned if not _path(folder, job).exists()]
    groups = [missing[begin : begin + shadows.at_once] for begin in range(0, len(missing), shadows.at_once)]
    done = len(planned) - len(missing)
    with pool(workers) as processes:
        for made in processes(joblib.delayed(_make)(shadows, folder, group) for group in groups):
            done += made
            if progress is not None:
                progress(done, len(planned))
    read = {arm: [load_file(_path(folder, (arm, number))) for number in range(shadows.per_arm)] for arm in ARMS}
    return {arm: {name: np.stack([one[name] for one in own]) for name in own[0]} for arm, own in read.items()}


def _path(folder: Path, job: Job) -> Path:
    return folder / f"{job[0]}-{job[1]:05d}.safetensors"


def _make(shadows: Shadows, folder: Path, jobs: Sequence[Job]) -> int:
    for job, features in zip(jobs, shadows.make(jobs), strict=True):
        with whole_file(_path(folder, job)) as draft:
            save_file(features, draft)
    return len(jobs)


@dataclass(frozen=True, kw_only=True)
class ShadowAudit:
    """Areas under the curve by attack, the strongest bound that all of them together prove, and all scores."""

    areas: Mapping[str, Interval]
    result: LowerBound
    scores: Mapping[str, Scores]


def attack(features: Mapping[Arm, Mapping[str, Features]], *, delta: float, confidence: float = 0.95) -> ShadowAudit:
    """Audits one target by all features."""
    number = min(len(next(iter(own.values()))) for own in features.values())
    require_enough(number, delta=delta, confidence=confidence)
    family = {name: scores(features, name, number // COUNTED) for name in features["absent"]}
    areas = {name: area_under_curve(own.absent, own.present, confidence) for name, own in family.items()}
    return ShadowAudit(areas=areas, result=audit_scores(family, delta=delta, confidence=confidence), scores=family)


def require_enough(per_arm: int, *, delta: float, confidence: float = 0.95) -> None:
    """Refuses a number of shadows from which nothing could follow, whatever they show."""
    if most_provable(per_arm, delta=delta, confidence=confidence) == 0:
        raise InputError(f"Expected more shadows, got {per_arm} per arm: this few can't prove anything.")


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
