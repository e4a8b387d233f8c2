"""One figure with everything that stands in for it: caption, text alternative, table; and its form inside a page.

Figures are drawn once and used three times: inlined in the report, and saved as SVG and PNG for papers.
"""

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from understudy.report import words

# Hues that stay apart for every kind of colour vision, and in grey (Okabe and Ito 2008).
REAL, SYNTHETIC, CONTROL = "#4d4d4d", "#d55e00", "#0072b2"
INK, FAINT, PAPER = "#222222", "#d0d0d0", "#fefefe"
_VARIABLES = {
    REAL: "var(--real)",
    SYNTHETIC: "var(--synthetic)",
    CONTROL: "var(--control)",
    INK: "currentColor",
    FAINT: "var(--rule)",
    PAPER: "var(--paper)",
}
_SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "understudy",
    "text.parse_math": False,  # names are a user's: "$" is a dollar
    "axes.unicode_minus": True,
    "font.size": 9.5,
    "hatch.linewidth": 0.8,
}
_SVG, _LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
_DROPPED = {"font-family", "stroke-linejoin", "stroke-linecap", "stroke-dashoffset"}
_WIDTH = 360
_CURVES = ("real", "synthetic", "control")


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure and its stand-ins.

    Attributes:
        name: Unique within a page; also the name of its files.
        alternative: What the figure shows, for readers who can't see it.
        header, rows: The same as a table; no rows where a table would not help.
        readouts: (place on the first horizontal axis, text to show when a pointer is there).
    """

    name: str
    figure: Figure
    caption: str
    alternative: str
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    readouts: Sequence[tuple[float, str]] = ()

    def svg(self) -> str:
        """Returns mark-up for a page: no inline style, colours of the page, names that clash with no other figure."""
        text = io.StringIO()
        with style(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # letters that matplotlib's own font lacks; the page's font has them
            self.figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
        root = ElementTree.fromstring(text.getvalue())
        for unwanted in root.findall(f"{_SVG}metadata"):
            root.remove(unwanted)
        for element in root.iter():
            _settle(element, self.name)
        for element in root.iter(f"{_SVG}g"):
            _hoist(element)
        root.extend(self._hits())
        root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": self.alternative}
        return _compact(ElementTree.tostring(root, encoding="unicode"))

    def save(self, folder: Path) -> list[Path]:
        """Writes NAME.svg and NAME.png."""
        FigureCanvasAgg(self.figure)
        paths = [folder / f"{self.name}.svg", folder / f"{self.name}.png"]
        with style(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.figure.savefig(paths[0], format="svg", metadata={"Date": None, "Creator": None})
            self.figure.savefig(paths[1], format="png", dpi=220)
        return paths

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
            ElementTree.SubElement(group, f"{_SVG}text", {"x": f"{box.x0:.1f}", "y": "10"}).text = text
            yield group


@contextmanager
def style() -> Iterator[None]:
    """Draws in the house style inside the block."""
    with matplotlib.rc_context(_SETTINGS):
        yield


@contextmanager
def canvas(height: float = 210, *, left: float = 50) -> Iterator[tuple[Figure, Axes]]:
    """Yields a figure 360 points wide with one tidy set of axes, below a line that is kept free for readouts."""
    with style():
        figure = Figure(figsize=(_WIDTH / 72, height / 72), dpi=72)
        axes = figure.add_axes((left / _WIDTH, 34 / height, (_WIDTH - left - 8) / _WIDTH, (height - 52) / height))
        tidy(axes)
        yield figure, axes


def over_epsilon(axes: Axes, epsilons: Sequence[float]) -> None:
    """Makes the horizontal axis one of epsilon, with a label for each that was tried."""
    axes.set_xscale("log")
    axes.set_xticks(epsilons, [words.figure(epsilon) for epsilon in epsilons])
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
        axis.set_major_formatter(FuncFormatter(lambda value, _: words.figure(value)))


def _settle(element: ElementTree.Element, name: str) -> None:
    """Turns inline styles into attributes, marks curves by whose they are, and makes names the figure's own."""
    given: dict[str, Any] = dict(element.attrib)
    for part in given.pop("style", "").split(";"):
        key, _, value = part.partition(":")
        if value and key.strip() not in _DROPPED:
            given[key.strip()] = _VARIABLES.get(value.strip(), value.strip())
    label = given.pop("id", None)
    if label is not None:
        owner = next((curve for curve in _CURVES if label.startswith(curve)), None)
        if owner is not None:
            given["class"] = owner
        elif element.tag in (f"{_SVG}path", f"{_SVG}clipPath"):
            given["id"] = f"{name}-{label}"
    if _LINK in given:
        given["href"] = f"#{name}-{given.pop(_LINK)[1:]}"
    if "clip-path" in given:
        given["clip-path"] = given["clip-path"].replace("#", f"#{name}-")
    if "d" in given:
        given["d"] = _shorter(given["d"])
    if str(given.get("transform", "")).startswith("rotate(-0 "):
        del given["transform"]
    element.attrib = given
    for child in [child for child in element if child.tag == f"{_SVG}style"]:
        element.remove(child)


def _shorter(path: str) -> str:
    """Returns the same path in tenths of a point; after a place, further places need no letter to be lines."""
    path = re.sub(r"-?\d+\.\d+", lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), path)
    return re.sub(r"\s+", " ", path if re.search("[CQ]", path) else path.replace("L", "")).strip()


def _hoist(group: ElementTree.Element) -> None:
    """Says once for a group of markers what all of them share."""
    markers = list(group)
    if len(markers) < 2 or any(marker.tag != f"{_SVG}use" for marker in markers):
        return
    shared = {k: v for k, v in markers[0].attrib.items() if k not in ("x", "y", "href")}
    if not all(shared.items() <= marker.attrib.items() for marker in markers):
        return
    group.attrib |= shared
    for marker in markers:
        marker.attrib = {k: f"{float(v):.1f}" if k in "xy" else v for k, v in marker.items() if k not in shared}


def _compact(text: str) -> str:
    """Drops name space prefixes, which HTML does not need, empty groups and white space between tags."""
    text = re.sub(r' xmlns(:\w+)?="[^"]*"', "", text).replace("<ns0:", "<").replace("</ns0:", "</")
    text = re.sub(r">\s+<", "><", text)
    return re.sub(r"<defs\s*/>|<defs></defs>", "", text)
