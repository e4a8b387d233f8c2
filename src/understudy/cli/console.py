"""What commands print and where: results on stdout; progress, cautions and errors on stderr."""

import inspect
import json as json_format
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, Literal, get_type_hints

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from understudy.display import table as table

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Progress = Callable[[str, float], None]
LINE_SECONDS = 10.0
_PIPE_WIDTH = 120
_LEAST_SHARE = 0.01  # before that, the work done says nothing about the rest


@dataclass(frozen=True, kw_only=True)
class Output:
    """How one command talks: to a person, to a program, or not at all."""

    json: Json = False
    quiet: Quiet = False

    def say(self, *parts: RenderableType) -> None:
        """Prints text and tables for a person; nothing for a program or with `--quiet`."""
        if not self.json and not self.quiet:
            for part in parts:
                _console().print(_Clean(part), soft_wrap=isinstance(part, str | Text))

    def caution(self, *sentences: str) -> None:
        """Prints sentences on standard error; nothing with `--quiet`."""
        if not self.quiet:
            for sentence in sentences:
                error_console().print(_Clean(sentence), soft_wrap=True)

    def result(self, facts: Mapping[str, Any], *parts: RenderableType) -> None:
        """Prints what the command found: `facts` to a program, `parts` to a person."""
        if self.json:
            print(json_format.dumps(plain(facts), indent=2, allow_nan=False), flush=True)
        self.say(*parts)

    @contextmanager
    def progress(self, *, lines: bool = False) -> Iterator[Progress]:
        """Yields a callback (what is done, share done) for a bar with the time left.

        Args:
            lines: Whether a line is printed now and then where standard error is no terminal.
        """
        if self.quiet or not (lines or sys.stderr.isatty()):
            yield lambda stage, share: None
            return
        with (_bar if sys.stderr.isatty() else progress_lines)(error_console()) as report:
            yield report


class Commands(typer.Typer):
    """Commands whose options may be fields of a dataclass: the parameter that is annotated with it gets them all.

    Text beside a type is the help of an option: `Annotated[Path, "File to write."]`.
    """

    def command(self, *names: Any, **settings: Any) -> Callable[[Any], Any]:
        """Adds a command; the function itself stays as it is."""
        register = super().command(*names, **settings)

        def add(function: Callable[..., None]) -> Callable[..., None]:
            register(_with_fields(function))
            return function

        return add


def _with_fields(function: Callable[..., None]) -> Callable[..., None]:
    groups: dict[str, Any] = {name: kind for name, kind in get_type_hints(function).items() if is_dataclass(kind)}

    @wraps(function)
    def command(**given: Any) -> None:
        made = {name: kind(**{own.name: given.pop(own.name) for own in fields(kind)}) for name, kind in groups.items()}
        function(**given, **made)

    options = sorted(_options(function), key=lambda one: one.name in ("json", "quiet"))  # last on the page of help
    command.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in options}
    return command


def _options(taker: Any) -> Iterator[inspect.Parameter]:
    """Yields the parameters that Typer knows; text beside a type stands for an option with this help."""
    hints = get_type_hints(taker, include_extras=True)
    for name, one in inspect.signature(taker).parameters.items():
        hint = hints[name]
        if is_dataclass(hint):
            yield from _options(hint)
            continue
        told = getattr(hint, "__metadata__", (None,))[0]
        if isinstance(told, str):
            flag = [f"--{name.replace('_', '-')}"] if hint.__origin__ is bool else []  # without a form that says no
            hint = Annotated[hint.__origin__, typer.Option(*flag, help=told)]
        yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=hint)


def clean(text: str) -> str:
    """Returns text that moves no cursor and hides nothing: names come from files of unknown origin."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in text)


@dataclass(frozen=True)
class _Clean:
    """Whatever Rich can print, with its text cleaned and its colours kept."""

    part: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self.part, options):
            yield segment if segment.control else Segment(clean(segment.text), segment.style)


def error_console() -> Console:
    """Returns standard error; without colours where NO_COLOR is set or it is no terminal."""
    return _console(stderr=True)


def _console(*, stderr: bool = False) -> Console:
    """Returns a console that prints text as it is: brackets and colons in it are a user's, not mark-up."""
    colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False, color_system=colours)
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    return console


def bold(text: str) -> Text:
    """Returns a line that stands out."""
    return Text(text, style="bold")


def plain(value: Any) -> Any:
    """Returns values that JSON has: infinities become text, everything unknown its own text."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


@dataclass
class Pace:
    """What is done and since when; the clock starts again where a share of 0 is reported."""

    stage: str = "starting"
    share: float = 0.0
    started: float = field(default_factory=time.monotonic)

    def report(self, stage: str, share: float) -> None:
        """Takes note of the stage and the share of the work that is done."""
        if share <= 0:
            self.started = time.monotonic()
        self.stage, self.share = stage, share

    @property
    def left(self) -> str:
        """The time that the rest takes at the pace so far, which grows while nothing gets done; none at first."""
        if self.share < _LEAST_SHARE:
            return ""
        return f"about {duration((time.monotonic() - self.started) * (1 - self.share) / self.share)} left"


def duration(seconds: float) -> str:
    """Returns a time as a person would say it."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextmanager
def _bar(console: Console) -> Iterator[Progress]:
    """Yields a callback that moves a bar with the time left, also while a long part is at work."""
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    pace = Pace()
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[pace].left}"))
    with Bar(*columns, console=console, transient=True) as shown:
        task = shown.add_task("starting", total=1.0, pace=pace)

        def report(stage: str, share: float) -> None:
            pace.report(stage, share)
            shown.update(task, description=stage, completed=share)

        yield report


@contextmanager
def progress_lines(console: Console) -> Iterator[Progress]:
    """Yields a callback; every few seconds a line says how far the work is."""
    pace, over = Pace(), threading.Event()

    def speak() -> None:
        while not over.wait(LINE_SECONDS):
            parts = (f"{100 * pace.share:.0f} %" if pace.share > 0 else "", pace.left, pace.stage)
            console.print(", ".join(part for part in parts if part), soft_wrap=True)

    speaker = threading.Thread(target=speak, daemon=True)
    speaker.start()
    try:
        yield pace.report
    finally:
        over.set()
        speaker.join()
