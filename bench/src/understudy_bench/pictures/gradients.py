"""Pictures of single units' gradients (DP-aware AdaLN-Zero, Fig. 1 to 5)."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from understudy.report.figures import CONTROL, INK, SYNTHETIC, Drawing, style, tidy

VARIANTS = {"vanilla": CONTROL, "aware": SYNTHETIC}
_PARTS = {"cond": ("-", "condition"), "other": (":", "rest")}  # of a gradient: line style, name


def gradient_tails(norms: Mapping[str, Mapping[str, np.ndarray]], kept: Mapping[str, np.ndarray]) -> Drawing:
    """Returns the share of units whose norm exceeds t, and the distribution of η (DP-aware AdaLN-Zero, Fig. 1 to 5).

    Args:
        norms: By variant and part ("cond", "other"), norms of single units' gradients.
        kept: By variant, what clipping leaves of each.
    """
    with style():
        made = Figure(figsize=(10, 3.6), dpi=72, layout="constrained")
        left, right = made.subplots(1, 2)
        for variant, parts in norms.items():
            for part, values in parts.items():
                dashes, word = _PARTS[part]
                shown = left.ecdf(np.maximum(values, 1e-6), complementary=True, color=VARIANTS[variant])
                shown.set(linestyle=dashes, label=f"{variant}, {word}")
        left.set(xscale="log", yscale="log")
        titled(left, "share of units whose norm exceeds t", "t")
        for variant, values in kept.items():
            right.ecdf(values, color=VARIANTS[variant], label=variant)
        titled(right, "share of units of which clipping leaves at most η", "η")
        made.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    table = [
        [variant, part, *(f"{np.quantile(values, level):.3g}" for level in (0.5, 0.95, 0.99))]
        for variant, parts in norms.items()
        for part, values in parts.items()
    ]
    return Drawing(
        name="gradient-tails",
        figure=made,
        caption="Norms of single units' gradients in training on public series. Blue: without bounds.",
        alternative="Tails of norms. " + "; ".join(" ".join(row) for row in table) + ".",
        header=("variant", "part", "median", "95 %", "99 %"),
        rows=table,
    )


def titled(axes: Axes, title: str, along: str) -> None:
    """Gives axes a title and a label in the house style."""
    tidy(axes)
    axes.set_title(title, loc="left", fontsize=10, color=INK)
    axes.set_xlabel(along)
