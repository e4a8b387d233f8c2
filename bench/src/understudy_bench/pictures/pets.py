"""Pictures of private evolution: figures over epsilon, and single series (PETS, Fig. 3 and 4)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from understudy.evaluation.words import figure, printable
from understudy.report.figures import CONTROL, INK, REAL, SYNTHETIC, Drawing, style, tidy

_FIGURES = {"c_fid": "C-FID", "forecast_rmse": "forecast RMSE", "forecast_mae": "forecast MAE"}
_DASHES = ("-", "--", ":", "-.")
_RIVALS = ("spectral", "gs-wgan")
_REAL, _BLIND, _UNVOTED = "other real series", "the same without private data", "the same without votes"


def evolution(result: Mapping[str, Any]) -> list[Drawing]:
    """Returns the pictures of a result with samples: one row of curves for each unit, and single series."""
    units = dict.fromkeys(line["unit"] for line in result["rows"])
    return [*(_over_epsilon(result, unit) for unit in units), _series(result["samples"])]


def _over_epsilon(result: Mapping[str, Any], unit: str) -> Drawing:
    """Methods orange; in the same dashes, what they give without private data blue and without votes grey."""
    rows, controls = ([line for line in result[kind] if line["unit"] == unit] for kind in ("rows", "controls"))
    swept = {name: [line for line in rows if line["method"] == name] for name in _names(rows)}
    rivals = {name: [line for line in controls if line["method"] == name] for name in _RIVALS}
    levels = [line for line in controls if line["method"] not in _RIVALS]
    with style():
        made = Figure(figsize=(10, 3.8), dpi=72, layout="constrained")
        for axes, (name, title) in zip(made.subplots(1, len(_FIGURES)), _FIGURES.items(), strict=True):
            _curves(axes, name, {**swept, **{rival: lines for rival, lines in rivals.items() if lines}})
            _levels(axes, name, levels, list(swept))
            axes.set_xlabel("epsilon")
            axes.set_title(title, loc="left", fontsize=10, color=INK)
        named = dict(zip(*reversed(made.axes[0].get_legend_handles_labels()), strict=True))  # one entry for each name
        made.legend(named.values(), named.keys(), loc="outside lower center", ncols=3, frameon=False)
    table = [
        [line["method"], figure(line["epsilon"]), *(figure(_mean(line, name)) for name in _FIGURES)]
        for line in [*rows, *controls]
    ]
    return Drawing(
        name=f"epsilon-{unit}",
        figure=made,
        caption="What epsilon buys, lower is better. Orange: private evolution. Blue: without private data.",
        alternative="Curves over epsilon. " + "; ".join(" ".join(row) for row in table) + ".",
        header=("method", "epsilon", *_FIGURES.values()),
        rows=table,
    )


def _levels(axes: Axes, name: str, controls: Sequence[Mapping[str, Any]], methods: Sequence[str]) -> None:
    """Draws what does not depend on epsilon as level lines."""
    for line in controls:
        level, method = _mean(line, name), line["method"]
        if level is None:
            continue
        own = next((place for place, other in enumerate(methods) if method.endswith(f" {other}")), None)
        if own is None:
            colour, dashes, label = (REAL if method == _REAL else CONTROL), "-", method
        else:
            colour, label = (CONTROL, _BLIND) if method.startswith("no_private") else (INK, _UNVOTED)
            dashes = _DASHES[own % 4]
        axes.axhline(level, color=colour, linestyle=dashes, linewidth=0.9, label=label)


def _curves(axes: Axes, name: str, swept: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    tidy(axes)
    for place, (method, lines) in enumerate(swept.items()):
        points = np.array(sorted((line["epsilon"], _mean(line, name)) for line in lines), dtype=float).reshape(-1, 2)
        colour = INK if method in _RIVALS else SYNTHETIC
        axes.plot(*points.T, color=colour, marker="o", markersize=3, linestyle=_DASHES[place % 4], label=method)
    axes.set_xscale("log")
    if name == "c_fid":
        axes.set_yscale("log")
    tidy(axes)
    axes.xaxis.set_minor_locator(NullLocator())


def _series(samples: Mapping[str, Any]) -> Drawing:
    """Single series drawn at random, real ones left and synthetic ones right."""
    sides: Mapping[str, Any] = samples["series"]
    number = max(len(series) for series in sides.values())
    with style():
        made = Figure(figsize=(9, 1.3 * number), dpi=72, layout="constrained")
        grid = made.subplots(number, len(sides), squeeze=False, sharex=True, sharey=True)
        for column, (side, series) in enumerate(sides.items()):
            for axes, values in zip(grid[:, column], series, strict=False):
                tidy(axes)
                axes.plot(np.array(values, dtype=float), color=REAL if side == "real" else SYNTHETIC, linewidth=0.9)
            grid[0, column].set_title(printable(side), loc="left", fontsize=10, color=INK)
            grid[-1, column].set_xlabel("step")
    shown = ", ".join(f"{len(series)} of {side}" for side, series in sides.items())
    return Drawing(
        name="series",
        figure=made,
        caption=f"{printable(samples['channel'])}: series drawn at random, epsilon {samples['epsilon']:g}.",
        alternative=f"Line plots over the steps: {shown}.",
    )


def _names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(line["method"] for line in rows))


def _mean(line: Mapping[str, Any], name: str) -> float | None:
    found = line["metrics"].get(name)
    return None if found is None else found["mean"]
