"""Releases judged by the real table they stand in for: scores, a comparison, a choice, attacks. Internal, all of it."""

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np

from understudy.api.arguments import check_names, check_table, existing, existing_table, whole_file
from understudy.api.charging import charging
from understudy.api.holdouts import list_beside, listed, read_list, some, with_names
from understudy.api.progress import LINE_SECONDS, Shown, duration, shown
from understudy.api.sampling import sample_in_pieces
from understudy.auditing import release as auditing
from understudy.auditing.release import AuditResult
from understudy.data import Continuous, Integer, Panel, Schema, Table, read_panel
from understudy.data.io.stores import TABLE_SUFFIXES
from understudy.data.table import in_partitions, table_of
from understudy.data.type_checks import require_argument
from understudy.errors import InputError, ReleaseError
from understudy.evaluation import judging
from understudy.evaluation.choosing import LABEL, PrivateChoice
from understudy.evaluation.judging import Scorecards
from understudy.evaluation.metric import BRIEF, EFFORTS, Effort, Metric, metrics_of
from understudy.evaluation.scorecard import Scorecard, expected_seconds
from understudy.extras import require_extra
from understudy.planning.choices import contract_of, guarantee_for, require_budget
from understudy.privacy import keys
from understudy.privacy.canonical import file_sha256
from understudy.privacy.certificate import FILE_NAME, Certificate, file_hashes, issue, sign
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers import Progress, Release
from understudy.synthesizers.release import DATA_FILE, usual_sample
from understudy.workers import Workers

MAX_UNITS = 20_000  # of a table in partitions; no metric looks at more
_LEAST_SECONDS = 20.0
_EXAMPLE = "us.evaluate(release, real=df)"
Judgeable = Release | Panel | Path | str
Tell = Callable[[str], None]


class ScoreOptions(TypedDict, total=False):
    """How releases are judged.

    Attributes:
        holdout: Real series that no run has seen: a table, or the list that a run with a holdout wrote. By default the
            list next to the release, if there is one; a comparison takes none by itself.
        schema: Schema of the real table; by default the release's.
        context: Public context by time, a table or its file; by default the release's.
        suites: Metric suites, such as "general"; by default all that are installed.
        trainings: Of networks that judge: "quick" is 3 of 500 updates each, "paper" is as published.
        thorough: Whether all series and steps are measured, without the limit of two minutes; implied by "paper".
        seed: Seed of samples, splits and trainings.
    """

    holdout: Any
    schema: Schema | Path | str | None
    context: Any
    suites: Sequence[str] | None
    trainings: str
    thorough: bool
    seed: int


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Synthetic series, from a release of ours or from a table made elsewhere."""

    name: str
    panel: Panel
    release: Release | None = None

    @property
    def subject(self) -> Release | Panel:
        """What is judged."""
        return self.release or self.panel


def evaluate(
    release: Judgeable,
    real: Any,
    *,
    progress: Shown = True,
    tell: Tell = lambda sentence: None,
    **options: Unpack[ScoreOptions],
) -> Scorecard:
    """Scores synthetic series by real ones: marginals, dynamics, dependence, usefulness and copying.

    Args:
        release: A release, its directory, or a table of synthetic series made elsewhere, with `schema`.
        real: The table that was learned from: a data frame, a path, or a `Panel`.
        progress: Whether a bar is shown, or a function that takes the stage and the share done.
        tell: Takes a sentence on how long all measures would take, where that is long.

    Privacy: internal. Real series are read without a charge; no guarantee covers a figure.
    """
    check_names(options, ScoreOptions.__annotations__, evaluate)
    require_extra("sklearn", by="evaluate")
    since, metrics, effort = time.monotonic(), metrics_of(options.get("suites") or ()), effort_of(options)
    with shown(progress) as report:
        judged, own, others = read(release, real, options, report)
        few = f"The real table is in partitions: at most {MAX_UNITS:,} of its units, drawn at random, were read."
        return judging.evaluate(
            judged.subject,
            own,
            holdout=others,
            synthetic=judged.panel,
            metrics=metrics,
            effort=_in_time(effort, metrics, since, own.values.size, tell),
            seed=options.get("seed", 0),
            notes=(few,) if in_partitions(real) else (),
            progress=report,
        )


def compare(
    releases: Mapping[str, Judgeable] | Sequence[Path | str],
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
    metrics = metrics_of(options.get("suites") or ("general",))
    with shown(progress) as tell:
        candidates = _candidates(releases, options, tell)
        own, others = _real(real, candidates[0], options)
        return judging.compare(
            {one.name: one.subject for one in candidates},
            own,
            holdout=others,
            synthetic={one.name: one.panel for one in candidates},
            metrics=metrics,
            effort=effort_of(options),
            seed=options.get("seed", 0),
            progress=tell,
        )


def choose(
    releases: Sequence[Path], real: Any, epsilon: float, out: Path, progress: Progress, options: ScoreOptions
) -> Certificate:
    """Returns the certificate of a charged choice among releases, written to `out`.

    Privacy: everything is checked and the ledger is charged before a rating is computed; only a name comes out.
    """
    candidates = _candidates(releases, options, progress)
    schema, file = contract_of(options["schema"])  # type: ignore[arg-type] # refused there if it is none
    require_budget(schema)
    choice = PrivateChoice(candidates=tuple(one.panel for one in candidates))
    choice.check(schema)
    plan = choice.plan(guarantee_for(schema, epsilon, None))
    private, _ = _real(real, candidates[0], {**options, "holdout": None})
    private, key = judging.as_released(private, candidates[0].release), keys.load_or_create()
    # What was chosen among, by hash: a release's certificate, which names its files, or a table.
    digests = {path.name: file_sha256(path / FILE_NAME if path.is_dir() else path) for path in releases}
    assert file is not None
    with charging(file.absolute().parent, schema) as ledger, whole_file(out) as draft:
        grant = ledger.charge(plan, label=LABEL, noise=NoiseSource.secure())
        name = candidates[choice.run(grant, private)].name
        method = f"Chosen: {name}, among {', '.join(one.name for one in candidates)}"
        certificate = sign(issue(grant, schema, method=method, public_inputs=digests), key)
        draft.write_text(certificate.dumps(), encoding="utf-8")
    return certificate


def audit(
    release: Release | Path | str,
    real: Any,
    *,
    minutes: float | None = 5.0,
    shadows: int = 0,
    attack: str = "assd+",
    work: Path | None = None,
    attempts: int = 500,
    workers: Workers = 1,
    progress: Shown = True,
    tell: Tell = lambda sentence: None,
    **options: Unpack[ScoreOptions],
) -> AuditResult:
    """Tries to contradict a release's certificate. An attack that fails proves nothing.

    Args:
        release: A release or its directory.
        real: The table that was learned from.
        minutes: Time to spend on fits with and without a target, the only attacks that can contradict a certificate;
            None makes `shadows` of each.
        attack: Targets: assd (as first published) or assd+; asif+ inverts the features that parties send.
        work: Folder for such fits, from which a killed audit resumes; None takes a temporary one.
        attempts: Attempts per question.
        workers: Processes that share the work, or a `Cluster`.
        progress: As `evaluate` takes it.
        tell: Takes a sentence on what so many fits could find, before they are made.

    Privacy: internal. Real series are read without a charge.
    """
    check_names(options, ScoreOptions.__annotations__, audit)
    with shown(progress) as report:
        judged, own, others = read(release, real, options, report)
        if judged.release is None:
            raise InputError("release: a release is expected, because a table has no certificate. Give its directory.")
        return auditing.audit(
            judged.release,
            own,
            holdout=others,
            synthetic=judged.panel,
            minutes=minutes,
            shadows=shadows,
            attack=attack,
            work=work,
            workers=workers,
            attempts=attempts,
            seed=options.get("seed", 0),
            progress=report,
            tell=tell,
        )


def effort_of(options: ScoreOptions) -> Effort:
    """Returns how much work is done: two minutes' worth unless all of it was asked for."""
    trainings = options.get("trainings", "quick")
    if trainings not in EFFORTS:
        raise InputError(f"trainings: one of {', '.join(EFFORTS)} is expected, got '{trainings}'.")
    return EFFORTS[trainings] if options.get("thorough") or trainings == "paper" else BRIEF


def _in_time(effort: Effort, metrics: Sequence[Metric], since: float, num_values: int, tell: Tell) -> Effort:
    """Returns the effort with the time that is left since the work began; says how long all rows would take."""
    limit = ""
    if effort.seconds is not None:
        left = max(_LEAST_SECONDS, effort.seconds - (time.monotonic() - since))
        effort = replace(effort, seconds=left)
        limit = f"; {duration(left)} are allowed, a thorough evaluation takes all"
    size = min(num_values, effort.max_values or num_values)
    seconds = sum(expected_seconds(metric, size) for metric in metrics)
    if seconds >= LINE_SECONDS:
        tell(f"Estimate for all {len(metrics)} rows: {duration(seconds)}{limit}.")
    return effort


def read(
    target: Judgeable, real: Any, options: ScoreOptions, progress: Progress
) -> tuple[Candidate, Panel, Panel | None]:
    """Returns what is judged, the real series, and those its run has not seen, by the list next to it if any."""
    check_table(real, "real", _EXAMPLE)
    progress("reading", 0.0)
    judged = candidate(target, options, progress)
    source = None if judged.release is None else judged.release.source
    if options.get("holdout") is None and source is not None and list_beside(source).exists():
        options = {**options, "holdout": list_beside(source)}
    return judged, *_real(real, judged, options)


def _candidates(
    releases: Mapping[str, Judgeable] | Sequence[Path | str], options: ScoreOptions, progress: Progress
) -> list[Candidate]:
    """Returns what is compared; refuses a list of units that trained one of them, before anything is recorded."""
    if isinstance(releases, str | Path | Release):
        raise InputError("releases: two to six releases are expected, got one. Write us.compare({'a': a, 'b': b}, df).")
    named = list(releases.items() if isinstance(releases, Mapping) else ((Path(one).name, one) for one in releases))
    if not 2 <= len(named) <= judging.MAX_RELEASES:
        raise InputError(f"Two to {judging.MAX_RELEASES} releases are expected, got {len(named)}.")
    if len(dict(named)) < len(named):
        raise InputError("Releases with names of their own are expected: the page calls them by the folder's name.")
    candidates = [replace(candidate(one, options, progress), name=name) for name, one in named]
    if isinstance(holdout := options.get("holdout"), str | Path):
        schema = _schema_of(candidates[0], options)
        units = read_list(existing(Path(holdout), "holdout"), schema)
        if units is not None:
            _require_unseen(units, candidates, schema, strict=True)
    return candidates


def candidate(target: Judgeable, options: ScoreOptions, progress: Progress) -> Candidate:
    """Returns the synthetic series of a release, of its directory, or of a table that obeys `schema`."""
    require_argument(target, Judgeable, "release", f"Write {_EXAMPLE}.")
    if isinstance(target, Panel):
        return Candidate(name="table", panel=replace(target, private=False, unit_ids=None))
    if isinstance(target, str | Path):
        target = existing(Path(target), "release")
    seed, schema = options.get("seed", 0), options.get("schema")
    if isinstance(target, Release) or (target.is_dir() and not _is_table(target)):
        release = target if isinstance(target, Release) else Release.load(target)
        name = "release" if release.source is None else release.source.name
        return Candidate(name=name, panel=_released(release, seed, progress, options.get("context")), release=release)
    if schema is None:
        raise InputError("schema: a table made elsewhere needs the schema that it and the real table obey.")
    panel = _some_units(_table(target, _lenient(contract_of(schema)[0]), options), seed)
    return Candidate(name=target.stem, panel=replace(panel, private=False, unit_ids=None))


def _released(release: Release, seed: int, progress: Progress, context: Any) -> Panel:
    """Returns the series that the release ships, or as many as its population where it ships none.

    Series that were drawn for stretches of a public table carry their times, by which the table gives their context.
    """
    folder, files = release.source, release.certificate.files
    table = release.public_context if context is None else context
    if release.synthesizer.needs_context(release.schema):
        if table is None:
            raise InputError("context: the public table that these series follow is expected.")
        table = existing_table(table, "context")
    if folder is None:
        return usual_sample(release, seed)
    if DATA_FILE not in files:
        return sample_in_pieces(release, None, np.random.default_rng(seed), context=table, progress=progress)
    if file_hashes(folder).get(DATA_FILE) != files[DATA_FILE]:
        raise ReleaseError(
            f"'{folder}' is damaged: {DATA_FILE} is not the file its certificate names. Download the release again."
        )
    panel = read_panel(folder / DATA_FILE, release.schema, context=table, allow_few_units=True)
    return replace(panel, private=False, unit_ids=None)


def _schema_of(candidate: Candidate, options: ScoreOptions) -> Schema:
    schema = options.get("schema")
    return candidate.panel.schema if schema is None else contract_of(schema)[0]


def _real(real: Any, candidate: Candidate, options: ScoreOptions) -> tuple[Panel, Panel | None]:
    """Returns the real series and those kept out of the run, as the schema has them.

    Of a table in partitions at most `MAX_UNITS` units of either are read, drawn at random.

    Privacy: holds private data; whatever is computed from it is internal.
    """
    if options.get("schema") is None and candidate.release is not None and candidate.release.synthesizer.window_steps:
        raise InputError("schema: this release was made of windows; name the schema of the real table.")
    schema, seed, holdout = _schema_of(candidate, options), options.get("seed", 0), options.get("holdout")
    if candidate.release is not None and options.get("context") is None:
        options = {**options, "context": candidate.release.public_context}
    table = _table(existing_table(real, "real"), schema, options)
    if holdout is None:
        return _some_units(table, seed), None
    known = existing_table(holdout, "holdout")
    units = read_list(Path(known), schema) if isinstance(known, str | Path) else None
    if units is None:
        return _some_units(table, seed), _some_units(_table(known, schema, options), seed)
    _require_unseen(units, [candidate], schema, strict=False)
    table, rng = with_names(table), np.random.default_rng(seed)
    others, held_out = (
        table.sample_units(
            sys.maxsize if table.in_memory else MAX_UNITS,
            rng,
            among=lambda panel: np.flatnonzero(listed(panel, units) == wanted),  # noqa: B023
        )
        for wanted in (False, True)
    )
    return others, some(held_out, "holdout")


def _table(source: Any, schema: Schema, options: ScoreOptions) -> Table:
    if isinstance(source, Panel):
        return Table.of(source)
    if isinstance(source, Table):
        return source
    return table_of(source, schema, context=options.get("context"), allow_few_units=True)


def _some_units(table: Table, seed: int) -> Panel:
    return table.read() if table.in_memory else table.sample_units(MAX_UNITS, np.random.default_rng(seed))


def _is_table(folder: Path) -> bool:
    """Returns whether a folder holds tables and nothing else; a release holds its certificate, too."""
    names = [path for path in folder.iterdir() if not path.name.startswith((".", "_"))]
    return bool(names) and all(path.suffix.lower() in TABLE_SUFFIXES for path in names)


def _lenient(schema: Schema) -> Schema:
    """Returns the schema that takes values beyond a bound as being at it: here a defect to judge, not to refuse."""
    channels = tuple(
        replace(channel, out_of_bounds="clip") if isinstance(channel, Continuous | Integer) else channel
        for channel in schema.channels
    )
    return replace(schema, channels=channels)


def _require_unseen(units: set[str], candidates: Iterable[Candidate], schema: Schema, *, strict: bool) -> None:
    """Refuses units that one of the releases was trained on; if `strict`, a release without its list, too."""
    for release in filter(None, (one.release.source for one in candidates if one.release is not None)):
        own = list_beside(release)
        known = read_list(own, schema) if own.exists() else None
        if known is None and strict:
            raise InputError(
                f"holdout: which units trained '{release.name}' is not known: its list '{own.name}' is expected "
                "in the same folder and is not there. Put it back under that name; a release made without a holdout "
                "has seen all units: make it again with `synth --holdout-list`."
            )
        if known is not None and not units <= known:
            raise InputError(
                f"holdout: units that no run has seen are expected, and some of the listed ones trained "
                f"'{release.name}'. Make the releases with one list: `synth --holdout-list FILE` takes the list of an "
                "earlier release."
            )
