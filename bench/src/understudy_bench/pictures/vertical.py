"""Pictures of several organisations' benchmarks, as Fig. 3, 5, 7, 10 and 12 of VFLGAN-TS."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from understudy.evaluation.words import figure
from understudy.report.figures import CONTROL, INK, REAL, SYNTHETIC, Drawing, style, tidy

_FIGURES = {"awd": "AWD", "aada": "AADA", "tpd": "TPD", "sine_ratio": "amplitudes apart"}
_SWEPT = {
    "epsilon": {"vflgan-ts, sound": SYNTHETIC, "spectral": CONTROL},
    "parties": {"vflgan-ts": SYNTHETIC, "spectral": CONTROL},
}
_CAPTIONS = {
    "epsilon": "What epsilon buys, lower is better. Dotted: without noise, and other real series.",
    "parties": "More parties, fewer columns each; lower is better. Without noise. Dotted: other real series.",
}
_LEVELS = {"vflgan-ts": (SYNTHETIC, "vflgan-ts, no noise"), "holdout": (REAL, "other real series")}
_BINS = 24


def vertical(result: Mapping[str, Any]) -> list[Drawing]:
    """Returns what epsilon buys, or the number of parties costs, and the methods side by side.

    Side by side are amplitudes of a sine set, or clouds of series.
    """
    shown: Mapping[str, Any] = result["vertical"]
    amplitudes = {method: found["amplitudes"] for method, found in shown.items() if "amplitudes" in found}
    clouds = {method: found["clouds"] for method, found in shown.items() if "clouds" in found}
    lines = [*result["rows"], *result["controls"]]
    made = [_over("parties" if all("parties" in line for line in lines) else "epsilon", lines)]
    if amplitudes:
        made.append(_amplitudes(amplitudes))
    if clouds:
        made.append(_clouds(clouds))
    if distances := {method: found["awd"] for method, found in shown.items() if "awd" in found}:
        made.append(_over_iterations(distances))
    return made


def _over_iterations(distances: Mapping[str, Sequence[float]]) -> Drawing:
    """Distance from real series at one checkpoint after another (Fig. 2, 4, 6, 9, 11 and 12)."""
    with style():
        made = Figure(figsize=(5, 3), dpi=72, layout="constrained")
        axes = made.subplots()
        tidy(axes)
        for method, found in distances.items():
            axes.plot(np.linspace(0, 1, len(found)), found, label=method)
        axes.set_xlabel("share of the iterations")
        axes.set_ylim(bottom=0)
        axes.set_title("AWD", loc="left", fontsize=10, color=INK)
        axes.legend(frameon=False, fontsize=8)
    rows = [[method, figure(found[0]), figure(min(found)), figure(found[-1])] for method, found in distances.items()]
    return Drawing(
        name="iterations",
        figure=made,
        caption="Wasserstein distance of the values at each step while training without a guarantee; lower is better.",
        alternative="Curves over iterations. " + "; ".join(" ".join(row) for row in rows) + ".",
        header=("method", "at first", "least", "at last"),
        rows=rows,
    )


def _over(axis: str, lines: Sequence[Mapping[str, Any]]) -> Drawing:
    names = [name for name in _FIGURES if all(name in line["metrics"] for line in lines)]
    with style():
        made = Figure(figsize=(10, 3), dpi=72, layout="constrained")
        for axes, name in zip(made.subplots(1, len(names), squeeze=False)[0], names, strict=True):
            tidy(axes)
            for method, colour in _SWEPT[axis].items():
                points = [(line[axis], line["metrics"][name]) for line in lines if line["method"] == method]
                means = [(x, np.mean([y for other, y in points if other == x])) for x in sorted({x for x, _ in points})]
                axes.plot(*np.array(means).reshape(-1, 2).T, color=colour, label=method)
                axes.plot(*np.array(points).reshape(-1, 2).T, "o", color=colour, markersize=4)  # every seed
            for method in (other for other in _LEVELS if other not in _SWEPT[axis]):
                level = [line["metrics"][name] for line in lines if line["method"] == method]
                if level:
                    axes.axhline(
                        float(np.mean(level)), color=_LEVELS[method][0], linestyle=":", label=_LEVELS[method][1]
                    )
            axes.set_xlabel(axis)
            axes.set_ylim(bottom=0)
            axes.set_title(_FIGURES[name], loc="left", fontsize=10, color=INK)
        made.legend(*made.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    rows = [[line["method"], figure(line[axis]), *(figure(line["metrics"][name]) for name in names)] for line in lines]
    return Drawing(
        name=axis,
        figure=made,
        caption=_CAPTIONS[axis],
        alternative=f"Curves over {axis}. " + "; ".join(" ".join(row) for row in rows) + ".",
        header=("method", axis, *(_FIGURES[name] for name in names)),
        rows=rows,
    )


def _amplitudes(found: Mapping[str, Sequence[Sequence[float]]]) -> Drawing:
    """Amplitudes of the first and the last attribute, which different parties hold (Fig. 3)."""
    points = {method: np.array(pairs, dtype=float) for method, pairs in found.items()}
    top = float(np.quantile(np.concatenate(list(points.values())), 0.995)) * 1.1
    rows = []
    with style():
        made = Figure(figsize=(2.5 * len(points), 3), dpi=72, layout="constrained")
        grid = made.subplots(1, len(points), squeeze=False, sharex=True, sharey=True)[0]
        for axes, (method, pairs) in zip(grid, points.items(), strict=True):
            _amplitude_pairs(axes, pairs, top, REAL if method == "holdout" else SYNTHETIC)
            axes.set_title("other real series" if method == "holdout" else method, loc="left", fontsize=9, color=INK)
            ratio = pairs[:, 0] / np.maximum(pairs[:, 1], 1e-9)
            low, high = np.quantile(ratio, (0.05, 0.95))
            rows.append([method, figure(float(low)), figure(float(np.median(ratio))), figure(float(high))])
        grid[0].set_ylabel("amplitude at the last party")
        grid[0].set_xlabel("amplitude at the first party")
    said = "; ".join(f"{method}: {middle} ({low} to {high})" for method, low, middle, high in rows)
    return Drawing(
        name="amplitudes",
        figure=made,
        caption="One point is one series. Real series lie on the diagonal: both parties' waves have one amplitude.",
        alternative=f"Scatter plots with histograms. Ratio of the amplitudes, median and 5 to 95 %: {said}.",
        header=("method", "ratio, 5 %", "median", "95 %"),
        rows=rows,
    )


def _amplitude_pairs(axes: Axes, pairs: np.ndarray, top: float, colour: str) -> None:
    tidy(axes)
    axes.plot([0, top], [0, top], color=INK, linewidth=0.6, linestyle=":")
    axes.plot(*pairs.T, linestyle="none", marker="o", markersize=2, alpha=0.5, color=colour)
    edges = np.linspace(0, top, _BINS + 1)
    across, up = (np.histogram(pairs[:, place], edges)[0] / max(1, len(pairs)) * top for place in (0, 1))
    axes.stairs(across, edges, color=INK, linewidth=0.8)
    axes.stairs(up, edges, orientation="horizontal", color=INK, linewidth=0.8)
    axes.set_xlim(0, top)
    axes.set_ylim(0, top)


def _clouds(found: Mapping[str, Mapping[str, Any]]) -> Drawing:
    """Real and synthetic series as points, a column for each method (Fig. 5 and 7)."""
    with style():
        made = Figure(figsize=(2.1 * len(found), 4.4), dpi=72, layout="constrained")
        grid = made.subplots(2, len(found), squeeze=False)
        for column, (method, embedding) in enumerate(found.items()):
            for axes, name in zip(grid[:, column], ("pca", "tsne"), strict=True):
                for side, colour in (("real", REAL), ("synthetic", SYNTHETIC)):
                    points = np.array(embedding[name][side], dtype=float).reshape(-1, 2)
                    axes.plot(*points.T, linestyle="none", marker=".", markersize=2.5, color=colour, alpha=0.6)
                axes.set_xticks([])
                axes.set_yticks([])
            title = "other real series" if method == "holdout" else method
            grid[0, column].set_title(title, loc="left", fontsize=9, color=INK)
        grid[0, 0].set_ylabel("principal components")
        grid[1, 0].set_ylabel("t-SNE")
    return Drawing(
        name="clouds",
        figure=made,
        caption="One point is one series, real in grey, synthetic in orange; a column is a method.",
        alternative=f"Scatter plots of real and synthetic series for {', '.join(found)}.",
    )
