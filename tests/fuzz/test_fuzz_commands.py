"""Whatever lies where a file was expected: a clear refusal or a right answer, and nothing in between."""

from pathlib import Path

import pytest

from tests.fuzz import ledgers, releases, schemas, tables
from tests.fuzz.case import Case
from tests.fuzz.commands import Command
from tests.fuzz.harness import Harness
from tests.fuzz.kinds import KINDS, fuzz
from tests.fuzz.place import LAYOUTS, SCHEMAS

SAMPLE, SHARES, SHARE = 20, 20, 1_250  # SHARES · SHARE inputs of each kind: 100 000 in all
COMMANDS = (
    *(*ledgers.READ, *ledgers.WRITE, *releases.COMMANDS),
    *(command for name in SCHEMAS for command in schemas.commands(name)),
    *(command for layout in LAYOUTS for command in tables.commands(layout, "parquet")),
)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sample_of_damaged_input_breaks_no_rule(kind: str, harness: Harness) -> None:
    assert fuzz(kind, SAMPLE, harness)[2] > 0


def test_a_process_of_its_own_breaks_no_rule(harness: Harness) -> None:
    fuzz("tables", 1, harness, subprocess=True)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_input_breaks_no_rule(kind: str, share: int, harness: Harness) -> None:
    codes = fuzz(kind, SHARE, harness)
    print(kind, dict(codes))
    assert codes[0] > SHARE / 200  # some damage does no harm, and then everything behind the readers is tried too
    assert codes[2] > SHARE / 4


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_processes_of_their_own_break_no_rule(kind: str, harness: Harness) -> None:
    fuzz(kind, 25, harness, subprocess=True)


@pytest.mark.parametrize("command", dict.fromkeys(COMMANDS), ids=" ".join)
def test_a_command_succeeds_where_nothing_is_damaged(command: Command, harness: Harness) -> None:
    assert harness.check(Case(arguments=command)).code == 0


def test_the_place_is_made_of_the_same_bytes_every_time(harness: Harness, tmp_path: Path) -> None:
    """A kept input can be tried again only where the files that it damages are the same."""
    again = Harness(tmp_path).pristine
    different = {name for name in harness.pristine if harness.pristine[name] != again.get(name)}
    assert different <= {"home/populations.sqlite"}  # which holds the folder's name
