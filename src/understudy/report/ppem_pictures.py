"""Pictures of PPEM: estimators under a true and a false score (paper 002, Fig. 2), and marginals (Fig. 3 and 4)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import chi2

from understudy.report.drawing import CONTROL, INK, REAL, SYNTHETIC, Drawing, style, tidy
from understudy.report.words import figure

_STATISTICS = {"normalised": "normalised (Eq. 17)", "studentised": "one-sided, studentised", "finite": "finite set"}


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
            axes.set_title(title, loc="left", fontsize=10, color=INK)
        made.axes[0].legend(frameon=False, fontsize=8)
    rows = [[line["method"], *(figure(value) for value in line["metrics"].values())] for line in result["rows"]]
    return [
        Drawing(
            name="ppem-estimators",
            figure=made,
            caption="Share of sets below a statistic. Under a true score the normalised one follows chi-squared.",
            alternative="Three distribution functions. " + "; ".join(", ".join(row) for row in rows),
            header=("sets", *result["rows"][0]["metrics"]),
            rows=rows,
        )
    ]


def marginals(result: Mapping[str, Any]) -> list[Drawing]:
    """Returns quantiles of sensitive and other columns, real against generated: a diagonal is a copy."""
    found = []
    for method, columns in result["ppem"].items():
        with style():
            made = Figure(figsize=(2 * len(columns), 2.4), dpi=72, layout="constrained")
            for axes, (name, (real, drawn)) in zip(
                np.ravel(made.subplots(1, len(columns))), columns.items(), strict=True
            ):
                tidy(axes)
                ends = [min(*real, *drawn), max(*real, *drawn)]
                axes.plot(ends, ends, color=CONTROL, linewidth=0.8)
                axes.plot(real, drawn, color=SYNTHETIC, marker=".", markersize=2)
                axes.set_title(name, loc="left", fontsize=9, color=INK)
        gaps = [[name, figure(float(np.mean(np.abs(np.subtract(*pair)))))] for name, pair in columns.items()]
        found.append(
            Drawing(
                name="ppem-marginals-" + "".join(letter if letter.isalnum() else "-" for letter in method),
                figure=made,
                caption=f"{method}: quantiles, real across and generated up. x′ is to leave the diagonal, x* need not.",
                alternative="Quantile plots. " + "; ".join(": ".join(gap) for gap in gaps),
                header=("column", "mean distance of quantiles"),
                rows=gaps,
            )
        )
    return found
