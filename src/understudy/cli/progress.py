"""How far a command is: a bar on a terminal, elsewhere a line now and then. Time left follows from the work done."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console

Progress = Callable[[str, float], None]
LINE_SECONDS = 10.0
_LEAST_SHARE = 0.01  # before that, the work done says nothing about the rest


@dataclass
class Pace:
    """What is done and since when; the clock starts again where a share of 0 is told."""

    stage: str = "starting"
    share: float = 0.0
    started: float = field(default_factory=time.monotonic)

    def tell(self, stage: str, share: float) -> None:
        """Takes note of the stage and the share of the work that is done."""
        if share <= 0:
            self.started = time.monotonic()
        self.stage, self.share = stage, share

    def seconds_left(self) -> float | None:
        """Returns the time that the rest takes at the pace so far; it grows while nothing gets done."""
        if self.share < _LEAST_SHARE:
            return None
        return (time.monotonic() - self.started) * (1 - self.share) / self.share

    def text(self) -> str:
        """Returns the time left in words, or nothing where it is not known yet."""
        left = self.seconds_left()
        return "" if left is None else f"about {duration(left)} left"


def duration(seconds: float) -> str:
    """Returns a time as a person would say it."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextmanager
def bar(console: Console) -> Iterator[Progress]:
    """Yields a callback that moves a bar with the time left."""
    from rich.progress import BarColumn, ProgressColumn, TextColumn
    from rich.progress import Progress as Bar
    from rich.text import Text

    pace = Pace()

    class Left(ProgressColumn):
        """The time left at the pace so far, also while a long part is at work."""

        def render(self, task: Any) -> Text:
            return Text(pace.text())

    with Bar(TextColumn("{task.description}"), BarColumn(), Left(), console=console, transient=True) as shown:
        task = shown.add_task("starting", total=1.0)

        def tell(stage: str, share: float) -> None:
            pace.tell(stage, share)
            shown.update(task, description=stage, completed=share)

        yield tell


@contextmanager
def lines(console: Console) -> Iterator[Progress]:
    """Yields a callback; every few seconds a line says how far it is."""
    pace, over = Pace(), threading.Event()

    def speak() -> None:
        while not over.wait(LINE_SECONDS):
            parts = (f"{100 * pace.share:.0f} %" if pace.share > 0 else "", pace.text(), pace.stage)
            console.print(", ".join(part for part in parts if part), soft_wrap=True)

    speaker = threading.Thread(target=speak, daemon=True)
    speaker.start()
    try:
        yield pace.tell
    finally:
        over.set()
        speaker.join()
