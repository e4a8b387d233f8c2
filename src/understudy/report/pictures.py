"""Pictures of synthetic series beside the series they stand in for."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from understudy.data import Panel
from understudy.report.drawing import FAINT, INK, REAL, SYNTHETIC

_STYLE: dict[str, Any] = {"fontsize": 9, "color": INK}
_NUM_SERIES = 4


def side_by_side(real: Panel, synthetic: Panel, path: Path, *, channel: str, caption: str, real_name: str) -> None:
    """Draws single series, the distribution of values and the mean day of each label, real beside synthetic.

    Privacy: shows single series of `real`. For simulated or public data only.
    """
    if real.private:
        raise ValueError("Expected public or simulated series: a picture of single series shows whose they are.")
    figure = Figure(figsize=(11, 8.5), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    parts: Any = figure.subfigures(2, 1, height_ratios=(1.25, 1))
    upper, lower = parts
    place = real.schema.channel_index(channel)
    _draw_series(upper, (real, synthetic), place, channel, real_name)
    values, *days = lower.subplots(1, 1 + _num_labels(real), width_ratios=(1.3, *[1] * _num_labels(real)))
    _draw_distribution(values, (real, synthetic), place, channel, real_name)
    _draw_mean_days(days, (real, synthetic), place, channel)
    figure.suptitle(caption, fontsize=12, color=INK, x=0.01, ha="left")
    figure.savefig(path, format="png")


def _draw_series(figure: Any, panels: tuple[Panel, Panel], place: int, channel: str, real_name: str) -> None:
    """Small multiples: so many real series in the left column, as many synthetic ones in the right."""
    axes = figure.subplots(_NUM_SERIES, 2, sharex=True, sharey="row")
    for column, panel in enumerate(panels):
        colour = (REAL, SYNTHETIC)[column]
        for row, series in enumerate(_typical(panel, place)):
            axis = axes[row, column]
            axis.plot(panel.values[series, :, place], color=colour, linewidth=0.9)
            _tidy(axis)
            axis.set_xlim(0, panel.num_steps)
            axis.set_xticks(range(0, panel.num_steps + 1, 24))
        name = (f"{real_name} series", "synthetic series")[column]
        axes[0, column].set_title(
            f"{name}, from the least to the most", loc="left", fontsize=10, color=colour, fontweight="bold"
        )
        axes[-1, column].set_xlabel("hour of the week", **_STYLE)
    for row in axes:
        row[0].set_ylim(0, 1.05 * max(float(np.nanmax(axis.lines[0].get_ydata())) for axis in row))
    figure.supylabel(channel, fontsize=9, color=INK)


def _draw_distribution(axis: Axes, panels: tuple[Panel, Panel], place: int, channel: str, real_name: str) -> None:
    low, high = panels[0].schema.channels[place].bounds
    observed = [values[~np.isnan(values)] for values in (panel.values[:, :, place] for panel in panels)]
    top = min(high, max(float(values.max()) for values in observed))
    edges = np.linspace(low, top, 60)
    for values, colour, name in zip(observed, (REAL, SYNTHETIC), (real_name, "synthetic"), strict=True):
        height = np.histogram(values, edges)[0] / len(values)
        axis.stairs(height, edges, color=colour, linewidth=1.4, label=name)
    axis.set_yscale("log")
    axis.set_xlabel(channel, **_STYLE)
    axis.set_title("all values, share per bin", loc="left", fontsize=10, color=INK)
    axis.legend(frameon=False, fontsize=9)
    _tidy(axis)


def _draw_mean_days(axes: list[Axes], panels: tuple[Panel, Panel], place: int, channel: str) -> None:
    label = panels[0].schema.label_column
    names = [str(category) for category in label.categories] if label is not None else ["all series"]
    for code, (axis, name) in enumerate(zip(axes, names, strict=True)):
        for panel, colour in zip(panels, (REAL, SYNTHETIC), strict=True):
            rows = np.ones(panel.num_series, dtype=bool) if panel.label is None else panel.label == code
            axis.plot(_mean_day(panel.values[rows, :, place]), color=colour, linewidth=1.6)
        axis.set_xticks(range(0, 25, 6))
        axis.set_xlabel("hour of the day", **_STYLE)
        axis.set_title(f"mean day, {name}", loc="left", fontsize=10, color=INK)
        _tidy(axis)
    highest = max(axis.get_ylim()[1] for axis in axes)
    for axis in axes:
        axis.set_ylim(0, highest)
    axes[0].set_ylabel(channel, **_STYLE)


def _mean_day(values: np.ndarray) -> np.ndarray:
    """Mean by hour over all days and series; 0 where nothing was observed."""
    days = values[:, : values.shape[1] // 24 * 24].reshape(-1, 24)
    return np.asarray(np.nansum(days, axis=0) / np.maximum((~np.isnan(days)).sum(axis=0), 1))


def _typical(panel: Panel, place: int) -> np.ndarray:
    """Series at even ranks of their mean, so that neither column shows only the prettiest."""
    seen = np.flatnonzero(panel.observed[:, :, place].any(axis=1))
    means = np.nanmean(panel.values[seen, :, place], axis=1)
    ranks = (np.arange(_NUM_SERIES) + 0.5) / _NUM_SERIES
    return np.asarray(seen[np.argsort(means)[(ranks * len(means)).astype(int)]])


def _num_labels(panel: Panel) -> int:
    label = panel.schema.label_column
    return 1 if label is None else len(label.categories)


def _tidy(axis: Axes) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[["left", "bottom"]].set_color(FAINT)
    axis.tick_params(labelsize=8, color=FAINT, labelcolor=INK)
    axis.grid(axis="y", color=FAINT, linewidth=0.4)
    axis.set_axisbelow(True)
