"""The time left follows from the work done, and is told where nobody watches a bar."""

import io
import time

import pytest
from rich.console import Console

from understudy.api import progress
from understudy.api.progress import Pace, duration, progress_lines


def test_the_time_left_grows_while_nothing_gets_done() -> None:
    pace = Pace()
    pace.report("reading", 0.0)
    assert pace.left == ""
    pace.report("half", 0.5)
    pace.started -= 60
    assert pace.left == "about 60 s left"
    pace.started -= 60
    assert pace.left == "about 2 min left"


def test_a_share_of_nothing_starts_the_clock_again() -> None:
    pace = Pace()
    pace.started -= 1000
    pace.report("measuring", 0.0)
    pace.report("measuring", 0.5)
    assert pace.left == "about 1 s left"


def test_off_a_terminal_a_line_is_printed_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.05)
    text = io.StringIO()
    with progress_lines(Console(file=text)) as report:
        report("Autocorrelation", 0.25)
        time.sleep(0.5)
    lines = text.getvalue().splitlines()
    assert len(lines) >= 2
    assert all(line.startswith("25 %, about") and line.endswith("Autocorrelation") for line in lines)


@pytest.mark.parametrize(("seconds", "said"), [(0.2, "1 s"), (59, "59 s"), (1200, "20 min"), (7200, "2.0 h")])
def test_times_are_said_as_a_person_would(seconds: float, said: str) -> None:
    assert duration(seconds) == said
