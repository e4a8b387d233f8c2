"""Pictures of an audit: scores with and without the target, the curve on logarithmic axes, claimed and certified."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from understudy.report.drawing import CONTROL, FAINT, INK, REAL, SYNTHETIC, Drawing, blank, style
from understudy.report.words import figure, share

Facts = Mapping[str, Any]
_BINS = 24


def audit_drawings(findings: Sequence[Facts] | None, claimed: float | None) -> list[Drawing]:
    """Returns the pictures of all findings; `claimed` is the certificate's epsilon."""
    found = list(findings or ())
    if not found:
        return []
    made = [_bounds(found, claimed)]
    for number, one in enumerate(found, start=1):
        if "scores" in one:
            made += [_histogram(number, one), _curve(number, one)]
    return made


def _bounds(found: Sequence[Facts], claimed: float | None) -> Drawing:
    """What was certified, what could have been, and what is claimed."""
    with style():
        made, axes = blank(60 + 26 * len(found), left=150)
        places = np.arange(len(found))[::-1]
        axes.barh(places, [one["ceiling"] or 0.0 for one in found], color=FAINT, height=0.6)
        axes.barh(places, [one["epsilon"] for one in found], color=SYNTHETIC, height=0.35)
        if claimed is not None and np.isfinite(claimed):
            axes.axvline(claimed, color=CONTROL, linestyle="--")
        axes.set_yticks(places, [one["attack"] for one in found])
        axes.set_xlabel("ε")
    rows = [(one["attack"], figure(one["epsilon"]), figure(one["ceiling"])) for one in found]
    return Drawing(
        name="audit-bounds",
        figure=made,
        caption="Certified (orange), the most that this number of runs could certify (grey), claimed (dashed).",
        alternative="; ".join(f"{name}: at least {low}, at most provable {most}" for name, low, most in rows),
        header=("Attack", "ε is at least", "Most it could show"),
        rows=rows,
    )


def _histogram(number: int, one: Facts) -> Drawing:
    """Scores of runs with and without the target; those that overlap can't be told apart."""
    absent, present = (np.asarray(one["scores"][arm]) for arm in ("absent", "present"))
    edges = np.histogram_bin_edges(np.concatenate([absent, present]), _BINS)
    with style():
        made, axes = blank()
        for scores, colour, hatch in ((absent, REAL, "//"), (present, SYNTHETIC, None)):
            axes.hist(scores, bins=edges.tolist(), histtype="stepfilled", alpha=0.5, color=colour, hatch=hatch)
        axes.set_xlabel("score")
        axes.set_ylabel("runs")
    return Drawing(
        name=f"audit-scores-{number}",
        figure=made,
        caption=f"{one['attack']}: scores without the target (grey, hatched) and with it (orange).",
        alternative=" ".join(
            f"Median score {arm}: {figure(float(np.median(scores)))}."
            for arm, scores in (("without the target", absent), ("with it", present))
        ),
    )


def _curve(number: int, one: Facts) -> Drawing:
    """The share of runs with the target that are found, by the share without it that are taken for such."""
    absent, present = (np.sort(np.asarray(one["scores"][arm]))[::-1] for arm in ("absent", "present"))
    thresholds = np.unique(np.concatenate([absent, present]))
    false = np.array([(absent >= at).mean() for at in thresholds])
    true = np.array([(present >= at).mean() for at in thresholds])
    least = 0.5 / len(absent)
    with style():
        made, axes = blank()
        _line(axes, false, true, least)
    at = [(level, float(true[false <= level].max(initial=0.0))) for level in (0.001, 0.01, 0.1)]
    return Drawing(
        name=f"audit-curve-{number}",
        figure=made,
        caption=f"{one['attack']}: runs found by runs falsely suspected; guessing is dashed. Logarithmic axes.",
        alternative="; ".join(
            f"{share(found)} found where {share(level)} are falsely suspected" for level, found in at
        ),
        header=("Falsely suspected", "Found"),
        rows=[(share(level), share(found)) for level, found in at],
    )


def _line(axes: Axes, false: np.ndarray, true: np.ndarray, least: float) -> None:
    axes.plot(np.maximum(false, least), np.maximum(true, least), color=SYNTHETIC, drawstyle="steps-post")
    axes.plot([least, 1], [least, 1], color=INK, linestyle="--", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("falsely suspected")
    axes.set_ylabel("found")
