"""Judges synthetic series by real ones: `evaluate` returns a scorecard, `compare` one for each release. Internal."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from understudy.data import Panel
    from understudy.evaluate.metric import Effort, Metric
    from understudy.evaluate.scorecard import Scorecard
    from understudy.evaluate.side_by_side import Scorecards
    from understudy.synthesizers import Release


def evaluate(
    release: "Release | Panel",
    real: "Panel",
    *,
    holdout: "Panel | None" = None,
    synthetic: "Panel | None" = None,
    metrics: "Sequence[Metric] | None" = None,
    thorough: bool = False,
    effort: "Effort | None" = None,
    seed: int = 0,
    notes: Sequence[str] = (),
    progress: Callable[[str, float], None] | None = None,
) -> "Scorecard":
    """Scores synthetic series by real ones: marginals, dynamics, dependence, usefulness and copying.

    An interrupt (Ctrl-C, or the button of a notebook) ends the work and keeps what was measured.

    Args:
        release: A release, or a panel of synthetic series made elsewhere.
        real: The series that were learned from.
        holdout: Real series that the run never saw. Without them the real series are halved, and copying can't be told
            from closeness.
        synthetic: Series of the release to judge. Default: it samples as many as there are real ones.
        metrics: What to measure, as `metric.metrics_of(["general"])` returns it. Default: all installed suites.
        thorough: Measure on all series and steps, without the limit of two minutes.
        effort: How much work metrics may do, in place of `thorough`.
        seed: Seed of splits and trainings.
        notes: What a reader has to know about how the series were read.
        progress: Takes what is measured and the share of the work that is done.

    Privacy: internal. Real series are read without a charge; no guarantee covers a figure.

    Example:
        >>> from understudy import Guarantee, Ledger, Spectral, simulate_households
        >>> train, holdout = simulate_households(300, seed=1), simulate_households(200, seed=2)
        >>> release = Spectral().fit(train, Ledger.in_memory(Guarantee(2.0, 1e-5)))
        >>> evaluate(release, train, holdout=holdout).report("report.html")  # doctest: +SKIP
    """
    from understudy.evaluate.judging import judged

    return judged(
        release, real, holdout, synthetic=synthetic, metrics=metrics, effort=effort, thorough=thorough, seed=seed,
        notes=notes, progress=progress,
    )  # fmt: skip
