"""A clock that jumps: nobody's budget comes back, runs keep their order, and certificates hold."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.invariants import Account, account, check_charged, check_whole
from tests.faults.scenes import Stage
from tests.faults.server import Report
from tests.faults.ways import AT_ANOTHER_TIME
from tests.meta.pages import ROOT
from understudy.privacy.ledger import Ledger

YEAR = 365.25
JUMPS = {
    "back": ["0", f"{-30 * YEAR}"],
    "forth": ["0", f"{50 * YEAR}"],
    "at every look": [f"{50 * YEAR},{-30 * YEAR},0"] * 2,
}


def runs(stage: Stage, clocks: list[str]) -> list[Report]:
    """Runs the scene's command once for each clock, each time into a folder of its own."""
    reports = []
    for number, days in enumerate(clocks):
        reports.append(stage.act(way=(AT_ANOTHER_TIME, days)))
        assert reports[-1].code == 0, reports[-1].err
        (stage.clinic / "release").rename(stage.clinic / f"release-{number}")
    return reports


@pytest.mark.parametrize("jump", JUMPS)
def test_a_clock_that_jumps(jump: str, stage: Callable[[str], Stage]) -> None:
    built = stage("synth again")
    built.set_up()
    before = account(built)
    reports = runs(built, JUMPS[jump])
    now = account(built)
    assert [entry.run for entry in now.entries] == [1, 2, 3], "runs are told apart by number, not by time"
    assert len({entry.recorded_at[:4] for entry in now.entries}) > 1, "the clock did not jump"
    assert sum(report.granted for report in reports) == 2
    _check_nothing_came_back(built, before, now)
    for number in range(2):
        (built.clinic / f"release-{number}").rename(built.clinic / "release")
        check_charged(built, before, reports[number])
        check_whole(built)
        (built.clinic / "release").rename(built.clinic / f"release-{number}")


def _check_nothing_came_back(stage: Stage, before: Account, now: Account) -> None:
    ledger = Ledger.open(stage.clinic / "clinic.ledger")
    assert now.entries[: len(before.entries)] == before.entries
    spent = sum(entry.epsilon for entry in now.entries)
    assert ledger.remaining().epsilon == pytest.approx(ledger.guarantee.epsilon - spent)
    assert ledger.remaining().runs == ledger.composition.max_runs - len(now.entries)


def test_only_one_line_below_the_commands_asks_for_the_time_of_day() -> None:
    """It dates rows for people to read; `test_a_clock_that_jumps` replaces it, and would miss another."""
    asks = re.compile(r"\b(datetime\.(now|utcnow|today)|date\.today|time\.(time|time_ns|localtime|gmtime)|st_mtime)\b")
    rooms = ("data", "privacy", "training", "synthesizers")
    files = [path for room in rooms for path in (ROOT / "src" / "understudy" / room).rglob("*.py")]
    found = [path.name for path in files for _ in asks.findall(Path(path).read_text(encoding="utf-8"))]
    assert found == ["store.py"]
