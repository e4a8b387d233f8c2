"""Judges releases by real series: `evaluate` returns a scorecard, `compare` one for each release. Internal."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from understudy import display
from understudy.data import Panel, windows
from understudy.data.type_checks import require_argument
from understudy.errors import InputError, Stopped
from understudy.evaluation.fillings import with_completions
from understudy.evaluation.metric import BRIEF, QUICK, Effort, Metric, metrics_of
from understudy.evaluation.panels import subsampled
from understudy.evaluation.scorecard import FILLINGS, Judged, Scorecard, scorecard_of
from understudy.evaluation.words import UNKNOWN, figure, with_verdicts
from understudy.files import whole_file
from understudy.privacy.ledger import known, record_uncovered
from understudy.synthesizers import Release
from understudy.synthesizers.release import usual_sample

UNCOVERED = "Choosing by these figures is covered by no guarantee: real series were read for them without a charge."
MAX_RELEASES = 6
Progress = Callable[[str, float], None]
Judgeable = Release | Panel


def evaluate(
    release: Judgeable,
    real: Panel,
    *,
    holdout: Panel | None = None,
    synthetic: Panel | None = None,
    metrics: Sequence[Metric] | None = None,
    thorough: bool = False,
    effort: Effort | None = None,
    seed: int = 0,
    notes: Sequence[str] = (),
    progress: Progress | None = None,
) -> Scorecard:
    """Scores synthetic series by real ones: marginals, dynamics, dependence, usefulness and copying.

    An interrupt (Ctrl-C, or the button of a notebook) ends the work and keeps what was measured.

    Args:
        release: A release, or a panel of synthetic series made elsewhere.
        real: The series that were learned from.
        holdout: Real series that the run never saw. Without them the real series are halved, and copying can't be
            told from closeness.
        synthetic: The series of the release to judge. Default: sampled, as many as its population, at most 4,000.
        metrics: What to measure, such as `metrics_of(["general"])`. Default: all installed suites.
        thorough: Measure on all series and steps, without the limit of two minutes.
        effort: How much work metrics may do, in place of `thorough`.
        seed: Seed of samples, splits and trainings.
        notes: What a reader has to know about how the series were read.
        progress: Takes what is measured and the share of the work that is done.

    Privacy: internal. Real series are read without a charge; no guarantee covers a figure.

    Example:
        >>> from understudy import Guarantee, Ledger, Spectral, simulate_households
        >>> train, holdout = simulate_households(300, seed=1), simulate_households(100, seed=2)
        >>> release = Spectral().fit(train, Ledger.in_memory(Guarantee(2.0, 1e-5)))
        >>> evaluate(release, train, holdout=holdout).report("report.html")  # doctest: +SKIP
    """
    require_argument(release, Judgeable, "release", "Load it first: Release.load(folder).")
    require_argument(real, Panel, "real", "Read the table first: read_panel(table, schema).")
    own = release if isinstance(release, Release) else None
    if synthetic is None:
        synthetic = release if isinstance(release, Panel) else usual_sample(release, seed)
    shown = replace(synthetic, private=False, unit_ids=None)
    real, holdout = as_released(real, own), None if holdout is None else as_released(holdout, own)
    effort = effort or (QUICK if thorough else BRIEF)
    panels = subsampled(real, shown, holdout, effort, seed=seed)
    panels = replace(panels, notes=(*notes, *panels.notes))
    metrics = tuple(metrics_of() if metrics is None else metrics)
    if panels.real.schema != real.schema and own is not None and own.completes:
        metrics = tuple(metric for metric in metrics if metric.suite != FILLINGS)
        panels = replace(panels, notes=(*panels.notes, "Fillings need whole series: `--thorough` judges them."))
    card = scorecard_of(
        panels,
        metrics,
        effort,
        seed=seed,
        progress=progress,
        complete=lambda made: with_completions(made, own, seed=seed),
        stopping=(KeyboardInterrupt, Stopped),
    )
    return replace(card, judged=Judged(release=own, synthetic=shown, panels=panels))


def as_released(panel: Panel, release: Release | None) -> Panel:
    """Returns real series in windows where the release was made of windows."""
    steps = None if release is None else release.synthesizer.window_steps
    return panel if steps is None or steps == panel.num_steps else windows.cut(panel, steps, steps)


@dataclass(frozen=True, kw_only=True)
class Scorecards:
    """Scorecards of several releases against the same real series, by name. Internal."""

    cards: Mapping[str, Scorecard]
    recorded: str  # where it was written down that this comparison was made

    def __getitem__(self, name: str) -> Scorecard:
        return self.cards[name]

    def as_dict(self) -> dict[str, Any]:
        """Returns each scorecard with its headline and verdicts, as JSON has it."""
        return {name: with_verdicts(card.as_dict()) for name, card in self.cards.items()}

    def rows(self) -> list[tuple[str, ...]]:
        """Returns every check that can tell something: its title, figure and verdict by release, and real series'."""
        rows = []
        for scores in zip(*(card["scores"] for card in self.as_dict().values()), strict=True):
            if any(score["verdict"] != UNKNOWN for score in scores):
                own = (f"{figure(score['synthetic']['value'])} {score['verdict']}" for score in scores)
                rows.append((scores[0]["title"], *own, figure(scores[0]["holdout"]["value"])))
        return rows

    def parts(self) -> list[RenderableType]:
        """Returns what `show` prints."""
        heads = [f"{name}: {card.headline['sentence']}" for name, card in self.cards.items()]
        return [UNCOVERED, *heads, display.table(*self._columns, rows=self.rows()), self.recorded]

    @property
    def _columns(self) -> tuple[str, ...]:
        return ("", *(f">{name}" for name in self.cards), ">other real series")

    def show(self) -> None:
        """Prints headlines, and the figures of all releases side by side."""
        display.show(self.parts())

    def _repr_html_(self) -> str:
        return f"<p>{UNCOVERED}</p>{display.html_table(self._columns, self.rows())}"

    def report(self, path: str | Path, *, chosen: str | None = None) -> None:
        """Writes the HTML page of the comparison, readable by its owner; `chosen` says what a charged choice said."""
        from understudy.report.page import render_comparison
        from understudy.report.record import make_record

        records = {name: make_record(card) for name, card in self.cards.items()}
        with whole_file(Path(path), replace=False) as draft:
            draft.touch(mode=0o600)
            draft.write_text(render_comparison(records, recorded=self.recorded, chosen=chosen), encoding="utf-8")


def compare(
    releases: Mapping[str, Judgeable],
    real: Panel,
    *,
    holdout: Panel | None = None,
    synthetic: Mapping[str, Panel] | None = None,
    metrics: Sequence[Metric] | None = None,
    thorough: bool = False,
    effort: Effort | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Scorecards:
    """Scores two to six releases by the same real series, and records in the population's ledger that this was done.

    Args:
        releases: By the name that each gets on the page. The others as in `evaluate`; `metrics` are those of the suite
            `general` by default.

    Privacy: internal. Choosing a release by its scores is covered by no guarantee.
    """
    if not 2 <= len(releases) <= MAX_RELEASES:
        raise InputError(f"Two to {MAX_RELEASES} releases are expected, got {len(releases)}.")
    recorded = _record(next(iter(releases.values())).schema.name, ", ".join(releases))  # before any figure exists
    metrics, cards = metrics_of(["general"]) if metrics is None else metrics, {}
    for place, (name, release) in enumerate(releases.items()):

        def part(what: str, share: float, place: int = place) -> None:
            if progress is not None:
                progress(what, (place + share) / len(releases))

        cards[name] = evaluate(
            release,
            real,
            holdout=holdout,
            synthetic=None if synthetic is None else synthetic[name],
            metrics=metrics,
            thorough=thorough,
            effort=effort,
            seed=seed,
            progress=part,
        )
        if cards[name].stopped:
            raise Stopped
    return Scorecards(cards=cards, recorded=recorded)


def _record(population: str, names: str) -> str:
    """Writes into the population's ledger that releases were compared with real data, as a charge of nothing."""
    ledger = known(population)
    if ledger is None:
        return "No ledger of this population is on this computer, so only this page records that they were compared."
    record_uncovered(ledger, f"compared with real data, not covered: {names}")
    return f"The ledger of '{ledger.name}' says that they were compared."
