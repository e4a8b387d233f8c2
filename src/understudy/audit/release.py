"""The audit of a release: attacks on the release itself, and attacks that refit it with and without a target.

Internal throughout: private series are read without a charge, and nothing here may leave with the release.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from understudy.audit.attacks import QUESTIONS, Answer, Parties, Vectors, membership, vectors
from understudy.audit.scores import Interval
from understudy.audit.shadows import (
    SCHEMES,
    TARGETS,
    ShadowAudit,
    Shadows,
    attack,
    fit_shadows,
    most_provable,
    require_enough,
)
from understudy.audit.transcript import Inversion, invert, recorded, rows_by_party
from understudy.data import Panel, windows
from understudy.errors import InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.certificate import Certificate
from understudy.privacy.ledger import Ledger
from understudy.synthesizers import Release
from understudy.synthesizers.vflgan_ts.method import VFLGANTS
from understudy.workers import Workers

Progress = Callable[[str, float], None]
_MOST_ROWS = 2000
_RESERVE = 0.9  # share of the minutes that is planned with; forests and the first imports take the rest
_MOST_SHARED = 0.1  # of the holdout, that may look like series of the run


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Audited:
    """A release, the series of its run, others that it never saw, and series drawn from it.

    Attributes:
        members: Series of the run in the real table's schema.
        others: Series that the run never saw.
        synthetic: Series of the release; of its windows where it was made of windows.
    """

    release: Release
    members: Panel
    others: Panel
    synthetic: Panel

    def rows(self, panel: Panel, rng: np.random.Generator) -> Vectors:
        """Returns at most 2,000 rows of a panel in the shape of the release, in random order."""
        steps = self.synthetic.num_steps
        cut = panel if panel.num_steps == steps else windows.cut(panel, steps, steps)
        rows = vectors(cut)
        return rows[rng.permutation(len(rows))[:_MOST_ROWS]]


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What attacks on the release itself found; areas under the curve and answers to the three questions."""

    membership: Mapping[str, Interval]
    questions: Mapping[str, Answer]


def examine(audited: Audited, *, attempts: int, seed: int) -> Findings:
    """Attacks the release as it is, beside the same attacks on series that it never saw."""
    rng = np.random.default_rng(seed)
    members, others = (audited.rows(panel, rng) for panel in (audited.members, audited.others))
    if _shared(members, others) > _MOST_SHARED:
        raise InputError("--holdout: series that the run never saw are expected, got some of its own series.")
    synthetic, number = audited.rows(audited.synthetic, rng), min(len(members), len(others))
    parties = Parties(members=members[:number], others=others[:number], synthetic=synthetic)
    return Findings(
        membership=membership(members, others, synthetic),
        questions={name: question(parties, attempts, rng) for name, question in QUESTIONS.items()},
    )


def shadow_audits(
    audited: Audited, scheme: str, folder: Path, *, per_arm: int, workers: Workers, progress: Progress
) -> dict[str, ShadowAudit]:
    """Makes the release again and again, with and without each target of a scheme, and attacks what comes out."""
    if scheme not in SCHEMES:
        raise InputError(f"--attack: one of {', '.join(SCHEMES)}, asif+ is expected, got '{scheme}'.")
    require_enough(per_arm, delta=audited.release.certificate.delta)
    return {
        name: _shadow_audit(audited, name, folder / name, per_arm=per_arm, workers=workers, progress=progress)
        for name in SCHEMES[scheme]
    }


def shadows_for(audited: Audited, target: str, *, per_arm: int) -> Shadows:
    """Returns the shadow fits for one target."""
    certificate = audited.release.certificate
    return Shadows(
        method=audited.release.synthesizer,
        panel=audited.members,
        target=_target_unit(audited, target),
        guarantee=Guarantee(certificate.epsilon, certificate.delta),
        per_arm=per_arm,
        num_samples=audited.synthetic.num_series,
        reproduction=certificate.overrides.get("reproduction"),
        context=audited.release.public_context,
    )


def transcript_audit(audited: Audited, *, seed: int, attempts: int = 20) -> dict[str, Inversion]:
    """Makes a vertical release again, listens to what parties send, and reads rows off it; by party."""
    method, certificate = audited.release.synthesizer, audited.release.certificate
    if not isinstance(method, VFLGANTS):
        raise InputError(f"--attack: 'asif+' is for runs of several parties; this release is one of '{method.name}'.")
    if method.window_steps is not None:
        raise InputError("--attack: 'asif+' reads whole series off features; this release was made of windows.")
    guarantee = Guarantee(certificate.epsilon, certificate.delta)
    ledger = Ledger.in_memory(guarantee, reproduction=certificate.overrides.get("reproduction"))
    with recorded() as transcript:
        again = method.fit(audited.members, ledger, guarantee=guarantee)
    unknown = np.random.default_rng(seed).permutation(audited.members.num_series)[:attempts].tolist()
    rows = rows_by_party(audited.members, again.arrays)
    return {name: invert(transcript.sent[name], own.series.flatten(1).double().numpy(), unknown) for name, own in rows}


def _shadow_audit(
    audited: Audited, target: str, folder: Path, *, per_arm: int, workers: Workers, progress: Progress
) -> ShadowAudit:
    def report(done: int, planned: int) -> None:
        progress(f"shadows for '{target}'", done / planned)

    made = fit_shadows(shadows_for(audited, target, per_arm=per_arm), folder, workers=workers, progress=report)
    return attack(made, delta=audited.release.certificate.delta)


def _target_unit(audited: Audited, target: str) -> int:
    """Returns the unit of the row that the criterion chooses among all members."""
    steps = audited.synthetic.num_steps
    whole = audited.members.num_steps == steps
    cut = audited.members if whole else windows.cut(audited.members, steps, steps)
    return int(cut.unit[TARGETS[target](vectors(cut), vectors(audited.synthetic))])


def _shared(members: Vectors, others: Vectors) -> float:
    """Returns the share of others that equal a member in every step; two meters at rest may."""
    known = {row.tobytes() for row in members}
    return sum(row.tobytes() in known for row in others) / max(1, len(others))


def contradicted(certificate: Certificate, audits: Mapping[str, ShadowAudit]) -> list[str]:
    """Returns the targets whose audit contradicts the certificate."""
    return [name for name, audit in audits.items() if audit.result.contradicts(certificate)]


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """What an audit will cost and could find.

    Attributes:
        seconds: Of one shadow, measured.
        most: The epsilon that a perfect attack would certify.
    """

    per_arm: int
    seconds: float
    most: float
    claimed: float

    def sentence(self) -> str:
        """The outlook in words."""
        can = "could" if self.most > self.claimed else "could not"
        return (
            f"{self.per_arm} shadows per arm and target at {self.seconds:.2g} s each: no attack on them can certify "
            f"more than ε = {self.most:.2f}, so this audit {can} contradict a certificate of ε = {self.claimed:.3g}."
        )


def outlook(audited: Audited, per_arm: int, seconds: float) -> Outlook:
    """Returns what this many shadows per arm could prove; refuses a number that could prove nothing."""
    certificate = audited.release.certificate
    require_enough(per_arm, delta=certificate.delta)
    most = most_provable(per_arm, delta=certificate.delta)
    return Outlook(per_arm=per_arm, seconds=seconds, most=most, claimed=certificate.epsilon)


def planned(audited: Audited, scheme: str, minutes: float, workers: Workers) -> Outlook:
    """Fits one shadow to see how long it takes, and returns how many fit into `minutes`."""
    if scheme not in SCHEMES:
        raise InputError(f"--attack: one of {', '.join(SCHEMES)}, asif+ is expected, got '{scheme}'.")
    seconds = seconds_of(shadows_for(audited, SCHEMES[scheme][0], per_arm=1))
    at_once = workers if isinstance(workers, int) else 1  # of a cluster nothing is known: planned as one process
    per_arm = int(_RESERVE * 60 * minutes * at_once / (seconds * 2 * len(SCHEMES[scheme])))
    try:
        return outlook(audited, per_arm, seconds)
    except InputError as problem:
        raise InputError(
            f"--budget-minutes: {minutes:g} minutes are enough for {per_arm} shadows per arm, and so few can't prove "
            "anything. Give it more time, or more --workers."
        ) from problem


def seconds_of(shadows: Shadows) -> float:
    """Returns how long one shadow takes; the second one, because the first imports and calibrates."""
    shadows.fit("absent")
    begin = time.perf_counter()
    shadows.fit("absent")
    return time.perf_counter() - begin
