"""The audit of a release: attacks on the release itself, and attacks that refit it with and without a target.

Internal throughout: private series are read without a charge, and nothing here may leave with the release.
"""

import html
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from understudy import display
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
from understudy.data.type_checks import require_argument
from understudy.errors import InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.certificate import Certificate
from understudy.privacy.ledger import Ledger
from understudy.synthesizers import Release
from understudy.synthesizers.release import usual_sample
from understudy.synthesizers.vflgan_ts.method import VFLGANTS
from understudy.workers import Workers

Progress = Callable[[str, float], None]
INTERNAL = "Internal: real series were read without a charge. An attack that fails proves nothing."
TRANSCRIPT = "asif+"
_MOST_ROWS = 2000
_RESERVE = 0.9  # share of the minutes that is planned with; forests and the first imports take the rest
_MOST_SHARED = 0.1  # of the holdout, that may look like series of the run


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Audited:
    """A release, the series of its run, others that it never saw, and series drawn from it."""

    release: Release
    members: Panel  # in the real table's schema
    others: Panel | None
    synthetic: Panel  # of the release's windows where it was made of windows

    def cut(self, panel: Panel) -> Panel:
        """Returns a panel's series in the shape of the release."""
        steps = self.synthetic.num_steps
        return panel if panel.num_steps == steps else windows.cut(panel, steps, steps)


@dataclass(frozen=True, kw_only=True)
class AuditResult:
    """What attacks on one release found; it shows itself in a notebook. Internal."""

    certificate: Certificate
    membership: Mapping[str, Interval]  # areas under the curve by attack; none without series that the run never saw
    questions: Mapping[str, Answer]  # the three of WP216; none without such series
    shadows: Mapping[str, ShadowAudit] = field(default_factory=dict)  # by target, what refits with and without prove
    inversions: Mapping[str, Inversion] = field(default_factory=dict)  # by party, rows read off what it sends
    plan: str | None = None  # how many shadows fit into the minutes, and what they could find

    @property
    def contradicted_by(self) -> list[str]:
        """The targets of which refits contradict the certificate."""
        return [name for name, own in self.shadows.items() if own.result.contradicts(self.certificate)]

    @property
    def verdict(self) -> str:
        """The finding about the certificate in words."""
        if not self.shadows:
            return "Without --shadows no attack can contradict a certificate."
        broken = ", ".join(self.contradicted_by)
        return f"CONTRADICTED by: {broken}." if broken else "The certificate was not contradicted."

    def as_dict(self) -> dict[str, Any]:
        """Returns the findings as JSON has them."""
        return {
            "internal": True,
            "membership": {name: asdict(area) for name, area in self.membership.items()},
            "questions": {name: asdict(one) | {"risk": asdict(one.risk)} for name, one in self.questions.items()},
            "shadows": {
                target: {"areas": {name: asdict(area) for name, area in own.areas.items()}} | _bound(own)
                for target, own in self.shadows.items()
            },
            "transcript": {party: asdict(found) | {"ratio": found.ratio} for party, found in self.inversions.items()},
            "plan": [] if self.plan is None else [self.plan],
            "contradicted_by": self.contradicted_by,
        }

    def findings(self) -> list[dict[str, Any]]:
        """Returns what a report shows: a line for each target, with the scores that its pictures need."""
        found = []
        for target, own in self.shadows.items():
            shown = own.scores[own.result.attack]
            line = _bound(own) | {"attack": f"shadows, {target}, {own.result.attack}"}
            line["contradicts"] = target in self.contradicted_by
            line["scores"] = {"absent": shown.absent.tolist(), "present": shown.present.tolist()}
            found.append(line)
        return found

    def _tables(self) -> list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
        """Returns the title, columns and rows of what is printed."""
        shadows = {f"shadows, {t}, {name}": area for t, own in self.shadows.items() for name, area in own.areas.items()}
        areas = [(name, str(area), "0.5") for name, area in {**self.membership, **shadows}.items()]
        asked = [
            (name, *map(str, (one.attacked, one.control, one.guessing, one.risk)))
            for name, one in self.questions.items()
        ]
        columns = ("", ">members", ">non-members", ">without the release", ">added risk")
        return [
            ("membership", ("attack", ">area under the curve", ">guessing"), [*areas]),
            *([("WP216 risks", columns, asked)] if asked else []),
        ]

    def _sentences(self) -> list[str]:
        inverted = [f"Features that '{party}' sends: {one.sentence()}" for party, one in self.inversions.items()]
        return [*(own.result.sentence() for own in self.shadows.values()), *inverted]

    def parts(self) -> list[RenderableType]:
        """Returns what `show` prints."""
        tables = [display.table(*columns, rows=rows, title=title) for title, columns, rows in self._tables()]
        return [Text(INTERNAL, style="bold"), *tables, *self._sentences(), Text(self.verdict, style="bold")]

    def show(self) -> None:
        """Prints what was found, and whether it contradicts the certificate."""
        display.show(self.parts())

    def __repr__(self) -> str:
        return f"AuditResult({self.verdict})"

    def _repr_html_(self) -> str:
        tables = "".join(display.html_table(columns, rows) for _, columns, rows in self._tables())
        said = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in self._sentences())
        return f"<p><strong>{html.escape(self.verdict)}</strong><br>{INTERNAL}</p>{tables}{said}"


def _bound(audit: ShadowAudit) -> dict[str, Any]:
    names = ("attack", "epsilon", "ceiling", "confidence", "runs")
    return {name: getattr(audit.result, name) for name in names}


def audit(
    release: Release,
    real: Panel,
    *,
    holdout: Panel | None = None,
    synthetic: Panel | None = None,
    minutes: float | None = 5.0,
    shadows: int = 0,
    attack: str = "assd+",
    work: Path | None = None,
    workers: Workers = 1,
    attempts: int = 500,
    seed: int = 0,
    progress: Progress = lambda stage, share: None,
    tell: Callable[[str], None] = lambda sentence: None,
) -> AuditResult:
    """Tries to contradict a release's certificate. An attack that fails proves nothing.

    Args:
        real: The series that were learned from.
        holdout: Real series that the run never saw; without them only refits are tried.
        synthetic: Series of the release. Default: sampled, as many as its population, at most 4,000.
        minutes: Time to spend on refits with and without a target; None makes `shadows` of each, by default none.
        attack: Targets of the refits, assd or assd+; asif+ refits once and inverts the features that parties send.
        work: Folder for the refits, from which a killed audit resumes. Default: a temporary one.
        workers: Processes, or a Dask cluster whose workers see `work`.
        attempts: Attempts per question.
        tell: Takes a sentence on what so many refits could find, before they are made.

    Privacy: internal. Private series are read without a charge.
    """
    require_argument(release, Release, "release", "Load it first: Release.load(folder).")
    require_argument(real, Panel, "real", "Read the table first: read_panel(table, schema).")
    series = usual_sample(release, seed) if synthetic is None else synthetic
    audited = Audited(release=release, members=real, others=holdout, synthetic=series)
    progress("attacks", 0.1)
    areas, questions = examine(audited, attempts=attempts, seed=seed)
    found = AuditResult(certificate=release.certificate, membership=areas, questions=questions)
    if attack == TRANSCRIPT:
        return replace(found, inversions=transcript_audit(audited, seed=seed))
    plan = None
    if minutes is not None:
        progress("timing one refit", 0.1)
        shadows, plan = planned(audited, attack, minutes, workers)
        tell(plan)
    if not shadows:
        return found
    with TemporaryDirectory(prefix="understudy-") if work is None else nullcontext(work) as folder:
        made = shadow_audits(audited, attack, Path(folder), per_arm=shadows, workers=workers, progress=progress)
    return replace(found, shadows=made, plan=plan)


def examine(audited: Audited, *, attempts: int, seed: int) -> tuple[Mapping[str, Interval], Mapping[str, Answer]]:
    """Attacks the release as it is, and repeats the attacks on series that it never saw; nothing without those."""
    if audited.others is None:
        return {}, {}
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
    areas = membership(members, others, synthetic)
    return areas, {name: question(parties, attempts, rng) for name, question in QUESTIONS.items()}


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
            f"minutes: {minutes:g} are enough for {per_arm} shadows per arm, and so few can't prove anything. "
            "Give it more time (`--budget-minutes`), or more workers."
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
