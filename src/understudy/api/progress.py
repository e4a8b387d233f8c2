"""How far a long task is: a bar in a terminal or a notebook, or a line now and then."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape

from rich.console import Console

Progress = Callable[[str, float], None]  # (what is being done, share of the work done); public facts only
Shown = bool | Progress  # whether a bar is shown, or what takes each report
LINE_SECONDS = 10.0
_NOTEBOOK_SECONDS = 0.2  # between two pictures of a bar in a notebook
_LEAST_SHARE = 0.01  # before that, the work done says nothing about the rest


@contextmanager
def shown(progress: Shown, console: Console | None = None, *, lines: bool = False) -> Iterator[Progress]:
    """Yields what takes reports: the caller's own, a bar in a terminal or a notebook, or nothing.

    Args:
        lines: Whether a line is printed now and then where neither is at hand.
    """
    console = console or Console(stderr=True)
    notebook = console.is_jupyter and not console.is_terminal
    if callable(progress):
        yield progress
    elif progress and (console.is_terminal or notebook or lines):
        with notebook_bar() if notebook else (bar if console.is_terminal else progress_lines)(console) as report:
            yield report
    else:
        yield lambda stage, share: None


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
def bar(console: Console) -> Iterator[Progress]:
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
def notebook_bar() -> Iterator[Progress]:
    """Yields a callback that moves a bar below a notebook's cell; it needs no widgets and leaves nothing behind."""
    from IPython.display import HTML, display

    pace, drawn = Pace(), 0.0
    handle = display(HTML(""), display_id=True)

    def report(stage: str, share: float) -> None:
        nonlocal drawn
        pace.report(stage, share)
        if time.monotonic() - drawn > _NOTEBOOK_SECONDS:
            drawn = time.monotonic()
            handle.update(HTML(f'<progress max="1" value="{share:.3f}"></progress> {escape(stage)} {pace.left}'))

    try:
        yield report
    finally:
        handle.update(HTML(""))


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
