"""Figures of how things hang together: correlation heat maps, and real and synthetic series as two clouds of points."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from understudy.report.drawing import INK, PAPER, REAL, SYNTHETIC, Drawing, blank, over_epsilon, style, tidy
from understudy.report.figures import Sides
from understudy.report.words import figure, printable, share

# Blue for below zero, orange for above: the pair that every kind of colour vision keeps apart. Not quite the colours of
# curves, which a page exchanges for its own in the dark: a scale stays as it is.
_DIVERGING = LinearSegmentedColormap.from_list("understudy", ["#0171b1", "#f7f7f7", "#d65f01"], N=41)
_DARK_BELOW = -0.6  # blue cells this dark need light letters
_MAX_WRITTEN = 6  # more cells a side than this and numbers no longer fit into them


def heat_maps(sides: Sides) -> list[Drawing]:
    """Returns a heat map for each side and, with two sides, one of their difference."""
    if len(sides[0][1]["correlation"]["names"]) < 2:
        return []
    kind = sides[0][1]["correlation"]["of"]
    labels = [printable(name) for name in sides[0][1]["correlation"]["names"]]
    tables = {side: _matrix(portrait) for side, portrait in sides}
    if len(tables) == 2:
        tables["difference"] = tables["synthetic"] - tables["real"]
    what = "channels" if kind == "channels" else "stretches of steps (by their first step)"
    return [_heat_map(side, table, labels, what) for side, table in tables.items()]


def _heat_map(side: str, table: np.ndarray, labels: list[str], what: str) -> Drawing:
    with style():
        made = Figure(figsize=(5, 4), dpi=72, layout="constrained")
        axes = made.subplots()
        cells = axes.pcolormesh(table, cmap=_DIVERGING, vmin=-1, vmax=1, edgecolors=PAPER, linewidth=1)
        _frame(axes, labels)
        if len(labels) <= _MAX_WRITTEN:
            _write(axes, table)
        bar = made.colorbar(cells, ax=axes, shrink=0.9, ticks=[-1, 0, 1])
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelcolor=INK, length=0)
    title = f"Correlations between {what}: {side}" + (", synthetic minus real." if side == "difference" else ".")
    return Drawing(
        name=f"correlation-{side}",
        figure=made,
        caption=title,
        alternative=f"Heat map. {title} {_extremes(table, labels)}",
        header=("", *labels),
        rows=[[label, *(_cell(value) for value in row)] for label, row in zip(labels, table, strict=True)],
    )


def clouds(embedding: Mapping[str, Any]) -> list[Drawing]:
    """Returns principal components and t-SNE: one point is one series."""
    first, second = [*embedding["explained"], None, None][:2]
    explained = f" The two components hold {share(first)} and {share(second)} of the variance."
    return [
        _cloud("pca", embedding["pca"], "Principal components", explained),
        _cloud("tsne", embedding["tsne"], "t-SNE", " Near points are alike; distances between groups mean little."),
    ]


def _cloud(name: str, points: Mapping[str, Sequence[Sequence[float]]], title: str, more: str) -> Drawing:
    looks: dict[str, Any] = {
        "real": {"marker": "o", "markerfacecolor": "none", "markeredgecolor": REAL, "markersize": 4},
        "synthetic": {"marker": "+", "markeredgecolor": SYNTHETIC, "markersize": 5},
    }
    with style():
        made, axes = blank(260, left=12)
        for side, look in looks.items():
            place = np.array(points[side], dtype=float).reshape(-1, 2)
            axes.plot(*place.T, linestyle="none", markeredgewidth=0.8, gid=side, **look)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.grid(visible=False)
    sizes = " and ".join(f"{len(points[side])} {side}" for side in looks)
    return Drawing(
        name=name,
        figure=made,
        caption=f"{title}: one point is one series. Where the clouds part, the stand-in differs.{more}",
        alternative=f"Scatter plot, {title}, of {sizes} series. {_overlap(points)}",
    )


def utility_against_epsilon(releases: Sequence[tuple[float, Sequence[float | None]]], titles: Sequence[str]) -> Drawing:
    """Returns how far from real each metric stays, against epsilon; the thick line is the median metric.

    Args:
        releases: (epsilon, distance of each metric), a distance being 0 where real series score and 1 where the
            control does; None where that can't be told.
    """
    ordered = sorted(releases, key=lambda pair: pair[0])
    epsilons = np.array([epsilon for epsilon, _ in ordered])
    table = np.array([[np.nan if p is None else min(p, 1.5) for p in line] for _, line in ordered])
    kept = ~np.isnan(table).any(axis=0)
    with style():
        made, axes = blank(240)
        tidy(axes)
        axes.plot(epsilons, table[:, kept], color=SYNTHETIC, linewidth=0.7, alpha=0.35)
        middle = np.median(table[:, kept], axis=1) if kept.any() else np.full(len(epsilons), np.nan)
        axes.plot(epsilons, middle, color=SYNTHETIC, linewidth=2, marker="D", markersize=5)
        for level, words in ((0, "as other real series"), (1, "as no private data")):
            axes.axhline(level, color=INK, linewidth=0.7, linestyle=":")
            axes.annotate(words, (epsilons[0], level), textcoords="offset points", xytext=(0, 3), fontsize=8, color=INK)
        over_epsilon(axes, [float(epsilon) for epsilon in epsilons])
        axes.set_xlabel("epsilon")
        axes.set_ylabel("distance from real")
    said = "; ".join(f"epsilon {figure(e)}: {figure(float(m))}" for e, m in zip(epsilons, middle, strict=True))
    return Drawing(
        name="utility-epsilon",
        figure=made,
        caption="What epsilon buys: 0 is as good as other real series, 1 is no better than without private data. "
        "Thin lines are single metrics, the thick one their median.",
        alternative=f"Median distance from real, on a scale where 1 is the control. {said}.",
        header=("metric", *(f"epsilon {figure(epsilon)}" for epsilon in epsilons)),
        rows=[
            [printable(title), *(figure(float(value)) for value in column)]
            for title, column, known in zip(titles, table.T, kept, strict=True)
            if known
        ],
    )


def _write(axes: Axes, table: np.ndarray) -> None:
    for (row, column), value in np.ndenumerate(table):
        ink = "#ffffff" if value < _DARK_BELOW else "#111111"
        axes.text(column + 0.5, row + 0.5, _cell(value), ha="center", va="center", color=ink)


def _frame(axes: Axes, labels: list[str]) -> None:
    places = np.arange(len(labels)) + 0.5
    crowded = len(labels) > _MAX_WRITTEN or max(map(len, labels)) > 12
    axes.set_xticks(places, labels, rotation=45 if crowded else 0, ha="right" if crowded else "center")
    axes.set_yticks(places, labels)
    axes.invert_yaxis()
    axes.tick_params(length=0, labelcolor=INK)
    axes.spines[:].set_visible(False)


def _matrix(portrait: Mapping[str, Any]) -> np.ndarray:
    rows = portrait["correlation"]["matrix"]
    return np.array([[np.nan if value is None else value for value in row] for row in rows], dtype=float)


def _cell(value: float) -> str:
    return figure(None if np.isnan(value) else round(float(value), 2), 2)


def _extremes(table: np.ndarray, labels: list[str]) -> str:
    apart = np.where(np.eye(len(table), dtype=bool), np.nan, table)
    if np.isnan(apart).all():
        return "No correlation could be computed."
    said = []
    for words, place in (("Highest", np.nanargmax(apart)), ("lowest", np.nanargmin(apart))):
        row, column = np.unravel_index(place, apart.shape)
        said.append(f"{words} between {labels[row]} and {labels[column]}: {_cell(apart[row, column])}")
    return "; ".join(said) + "."


def _overlap(points: Mapping[str, Sequence[Sequence[float]]]) -> str:
    """Says where the middle half of each cloud lies."""
    said = []
    for side in ("real", "synthetic"):
        place = np.array(points[side], dtype=float).reshape(-1, 2)
        if len(place):
            low, high = np.quantile(place, (0.25, 0.75), axis=0)
            said.append(
                f"The middle half of the {side} points lies between {figure(low[0])} and {figure(high[0])} across and "
                f"between {figure(low[1])} and {figure(high[1])} up."
            )
    return " ".join(said)
