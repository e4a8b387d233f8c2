"""Releases judged by the real table they stand in for: scores, a comparison, attacks. Internal, all of it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

from understudy.api.arguments import check_names, check_table
from understudy.api.holdouts import list_beside
from understudy.api.panels import RealTables, read_candidate, read_real
from understudy.api.progress import Shown, shown
from understudy.auditing import release as auditing
from understudy.auditing.release import AuditResult
from understudy.data import Panel, Schema
from understudy.data.type_checks import require_argument
from understudy.errors import InputError
from understudy.evaluation import judging
from understudy.evaluation.judging import Scorecards
from understudy.evaluation.metric import metrics_of
from understudy.evaluation.scorecard import Scorecard
from understudy.extras import require_extra
from understudy.synthesizers import Release
from understudy.workers import Workers

MAX_UNITS = 20_000  # of a table in partitions; no metric looks at more


class ScoreOptions(TypedDict, total=False):
    """How releases are judged.

    Attributes:
        holdout: Real series that no run has seen: a table, or the list that a run with a holdout wrote. By default the
            list next to the release, if there is one.
        schema: Schema of the real table; by default the release's.
        context: Public context by time, a table or its file; by default the release's.
        suites: Metric suites, such as "general"; by default all that are installed.
        thorough: Whether all series and steps are measured, without the limit of two minutes.
        seed: Seed of samples, splits and trainings.
    """

    holdout: Any
    schema: Schema | Path | str | None
    context: Any
    suites: Sequence[str]
    thorough: bool
    seed: int


def evaluate(
    release: Release | Panel | Path | str, real: Any, *, progress: Shown = True, **options: Unpack[ScoreOptions]
) -> Scorecard:
    """Scores synthetic series by real ones: marginals, dynamics, dependence, usefulness and copying.

    Args:
        release: A release, its directory, or a table of synthetic series made elsewhere, with `schema`.
        real: The table that was learned from: a data frame, a path, or a `Panel`.
        progress: Whether a bar is shown, or a function that takes the stage and the share done.

    Privacy: internal. Real series are read without a charge; no guarantee covers a figure.
    """
    check_names(options, ScoreOptions.__annotations__, evaluate)
    require_extra("sklearn", by="evaluate")
    with shown(progress) as tell:
        subject, own, others, synthetic = _panels(release, real, options)
        return judging.evaluate(
            subject,
            own,
            holdout=others,
            synthetic=synthetic,
            metrics=metrics_of(options.get("suites", ())),
            thorough=options.get("thorough", False),
            seed=options.get("seed", 0),
            progress=tell,
        )


def compare(
    releases: Mapping[str, Release | Panel | Path | str] | Sequence[Path | str],
    real: Any,
    *,
    progress: Shown = True,
    **options: Unpack[ScoreOptions],
) -> Scorecards:
    """Scores two to six releases by the same real table, and records in their ledger that this was done.

    Args:
        releases: Releases by the name that each gets on the page, or their directories.
        real: The table that was learned from.
        progress: As `evaluate` takes it.

    Privacy: internal. Choosing a release by its scores is covered by no guarantee.
    """
    check_names(options, ScoreOptions.__annotations__, compare)
    require_extra("sklearn", by="compare")
    if isinstance(releases, str | Path | Release):
        raise InputError("releases: two to six releases are expected, got one. Write us.compare({'a': a, 'b': b}, df).")
    named = releases if isinstance(releases, Mapping) else {Path(one).name: one for one in releases}
    with shown(progress) as tell:
        found = {name: _panels(one, real, options) for name, one in named.items()}
        _, own, others, _ = next(iter(found.values()), (None, None, None, None))
        series = {name: one[3] for name, one in found.items() if one[3] is not None}
        return judging.compare(
            {name: one[0] for name, one in found.items()},
            own,  # type: ignore[arg-type] # none only without a release, which is refused
            holdout=others,
            synthetic=series if len(series) == len(found) else None,
            metrics=metrics_of(options.get("suites", ("general",))),
            thorough=options.get("thorough", False),
            seed=options.get("seed", 0),
            progress=tell,
        )


def audit(
    release: Release | Path | str,
    real: Any,
    *,
    minutes: float | None = 5.0,
    workers: Workers = 1,
    progress: Shown = True,
    **options: Unpack[ScoreOptions],
) -> AuditResult:
    """Tries to contradict a release's certificate. An attack that fails proves nothing.

    Args:
        release: A release or its directory.
        real: The table that was learned from.
        minutes: Time to spend on fits with and without a target, the only attacks that can contradict a certificate.
        workers: Processes that share the work, or a `Cluster`.
        progress: As `evaluate` takes it.

    Privacy: internal. Real series are read without a charge.
    """
    check_names(options, ScoreOptions.__annotations__, audit)
    with shown(progress) as tell:
        subject, own, others, synthetic = _panels(release, real, options)
        if isinstance(subject, Panel):
            raise InputError("release: a release is expected, because a table has no certificate. Give its directory.")
        seed = options.get("seed", 0)
        return auditing.audit(
            subject,
            own,
            holdout=others,
            synthetic=synthetic,
            minutes=minutes,
            workers=workers,
            seed=seed,
            progress=tell,
        )


def _panels(
    target: Release | Panel | Path | str, real: Any, options: ScoreOptions
) -> tuple[Release | Panel, Panel, Panel | None, Panel | None]:
    """Returns what is judged, the real series, those its run has not seen, and the series it ships."""
    example = "Write us.evaluate(release, real=df)."
    require_argument(target, Release | Panel | Path | str, "release", example)
    check_table(real, "real", "us.evaluate(release, real=df)")
    release = Release.load(target) if isinstance(target, str | Path) and Path(target).is_dir() else target
    context, holdout = options.get("context"), options.get("holdout")
    if isinstance(release, Release):
        context = release.public_context if context is None else context
        beside = None if release.source is None else list_beside(release.source)
        holdout = beside if holdout is None and beside is not None and beside.exists() else holdout
    tables = RealTables(real=real, holdout=holdout, schema=options.get("schema"), context=context)
    seed = options.get("seed", 0)
    judged = read_candidate(release, tables, seed, lambda stage, share: None, MAX_UNITS)
    own, others = read_real(tables, judged, max_units=MAX_UNITS, seed=seed)
    return judged.release or judged.panel, own, others, judged.panel
