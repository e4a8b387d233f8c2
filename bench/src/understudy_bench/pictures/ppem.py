"""Pictures of PPEM: estimators under a true and a false score (PPEM, Fig. 2), and marginals (Fig. 3 and 4)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import chi2, norm

from understudy.evaluation.words import figure
from understudy.report.figures import CONTROL, INK, REAL, SYNTHETIC, Drawing, style, tidy

_SIDES = {"real": REAL, "drawn": SYNTHETIC}
_WORDS = {"real": "real, kept out", "drawn": "generated"}
_STATISTICS = {"normalised": "normalised (Eq. 17)", "studentised": "one-sided, studentised"}


def estimators(result: Mapping[str, Any]) -> list[Drawing]:
    """Returns distribution functions of three statistics where the score is true, and where it is another one."""
    shown, ranks = result["ppem_tests"], np.linspace(0, 1, 201)
    with style():
        made = Figure(figsize=(10, 3), dpi=72, layout="constrained")
        for axes, (name, title) in zip(made.subplots(1, len(_STATISTICS)), _STATISTICS.items(), strict=True):
            tidy(axes)
            axes.plot(shown["true"][name], ranks, color=REAL, label="true score")
            axes.plot(shown["other"][name], ranks, color=SYNTHETIC, label="another score")
            if name == "normalised":
                axes.plot(chi2.ppf(ranks[:-1], 1), ranks[:-1], color=CONTROL, linestyle=":", label="chi-squared")
            limit = norm.ppf(0.95) if name == "studentised" else chi2.ppf(0.95, 1)
            axes.axvline(limit, color=INK, linewidth=0.8, linestyle="--", label="critical value")
            axes.set_title(title, loc="left", fontsize=10, color=INK)
            axes.set_xlabel("statistic", fontsize=8)
        made.axes[0].set_ylabel("share of sets below", fontsize=8)
        made.axes[0].legend(frameon=False, fontsize=8)
    rows = [[line["method"], *(figure(value) for value in line["metrics"].values())] for line in result["rows"]]
    return [
        Drawing(
            name="ppem-estimators",
            figure=made,
            caption="Share of sets below a statistic; what lies right of the dashed line is rejected. Under a true "
            "score the normalised one follows chi-squared.",
            alternative="Three distribution functions. " + "; ".join(", ".join(row) for row in rows),
            header=("sets", *result["rows"][0]["metrics"]),
            rows=rows,
        )
    ]


def marginals(result: Mapping[str, Any]) -> list[Drawing]:
    """Returns a picture for each method: x′, which is to differ, and means of x* given x′, which are to agree."""
    return [_hidden_and_kept(method, shown) for method, shown in result["ppem"].items()]


def _hidden_and_kept(method: str, shown: Mapping[str, Any]) -> Drawing:
    hidden, kept, smooth = shown["marginals"], shown["conditionals"], shown.get("densities", {})
    columns, lines = max(len(hidden), len(kept), len(smooth)), 1 + bool(kept) + bool(smooth)
    with style():
        made = Figure(figsize=(3.4 * columns, 0.4 + 2.2 * lines), dpi=72, layout="constrained")
        grid = made.subplots(lines, columns, squeeze=False)
        for axes in made.axes:
            tidy(axes)
        for axes, (name, shares) in zip(grid[0], hidden.items(), strict=False):
            _bars(axes, shares) if "names" in shares else _steps(axes, shares)
            axes.set_ylabel("share", fontsize=8)
            axes.set_title(f"x′: {name}", loc="left", fontsize=9, color=INK)
        for axes, (name, density) in zip(grid[1 if smooth else 0], smooth.items(), strict=False):
            for side, colour in _SIDES.items():
                axes.plot(density["grid"], density[side], color=colour, linewidth=1.2)
            axes.set_title(f"x*: {name}", loc="left", fontsize=9, color=INK)
            axes.set_ylabel("density", fontsize=8)
        for axes, means in zip(grid[-1], kept, strict=False):
            look = (
                {"linewidth": 1.2}
                if means["along"] == "step"
                else {"linestyle": "none", "marker": "o", "markersize": 3}
            )
            for side, colour in _SIDES.items():
                axes.plot(means[side], color=colour, label=_WORDS[side], **look)
            axes.set_title(f"x* near {means['title']}", loc="left", fontsize=9, color=INK)
            axes.set_xlabel(means["along"], fontsize=8)
            axes.set_ylabel("mean" if means["along"] == "step" else "mean, in deviations", fontsize=8)
        for axes in made.axes:
            axes.set_visible(axes.has_data())
        made.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    rows = [[f"x′: {name}", figure(_apart(shares))] for name, shares in hidden.items()]
    rows += [[f"x* near {m['title']}", figure(float(np.abs(np.subtract(m["real"], m["drawn"])).mean()))] for m in kept]
    return Drawing(
        name="ppem-" + "".join(letter if letter.isalnum() else "-" for letter in method),
        figure=made,
        caption=f"{method}. Above: x′, which is to differ. Below: densities of x* (tables), and means of x* where x′ "
        "is alike, which are to agree.",
        alternative=f"{method}. " + "; ".join(": ".join(row) for row in rows),
        header=("what", "total variation, or mean distance"),
        rows=rows,
    )


def _bars(axes: Axes, shares: Mapping[str, Any]) -> None:
    """Categories side by side."""
    places = np.arange(len(shares["names"]))
    for shift, (side, colour) in zip((-0.2, 0.2), _SIDES.items(), strict=True):
        axes.bar(places + shift, shares[side], width=0.38, color=colour, label=_WORDS[side])
    axes.set_xticks(places, shares["names"])


def _steps(axes: Axes, shares: Mapping[str, Any]) -> None:
    """Outlines of histograms."""
    for side, colour in _SIDES.items():
        axes.stairs(shares[side], shares["edges"], color=colour, linewidth=1.4, label=_WORDS[side])


def _apart(shares: Mapping[str, Any]) -> float:
    return float(np.abs(np.subtract(shares["real"], shares["drawn"])).sum() / 2)
