"""Recognisable values in private data are in no file, line or message that any command leaves behind.

Searched are all files but the private table and the list of kept-out units, what was printed, and what was logged.
Drawn values hit planted ones by chance: 24 planted and 180 drawn ones between 0 and 10 agree on six digits with
probability 4·10⁻³ once and 10⁻¹¹ four times, so up to three in one file of drawn values are let pass. A leaked series
has six, and no identifier, category or moment is ever let pass.
"""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.e2e.commands import OPTIONS, Clinic, Outcome, Rows, make_clinic, one_per_mechanism, run, schema_for
from tests.planted.search import Finding, Planted, found
from understudy.synthesizers.registry import METHODS
from understudy.synthesizers.spectral import Spectral

NUM_PLANTED, STEPS = 4, 6
# Five digits and a one: rounding leaves the first six digits alone, and no grid of round numbers holds them.
INSIDE = tuple(float(f"{1 + 0.1237 * place:.4f}1{place % 3}1") for place in range(1, NUM_PLANTED * STEPS + 1))
BEYOND = (6283.181, 2718.281, 3141.591)
PERSONS = tuple(f"patient-Kq{number:02d}x" for number in range(NUM_PLANTED))
CATEGORY, MOMENT = "Quux77ward", "2031-07-09T03:17:00"
PLANTED = Planted(numbers=(*INSIDE, *BEYOND), words=(*PERSONS, CATEGORY), moments=(MOMENT,))
BY_CHANCE = 3  # planted numbers that a file of drawn values may hold
DRAWN = (".csv", ".parquet", ".npz", ".arrow", ".safetensors")
PRIVATE = ("clinic.csv", "release.holdout.csv")


def plant(rows: Rows) -> Rows:
    """The first persons get recognisable identifiers and values."""
    for place, value in enumerate(INSIDE):
        rows[1 + place][0] = PERSONS[place // STEPS]
        rows[1 + place][2] = repr(value)
    return rows


@pytest.fixture
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clinic:
    made = make_clinic(tmp_path / "clinic")
    made.edit_rows(plant)
    made.edit_schema("epsilon = 2.0\nmax_runs = 8", "epsilon = 100.0\nmax_runs = 100\ndelta = 1e-5")
    made.edit_schema("high = 10", 'high = 10\nout_of_bounds = "clip"')
    text = made.schema.read_text()
    (made.folder / "open.toml").write_text(text.replace('low = 0\nhigh = 10\nout_of_bounds = "clip"\n', ""))
    (made.folder / "wards.toml").write_text(text.replace('categories = ["north", "south"]\n', ""))
    (made.folder / "count.toml").write_text(text.replace("population = 120", "population = { count_epsilon = 1.0 }"))
    monkeypatch.chdir(made.folder)
    monkeypatch.setenv("UNDERSTUDY_HOME", str(made.folder / "home"))
    return made


def leaks(folder: Path, outcomes: Sequence[Outcome], logged: str) -> list[Finding]:
    """Returns what was found in files, on the screen and in the log, but for chance."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name not in PRIVATE]
    findings = [finding for path in files for finding in _beyond_chance(path, found(path, PLANTED))]
    for number, outcome in enumerate(outcomes):
        findings += [finding for text in (outcome.out, outcome.err) for finding in found(text, PLANTED)]
        assert "Traceback" not in outcome.err, f"command {number}"
    return findings + found(logged, PLANTED)


def _beyond_chance(path: Path, findings: list[Finding]) -> list[Finding]:
    numbers = {finding.what for finding in findings} - set(PLANTED.words) - set(PLANTED.moments)
    excused = numbers if path.suffix in DRAWN and len(numbers) <= BY_CHANCE else set()
    return [finding for finding in findings if finding.what not in excused]


SYNTH = ("synth", "clinic.csv", "--schema", "schema.toml", "--epsilon", "0.5", "--n", "30")
BUY = ("--epsilon", "20", "--schema")
BOUNDS = ("--out", "b.toml", "--column", "pulse", "--between", "-9", "9")
WORKING: dict[str, list[tuple[str, ...]]] = {
    **{
        f"synth {method}": [
            ("--method", method, *OPTIONS.get(method, ()), "--out", "release"),
            ("--json", "--out", "another"),
        ]
        for method in METHODS.own
    },
    "a holdout": [
        (*SYNTH, "--holdout", "0.4", "--allow-few-units", "a test", "--out", "release"),
        (*SYNTH, "--window-steps", "3", "--out", "short"),
    ],
    "everything about a release": [
        (*SYNTH, "--out", "release"),
        *(("sample", "release", "--n", "30", "--out", f"more{end}") for end in (".csv", ".parquet", ".npz", ".arrow")),
        *(("certificate", "release", "--format", form, "--out", f"page.{form}") for form in ("html", "md", "json")),
        ("verify", "release"),
        ("verify", "release", "--json"),
        ("ledger", "show", "schema.toml"),
        ("ledger", "show", "schema.toml", "--json"),
        ("ledger", "check", "schema.toml", "release"),
        ("ledger", "list"),
    ],
    "facts bought": [
        ("init", "clinic.csv", "--out", "drafted.toml"),
        ("buy", "bounds", "clinic.csv", *BUY, "open.toml", *BOUNDS),
        ("buy", "categories", "clinic.csv", *BUY, "wards.toml", "--out", "c.toml", "--column", "ward", "--json"),
        ("buy", "population", "clinic.csv", *BUY, "count.toml", "--out", "p.toml"),
        ("ledger", "show", "schema.toml", "--json"),
    ],
}  # fmt: skip


def beyond(rows: Rows) -> Rows:
    """Values outside the bounds, which are clipped where that is declared and can never be drawn."""
    for place, value in enumerate(BEYOND):
        rows[100 + place][2] = repr(value)
    return rows


@pytest.mark.parametrize("name", one_per_mechanism(WORKING))
def test_nothing_planted_is_left_by(name: str, clinic: Clinic, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    clinic.edit_rows(beyond)
    method = name.removeprefix("synth ")
    synth = ("synth", "clinic.csv", *schema_for(clinic, method), *SYNTH[4:]) if method in METHODS else ()
    outcomes = [run(*synth, *arguments) for arguments in WORKING[name]]
    assert [outcome.code for outcome in outcomes] == [0] * len(outcomes), [outcome.err for outcome in outcomes]
    assert leaks(clinic.folder, outcomes, caplog.text) == []


def cell(column: int, text: str) -> Callable[[Rows], Rows]:
    def edit(rows: Rows) -> Rows:
        rows[40][column] = text
        return rows

    return edit


REFUSED: dict[str, Callable[[Rows], Rows]] = {
    "a value beyond the bounds": cell(2, repr(BEYOND[0])),
    "a word for a number": cell(2, CATEGORY),
    "an infinite number": cell(2, "inf"),
    "a category nobody declared": cell(3, CATEGORY),
    "a number for a category": cell(3, repr(INSIDE[0])),
    "a moment off the grid": cell(1, MOMENT),
    "a number for a moment": cell(1, repr(INSIDE[0])),
    "a category for a moment": cell(1, CATEGORY),
    "a column too many": lambda rows: [[*rows[0], "shoe"], *([*row, CATEGORY] for row in rows[1:])],
    "a row too long": lambda rows: [*rows[:-1], [*rows[-1], CATEGORY, repr(INSIDE[0])]],
    "a row too short": lambda rows: [*rows[:-1], rows[-1][:2]],
    "a quote that is not closed": cell(3, f'"{CATEGORY}'),
    "rows in another order": lambda rows: [rows[0], *rows[:0:-1]],
    "a person twice": lambda rows: [*rows, *rows[1:7]],
    "planted persons only": lambda rows: rows[: 1 + STEPS],
    "no person at all": lambda rows: rows[:1],
    "a planted header": lambda rows: [[*rows[0][:3], CATEGORY], *rows[1:]],
}
HEADER = "a planted header"  # the names of columns are public: the schema lists them


@pytest.mark.parametrize("kind", REFUSED)
def test_a_refusal_quotes_nothing_of_a_table_with(kind: str, clinic: Clinic, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    clinic.edit_schema('\nout_of_bounds = "clip"', "")
    clinic.edit_rows(REFUSED[kind])
    commands = [
        (*SYNTH, "--out", "release"),
        (*SYNTH, "--out", "release", "--json"),
        ("buy", "bounds", "clinic.csv", *BUY, "open.toml", *BOUNDS),
        ("buy", "categories", "clinic.csv", *BUY, "wards.toml", "--out", "c.toml", "--column", "ward"),
        ("buy", "population", "clinic.csv", *BUY, "count.toml", "--out", "p.toml", "--json"),
        ("init", "clinic.csv", "--out", "drafted.toml"),
    ]  # fmt: skip
    outcomes = [run(*arguments) for arguments in commands]
    assert outcomes[0].code == 2, "the table was not refused"
    assert {outcome.code for outcome in outcomes} <= {0, 2}
    findings = leaks(clinic.folder, outcomes, caplog.text)
    assert [finding for finding in findings if kind != HEADER or finding.what != CATEGORY] == []


def quoting(private: Any) -> None:
    raise ValueError(f"no logarithm of {private.panel.values[0, 0, 0]:.7f}")


def logging_it(private: Any) -> None:
    logging.getLogger("understudy").info("first value %.7f", private.panel.values[0, 0, 0])


def printing_it(private: Any) -> None:
    print(private.panel.values[0])


def saving_it(private: Any) -> None:
    np.save("debug.npy", private.panel.values)


@pytest.mark.parametrize("leak", [logging_it, printing_it, saving_it, "keep"])
def test_a_planted_leak_is_found(
    leak: Any, clinic: Clinic, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control: a method that logs, prints, saves or releases what it was shown."""
    caplog.set_level(logging.DEBUG)
    learn = Spectral.learn

    def leaky(self: Any, private: Any, *rest: Any) -> Any:
        if leak != "keep":
            leak(private)
        kept = {"rows": private.panel.values} if leak == "keep" else {}
        return {**learn(self, private, *rest), **kept}

    monkeypatch.setattr(Spectral, "learn", leaky)
    outcome = run(*SYNTH, "--out", "release")
    assert outcome.code == 0
    assert leaks(clinic.folder, [outcome], caplog.text) != []


def test_an_error_of_our_own_quotes_nothing_though_its_text_does(
    clinic: Clinic, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Python says about a mistake in a method may hold a value; the screen gets its type and place."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(Spectral, "learn", lambda self, private, *rest: quoting(private))
    outcomes = [run(*SYNTH, "--out", "release"), run(*SYNTH, "--out", "release", "--json")]
    assert [outcome.code for outcome in outcomes] == [1, 1]
    assert leaks(clinic.folder, outcomes, caplog.text) == []
