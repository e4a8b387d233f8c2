"""Fits shadows, each into a file of its own, so that a run that was killed goes on where it was.

Privacy: reads private series without a charge. What comes out is internal, for whoever holds the data anyway.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import joblib
import numpy as np
from safetensors.numpy import load_file, save_file

from understudy.audit.records import Vectors, vectors
from understudy.audit.shadow.features import Features, measured
from understudy.data import Panel, windows
from understudy.errors import InputError
from understudy.files import whole_file
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.synthesizers.base import Synthesizer
from understudy.workers import Workers, pool

Arm = Literal["absent", "present"]
ARMS: tuple[Arm, ...] = ("absent", "present")
Report = Callable[[int, int], None]  # shadows made, shadows planned
Job = tuple[Arm, int]  # one shadow: with or without the target, and its number


class Maker(Protocol):
    """What is made how often; a process makes `at_once` shadows together."""

    @property
    def per_arm(self) -> int:
        """Shadows with and without the target, each."""

    @property
    def at_once(self) -> int:
        """Shadows that one call of `make` gets."""

    def identity(self) -> str:
        """Returns a digest of everything that decides what a shadow is; for internal files only."""

    def make(self, jobs: Sequence[Job]) -> list[dict[str, Features]]:
        """Returns what is measured on each shadow."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Shadows:
    """What is fitted how often.

    Attributes:
        panel: The series of a run, the target among them.
        target: Unit whose presence is to be noticed.
        guarantee: What each fit is charged, in a ledger of its own.
        reproduction: Why rules for a ledger are lifted, if the audited run lifted them.
        per_arm: Shadows with and without the target, each.
        num_samples: Synthetic series that an attacker gets from each.
        context: Public context of these, [step, context]; None takes that of the fit.
    """

    method: Synthesizer
    panel: Panel
    target: int
    guarantee: Guarantee
    per_arm: int
    num_samples: int
    reproduction: str | None = None
    context: np.ndarray | None = None
    at_once: int = 1

    def identity(self) -> str:
        """Returns a digest of everything that decides what a shadow is; for internal files only."""
        digest = hashlib.sha256(repr((self.method, self.guarantee, self.target, self.num_samples)).encode())
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
        return measured(vectors(drawn), self._target_rows())

    def _target_rows(self) -> Vectors:
        """Returns the target's series, or its windows where the method cuts windows."""
        panel, steps = self.panel.take_units([self.target]), self.method.window_steps
        return vectors(panel if steps is None else windows.cut(panel, steps, steps).panel)


def fit_shadows(
    shadows: Maker, folder: Path, *, workers: Workers = 1, progress: Report | None = None
) -> dict[Arm, dict[str, Features]]:
    """Returns features [shadow, feature] of both arms, by name; fits what the folder does not hold yet.

    Args:
        workers: Processes on this machine, or a `Cluster` whose workers see `folder`.
    """
    _claim(folder, shadows.identity())
    planned: list[Job] = [(arm, number) for number in range(shadows.per_arm) for arm in ARMS]  # both grow together
    missing = [job for job in planned if not _path(folder, job).exists()]
    groups = [missing[begin : begin + shadows.at_once] for begin in range(0, len(missing), shadows.at_once)]
    done = len(planned) - len(missing)
    with pool(workers) as processes:
        for made in processes(joblib.delayed(_make)(shadows, folder, group) for group in groups):
            done += made
            if progress is not None:
                progress(done, len(planned))
    return {arm: _stacked([_path(folder, (arm, number)) for number in range(shadows.per_arm)]) for arm in ARMS}


def _path(folder: Path, job: Job) -> Path:
    return folder / f"{job[0]}-{job[1]:05d}.safetensors"


def _make(shadows: Maker, folder: Path, jobs: Sequence[Job]) -> int:
    for job, features in zip(jobs, shadows.make(jobs), strict=True):
        with whole_file(_path(folder, job)) as draft:
            save_file(features, draft)
    return len(jobs)


def _stacked(paths: list[Path]) -> dict[str, Features]:
    read = [load_file(path) for path in paths]
    return {name: np.stack([features[name] for features in read]) for name in read[0]}


def _claim(folder: Path, identity: str) -> None:
    """Refuses a folder that holds shadows of something else."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    note = folder / "shadows.json"
    if note.exists() and json.loads(note.read_text())["identity"] != identity:
        raise InputError("shadows: a folder of this audit is expected, got one of another. Name an empty folder.")
    with whole_file(note) as draft:
        draft.write_text(json.dumps({"identity": identity}))
