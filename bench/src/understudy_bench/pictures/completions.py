"""What epsilon buys where gaps are filled and days foretold: DP-vanilla beside DP-aware, and what anybody could say."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from understudy.evaluation.words import figure
from understudy.report.figures import CONTROL, INK, REAL, SYNTHETIC, Drawing, over_epsilon, style, tidy

_TASKS = {"impute_rmse": "imputing", "stride_rmse": "strides", "forecast_rmse": "forecasting"}
_LARGEST = 100.0  # a published noise has an epsilon beyond, which is no guarantee and is not drawn
_SWEPT = {
    "dp-vanilla": (CONTROL, "-"),
    "dp-aware": (SYNTHETIC, "-"),
    "dp-vanilla, pre-trained": (CONTROL, "--"),
    "dp-aware, pre-trained": (SYNTHETIC, "--"),
    "what is bought, no network": (INK, ":"),
}
_LEVEL = {"straight lines": "-", "seasonal naive": "--", "non-private": ":"}


def completions(result: Mapping[str, Any]) -> list[Drawing]:
    """Returns errors against epsilon, a panel a task; rules that know no private data are level lines."""
    lines = [*result["rows"], *result["controls"]]
    with style():
        made = Figure(figsize=(10, 3.4), dpi=72, layout="constrained")
        for axes, (name, title) in zip(made.subplots(1, len(_TASKS)), _TASKS.items(), strict=True):
            _panel(axes, lines, name)
            axes.set_title(title, loc="left", fontsize=10, color=INK)
        made.axes[0].set_ylabel("root mean square error, in deviations")
        handles, labels = made.axes[0].get_legend_handles_labels()
        made.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    rows = [
        [line["method"], figure(line["epsilon"]), *(figure(_mean(line, name)) for name in _TASKS)] for line in lines
    ]
    return [
        Drawing(
            name="epsilon",
            figure=made,
            caption="What epsilon buys. Grey level lines read no private data, or all of it without privacy.",
            alternative="Three curves over epsilon. " + "; ".join(", ".join(row) for row in rows),
            header=("method", "epsilon", *_TASKS.values()),
            rows=rows,
        )
    ]


def _panel(axes: Axes, lines: list[Mapping[str, Any]], name: str) -> None:
    tidy(axes)
    for method, (colour, dashes) in _SWEPT.items():
        points = sorted(
            (line["epsilon"], _mean(line, name))
            for line in lines
            if line["method"] == method and line["epsilon"] and line["epsilon"] <= _LARGEST
        )
        if points:
            axes.plot(*np.array(points).T, color=colour, linestyle=dashes, marker="o", markersize=3, label=method)
    for method, dashes in _LEVEL.items():
        own = next((line for line in lines if line["method"] == method), None)
        if own is not None:
            axes.axhline(_mean(own, name), color=REAL, linestyle=dashes, linewidth=0.9, label=method)
    over_epsilon(axes, sorted({line["epsilon"] for line in lines if line["epsilon"] and line["epsilon"] <= _LARGEST}))
    axes.set_xlabel("epsilon")
    axes.set_ylim(bottom=0)


def _mean(line: Mapping[str, Any], name: str) -> float:
    value = line["metrics"][name]
    return float(value["mean"] if isinstance(value, Mapping) else value)
