"""Records how long every test takes, and writes the table of the slowest into docs/testing.md.

    python -m pytest -p scripts.durations -m "not slow" -n 2 --dist worksteal    # writes durations.csv
    python scripts/durations.py durations.csv                                    # writes the table

Processor seconds of a test, its fixtures and the processes that it waited for: they hardly depend on what else runs.
"""

import csv
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE, BEGIN, END = ROOT / "docs" / "testing.md", "<!-- durations -->\n", "<!-- /durations -->"
SLOWEST = 20
RECORD = "durations.csv"
_SECONDS: dict[str, float] = {}


def table(rows: list[tuple[str, float]], slowest: int = SLOWEST) -> str:
    """Returns the slowest tests and the sum of all as a table in Markdown."""
    ranked = sorted(rows, key=lambda row: -row[1])
    lines = [
        "| processor seconds | test |",
        "|---|---|",
        *(f"| {seconds:.1f} | `{name}` |" for name, seconds in ranked[:slowest]),
    ]
    return "\n".join([*lines, f"| {sum(seconds for _, seconds in rows):.0f} | all {len(rows):,} |", ""])


def main(file: str) -> None:
    """Puts the table of a recorded run into the page."""
    with Path(file).open(encoding="utf-8") as opened:
        rows = [(name, float(seconds)) for name, seconds in csv.reader(opened)]
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(before + BEGIN + table(rows) + END + rest.split(END)[1], encoding="utf-8")


def _processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _measured(item: pytest.Item) -> Iterator[None]:
    begin = _processor_seconds()
    try:
        return (yield)
    finally:
        item.user_properties.append(("processor", _processor_seconds() - begin))


pytest_runtest_setup = pytest.hookimpl(wrapper=True)(lambda item: (yield from _measured(item)))
pytest_runtest_call = pytest.hookimpl(wrapper=True)(lambda item: (yield from _measured(item)))
pytest_runtest_teardown = pytest.hookimpl(wrapper=True)(lambda item: (yield from _measured(item)))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Adds up what a test's phases have reported; the last report of a test holds all of them."""
    _SECONDS[report.nodeid] = sum(value for name, value in report.user_properties if name == "processor")


def pytest_terminal_summary() -> None:
    """Writes the record, in the process that collects the reports."""
    with Path(RECORD).open("w", encoding="utf-8", newline="") as opened:
        csv.writer(opened).writerows(_SECONDS.items())


if __name__ == "__main__":
    main(sys.argv[1])
