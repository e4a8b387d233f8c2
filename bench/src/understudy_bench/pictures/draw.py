"""Pictures of a benchmark's result: clouds, series of one condition, distributions, and the curve over epsilon.

A pure function of the result; a result without pictures gives only the curve, or nothing. As Fig. 3 to 5, 8 and 9 of
the Pub2Priv paper.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from understudy.evaluation.words import figure
from understudy.report.figures import CONTROL, INK, REAL, SYNTHETIC, Drawing, clouds, over_epsilon, style, tidy
from understudy_bench.pictures.completions import completions
from understudy_bench.pictures.gradients import VARIANTS as COLOURS
from understudy_bench.pictures.gradients import titled
from understudy_bench.pictures.pets import evolution
from understudy_bench.pictures.ppem import estimators, marginals
from understudy_bench.pictures.vertical import vertical

_LARGEST = 50.0  # an epsilon beyond is drawn at the right end, as "no noise"
_FIGURES = {"corr_meta": "|Corr_meta|", "predictive": "predictive error", "nearer_to_real": "nearer to real"}
_FACTS = ("unit", "homes", "series", "correlation", "strategies")
_LINES = {"pub2priv": SYNTHETIC, "spectral": CONTROL}


def draw(result: Mapping[str, Any], folder: Path) -> list[Path]:
    """Writes every picture of a result as SVG and PNG and returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    return [path for drawing in drawings(result) for path in drawing.save(folder)]


def drawings(result: Mapping[str, Any]) -> list[Drawing]:
    """Returns the pictures that the result holds numbers for."""
    if "samples" in result:
        return evolution(result)
    if "vertical" in result:
        return vertical(result)
    if "ppem_tests" in result:
        return estimators(result)
    if "ppem" in result:
        return marginals(result)
    if "losses" in result:
        return losses(result["losses"])
    if any("stride_rmse" in line["metrics"] for line in result["rows"]) and len(result["controls"]) > 1:
        return completions(result)
    found = curves(result)
    shown = result.get("pictures")
    if shown:
        found += clouds(shown["clouds"])
        found.append(_same_condition(shown["same_condition"], shown["epsilon"]))
        found.append(_distributions(shown["distributions"], shown["epsilon"]))
    return found


def losses(seen: Mapping[str, Sequence[float]]) -> list[Drawing]:
    """Returns one drawing: the loss of public series over a run, by variant and noise (DP-aware AdaLN-Zero, Fig. 5).

    Args:
        seen: By "variant, noise", the loss at evenly spaced looks.
    """
    noises = list(dict.fromkeys(name.partition(", ")[2] for name in seen))
    with style():
        made = Figure(figsize=(10, 3.6), dpi=72, layout="constrained")
        for axes, noise in zip(made.subplots(1, len(noises), sharey=True, squeeze=False)[0], noises, strict=True):
            for variant, colour in COLOURS.items():
                values = seen[f"{variant}, {noise}"]
                axes.plot(np.arange(1, len(values) + 1) / len(values), values, color=colour, label=variant)
            titled(axes, noise, "share of iterations")
        made.axes[0].set_ylabel("loss")
        made.legend(*made.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    table = [[name, f"{values[0]:.3g}", f"{values[-1]:.3g}"] for name, values in seen.items()]
    return [
        Drawing(
            name="losses",
            figure=made,
            caption="Loss of public series in training at published noises. Blue: without bounds.",
            alternative="Losses at the first and the last look. " + "; ".join(" ".join(row) for row in table) + ".",
            header=("network", "first look", "last look"),
            rows=table,
        )
    ]


def curves(result: Mapping[str, Any]) -> list[Drawing]:
    """Returns figures against epsilon, beside `spectral` and the second real series (Fig. 3 and 5)."""
    same = _swept([*result["rows"], *result["controls"]])
    swept = {name: sorted(_points(same, name)) for name in _LINES}
    if len(swept["pub2priv"]) < 2:
        return []
    second = next((line for line in same if line["method"] == "second real series"), None)
    with style():
        made = Figure(figsize=(10, 3), dpi=72, layout="constrained")
        for axes, (name, title) in zip(made.subplots(1, len(_FIGURES)), _FIGURES.items(), strict=True):
            tidy(axes)
            for method, points in swept.items():
                known = [(e, line["metrics"][name]["mean"]) for e, _, line in points if name in line["metrics"]]
                axes.plot(
                    *np.array(known, dtype=float).reshape(-1, 2).T, color=_LINES[method], marker="o", label=method
                )
            if second is not None and name in second["metrics"]:
                axes.axhline(second["metrics"][name]["mean"], color=REAL, linestyle=":", label="second real series")
            over_epsilon(axes, sorted({e for points in swept.values() for e, _, _ in points}))
            axes.set_xlabel("epsilon (right end: no noise)")
            axes.set_title(title, loc="left", fontsize=10, color=INK)
        made.axes[0].legend(frameon=False, fontsize=8)
    rows = [
        [figure(e), *(figure(line["metrics"].get(n, {}).get("mean")) for n in _FIGURES)]
        for e, _, line in swept["pub2priv"]
    ]
    return [
        Drawing(
            name="epsilon",
            figure=made,
            caption="What epsilon buys; the dotted line is what real series score against real series.",
            alternative="Three curves over epsilon. " + "; ".join(", ".join(row) for row in rows),
            header=("epsilon", *_FIGURES.values()),
            rows=rows,
        )
    ]


def _swept(lines: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns rows of one unit and one kind of data: of that for which the method has most epsilons."""
    groups = [{fact: line[fact] for fact in _FACTS if fact in line} for line in lines if line["method"] == "pub2priv"]
    if not groups:
        return []
    group = max(groups, key=groups.count)
    return [line for line in lines if all(line.get(fact, value) == value for fact, value in group.items())]


def _points(lines: Sequence[Mapping[str, Any]], method: str) -> list[tuple[float, int, Mapping[str, Any]]]:
    """Returns (epsilon as drawn, place, row) of a method's rows."""
    own = [line for line in lines if line["method"] == method and line["epsilon"]]
    return [(min(line["epsilon"], _LARGEST), place, line) for place, line in enumerate(own)]


def _same_condition(pairs: Sequence[Mapping[str, Any]], epsilon: float) -> Drawing:
    """Real and synthetic series that answer to the same context, one row of axes a condition (Fig. 8)."""
    names = pairs[0]["names"]
    with style():
        made = Figure(figsize=(2.6 * len(names) + 1, 1.7 * len(pairs)), dpi=72, layout="constrained")
        grid = made.subplots(len(pairs), len(names), squeeze=False, sharex=True)
        for axes_row, pair in zip(grid, pairs, strict=True):
            for place, axes in enumerate(axes_row):
                tidy(axes)
                for side, colour in (("real", REAL), ("synthetic", SYNTHETIC)):
                    values = np.array(pair[side][place], dtype=float)
                    axes.plot(pair["steps"], values, color=colour, linewidth=1, gid=side)
        for axes, name in zip(grid[0], names, strict=True):
            axes.set_title(name, loc="left", fontsize=10, color=INK)
    return Drawing(
        name="same-condition",
        figure=made,
        caption=f"Grey: real series. Orange: synthetic series asked for under the same context, epsilon {epsilon:g}.",
        alternative=f"{len(pairs)} pairs of series, {len(names)} channels each, real beside synthetic.",
    )


def _distributions(found: Mapping[str, Mapping[str, Any]], epsilon: float) -> Drawing:
    """Histograms, real beside synthetic (Fig. 9)."""
    rows = []
    with style():
        made = Figure(figsize=(10, 2.8), dpi=72, layout="constrained")
        for axes, (title, shares) in zip(made.subplots(1, len(found)), found.items(), strict=True):
            tidy(axes)
            for side, colour in (("real", REAL), ("synthetic", SYNTHETIC)):
                axes.stairs(shares[side], shares["edges"], color=colour, linewidth=1.4, gid=side)
            axes.set_title(title, loc="left", fontsize=10, color=INK)
            overlap = float(np.minimum(shares["real"], shares["synthetic"]).sum())
            rows.append([title, figure(overlap)])
    said = "; ".join(f"{title}: overlap {overlap}" for title, overlap in rows)
    return Drawing(
        name="distributions",
        figure=made,
        caption=f"Share of values in each bin, real in grey and synthetic in orange, epsilon {epsilon:g}.",
        alternative=f"Three histograms. {said}.",
        header=("what", "overlap"),
        rows=rows,
    )
