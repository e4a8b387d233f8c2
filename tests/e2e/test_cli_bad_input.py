"""Bad input: a clear error, exit 2, nothing charged, nothing half-written, no private fact on the screen."""

import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.commands import (
    MAGIC_CATEGORY,
    MAGIC_PERSON,
    MAGIC_VALUE,
    Clinic,
    Outcome,
    Rows,
    charges,
    finish,
    make_clinic,
    run,
    start,
)

PULSE, WHEN, WARD = 2, 1, 3


@pytest.fixture
def clinic(tmp_path: Path) -> Clinic:
    return make_clinic(tmp_path / "clinic")


def refused(clinic: Clinic, outcome: Outcome, before: dict[str, bytes], *words: str, code: int = 2) -> None:
    """Asserts the whole contract of a refusal."""
    assert outcome.code == code, outcome.err
    assert outcome.err.startswith("error: ")
    assert outcome.err.count("\n") == 1, outcome.err
    for word in words:
        assert word in outcome.err, outcome.err
    for secret in (MAGIC_VALUE, MAGIC_PERSON, MAGIC_CATEGORY):
        assert secret not in outcome.out + outcome.err
    assert "Traceback" not in outcome.err
    assert not charges(clinic.ledger)
    assert clinic.files() == before


def cell(row: int, column: int, text: str) -> Callable[[Rows], Rows]:
    def edit(rows: Rows) -> Rows:
        rows[row][column] = text
        return rows

    return edit


def swap_first_two(rows: Rows) -> Rows:
    return [rows[0], rows[2], rows[1], *rows[3:]]


def with_column(rows: Rows) -> Rows:
    return [[*rows[0], "shoe"], *([*row, MAGIC_VALUE] for row in rows[1:])]


# Row 45 belongs to the person whose identifier is a mark.
TABLES: dict[str, tuple[Callable[[Rows], Rows], str]] = {
    "a column the schema does not name": (with_column, "column number 5"),
    "a column that is missing": (lambda rows: [row[:PULSE] + row[PULSE + 1 :] for row in rows], "'pulse'"),
    "a value outside the bounds": (cell(45, PULSE, "628.318"), "'pulse'"),
    "a duplicate timestamp": (cell(46, WHEN, "2024-01-01T02:00:00"), "'when'"),
    "unsorted timestamps": (swap_first_two, "'when'"),
    "a timestamp that is no time": (cell(45, WHEN, MAGIC_VALUE), "'when'"),
    "an empty table": (lambda rows: rows[:1], "empty"),
    "no table at all": (lambda rows: [], "empty"),
    "one unit": (lambda rows: [rows[0], *rows[43:49]], "single unit"),
    "fewer than 100 units": (lambda rows: rows[: 1 + 6 * 99], "100"),
    "a column that is missing everywhere": (
        lambda rows: [rows[0], *([*row[:PULSE], "", row[WARD]] for row in rows[1:])],
        "'pulse'",
    ),
    "an infinite value": (cell(45, PULSE, "inf"), "'pulse'"),
    "a text among the numbers": (cell(45, PULSE, MAGIC_CATEGORY), "'pulse'"),
    "an unknown category": (cell(45, WARD, MAGIC_CATEGORY), "'ward'"),
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_is_refused_that_has(kind: str, clinic: Clinic) -> None:
    edit, word = TABLES[kind]
    clinic.edit_rows(edit)
    before = clinic.files()
    refused(clinic, run(*clinic.synth()), before, word)


SCHEMAS: dict[str, tuple[str, str, str]] = {
    "no bounds": ("low = 0\nhigh = 10\n", "", "pulse"),
    "another version": ("version = 1", "version = 2", "version"),
    "no budget": ("[budget]\nepsilon = 2.0\nmax_runs = 8\n", "", "[budget]"),
    "a delta too large": ("max_runs = 8", "max_runs = 8\ndelta = 0.01", "delta"),
    "a key that does not exist": ("low = 0", "low = 0\nlowest = 0", "lowest"),
    "no TOML": ("[unit]", "[unit", "schema.toml"),
}


@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_schema_is_refused_that_has(kind: str, clinic: Clinic) -> None:
    old, new, word = SCHEMAS[kind]
    clinic.edit_schema(old, new)
    before = clinic.files()
    refused(clinic, run(*clinic.synth()), before, word)


def test_a_unit_with_too_many_series_is_refused(clinic: Clinic) -> None:
    clinic.edit_schema("steps = 6", 'steps = 6\nseries_column = "visit"')
    clinic.edit_rows(
        lambda rows: (
            [[*rows[0], "visit"]]
            + [[*row, str(visit)] for row in rows[1:] for visit in (0, 1) if visit == 0 or row[0] == MAGIC_PERSON]
        )
    )
    clinic.edit_rows(lambda rows: [rows[0], *sorted(rows[1:], key=lambda row: (row[0], row[4], row[1]))])
    before = clinic.files()
    refused(clinic, run(*clinic.synth()), before, "max_series")


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf", "much"])
def test_an_epsilon_is_refused_that_is(epsilon: str, clinic: Clinic) -> None:
    before = clinic.files()
    refused(clinic, run(*clinic.synth(epsilon=epsilon)), before, "epsilon")


@pytest.mark.parametrize("delta", ["0.01", "0", "1", "-0.1"])
def test_a_delta_is_refused_that_is(delta: str, clinic: Clinic) -> None:
    before = clinic.files()
    refused(clinic, run(*clinic.synth("--delta", delta)), before, "delta")


OPTIONS: dict[str, tuple[list[str], str]] = {
    "a method that does not exist": (["--method", "crystal-ball"], "crystal-ball"),
    "windows longer than the series": (["--window-steps", "7"], "--window-steps"),
    "a holdout of everybody": (["--holdout", "1"], "--holdout"),
    "a list that is a table": (["--holdout-list", "{table}"], "single column 'person'"),
    "no reason": (["--allow-few-units", " "], "reason"),
    "a number of series below one": (["--n", "0"], "--n"),
    "an option that does not exist": (["--make-it-good"], "--make-it-good"),
    "context that is not declared": (["--context", "{table}"], "[[context]]"),
    "a key with a strange name": (["--key", "../key"], "key"),
}


@pytest.mark.parametrize("kind", OPTIONS)
def test_a_run_is_refused_with(kind: str, clinic: Clinic) -> None:
    options, word = OPTIONS[kind]
    before = clinic.files()
    filled = [option.format(table=clinic.table) for option in options]
    refused(clinic, run(*clinic.synth(*filled)), before, word)


def test_a_holdout_list_inside_the_release_is_refused(clinic: Clinic) -> None:
    before = clinic.files()
    inside = str(clinic.release / "list.csv")
    outcome = run(*clinic.synth("--holdout", "0.2", "--holdout-list", inside))
    refused(clinic, outcome, before, "--holdout-list")


def test_a_holdout_list_that_is_not_there_is_missing_data(clinic: Clinic) -> None:
    before = clinic.files()
    refused(clinic, run(*clinic.synth("--holdout-list", "nowhere.csv")), before, "--holdout-list", code=3)


@pytest.mark.parametrize("missing", ["table", "schema"])
def test_a_file_that_is_not_there_is_missing_data(missing: str, clinic: Clinic) -> None:
    getattr(clinic, missing).unlink()
    before = clinic.files()
    refused(clinic, run(*clinic.synth()), before, getattr(clinic, missing).name, code=3)


def test_a_directory_that_exists_is_never_overwritten(clinic: Clinic) -> None:
    clinic.release.mkdir()
    (clinic.release / "precious.txt").write_text("mine")
    before = clinic.files()
    refused(clinic, run(*clinic.synth()), before, "exists")


def test_values_outside_the_bounds_pass_when_clipping_is_declared(clinic: Clinic) -> None:
    clinic.edit_rows(cell(45, PULSE, "628.318"))
    clinic.edit_schema("high = 10", 'high = 10\nout_of_bounds = "clip"')
    assert run(*clinic.synth()).code == 0


def test_few_units_pass_by_name_and_the_certificate_says_why(clinic: Clinic) -> None:
    clinic.edit_rows(lambda rows: rows[: 1 + 6 * 50])
    assert run(*clinic.synth("--allow-few-units", "a pilot ward")).code == 0
    page = run("certificate", clinic.release, "--format", "json")
    assert '"few_units": "a pilot ward"' in page.out


def test_a_damaged_ledger_is_refused_and_left_as_it_is(clinic: Clinic) -> None:
    assert run(*clinic.synth()).code == 0
    damaged = bytearray(clinic.ledger.read_bytes())
    damaged[len(damaged) // 2 :] = b"x" * (len(damaged) - len(damaged) // 2)
    clinic.ledger.write_bytes(damaged)
    before = clinic.files()
    outcome = run(*clinic.synth(out=clinic.folder / "second"))
    assert outcome.code == 2
    assert "ledger" in outcome.err
    assert clinic.files() == before


@pytest.mark.parametrize("damage", ["model.safetensors", "release.json", "schema.toml", "certificate.json"])
def test_a_damaged_release_is_refused(damage: str, clinic: Clinic) -> None:
    assert run(*clinic.synth()).code == 0
    (clinic.release / damage).write_bytes(b"{]")
    before = clinic.files()
    outcome = run("sample", clinic.release, "--n", "3", "--out", clinic.folder / "more.csv")
    assert outcome.code == 2
    assert outcome.err.startswith("error: ")
    assert clinic.files() == before


def test_a_full_disk_is_noticed_before_the_charge(clinic: Clinic) -> None:
    before = clinic.files()
    outcome = finish(start(*clinic.synth(), preexec_fn=_disk_of_a_hundred_kilobytes))
    refused(clinic, outcome, before, "MiB", "Nothing was charged")


def test_a_disk_that_fills_up_while_sampling_leaves_nothing(clinic: Clinic) -> None:
    assert run(*clinic.synth()).code == 0
    before = clinic.files()
    arguments = ("sample", clinic.release, "--n", "20000", "--out", clinic.folder / "more.csv")
    outcome = finish(start(*arguments, preexec_fn=_disk_of_a_hundred_kilobytes))
    assert outcome.code == 2
    assert "more.csv" in outcome.err
    assert clinic.files() == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", ["early", "charged", "writing"])
def test_ctrl_c_leaves_nothing_half_written(number: signal.Signals, moment: str, clinic: Clinic) -> None:
    before = clinic.files()
    process = start(*clinic.synth("--n", "400000"))
    if moment == "early":
        time.sleep(0.4)
    elif moment == "charged":
        _wait_for(lambda: bool(charges(clinic.ledger)))
    else:
        _wait_for(lambda: any(clinic.folder.glob(".release-*/.synthetic*.draft")))
    process.send_signal(number)
    outcome = finish(process)
    assert outcome.code == 2, outcome.err
    assert "Traceback" not in outcome.err
    left = {name: text for name, text in clinic.files().items() if not name.startswith("clinic.ledger")}
    assert left == before
    assert bool(charges(clinic.ledger)) == (moment != "early")
    assert ("stays charged" in outcome.err) == (moment != "early")


def _disk_of_a_hundred_kilobytes() -> None:
    """No file may grow beyond this, which the system reports as it reports a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))


def _wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
