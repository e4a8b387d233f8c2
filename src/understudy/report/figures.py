"""The figures of reports and audits: real series dashed and grey, synthetic ones solid and coloured.

A figure is drawn once and used three times: inlined in the report, and saved as SVG and PNG for papers.
"""

import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from understudy.evaluation.words import figure, printable, share

# Hues that stay apart for every kind of colour vision, and in grey (Okabe and Ito 2008).
REAL, SYNTHETIC, CONTROL = "#4d4d4d", "#d55e00", "#0072b2"
INK, FAINT, PAPER = "#222222", "#d0d0d0", "#fefefe"
_VARIABLES = {name: f"var(--{kind})" for name, kind in ((REAL, "real"), (SYNTHETIC, "synthetic"), (CONTROL, "control"))}
_VARIABLES |= {INK: "currentColor", FAINT: "var(--rule)", PAPER: "var(--paper)"}
_SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "understudy",
    "text.parse_math": False,  # names are a user's: "$" is a dollar
    "axes.unicode_minus": True,
    "font.size": 12.5,
    "hatch.linewidth": 0.8,
}
_UNDATED = {"Date": None, "Creator": None}
style = partial(matplotlib.rc_context, _SETTINGS)  # draws in the house style inside the block
_SVG, _LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
ElementTree.register_namespace("", _SVG[1:-1])  # HTML knows the tags without a prefix only
_DROPPED = {"font-family", "stroke-linejoin", "stroke-linecap", "stroke-dashoffset"}
_WIDTH, _HEIGHT = 360, 230  # points
_CURVES = ("real", "synthetic", "control")


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure, with its caption, text alternative and table."""

    name: str  # unique within a page; also the name of its files
    figure: Figure
    caption: str
    alternative: str  # what the figure shows, for readers who can't see it
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()  # none where a table would not help
    readouts: Sequence[tuple[float, str]] = ()  # place on the first horizontal axis, text to show at a pointer there
    plane: bool = False  # points whose two axes have no labels; they are zoomed together

    def svg(self) -> str:
        """Returns mark-up for a page: no inline style, colours of the page, names that clash with no other figure."""
        text = io.StringIO()
        self._write(text, format="svg", transparent=True, metadata=_UNDATED)
        root = ElementTree.fromstring(text.getvalue())
        for unwanted in root.findall(f"{_SVG}metadata"):
            root.remove(unwanted)
        for element in root.iter():
            _settle(element, self.name)
        root.extend(self._hits())
        named = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": self.alternative}
        root.attrib = named | self._zoomable()
        return re.sub(r">\s+<", "><", ElementTree.tostring(root, encoding="unicode"))

    def save(self, folder: Path) -> list[Path]:
        """Writes NAME.svg and NAME.png."""
        FigureCanvasAgg(self.figure)
        paths = [folder / f"{self.name}.svg", folder / f"{self.name}.png"]
        self._write(paths[0], format="svg", metadata=_UNDATED)
        self._write(paths[1], format="png", dpi=220)
        return paths

    def _write(self, target: Any, **options: Any) -> None:
        with style(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # letters that matplotlib's own font lacks; the page's font has them
            self.figure.savefig(target, **options)

    def _zoomable(self) -> dict[str, str]:
        """Returns where the axes are and what they span, for the script of an interactive page."""
        if not self.readouts and not self.plane:
            return {}
        axes, height = self.figure.axes[0], self.figure.bbox.height
        box, domain = axes.get_window_extent(), axes.get_xlim()
        found = {"data-box": f"{box.x0:.1f} {height - box.y1:.1f} {box.x1:.1f} {height - box.y0:.1f}"}
        kinds = {"calendar": isinstance(axes.xaxis.get_major_formatter(), ConciseDateFormatter), "plane": self.plane}
        found |= {f"data-{kind}": "" for kind, there in kinds.items() if there}
        return found | {"data-domain": f"{domain[0]:.10g} {domain[1]:.10g}"}

    def _hits(self) -> Iterator[ElementTree.Element]:
        """Yields invisible strips, one for each readout, which show a line and a text under the pointer."""
        if not self.readouts:
            return
        axes = self.figure.axes[0]
        box, height = axes.get_window_extent(), self.figure.bbox.height
        places = [float(axes.transData.transform((place, axes.get_ylim()[0]))[0]) for place, _ in self.readouts]
        borders = [box.x0, *((a + b) / 2 for a, b in pairwise(places)), box.x1]
        top, bottom = height - box.y1, height - box.y0
        for place, left, right, (_, text) in zip(places, borders[:-1], borders[1:], self.readouts, strict=True):
            group = ElementTree.Element(f"{_SVG}g", {"class": "hit"})
            size = {"x": left, "y": 0.0, "width": right - left, "height": bottom}
            ElementTree.SubElement(group, f"{_SVG}rect", {name: f"{value:.1f}" for name, value in size.items()})
            ElementTree.SubElement(group, f"{_SVG}path", {"d": f"M{place:.1f} {top:.1f}V{bottom:.1f}"})
            ElementTree.SubElement(group, f"{_SVG}text", {"x": "4", "y": "12"}).text = text
            yield group


@contextmanager
def canvas(height: float = _HEIGHT, *, left: float = 72) -> Iterator[tuple[Figure, Axes]]:
    """Yields a figure 360 points wide with one tidy set of axes, below a line that is kept free for readouts."""
    with style():
        figure = Figure(figsize=(_WIDTH / 72, height / 72), dpi=72)
        axes = figure.add_axes((left / _WIDTH, 42 / height, (_WIDTH - left - 20) / _WIDTH, (height - 60) / height))
        tidy(axes)
        yield figure, axes


def over_epsilon(axes: Axes, epsilons: Sequence[float]) -> None:
    """Makes the horizontal axis one of epsilon, with a label for each that was tried."""
    axes.set_xscale("log")
    axes.set_xticks(epsilons, [figure(epsilon) for epsilon in epsilons])
    axes.set_xticks([], minor=True)


def tidy(axes: Axes) -> None:
    """Takes away what carries no information."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(color=FAINT, labelcolor=INK, length=3)
    axes.grid(axis="y", color=FAINT, linewidth=0.5)
    axes.set_axisbelow(True)
    for axis in (axes.xaxis, axes.yaxis):
        axis.label.set_color(INK)
        axis.set_major_formatter(FuncFormatter(lambda value, _: figure(value)))


def _settle(element: ElementTree.Element, name: str) -> None:
    """Turns inline styles into attributes, marks curves by whose they are, and makes names the figure's own."""
    given: dict[str, Any] = dict(element.attrib)
    for part in given.pop("style", "").split(";"):
        key, _, value = part.partition(":")
        if value and key.strip() not in _DROPPED:
            given[key.strip()] = _VARIABLES.get(value.strip(), value.strip())
    label = given.pop("id", None)
    if label is not None:
        owner = next((kind for kind in (*_CURVES, "xtick") if label.startswith(kind)), None)
        if owner is not None:
            given["class"] = owner
        elif element.tag in (f"{_SVG}path", f"{_SVG}clipPath"):
            given["id"] = f"{name}-{label}"
    if _LINK in given:
        given["href"] = f"#{name}-{given.pop(_LINK)[1:]}"
    if "clip-path" in given:
        given["clip-path"] = given["clip-path"].replace("#", f"#{name}-")
    if given.get("transform", "").startswith("rotate(-0 "):
        del given["transform"]
    for key in {"d", "x", "y", "transform"} & given.keys():
        given[key] = _shorter(given[key])
    element.attrib = given
    for child in [child for child in element if child.tag == f"{_SVG}style"]:
        element.remove(child)


def _shorter(path: str) -> str:
    """Returns the same path in tenths of a point; after a place, further places need no letter to be lines."""
    path = re.sub(r"-?\d+\.\d+", lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), path)
    return re.sub(r"\s+", " ", path if re.search("[CQ]", path) else path.replace("L", "")).strip()


Curve = Sequence[float | None]
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
_MAX_WRITTEN = 6  # more cells a side than this and numbers no longer fit into them


@dataclass(frozen=True)
class Along:
    """What figures have along their horizontal axis: steps, as times where all series share a calendar."""

    places: np.ndarray  # where the shown steps are on the axis
    names: Sequence[str]  # each of them in words
    label: str
    step: float | None  # seconds of a step; None where steps differ, as months do

    @classmethod
    def of(cls, portrait: Portrait) -> "Along":
        """Returns the axis of a portrait."""
        steps, step = portrait["steps"], portrait["step_seconds"]
        if portrait["times"] is None:
            return cls(np.array(steps, dtype=float), [f"step {k}" for k in steps], "step", step)
        times = [datetime.fromisoformat(text) for text in portrait["times"]]
        daily = all((time.hour, time.minute, time.second) == (0, 0, 0) for time in times)
        names = [f"{time:%a} {time.day} {time:%b %Y}" + ("" if daily else f", {time:%H:%M}") for time in times]
        label = " to ".join(dict.fromkeys(f"{time.day} {time:%b %Y}" for time in (times[0], times[-1])))
        label += "" if portrait["zone"] is None else f", {portrait['zone']}"
        return cls(np.asarray(date2num(times), dtype=float), names, label, step)

    def settle(self, axes: Axes, most: int = 6) -> None:
        """Gives axes ticks at round steps, or at round dates."""
        axes.set_xlabel(self.label)
        axes.margins(x=0.02)
        if self.label == "step":
            axes.xaxis.set_major_locator(MaxNLocator(most, integer=True))
        else:
            locator = AutoDateLocator(minticks=3, maxticks=most)
            axes.xaxis.set_major_locator(locator)
            axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, **_DATES, show_offset=False))

    def span(self, steps: float) -> str:
        """Returns a number of steps in words, with the time it takes."""
        said = f"{figure(steps)} step{'' if steps == 1 else 's'}"
        if self.step is None:
            return said
        seconds = steps * self.step
        unit, size = next((unit, size) for unit, size, least in _UNITS if seconds >= least)
        return f"{said} ({figure(seconds / size)} {unit})"


_DATES: Any = {  # of ticks by the distance between them, and where a larger unit begins
    "formats": ["%Y", "%b", "%d %b", "%H:%M", "%H:%M", "%S.%f"],
    "zero_formats": ["", "%Y", "%d %b", "%d %b", "%H:%M", "%H:%M"],
}
_UNITS = (("days", 86400.0, 172800.0), ("h", 3600.0, 3600.0), ("min", 60.0, 60.0), ("s", 1.0, 0.0))  # from seconds on


def channel_drawings(name: str, number: int, sides: Sides) -> Iterator[Drawing]:
    """Yields the figures of one channel; `number` keeps their names apart whatever the channel is called."""
    own = [(side, portrait["channels"][name]) for side, portrait in sides]
    if "shares" in own[0][1]:
        yield shares(f"channel-{number}-shares", own, f"Category frequencies of {printable(name)}.")
        return
    along = Along.of(sides[0][1])
    yield _bands(f"channel-{number}-bands", own, along)
    yield _samples(f"channel-{number}-series", own, along)
    yield histogram(
        f"channel-{number}-values", own, "Marginal distribution of all values; the outer bins hold what lies beyond."
    )
    if own[0][1]["autocorrelation"]:
        yield _autocorrelation(f"channel-{number}-memory", own, along)
    if own[0][1]["spectrum"]["power"]:
        yield _spectrum(f"channel-{number}-spectrum", own, along)


def _bands(name: str, own: Sides, along: Along) -> Drawing:
    def draw(axes: Axes) -> None:
        for side, channel in own:
            bands = {quantile: _floats(line) for quantile, line in channel["bands"].items()}
            look: dict[str, Any] = {"alpha": 0.2, "color": _COLOURS[side], "linewidth": 0, "gid": f"{side}-band"}
            axes.fill_between(along.places, bands["0.25"], bands["0.75"], **look)
            for quantile, width in (("0.05", 0.7), ("0.95", 0.7), ("0.5", 1.6)):
                _line(axes, side, along.places, bands[quantile], width)
        along.settle(axes)

    medians = {side: channel["bands"]["0.5"] for side, channel in own}
    caption = "Quantile bands over time: median (thick), interquartile range (filled), 5 % and 95 % (thin)."
    drawn = _curves(name, along.places, along.names, medians, caption, "Median", draw)
    curves = {f"{side} {words}": channel["bands"][q] for side, channel in own for q, words in _BANDS.items()}
    return replace(drawn, header=(along.label, *curves), rows=_rows(along.names, curves))


def _samples(name: str, own: Sides, along: Along) -> Drawing:
    """Small multiples on one vertical scale: what single series look like, from the least to the most."""
    number = max(1, *(len(channel["samples"]) for _, channel in own))
    with style():
        made = Figure(figsize=(_WIDTH / 72, _HEIGHT / 72), dpi=72)
        edges = {"left": 0.1, "right": 0.98, "bottom": 0.17, "top": 0.92, "hspace": 0.4, "wspace": 0.18}
        grid = made.subplots(number, len(own), sharex=True, sharey="row", squeeze=False, gridspec_kw=edges)
        for column, (side, channel) in enumerate(own):
            for row, axes in enumerate(grid[:, column]):
                tidy(axes)
                axes.grid(visible=False)
                axes.yaxis.set_major_locator(MaxNLocator(2))
                axes.tick_params(labelsize=10)
                if row < len(channel["samples"]):
                    _line(axes, side, along.places, _floats(channel["samples"][row]), 0.9, dashed=False)
            grid[0, column].set_title(side, fontsize=11, color=_COLOURS[side], loc="left")
            along.settle(grid[-1, column], most=4)
            grid[-1, column].set_xlabel("")  # two of them collide
    sides = " and ".join(f"{len(channel['samples'])} {side}" for side, channel in own)
    alternative = f"Line plots of {sides} series over the steps, ordered by their mean."
    return Drawing(name, made, "Single series, at even ranks of their mean, from the least to the most.", alternative)


def histogram(name: str, own: Sides, caption: str) -> Drawing:
    """Returns the distribution of values as steps over common bins."""
    edges = _floats(own[0][1]["histogram"]["edges"])
    curves = {side: channel["histogram"]["shares"] for side, channel in own}

    def draw(axes: Axes) -> None:
        for side, heights in curves.items():
            axes.stairs(_floats(heights), edges, fill=True, color=_COLOURS[side], alpha=0.13, gid=f"{side}-fill")
            axes.stairs(_floats(heights), edges, color=_COLOURS[side], linewidth=1.4, linestyle=_DASHES[side], gid=side)
        tall = [share for heights in curves.values() for share in heights if share]
        if tall and max(tall) > _DWARFING:  # one bin would dwarf all others
            _logarithmic(axes, "y")
            axes.set_ylim(min(tall) / 2, 1)
        else:
            axes.set_ylim(bottom=0)
        axes.set(xlabel="value", ylabel="share")

    names = [f"{figure(low)} to {figure(high)}" for low, high in pairwise(edges.tolist())]
    drawn = _curves(name, (edges[:-1] + edges[1:]) / 2, names, curves, caption, "Share of values", draw)
    return replace(drawn, header=("values", *curves))


def _autocorrelation(name: str, own: Sides, along: Along) -> Drawing:
    curves = {side: channel["autocorrelation"] for side, channel in own}
    lags = np.arange(1, len(own[0][1]["autocorrelation"]) + 1)

    def draw(axes: Axes) -> None:
        axes.axhline(0, color=INK, linewidth=0.6)
        for side, line in curves.items():
            _line(axes, side, lags, _floats(line), 1.5)
        axes.set(xlabel="lag in steps", ylabel="correlation")
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.margins(x=0.02)

    caption = "Autocorrelation function (ACF): correlation of a value with the one this many steps later."
    return _curves(
        name, lags, [f"a lag of {along.span(int(lag))}" for lag in lags], curves, caption, "Autocorrelation", draw
    )


def _spectrum(name: str, own: Sides, along: Along) -> Drawing:
    curves = {side: channel["spectrum"]["power"] for side, channel in own}
    frequencies = _floats(own[0][1]["spectrum"]["frequencies"])

    def draw(axes: Axes) -> None:
        for side, line in curves.items():
            power = _floats(line)
            _line(axes, side, frequencies, np.where(power > 0, power, np.nan), 1.4)
        if any(power for line in curves.values() for power in line):
            _logarithmic(axes, "y")
        axes.set(xlabel="cycles per step", ylabel="share of variance")

    caption = "Power spectral density (PSD): how a series' variance spreads over frequencies; peaks are cycles."
    names = [f"a period of {along.span(1 / frequency)}" for frequency in frequencies]
    return _curves(name, frequencies, names, curves, caption, "Share of variance", draw)


def shares(name: str, own: Sides, caption: str) -> Drawing:
    """Returns bars of category shares, real ones open and synthetic ones filled."""
    names = [printable(category) for category in own[0][1]["categories"]][:_MAX_ROWS]
    places, height = np.arange(len(names), dtype=float), 0.8 / len(own)
    longest = max(len(name) for name in names)
    tall, left = max(130, 60 + 22 * len(names) * len(own) ** 0.5), min(200, 20 + 7 * longest)
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


def _curves(
    name: str,
    places: np.ndarray,
    names: Sequence[str],
    curves: Mapping[str, Curve],
    caption: str,
    what: str,
    draw: Callable[[Axes], None],
) -> Drawing:
    """Returns a figure of curves with their table, what a pointer reads out, and where they lie in words."""
    with canvas() as (made, axes):
        draw(axes)
    said = []
    for side, line in curves.items():
        seen = [(value, place) for value, place in zip(line, names, strict=True) if value is not None]
        if seen:
            (least, _), (most, where) = min(seen), max(seen)
            said.append(f"{side} lies between {figure(least)} and {figure(most)}, highest at {where}")
    readouts = [(float(places[k]), _at(f"{what} at {names[k]}", k, curves)) for k in _evenly(len(names), _MAX_READOUTS)]
    alternative = f"{what}: {'; '.join(said) or 'nothing was observed'}."
    return Drawing(name, made, caption, alternative, ("at", *curves), _rows(names, curves), readouts)


def _line(axes: Axes, side: str, x: Any, y: Any, width: float, *, dashed: bool = True) -> None:
    axes.plot(x, y, color=_COLOURS[side], linewidth=width, linestyle=_DASHES[side] if dashed else "-", gid=side)


def _logarithmic(axes: Axes, *sides: str) -> None:
    axes.set(**{f"{side}scale": "log" for side in sides})
    tidy(axes)  # a new scale comes with labels of its own
    for side in sides:
        getattr(axes, f"{side}axis").set_minor_locator(NullLocator())


def _at(where: str, place: int, curves: Mapping[str, Curve]) -> str:
    """Says what all curves are at one place."""
    return f"{where}: " + ", ".join(f"{side} {figure(line[place])}".strip() for side, line in curves.items())


def _evenly(number: int, most: int) -> list[int]:
    return [int(k) for k in np.unique(np.linspace(0, number - 1, min(number, most)).round())]


def _rows(names: Sequence[str], curves: Mapping[str, Curve]) -> list[list[str]]:
    """Returns table rows, evenly chosen, few enough for a person to read."""
    at = _evenly(len(names), _MAX_ROWS)
    return [[names[k], *(figure(line[k]) for line in curves.values())] for k in at]


def _floats(values: Any) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def heat_maps(sides: Sides) -> list[Drawing]:
    """Returns a heat map for each side and, with two sides, one of their difference."""
    shown = sides[0][1]["correlation"]
    if len(shown["names"]) < 2:
        return []
    labels = [printable(name) for name in shown["names"]]
    tables = {side: np.stack([_floats(row) for row in portrait["correlation"]["matrix"]]) for side, portrait in sides}
    if len(tables) == 2:
        tables["difference"] = tables["synthetic"] - tables["real"]
    what = "channels" if shown["of"] == "channels" else "means of stretches of steps (named by their first step)"
    return [_heat_map(side, table, labels, what) for side, table in tables.items()]


def _heat_map(side: str, table: np.ndarray, labels: list[str], what: str) -> Drawing:
    with style():
        made = Figure(figsize=(5, 4), dpi=72, layout="constrained")
        axes = made.subplots()
        cells = axes.pcolormesh(table, cmap=_DIVERGING, vmin=-1, vmax=1, edgecolors=PAPER, linewidth=1)
        places, crowded = np.arange(len(labels)) + 0.5, len(labels) > _MAX_WRITTEN or max(map(len, labels)) > 12
        axes.set_xticks(places, labels, rotation=45 if crowded else 0, ha="right" if crowded else "center")
        axes.set_yticks(places, labels)
        axes.invert_yaxis()
        axes.tick_params(length=0, labelcolor=INK)
        axes.spines[:].set_visible(False)
        if len(labels) <= _MAX_WRITTEN:
            for (row, column), value in np.ndenumerate(table):
                ink = "#ffffff" if value < _DARK_BELOW else "#111111"
                axes.text(column + 0.5, row + 0.5, _cell(value), ha="center", va="center", color=ink)
        bar = made.colorbar(cells, ax=axes, shrink=0.9, ticks=[-1, 0, 1])
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelcolor=INK, length=0)
    more = ", synthetic minus real" if side == "difference" else ""
    title = f"Pearson correlations between {what}: {side}{more}."
    rows = [[label, *(_cell(value) for value in row)] for label, row in zip(labels, table, strict=True)]
    alternative = f"Heat map. {title} Its table holds the numbers."
    return Drawing(f"correlation-{side}", made, title, alternative, ("", *labels), rows)


def clouds(embedding: Mapping[str, Any]) -> list[Drawing]:
    """Returns principal components and t-SNE: one point is one series."""
    first, second = [*embedding["explained"], None, None][:2]
    explained = f" The two components hold {share(first)} and {share(second)} of the variance."
    return [
        _cloud("pca", embedding["pca"], "PCA", explained),
        _cloud("tsne", embedding["tsne"], "t-SNE", " Near points are alike; distances between groups mean little."),
    ]


def _cloud(name: str, points: Mapping[str, Sequence[Sequence[float]]], title: str, more: str) -> Drawing:
    looks: dict[str, Any] = {
        "real": {"marker": "o", "markerfacecolor": "none", "markeredgecolor": REAL, "markersize": 4},
        "synthetic": {"marker": "+", "markeredgecolor": SYNTHETIC, "markersize": 5},
    }
    said = []
    with canvas(260, left=12) as (made, axes):
        for side, look in looks.items():
            place = np.array(points[side], dtype=float).reshape(-1, 2)
            axes.plot(*place.T, linestyle="none", markeredgewidth=0.8, gid=side, **look)
            if len(place):
                low, high = np.quantile(place, (0.25, 0.75), axis=0)
                across, up = (f"between {figure(low[k])} and {figure(high[k])}" for k in (0, 1))
                said.append(f"The middle half of the {side} points lies {across} across and {up} up.")
        axes.set(xticks=[], yticks=[])
        axes.grid(visible=False)
    sizes = " and ".join(f"{len(points[side])} {side}" for side in looks)
    caption = f"{title}: one point is one series. Where the clouds part, synthetic series differ.{more}"
    return Drawing(name, made, caption, f"Scatter plot, {title}, of {sizes} series. {' '.join(said)}", plane=True)


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
        axes.plot(epsilons, table[:, kept], color=SYNTHETIC, linewidth=0.7, alpha=0.35)
        middle = np.median(table[:, kept], axis=1) if kept.any() else np.full(len(epsilons), np.nan)
        axes.plot(epsilons, middle, color=SYNTHETIC, linewidth=2, marker="D", markersize=5)
        for level, words in ((0, "as held-out real series"), (1, "as no private data")):
            axes.axhline(level, color=INK, linewidth=0.7, linestyle=":")
            axes.annotate(words, (epsilons[0], level), textcoords="offset points", xytext=(0, 3), fontsize=8, color=INK)
        over_epsilon(axes, [float(epsilon) for epsilon in epsilons])
        axes.set(xlabel="epsilon", ylabel="distance from real")
    said = "; ".join(f"epsilon {figure(e)}: {figure(float(m))}" for e, m in zip(epsilons, middle, strict=True))
    caption = (
        "Utility against ε: 0 is as good as held-out real series, 1 no better than without private data. Thin lines "
        "are single metrics, the thick one their median."
    )
    alternative = f"Median distance from real, on a scale where 1 is the control. {said}."
    shown = ((title, column) for title, column, known in zip(titles, table.T, kept, strict=True) if known)
    rows = [[printable(title), *(figure(float(value)) for value in column)] for title, column in shown]
    header = ("metric", *(f"epsilon {figure(epsilon)}" for epsilon in epsilons))
    return Drawing("utility-epsilon", made, caption, alternative, header, rows)


def _cell(value: float) -> str:
    return figure(None if np.isnan(value) else round(float(value), 2), 2)


def audit_drawings(findings: Sequence[Facts] | None, claimed: float | None) -> list[Drawing]:
    """Returns the pictures of all findings; `claimed` is the certificate's epsilon."""
    scored = [(number, one) for number, one in enumerate(findings or (), start=1) if "scores" in one]
    pairs = [draw(number, one) for number, one in scored for draw in (_audit_scores, _audit_curve)]
    return [_audit_bounds(findings, claimed), *pairs] if findings else []


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
    caption = "Lower bounds on ε: found (orange), largest provable by this number of runs (grey), claimed (dashed)."
    alternative = "; ".join(f"{name}: at least {low}, at most provable {most}" for name, low, most in rows)
    header = ("Attack", "Lower bound on ε", "Largest provable bound")
    return Drawing("audit-bounds", made, caption, alternative, header, rows)


def _audit_scores(number: int, one: Facts) -> Drawing:
    """Scores of runs with and without the target; those that overlap can't be told apart."""
    absent, present = (np.asarray(one["scores"][arm]) for arm in ("absent", "present"))
    edges = np.histogram_bin_edges(np.concatenate([absent, present]), _AUDIT_BINS)
    with canvas() as (made, axes):
        for scores, colour, hatch in ((absent, REAL, "//"), (present, SYNTHETIC, None)):
            axes.hist(scores, bins=edges.tolist(), histtype="stepfilled", alpha=0.5, color=colour, hatch=hatch)
        axes.set(xlabel="score", ylabel="runs")
    medians = (figure(float(np.median(scores))) for scores in (absent, present))
    caption = f"{one['attack']}: membership scores without the target (grey, hatched) and with it (orange)."
    alternative = "Median score without the target: {}. Median score with it: {}.".format(*medians)
    return Drawing(f"audit-scores-{number}", made, caption, alternative)


def _audit_curve(number: int, one: Facts) -> Drawing:
    """The ROC curve: the share of runs with the target that are found, by the share without it taken for such."""
    from sklearn.metrics import roc_curve

    absent, present = (one["scores"][arm] for arm in ("absent", "present"))
    labels = np.repeat([0, 1], [len(absent), len(present)])
    false, true, _ = roc_curve(labels, np.concatenate([absent, present]), drop_intermediate=False)
    least = 0.5 / len(absent)
    with canvas() as (made, axes):
        axes.plot(np.maximum(false, least), np.maximum(true, least), color=SYNTHETIC, drawstyle="steps-post")
        axes.plot([least, 1], [least, 1], color=INK, linestyle="--", linewidth=0.8)
        _logarithmic(axes, "x", "y")
        axes.set(xlabel="false-positive rate", ylabel="true-positive rate")
    at = [(level, float(true[false <= level].max(initial=0.0))) for level in (0.001, 0.01, 0.1)]
    caption = f"{one['attack']}: ROC curve of the membership-inference attack; guessing is dashed. Logarithmic axes."
    rows = [(share(level), share(found)) for level, found in at]
    alternative = "; ".join(f"{found} true at {level} false positives" for level, found in rows)
    header = ("False-positive rate", "True-positive rate")
    return Drawing(f"audit-curve-{number}", made, caption, alternative, header, rows)
