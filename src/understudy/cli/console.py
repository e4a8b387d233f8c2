"""What commands print and where: results on stdout, progress on stderr."""

import json as json_format
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

_PIPE_WIDTH = 120
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Progress = Callable[[str, float], None]


@dataclass(frozen=True, kw_only=True)
class Output:
    """How one command talks: to a person, to a program, or not at all."""

    json: bool = False
    quiet: bool = False

    def say(self, *parts: RenderableType) -> None:
        """Prints text and tables for a person; a program or `--quiet` gets nothing."""
        if not self.json and not self.quiet:
            for part in parts:
                _console().print(_Clean(part), soft_wrap=isinstance(part, str | Text))

    def caution(self, *sentences: str) -> None:
        """Prints what a person should know before something is spent; to standard error, so that results stay apart."""
        if not self.quiet:
            for sentence in sentences:
                error_console().print(_Clean(sentence), soft_wrap=True)

    def result(self, facts: Mapping[str, Any], *parts: RenderableType) -> None:
        """Prints what the command found: `facts` to a program, `parts` to a person."""
        if self.json:
            print(json_format.dumps(plain(facts), indent=2, allow_nan=False), flush=True)
        self.say(*parts)

    def remark(self, text: str) -> None:
        """Prints a line on standard error, beside the result; `--quiet` gets nothing."""
        if not self.quiet:
            error_console().print(clean(text), soft_wrap=True)

    @contextmanager
    def progress(self, *, lines: bool = False) -> Iterator[Progress]:
        """Yields a callback (what is done, share done) for a bar with the time left.

        Args:
            lines: Whether a line is printed now and then where nobody watches a bar.
        """
        from understudy.cli.progress import bar as moving
        from understudy.cli.progress import lines as spoken

        if self.quiet or not (lines or sys.stderr.isatty()):
            yield _silent
            return
        with (moving if sys.stderr.isatty() else spoken)(error_console()) as tell:
            yield tell


def clean(text: str) -> str:
    """Text that moves no cursor and hides nothing: names come from files that anybody may have written."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in text)


@dataclass(frozen=True)
class _Clean:
    """Whatever Rich can print, with its text cleaned and its colours kept."""

    part: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self.part, options):
            yield segment if segment.control else Segment(clean(segment.text), segment.style)


def error_console() -> Console:
    """Standard error; without colours where NO_COLOR is set or nobody is watching."""
    return _console(stderr=True)


def _console(*, stderr: bool = False) -> Console:
    """Prints text as it is: brackets and colons in it are a user's, not mark-up."""
    colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False, color_system=colours)
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    return console


def bold(text: str) -> Text:
    """A line that stands out."""
    return Text(text, style="bold")


def table(*columns: str, title: str | None = None) -> Table:
    """An empty table in the house style; numbers are right-aligned by a leading '>' in a column's name."""
    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in columns:
        made.add_column(column.lstrip(">"), justify="right" if column.startswith(">") else "left")
    return made


def plain(value: Any) -> Any:
    """Values that JSON has: infinities become text, everything unknown its own text."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _silent(stage: str, share: float) -> None:
    """Shows nothing."""
