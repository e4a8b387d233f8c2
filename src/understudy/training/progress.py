"""A progress bar that shows public facts only: iterations done and planned, and the time of the holder's clock."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

Report = Callable[[int, int], None]  # iterations executed, iterations planned


@contextmanager
def progress_bar(label: str) -> Iterator[Report]:
    """Yields a callback for `train`. No loss, no norm, no batch size: they are private."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, planned: bar.update(task, completed=done, total=planned)
