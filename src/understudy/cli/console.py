"""What commands print and where: results on stdout; progress, cautions and errors on stderr."""

import inspect
import json as json_format
import logging
import math
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from understudy.api.progress import Progress, shown
from understudy.display import table as table
from understudy.errors import UnderstudyError, UnderstudyWarning

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
_PIPE_WIDTH = 120
LOG = logging.getLogger("understudy")
EVERYWHERE = ("run_record", "metrics", "log_json", "json", "quiet")  # options of every command, last in its help
_PUBLIC = ("method", "status", "epsilon", "delta")  # of what a command found; the rest may be internal
_MACHINES = {"rich_help_panel": "For machines"}


def note(event: str, **facts: Any) -> None:
    """Writes an event to the log of this package, for whoever listens; its facts are public."""
    LOG.info(event, extra={"facts": facts})


@dataclass(frozen=True, kw_only=True)
class Output:
    """How one command talks: to a person, to a program, or not at all; and what it leaves for machines."""

    json: Json = False
    quiet: Quiet = False
    log_json: Annotated[
        str | None,
        typer.Option(metavar="FILE|-", help="Append a line of JSON for each event; - is stderr.", **_MACHINES),
    ] = None
    run_record: Annotated[
        str | None, typer.Option(metavar="FILE|FOLDER/", help="Write a record of the run: JSON.", **_MACHINES)
    ] = None
    metrics: Annotated[Path | None, typer.Option(help="Write figures of the run: OpenMetrics.", **_MACHINES)] = None

    @property
    def hushed(self) -> bool:
        """Whether standard error is kept free of progress and cautions."""
        return self.quiet or self.log_json == "-"

    def say(self, *parts: RenderableType) -> None:
        """Prints text and tables for a person; nothing for a program or with `--quiet`."""
        if not self.json and not self.quiet:
            for part in parts:
                console().print(_Clean(part), soft_wrap=isinstance(part, str | Text))

    def caution(self, sentence: str) -> None:
        """Prints a sentence on standard error, unless quiet."""
        if not self.hushed:
            console(stderr=True).print(_Clean(sentence), soft_wrap=True)

    @contextmanager
    def cautions(self) -> Iterator[list[str]]:
        """Prints and notes at once what the library warns of from public facts, and yields the list of it."""
        told: list[str] = []

        def tell(message: Warning | str, *_: Any, **__: Any) -> None:
            told.append(str(message))
            note("caution", text=told[-1])
            self.caution(told[-1])

        with warnings.catch_warnings():
            warnings.simplefilter("always", UnderstudyWarning)
            warnings.showwarning = tell
            yield told

    def result(self, facts: Mapping[str, Any], *parts: RenderableType) -> None:
        """Prints what the command found: `facts` to a program, `parts` to a person."""
        ledger = facts["ledger"] if isinstance(facts.get("ledger"), dict) else {}
        left = {name: figure for name, figure in ledger.items() if name.endswith("_left")}
        note("found", **{name: facts[name] for name in _PUBLIC if name in facts}, ledger=left)
        if self.json:
            print(json_format.dumps(plain(facts), indent=2, allow_nan=False), flush=True)
        self.say(*parts)

    @contextmanager
    def progress(self, *, lines: bool = False) -> Iterator[Progress]:
        """Yields a callback (what is done, share done) for a bar with the time left.

        Args:
            lines: Whether a line is printed now and then where standard error is no terminal.
        """
        stages = [""]

        def told(stage: str, share: float) -> None:
            if stage != stages[-1]:
                stages.append(stage)
                note("stage", stage=stage)
            report(stage, share)

        with shown(not self.hushed, console(stderr=True), lines=lines) as report:
            yield told


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
    options = sorted(_options(function), key=lambda one: one.name in EVERYWHERE)
    own = next((one.name for one in options if one.annotation is typer.Context), None)
    if own is None:
        options.append(inspect.Parameter("_call", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context))
    spelled = {one.name: _spelled(one) for one in options}

    @wraps(function)
    def command(**given: Any) -> None:
        call = given.pop("_call") if own is None else given[own]
        asked = {spelled[name]: value for name, value in given.items() if name not in (*EVERYWHERE, own)}
        made = {name: kind(**{own.name: given.pop(own.name) for own in fields(kind)}) for name, kind in groups.items()}
        try:
            with _watched(made.values(), call.command_path, asked):
                function(**given, **made)
        except UnderstudyError as problem:
            problem.args = (_as_typed(str(problem), spelled),)
            raise

    command.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in options}
    return command


def _watched(groups: Iterable[Any], called: str, asked: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Returns what notes the events of a command where one of its options asks for that."""
    output = next((one for one in groups if isinstance(one, Output)), Output())
    if output.log_json is output.run_record is output.metrics is None:
        return nullcontext()
    from understudy.cli.watch import watching

    return watching(output, called.partition(" ")[2], asked)


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


def _spelled(parameter: inspect.Parameter) -> str:
    """Returns a parameter as a user types it: FILE, --save-to."""
    (info,) = getattr(parameter.annotation, "__metadata__", (None,))
    if isinstance(info, typer.models.ArgumentInfo):
        return str(info.metavar or parameter.name.upper())
    flags = (getattr(info, "default", None), *(getattr(info, "param_decls", None) or ()))  # as Typer takes them
    declared = (flag for flag in flags if isinstance(flag, str) and flag.startswith("--"))
    return next(declared, f"--{parameter.name.replace('_', '-')}")


def _as_typed(message: str, spelled: Mapping[str, str]) -> str:
    """Returns an error of the Python API with the options of a command in place of arguments."""
    head, colon, rest = message.partition(":")
    names = head.split(", ")
    if colon and all(name in spelled for name in names):
        message = f"{', '.join(spelled[name] for name in names)}:{rest}"
    return re.sub(r"`(\w+)`", lambda found: f"`{spelled.get(found[1], found[1])}`", message)


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


def console(*, stderr: bool = False) -> Console:
    """Returns a console that prints text as it is: brackets and colons in it are a user's, not mark-up.

    Without colours where NO_COLOR is set or it is no terminal.
    """
    colours = None if os.environ.get("NO_COLOR") else "auto"
    made = Console(stderr=stderr, highlight=False, markup=False, emoji=False, color_system=colours)  # type: ignore[arg-type]
    if not made.is_terminal:
        made.width = _PIPE_WIDTH
    return made


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
