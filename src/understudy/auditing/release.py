"""The audit of a release: attacks on the release itself, and attacks that refit it with and without a target.

Internal throughout: private series are read without a charge, and nothing here may leave with the release.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from understudy.auditing.attacks import QUESTIONS, Answer, Parties, Vectors, membership, vectors
from understudy.auditing.scores import Interval
from understudy.auditing.shadows import (
    SCHEMES,
    TARGETS,
    ShadowAudit,
    Shadows,
    attack,
    fit_shadows,
    most_provable,
    require_enough,
)
from understudy.auditing.transcript import Inversion, invert, recorded, rows_by_party
from understudy.data import Panel, windows
from understudy.errors import InputError
from understudy.privacy.budget import Guarantee
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

    def cut(self, panel: Panel) -> Panel:
        """Returns a panel's series in the shape of the release."""
        steps = self.synthetic.num_steps
        return panel if panel.num_steps == steps else windows.cut(panel, steps, steps)


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Findings of attacks on the release itself: areas under the curve, and answers to the three questions."""

    membership: Mapping[str, Interval]
    questions: Mapping[str, Answer]


def examine(audited: Audited, *, attempts: int, seed: int) -> Findings:
    """Attacks the release as it is, and repeats the attacks on series that it never saw."""
    rng = np.random.default_rng(seed)

    def some(panel: Panel) -> Vectors:
        rows = vectors(audited.cut(panel))
        return rows[rng.permutation(len(rows))[:_MOST_ROWS]]

    members, others = some(audited.members), some(audited.others)
    known = {row.tobytes() for row in members}  # two meters at rest may be equal
    if sum(row.tobytes() in known for row in others) > _MOST_SHARED * len(others):
        raise InputError("--holdout: series that the run never saw are expected, got some of its own series.")
    synthetic, number = some(audited.synthetic), min(len(members), len(others))
    parties = Parties(members=members[:number], others=others[:number], synthetic=synthetic)
    return Findings(
        membership=membership(members, others, synthetic),
        questions={name: question(parties, attempts, rng) for name, question in QUESTIONS.items()},
    )


def shadow_audits(
    audited: Audited, scheme: str, folder: Path, *, per_arm: int, workers: Workers, progress: Progress
) -> dict[str, ShadowAudit]:
    """Refits the release with and without each target of a scheme, and attacks what comes out."""
    targets, delta = _targets(scheme), audited.release.certificate.delta
    require_enough(per_arm, delta=delta)
    found = {}
    for target in targets:

        def report(done: int, planned: int, target: str = target) -> None:
            progress(f"shadows for '{target}'", done / planned)

        shadows = shadows_for(audited, target, per_arm=per_arm)
        found[target] = attack(fit_shadows(shadows, folder / target, workers=workers, progress=report), delta=delta)
    return found


def _targets(scheme: str) -> tuple[str, ...]:
    if scheme not in SCHEMES:
        raise InputError(f"--attack: one of {', '.join(SCHEMES)}, asif+ is expected, got '{scheme}'.")
    return SCHEMES[scheme]


def shadows_for(audited: Audited, target: str, *, per_arm: int) -> Shadows:
    """Returns the shadow fits for the unit of the row that the target's criterion chooses among all members."""
    certificate, cut = audited.release.certificate, audited.cut(audited.members)
    return Shadows(
        method=audited.release.synthesizer,
        panel=audited.members,
        target=int(cut.unit[TARGETS[target](vectors(cut), vectors(audited.synthetic))]),
        guarantee=Guarantee(certificate.epsilon, certificate.delta),
        per_arm=per_arm,
        num_samples=audited.synthetic.num_series,
        reproduction=certificate.overrides.get("reproduction"),
        context=audited.release.public_context,
    )


def transcript_audit(audited: Audited, *, seed: int, attempts: int = 20) -> dict[str, Inversion]:
    """Refits a vertical release, listens to what parties send, and reads rows off it; by party."""
    method, certificate = audited.release.synthesizer, audited.release.certificate
    if not isinstance(method, VFLGANTS):
        raise InputError(f"--attack: 'asif+' is for runs of several parties; this release is one of '{method.name}'.")
    if method.window_steps is not None:
        raise InputError("--attack: 'asif+' reads whole series off features; this release was made of windows.")
    guarantee = Guarantee(certificate.epsilon, certificate.delta)
    ledger = Ledger.in_memory(guarantee, reproduction=certificate.overrides.get("reproduction"))
    with recorded() as sent:
        again = method.fit(audited.members, ledger, guarantee=guarantee)
    unknown = np.random.default_rng(seed).permutation(audited.members.num_series)[:attempts].tolist()
    rows = rows_by_party(audited.members, again.arrays)
    return {name: invert(sent[name], own.series.flatten(1).double().numpy(), unknown) for name, own in rows}


def planned(audited: Audited, scheme: str, minutes: float, workers: Workers) -> tuple[int, str]:
    """Times one shadow; returns how many per arm fit into `minutes`, and what they could find, in words."""
    targets, certificate = _targets(scheme), audited.release.certificate
    seconds = seconds_of(shadows_for(audited, targets[0], per_arm=1))
    at_once = workers if isinstance(workers, int) else 1  # of a cluster nothing is known: planned as one process
    per_arm = int(_RESERVE * 60 * minutes * at_once / (seconds * 2 * len(targets)))
    most = most_provable(per_arm, delta=certificate.delta)
    if most == 0:
        raise InputError(
            f"--budget-minutes: {minutes:g} minutes are enough for {per_arm} shadows per arm, and this few can't prove "
            "anything. Give it more time, or more --workers."
        )
    claimed = certificate.epsilon
    return per_arm, (
        f"{per_arm} shadows per arm and target at {seconds:.2g} s each: no attack on them can certify more than "
        f"ε = {most:.2f}, so this audit {'could' if most > claimed else 'could not'} contradict a certificate of "
        f"ε = {claimed:.3g}."
    )


def seconds_of(shadows: Shadows) -> float:
    """Returns how long one shadow takes; the second one, because the first imports and calibrates."""
    shadows.fit("absent")
    begin = time.perf_counter()
    shadows.fit("absent")
    return time.perf_counter() - begin
