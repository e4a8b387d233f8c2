"""`audit-catch`: audits contradict what is broken, and nothing that is not.

Every method that claims something is fitted over and over with and without one canary series. What it answers and the
noisy gradients it takes are projected on where the canary moves them, and compared with the certificate. Then the same
audit, of the same size, meets the method with a defect. Methods that protect nobody are attacked by what they release,
as by a recipient: the mode `paper` against what Theorem 4.3 of VFLGAN-TS claims when everybody takes part in
every iteration, the others against an epsilon of 1 that somebody might claim.
"""

import math
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from understudy.auditing.scores import LowerBound, audit_scores
from understudy.privacy import accounting
from understudy.privacy.budget import Guarantee
from understudy.privacy.certificate import parsed_events
from understudy.privacy.events import ApproximateDP, DiscreteGaussian, Event, Gaussian, SubsampledGaussian
from understudy.synthesizers.vflgan_ts import modes
from understudy_bench.audit.canaries import (
    ALL,
    DIFFERENCES,
    Neighbours,
    Reach,
    answer_scores,
    panel_scenes,
    reach_of,
    release_scores,
)
from understudy_bench.audit.defects import DEFECTS, SCALED, stretched
from understudy_bench.audit.shift import mu_test, required_runs
from understudy_bench.audit.subjects import SUBJECTS, Subject, small_schema, vertical
from understudy_bench.cells import Cells
from understudy_bench.result import Progress, Row, Stopwatch, result, row
from understudy_bench.vertical.rivals import MODELS, RIVALS, Rival

GUARANTEE = Guarantee(10.0, 1e-6)
CONFIDENCE, POWER = 0.999, 0.99
_USED = 0.9  # of what was charged, that a canary is expected to use up at least
_CLAIM, _FEW = 1.0, 10  # epsilon and population where nobody is protected
_ROUNDS = {"plain": 10, "paper": 150}  # iterations of those
_PAPER_NOISE = 100.0
_RUNS = {"quick": 40, "target": 120, "full": 400}  # per arm, of those
_POWERS = {"quick": POWER, "target": 0.9999, "full": 1 - 1e-6}
BROKEN = (
    ("vflgan-ts", "one scalar of noise"),
    ("dit", "one scalar of noise"),
    ("spectral", SCALED),
    ("pets", "no noise"),
)
UNPROTECTED = (("paper", "vflgan-ts"), *(("plain", model) for model in MODELS))


def catch(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """What is contradicted, what is not; every line beside what it should be."""
    power, runs = _POWERS[scale], _RUNS[scale]
    tried = [(name, defect) for name in SUBJECTS for defect in ("as it is", "half of the noise")]
    jobs = {f"{name}, {defect}": partial(_claimed, name, defect, power) for name, defect in (*tried, *BROKEN)}
    jobs |= {f"{mode} {model}": partial(_unclaimed, mode, model, runs) for mode, model in UNPROTECTED}
    rows = []
    for place, (name, job) in enumerate(jobs.items(), start=1):
        rows.append(cells(f"{scale} {name}", job))
        progress(name, place / len(jobs))
    kept = [line for line in rows if line["defect"] != "as it is"]
    controls = [line for line in rows if line["defect"] == "as it is"]
    data = {"name": "canaries", "sha256": None, "stand_in": False, "simulated": True}
    return {**result("audit-catch", scale, data, kept, controls), "notes": [table(rows)]}


def _claimed(name: str, defect: str, power: float) -> Row:
    """Audits a method that has a certificate, with a defect planted."""
    watch, subject = Stopwatch(), SUBJECTS[name]
    with DEFECTS[defect]():
        neighbours, reach = _strongest(subject, stretch=defect == SCALED)
        certificate = neighbours.fit(neighbours.absent).certificate
        runs = runs_for(parsed_events(certificate), power)
        scores = answer_scores(neighbours, reach, runs)
    found = mu_test({name: scores[name] for name in (ALL, DIFFERENCES)}, delta=GUARANTEE.delta, confidence=CONFIDENCE)
    contradicted = found.contradicts(certificate)
    facts = _line(name, defect, found, certificate.epsilon, contradicted, expected=defect != "as it is")
    return row(name, facts.pop("metrics"), epsilon=certificate.epsilon, seconds=watch.seconds, **facts)


def _unclaimed(mode: str, model: str, runs: int) -> Row:
    """Attacks the released generators of a mode that protects nobody."""
    watch, rounds, protected_nobody = Stopwatch(), _ROUNDS[mode], Guarantee(math.inf, GUARANTEE.delta)
    method = vertical(mode=mode, scale="bounds", iterations=rounds, batch=_FEW)
    if model in RIVALS:
        method = Rival(mode="plain", scale="bounds", model=model, recipe=method.recipe)  # type: ignore[attr-defined]
    scenes = panel_scenes(small_schema(parties=True, population=_FEW), num_others=5, rng=np.random.default_rng(0))
    absent, present = scenes["ones, others opposed"]
    neighbours = Neighbours(method=method, absent=absent, present=present, guarantee=protected_nobody)
    with patch.object(modes, "claimed_noise", lambda *_: _PAPER_NOISE):
        family = {"released arrays": release_scores(neighbours, runs)}
    found = audit_scores(family, delta=GUARANTEE.delta)
    # Theorem 4.3: an attribute's generator costs α/σ² per iteration, twice a Gaussian's α/(2σ²).
    theorem = (Gaussian(_PAPER_NOISE / math.sqrt(2), rounds),)
    claim = theorem if mode == "paper" else (ApproximateDP(_CLAIM, GUARANTEE.delta),)
    claimed = accounting.epsilon(theorem, GUARANTEE.delta) if mode == "paper" else _CLAIM
    facts = _line(f"{model}, mode {mode}", "protects nobody", found, claimed, found.refutes(claim), expected=True)
    return row(model, facts.pop("metrics"), epsilon=claimed, seconds=watch.seconds, **facts)


def runs_for(events: Iterable[Event], power: float) -> int:
    """Runs per arm that contradict half of the noise, if the canary uses up nine tenths of the charge."""
    alpha = (1 - CONFIDENCE) / 2  # two ways of reading the answers
    return required_runs(charged_mu(events), 2 * _USED - 1, alpha=alpha, power=power)


def charged_mu(events: Iterable[Event]) -> float:
    """How far apart the answers may be, in deviations, where everybody takes part in everything."""
    squares = 0.0
    for event in events:
        assert isinstance(event, Gaussian | DiscreteGaussian | SubsampledGaussian)
        count = event.iterations if isinstance(event, SubsampledGaussian) else event.count
        squares += count / event.noise_multiplier**2
    return math.sqrt(squares)


def _strongest(subject: Subject, *, stretch: bool) -> tuple[Neighbours, Reach]:
    """The scene whose canary moves answers furthest, found without statistics."""
    scenes = panel_scenes(subject.schema, rng=np.random.default_rng(0))
    if subject.trained:
        scenes = {name: pair for name, pair in scenes.items() if name.endswith("nobody")}
    if stretch:
        full = {name: pair for name, pair in scenes.items() if pair[0].num_units}
        scenes = {name: (stretched(absent), stretched(present)) for name, (absent, present) in full.items()}
    method, found = subject.make(), []
    for absent, present in scenes.values():
        neighbours = Neighbours(method=method, absent=absent, present=present, guarantee=GUARANTEE)
        found.append((neighbours, reach_of(neighbours)))
    return max(found, key=lambda pair: pair[1].mu())


def _line(
    audited: str, defect: str, found: LowerBound, claimed: float, contradicted: bool, *, expected: bool
) -> dict[str, Any]:
    verdicts = {True: "contradicted", False: "not contradicted"}
    return {
        "metrics": {"certified": found.epsilon, "runs": found.runs, "verdict": verdicts[contradicted]},
        "audited": audited,
        "defect": defect,
        "claimed": claimed,
        "attack": found.attack,
        "as_expected": contradicted == expected,
    }


def table(rows: Iterable[Row]) -> str:
    """Returns the rows as the page about auditing prints them."""
    lines = ["| audited | what was done to it | ε claimed | ε certified, at least | runs per arm | verdict |"]
    lines.append("|---|---|---|---|---|---|")
    for line in rows:
        found = line["metrics"]
        certified = "60 and more" if found["certified"] > 60 else f"{found['certified']:.2f}"
        cells = (line["audited"], line["defect"], f"{line['claimed']:.3g}", certified, found["runs"], found["verdict"])
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)
