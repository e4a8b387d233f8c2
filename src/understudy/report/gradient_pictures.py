"""Tails of gradient norms and of what clipping leaves, of public series (DP-aware AdaLN-Zero, Fig. 1 to 5)."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from understudy.report.drawing import CONTROL, INK, SYNTHETIC, Drawing, style, tidy

_COLOURS = {"vanilla": CONTROL, "aware": SYNTHETIC}
_DASHES = {"cond": "-", "other": ":"}
_WORDS = {"cond": "condition", "other": "rest"}


def tails(norms: Mapping[str, Mapping[str, np.ndarray]], kept: Mapping[str, np.ndarray]) -> list[Drawing]:
    """Returns one drawing: the share of units whose norm exceeds t, and the distribution of η.

    Args:
        norms: By variant and part ("cond", "other"), norms of single units' gradients.
        kept: By variant, what clipping leaves of each.
    """
    with style():
        made = Figure(figsize=(10, 3.6), dpi=72, layout="constrained")
        left, right = made.subplots(1, 2)
        for variant, parts in norms.items():
            for part, values in parts.items():
                _exceeded(left, values, _COLOURS[variant], _DASHES[part], f"{variant}, {_WORDS[part]}")
        left.set_xscale("log")
        left.set_yscale("log")
        _titled(left, "share of units whose norm exceeds t", "t")
        for variant, values in kept.items():
            share = np.arange(1, len(values) + 1) / len(values)
            right.plot(np.sort(values), share, color=_COLOURS[variant], label=variant)
        _titled(right, "share of units of which clipping leaves at most η", "η")
        made.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    table = [
        [variant, part, *(f"{np.quantile(values, level):.3g}" for level in (0.5, 0.95, 0.99))]
        for variant, parts in norms.items()
        for part, values in parts.items()
    ]
    return [
        Drawing(
            name="gradient-tails",
            figure=made,
            caption="Norms of single units' gradients in training on public series. Blue: without bounds.",
            alternative="Tails of norms. " + "; ".join(" ".join(row) for row in table) + ".",
            header=("variant", "part", "median", "95 %", "99 %"),
            rows=table,
        )
    ]


def losses(seen: Mapping[str, Sequence[float]]) -> list[Drawing]:
    """Returns one drawing: the loss of public series over a run, by variant and noise (Fig. 5).

    Args:
        seen: By "variant, noise", the loss at evenly spaced looks.
    """
    noises = list(dict.fromkeys(name.partition(", ")[2] for name in seen))
    with style():
        made = Figure(figsize=(10, 3.6), dpi=72, layout="constrained")
        for axes, noise in zip(made.subplots(1, len(noises), sharey=True, squeeze=False)[0], noises, strict=True):
            for variant, colour in _COLOURS.items():
                values = seen[f"{variant}, {noise}"]
                axes.plot(np.arange(1, len(values) + 1) / len(values), values, color=colour, label=variant)
            _titled(axes, noise, "share of iterations")
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


def _exceeded(axes: Axes, norms: np.ndarray, colour: str, dashes: str, label: str) -> None:
    share = 1 - np.arange(len(norms)) / len(norms)
    axes.plot(np.maximum(np.sort(norms), 1e-6), share, color=colour, linestyle=dashes, label=label)


def _titled(axes: Axes, title: str, along: str) -> None:
    tidy(axes)
    axes.set_title(title, loc="left", fontsize=10, color=INK)
    axes.set_xlabel(along)
