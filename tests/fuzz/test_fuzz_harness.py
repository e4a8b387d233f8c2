"""The harness would notice: each rule is broken once on purpose, and fuzzing finds defects planted in the package."""

import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pytest

from tests.fuzz.case import Case
from tests.fuzz.harness import Harness
from tests.fuzz.kinds import fuzz
from tests.fuzz.place import COUNT, MOMENT, NAME, NUMBER, contents
from understudy.data import Schema
from understudy.data import schema as schema_file
from understudy.data.io import read, sources
from understudy.errors import DataError
from understudy.privacy import charges as rules
from understudy.privacy import keys
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Gaussian
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan

Command = Callable[[list[str]], int]
SECONDS = int(datetime.fromisoformat(MOMENT).replace(tzinfo=UTC).timestamp())


def refuse(text: str = "The table is empty.", code: int = 2) -> int:
    print(f"error: {text}", file=sys.stderr)
    return code


def raises(_: list[str]) -> int:
    raise KeyError("pulse")


def hangs(_: list[str]) -> int:
    while True:
        pass


def hangs_in_native_code(_: list[str]) -> int:
    """The interruption comes out of a callback as another error, and the last line of defence catches that."""
    try:
        while True:
            sorted(range(1000), key=lambda number: -number)
    except BaseException:
        return refuse()


def charges(_: list[str]) -> int:
    plan = SpendingPlan((PlanEntry("mean", Gaussian(50.0)),), Guarantee(0.4, 2e-7))
    Ledger.open("clinic.ledger").charge(plan, label="run", noise=NoiseSource.secure())
    return refuse()


def warns(_: list[str]) -> int:
    warnings.warn("overflow encountered", RuntimeWarning, stacklevel=1)
    return 0


def leaves(path: str) -> Command:
    def command(_: list[str]) -> int:
        Path(path).write_text("x")
        return refuse()

    return command


def in_scratch(_: list[str]) -> int:
    os.close(tempfile.mkstemp()[0])
    return refuse()


def prints(text: str) -> Command:
    def command(_: list[str]) -> int:
        print(text)
        return refuse()

    return command


BROKEN: dict[str, tuple[Command, str]] = {
    "our fault": (lambda _: refuse(code=1), "exit code 1"),
    "an undocumented exit code": (lambda _: refuse(code=7), "exit code 7"),
    "an exception": (raises, "a traceback"),
    "no end": (hangs, "takes too long"),
    "no end, and somebody catches everything": (hangs_in_native_code, "takes too long"),
    "a whole value": (lambda _: refuse(f"'pulse' holds {NUMBER}."), "quotes private cells"),
    "a rounded value": (lambda _: refuse(f"'pulse' holds {float(NUMBER):.0f}."), "quotes private cells"),
    "a value to six digits": (lambda _: refuse(f"'pulse' holds {float(NUMBER):g}."), "quotes private cells"),
    "a value as float32": (lambda _: refuse(f"'pulse' holds {int(np.float32(NUMBER))}."), "quotes private cells"),
    "a count with commas": (lambda _: refuse(f"'visits' holds {int(COUNT):,}."), "quotes private cells"),
    "a moment in seconds": (lambda _: refuse(f"'when' holds {SECONDS}."), "quotes private cells"),
    "the end of an identifier": (lambda _: refuse(f"'person' is not {NAME[4:]}."), "quotes private cells"),
    "a value on standard output": (prints(f"read {NUMBER}"), "quotes private cells"),
    "two lines of error": (lambda _: refuse("The table\nis empty."), "not one line of error"),
    "no error at all": (lambda _: 2, "not one line of error"),
    "a warning": (warns, "something on standard error"),
    "a letter that moves the cursor": (lambda _: refuse("no column '\x1b[2J'."), "control characters"),
    "a charge before the refusal": (charges, "clinic.ledger"),
    "half a release": (leaves("made"), "made"),
    "a hidden draft": (leaves(".made.1.draft"), ".made.1.draft"),
    "a key": (leaves("home/keys/new.key"), "home/keys/new.key"),
    "a temporary file": (in_scratch, "scratch/"),
    "another table": (leaves("table.csv"), "table.csv"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_rule_is_reported(kind: str, harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    command, reported = BROKEN[kind]
    monkeypatch.setattr(harness, "entry", command)
    monkeypatch.setattr(harness, "cpu_seconds", 0.5)
    _, broken = harness.trial(Case(arguments=("synth",)))
    assert any(reported in rule for rule in broken), broken


def test_a_command_that_keeps_every_rule_is_not_reported(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "entry", lambda _: refuse())
    assert harness.trial(Case(arguments=("synth",)))[1] == []


def test_the_folder_is_as_it_was_after_every_input(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "entry", charges)
    harness.trial(Case(arguments=("synth",), files={"release/release.json": None, "table.csv": b"", "new": b""}))
    assert contents(harness.folder) == harness.pristine


def test_damage_that_is_accepted_is_reported(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = harness.pristine["release/certificate.json"]
    assert isinstance(certificate, bytes)
    files = {"release/certificate.json": certificate.replace(b"one 'person'", b"any 'person'")}
    case = Case(arguments=("verify", "release"), files=files, damaged=True)
    assert harness.check(case).code == 2
    monkeypatch.setattr(keys, "is_signed_by", lambda *_: True)
    assert "says something else" in "".join(harness.trial(case)[1])


@contextmanager
def _quoting(name: str, *format_and_kinds: object) -> Iterator[None]:
    """What reading was before it was careful: Arrow's own words, which quote the cell."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{name}: {error}", column=None) from None


def _charging(source: object, schema: Schema, open_source: Callable[..., object] = sources.open_source) -> object:
    """A charge before the table was looked at, which stays although nothing was learned."""
    charges([])
    return open_source(source, schema)


def _unchecked(_: object) -> None:
    """What opening a ledger was before its rows were looked at."""


def _never_signed(*_: object) -> NoReturn:
    raise TypeError("a signature is expected")


def _not_explained(*_: object) -> NoReturn:
    raise KeyError("channels")


PLANTED = {
    "a reader that quotes": ("tables", sources, "readable", _quoting, "quotes private cells"),
    "a charge for a table that is refused": ("tables", read, "open_source", _charging, r"left behind: clinic\.ledger"),
    "a ledger that believes its rows": ("ledgers", rules, "check_rows", _unchecked, "exit code 1"),
    "a signature check that raises": ("releases", keys, "is_signed_by", _never_signed, "exit code 1"),
    "a refusal of a schema that falls": ("schemas", schema_file, "_home", _not_explained, "exit code 1"),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_fuzzing_finds_and_keeps(kind: str, harness: Harness, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    inputs, module, name, defect, rule = PLANTED[kind]
    with monkeypatch.context() as planted:
        planted.setattr(module, name, defect)
        with pytest.raises(AssertionError, match=rule):
            fuzz(inputs, 2000, harness, corpus=tmp_path, shrink=False)
        (kept,) = tmp_path.iterdir()
        case = Case.loads(kept.read_text())
        assert harness.trial(case)[1]
    assert harness.trial(case)[1] == []
