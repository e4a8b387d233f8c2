"""The figures of reports and audits: real series dashed and grey, synthetic ones solid and coloured."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from understudy.report.drawing import (
    CONTROL,
    FAINT,
    INK,
    PAPER,
    REAL,
    SYNTHETIC,
    Drawing,
    canvas,
    over_epsilon,
    style,
    tidy,
)
from understudy.report.words import figure, printable, share

Portrait = Mapping[str, Any]
Facts = Mapping[str, Any]
Sides = Sequence[tuple[str, Portrait]]  # ("real", …) first where there is one, then ("synthetic", …)
_COLOURS = {"real": REAL, "synthetic": SYNTHETIC}
_DASHES: dict[str, Any] = {"real": (0, (4, 1.6)), "synthetic": "-"}
_MAX_READOUTS = 48
_MAX_ROWS = 25
_DWARFING = 0.4  # share of one bin above which a linear scale hides the rest
# Blue for below zero, orange for above: the pair that every kind of colour vision keeps apart. Not quite the colours of
# curves, which a page exchanges for its own in the dark: a scale stays as it is.
_DIVERGING = LinearSegmentedColormap.from_list("understudy", ["#0171b1", "#f7f7f7", "#d65f01"], N=41)
_DARK_BELOW = -0.6  # blue cells this dark need light letters
_BANDS = {"0.05": "5 %", "0.25": "25 %", "0.5": "median", "0.75": "75 %", "0.95": "95 %"}
_AUDIT_BINS = 24
VARIANTS = {"vanilla": CONTROL, "aware": SYNTHETIC}
_PARTS = {"cond": ("-", "condition"), "other": (":", "rest")}  # of a gradient: line style, name
_MAX_WRITTEN = 6  # more cells a side than this and numbers no longer fit into them


def channel_drawings(name: str, number: int, sides: Sides) -> Iterator[Drawing]:
    """Yields the figures of one channel; `number` keeps their names apart whatever the channel is called."""
    own = [(side, portrait["channels"][name]) for side, portrait in sides]
    if "shares" in own[0][1]:
        yield shares(f"channel-{number}-shares", own, f"How often {printable(name)} takes each category.")
        return
    steps = sides[0][1]["steps"]
    yield _bands(f"channel-{number}-bands", own, steps)
    yield _samples(f"channel-{number}-series", own, steps)
    yield histogram(f"channel-{number}-values", own, "All values; the outer bins hold what lies beyond.")
    if own[0][1]["autocorrelation"]:
        yield _autocorrelation(f"channel-{number}-memory", own)
    if own[0][1]["spectrum"]["power"]:
        yield _spectrum(f"channel-{number}-spectrum", own)


def _bands(name: str, own: Sides, steps: Sequence[int]) -> Drawing:
    with canvas() as (made, axes):
        for side, channel in own:
            bands = {quantile: _floats(line) for quantile, line in channel["bands"].items()}
            axes.fill_between(
                steps, bands["0.25"], bands["0.75"], alpha=0.2, color=_COLOURS[side], linewidth=0, gid=f"{side}-band"
            )
            for outer in ("0.05", "0.95"):
                _line(axes, side, steps, bands[outer], 0.7)
            _line(axes, side, steps, bands["0.5"], 1.6)
        _steps_axis(axes, steps)
    curves = {f"{side} {words}": channel["bands"][q] for side, channel in own for q, words in _BANDS.items()}
    caption = "Over the steps: median (thick), middle half of the series (filled), 5 % and 95 % (thin)."
    medians = {side: channel["bands"]["0.5"] for side, channel in own}
    alternative = _over("Median over the steps", list(medians.items()))
    readouts = _readouts("step", steps, medians)
    return Drawing(name, made, caption, alternative, ("step", *curves), _rows(steps, curves), readouts)


def _samples(name: str, own: Sides, steps: Sequence[int]) -> Drawing:
    """Small multiples on one vertical scale: what single series look like, from the least to the most."""
    number = max(1, *(len(channel["samples"]) for _, channel in own))
    with canvas() as (made, first):
        first.remove()
        edges = {"left": 0.09, "right": 0.98, "bottom": 0.16, "top": 0.92, "hspace": 0.35, "wspace": 0.08}
        grid = made.subplots(number, len(own), sharex=True, sharey="row", squeeze=False, gridspec_kw=edges)
        for column, (side, channel) in enumerate(own):
            for row, axes in enumerate(grid[:, column]):
                tidy(axes)
                axes.grid(visible=False)
                axes.yaxis.set_major_locator(MaxNLocator(2))
                axes.tick_params(labelsize=7.5)
                if row < len(channel["samples"]):
                    _line(axes, side, steps, _floats(channel["samples"][row]), 0.9, dashed=False)
            grid[0, column].set_title(side, fontsize=9, color=_COLOURS[side], loc="left")
            grid[-1, column].set_xlabel("step", color=INK)
            grid[-1, column].xaxis.set_major_locator(MaxNLocator(5, integer=True))
    sides = " and ".join(f"{len(channel['samples'])} {side}" for side, channel in own)
    return Drawing(
        name=name,
        figure=made,
        caption="Single series, at even ranks of their mean, from the least to the most.",
        alternative=f"Line plots of {sides} series over the steps, ordered by their mean.",
    )


def histogram(name: str, own: Sides, caption: str) -> Drawing:
    """Returns the distribution of values as steps over common bins."""
    edges = _floats(own[0][1]["histogram"]["edges"])
    middles = (edges[:-1] + edges[1:]) / 2
    with canvas() as (made, axes):
        for side, channel in own:
            heights = _floats(channel["histogram"]["shares"])
            axes.stairs(heights, edges, fill=True, color=_COLOURS[side], alpha=0.13, gid=f"{side}-fill")
            axes.stairs(heights, edges, color=_COLOURS[side], linewidth=1.4, linestyle=_DASHES[side], gid=side)
        tall = [share for _, channel in own for share in channel["histogram"]["shares"] if share]
        if tall and max(tall) > _DWARFING:  # one bin would dwarf all others
            _log_axis(axes)
            axes.set_ylim(min(tall) / 2, 1)
        else:
            axes.set_ylim(bottom=0)
        axes.set(xlabel="value", ylabel="share")
    curves = {side: channel["histogram"]["shares"] for side, channel in own}
    alternative = "Histogram. " + " ".join(_peak(side, middles, heights) for side, heights in curves.items())
    readouts = _readouts("near", middles, curves)
    return Drawing(name, made, caption, alternative, ("from", *curves), _rows(edges[:-1], curves), readouts)


def _autocorrelation(name: str, own: Sides) -> Drawing:
    lags = np.arange(1, len(own[0][1]["autocorrelation"]) + 1)
    with canvas() as (made, axes):
        axes.axhline(0, color=INK, linewidth=0.6)
        for side, channel in own:
            _line(axes, side, lags, _floats(channel["autocorrelation"]), 1.5)
        _steps_axis(axes, lags, "lag in steps")
        axes.set_ylabel("correlation")
    curves = {side: channel["autocorrelation"] for side, channel in own}
    caption = "Autocorrelation: correlation of a value with the one this many steps later."
    alternative = _over("Autocorrelation over the lags", list(curves.items()))
    readouts = _readouts("lag", lags, curves)
    return Drawing(name, made, caption, alternative, ("lag", *curves), _rows(lags, curves), readouts)


def _spectrum(name: str, own: Sides) -> Drawing:
    frequencies = _floats(own[0][1]["spectrum"]["frequencies"])
    with canvas() as (made, axes):
        for side, channel in own:
            power = _floats(channel["spectrum"]["power"])
            _line(axes, side, frequencies, np.where(power > 0, power, np.nan), 1.4)
        if any(power for _, channel in own for power in channel["spectrum"]["power"]):
            _log_axis(axes)
        axes.set(xlabel="cycles per step", ylabel="share of variance")
    curves = {side: channel["spectrum"]["power"] for side, channel in own}
    what, rows = "cycles per step", _rows([figure(value) for value in frequencies], curves)
    caption = "Power spectrum: how a series' variance spreads over rhythms; peaks are cycles."
    alternative = "Power spectrum. " + " ".join(_peak(side, frequencies, line) for side, line in curves.items())
    return Drawing(name, made, caption, alternative, (what, *curves), rows, _readouts(what, frequencies, curves))


def shares(name: str, own: Sides, caption: str) -> Drawing:
    """Returns bars of category shares, real ones open and synthetic ones filled."""
    names = [printable(category) for category in own[0][1]["categories"]][:_MAX_ROWS]
    places, height = np.arange(len(names), dtype=float), 0.8 / len(own)
    longest = max(len(name) for name in names)
    tall, left = max(130, 60 + 22 * len(names) * len(own) ** 0.5), min(200, 14 + 5.5 * longest)
    with canvas(tall, left=left) as (made, axes):
        for row, (side, column) in enumerate(own):
            widths = _floats(column["shares"])[: len(names)]
            inside = "none" if side == "real" else SYNTHETIC
            kept = places + (row - (len(own) - 1) / 2) * height
            bars = axes.barh(kept, widths, height * 0.86, facecolor=inside, edgecolor=_COLOURS[side], linewidth=1.2)
            for bar in bars:
                bar.set_gid(side)
        axes.set_yticks(places, names)
        axes.invert_yaxis()
        axes.grid(visible=False)
        axes.set(xlim=(0, None), xlabel="share")
    curves = {side: column["shares"][: len(names)] for side, column in own}
    alternative = "Bars of shares. " + "; ".join(_at(label, k, curves) for k, label in enumerate(names)) + "."
    return Drawing(name, made, caption, alternative, ("category", *curves), _rows(names, curves))


def _line(axes: Axes, side: str, x: Any, y: Any, width: float, *, dashed: bool = True) -> None:
    axes.plot(x, y, color=_COLOURS[side], linewidth=width, linestyle=_DASHES[side] if dashed else "-", gid=side)


def _steps_axis(axes: Axes, places: Any, label: str = "step") -> None:
    axes.set_xlabel(label)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.margins(x=0.02)


def _log_axis(axes: Axes) -> None:
    axes.set_yscale("log")
    tidy(axes)
    axes.yaxis.set_minor_locator(NullLocator())


def _readouts(what: str, places: Any, curves: Mapping[str, Sequence[float | None]]) -> list[tuple[float, str]]:
    return [
        (float(places[k]), _at(f"{what} {figure(float(places[k]))}", k, curves))
        for k in _evenly(len(places), _MAX_READOUTS)
    ]


def _at(where: str, place: int, curves: Mapping[str, Sequence[float | None]]) -> str:
    """Says what all curves are at one place."""
    return f"{where}: " + ", ".join(f"{side} {figure(line[place])}".strip() for side, line in curves.items())


def _evenly(number: int, most: int) -> list[int]:
    return [int(k) for k in np.unique(np.linspace(0, number - 1, min(number, most)).round())]


def _rows(places: Sequence[Any] | np.ndarray, curves: Mapping[str, Sequence[float | None]]) -> list[list[str]]:
    """Returns table rows, evenly chosen, few enough for a person to read."""
    labels = [place if isinstance(place, str) else figure(float(place), 4) for place in places]
    return [[labels[k], *(figure(line[k]) for line in curves.values())] for k in _evenly(len(places), _MAX_ROWS)]


def _over(what: str, curves: Sequence[tuple[str, Sequence[float | None]]]) -> str:
    """Says where lines start, end, and lie in between."""
    said = []
    for side, line in curves:
        seen = [value for value in line if value is not None]
        if seen:
            said.append(
                f"{side} lies between {figure(min(seen))} and {figure(max(seen))}, ending at {figure(seen[-1])}"
            )
    return f"{what}: {'; '.join(said) or 'nothing was observed'}."


def _peak(side: str, places: Any, heights: Sequence[float | None]) -> str:
    seen = [height or 0.0 for height in heights]
    best = int(np.argmax(seen))
    return f"{side} peaks near {figure(float(places[best]))} with {figure(seen[best])}."


def _floats(values: Any) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in values], dtype=float)


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
    with canvas(260, left=12) as (made, axes):
        for side, look in looks.items():
            place = np.array(points[side], dtype=float).reshape(-1, 2)
            axes.plot(*place.T, linestyle="none", markeredgewidth=0.8, gid=side, **look)
        axes.set(xticks=[], yticks=[])
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
    with canvas(240) as (made, axes):
        tidy(axes)
        axes.plot(epsilons, table[:, kept], color=SYNTHETIC, linewidth=0.7, alpha=0.35)
        middle = np.median(table[:, kept], axis=1) if kept.any() else np.full(len(epsilons), np.nan)
        axes.plot(epsilons, middle, color=SYNTHETIC, linewidth=2, marker="D", markersize=5)
        for level, words in ((0, "as other real series"), (1, "as no private data")):
            axes.axhline(level, color=INK, linewidth=0.7, linestyle=":")
            axes.annotate(words, (epsilons[0], level), textcoords="offset points", xytext=(0, 3), fontsize=8, color=INK)
        over_epsilon(axes, [float(epsilon) for epsilon in epsilons])
        axes.set(xlabel="epsilon", ylabel="distance from real")
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


def audit_drawings(findings: Sequence[Facts] | None, claimed: float | None) -> list[Drawing]:
    """Returns the pictures of all findings; `claimed` is the certificate's epsilon."""
    found = list(findings or ())
    if not found:
        return []
    made = [_audit_bounds(found, claimed)]
    for number, one in enumerate(found, start=1):
        if "scores" in one:
            made += [_audit_scores(number, one), _audit_curve(number, one)]
    return made


def _audit_bounds(found: Sequence[Facts], claimed: float | None) -> Drawing:
    """What was certified, what could have been, and what is claimed."""
    with canvas(60 + 26 * len(found), left=150) as (made, axes):
        places = np.arange(len(found))[::-1]
        axes.barh(places, [one["ceiling"] or 0.0 for one in found], color=FAINT, height=0.6)
        axes.barh(places, [one["epsilon"] for one in found], color=SYNTHETIC, height=0.35)
        if claimed is not None and np.isfinite(claimed):
            axes.axvline(claimed, color=CONTROL, linestyle="--")
        axes.set_yticks(places, [one["attack"] for one in found])
        axes.set_xlabel("ε")
    rows = [(one["attack"], figure(one["epsilon"]), figure(one["ceiling"])) for one in found]
    return Drawing(
        name="audit-bounds",
        figure=made,
        caption="Certified (orange), the most that this number of runs could certify (grey), claimed (dashed).",
        alternative="; ".join(f"{name}: at least {low}, at most provable {most}" for name, low, most in rows),
        header=("Attack", "ε is at least", "Most it could show"),
        rows=rows,
    )


def _audit_scores(number: int, one: Facts) -> Drawing:
    """Scores of runs with and without the target; those that overlap can't be told apart."""
    absent, present = (np.asarray(one["scores"][arm]) for arm in ("absent", "present"))
    edges = np.histogram_bin_edges(np.concatenate([absent, present]), _AUDIT_BINS)
    with canvas() as (made, axes):
        for scores, colour, hatch in ((absent, REAL, "//"), (present, SYNTHETIC, None)):
            axes.hist(scores, bins=edges.tolist(), histtype="stepfilled", alpha=0.5, color=colour, hatch=hatch)
        axes.set(xlabel="score", ylabel="runs")
    return Drawing(
        name=f"audit-scores-{number}",
        figure=made,
        caption=f"{one['attack']}: scores without the target (grey, hatched) and with it (orange).",
        alternative=" ".join(
            f"Median score {arm}: {figure(float(np.median(scores)))}."
            for arm, scores in (("without the target", absent), ("with it", present))
        ),
    )


def _audit_curve(number: int, one: Facts) -> Drawing:
    """The share of runs with the target that are found, by the share without it that are taken for such."""
    absent, present = (np.sort(np.asarray(one["scores"][arm]))[::-1] for arm in ("absent", "present"))
    thresholds = np.unique(np.concatenate([absent, present]))
    false = np.array([(absent >= at).mean() for at in thresholds])
    true = np.array([(present >= at).mean() for at in thresholds])
    least = 0.5 / len(absent)
    with canvas() as (made, axes):
        axes.plot(np.maximum(false, least), np.maximum(true, least), color=SYNTHETIC, drawstyle="steps-post")
        axes.plot([least, 1], [least, 1], color=INK, linestyle="--", linewidth=0.8)
        axes.set(xscale="log", yscale="log", xlabel="falsely suspected", ylabel="found")
    at = [(level, float(true[false <= level].max(initial=0.0))) for level in (0.001, 0.01, 0.1)]
    return Drawing(
        name=f"audit-curve-{number}",
        figure=made,
        caption=f"{one['attack']}: runs found by runs falsely suspected; guessing is dashed. Logarithmic axes.",
        alternative="; ".join(
            f"{share(found)} found where {share(level)} are falsely suspected" for level, found in at
        ),
        header=("Falsely suspected", "Found"),
        rows=[(share(level), share(found)) for level, found in at],
    )


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
                above = 1 - np.arange(len(values)) / len(values)
                dashes, word = _PARTS[part]
                look: dict[str, Any] = {"linestyle": dashes, "label": f"{variant}, {word}"}
                left.plot(np.maximum(np.sort(values), 1e-6), above, color=VARIANTS[variant], **look)
        left.set(xscale="log", yscale="log")
        titled(left, "share of units whose norm exceeds t", "t")
        for variant, values in kept.items():
            below = np.arange(1, len(values) + 1) / len(values)
            right.plot(np.sort(values), below, color=VARIANTS[variant], label=variant)
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
