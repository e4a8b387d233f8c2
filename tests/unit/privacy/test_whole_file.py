"""A ledger is one file: a copy of it alone forgets nothing, and releases beside it are witnesses."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.unit.privacy.conftest import gaussian_plan, make_schema
from understudy.errors import BudgetExceeded, LedgerError
from understudy.privacy import sqlite
from understudy.privacy.certificate import Certificate, issue, seal
from understudy.privacy.grant import Grant
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource

NOISE = NoiseSource.secure()


def charge(ledger: Ledger, label: str = "run") -> Grant:
    return ledger.charge(gaussian_plan(5.4), label=label, noise=NOISE)


def publish(grant: Grant, folder: Path) -> Certificate:
    folder.mkdir()
    return seal(issue(grant, make_schema(), method="mean"), folder, None)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder of the schema and its ledger."""
    (tmp_path / "study").mkdir()
    return tmp_path / "study"


@pytest.fixture
def study(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study as it arrives at a computer whose registry is empty: two releases, and a ledger from between them."""
    ledger = Ledger.open_for(make_schema(), home)
    publish(charge(ledger), home / "january")
    kept = (home / "meters.ledger").read_bytes()
    publish(charge(ledger), home / "february")
    shutil.copytree(home, tmp_path / "copied")
    (tmp_path / "copied" / "meters.ledger").write_bytes(kept)
    monkeypatch.setenv("UNDERSTUDY_HOME", str(tmp_path / "another-home"))
    return tmp_path / "copied"


def test_the_file_alone_holds_every_charge_while_others_read_it(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that stays kept SQLite's log apart from its file: the copy of the file had forgotten the charge."""
    ledger = Ledger.open_for(make_schema(), home)
    reader = sqlite3.connect(home / "meters.ledger")
    reader.execute("SELECT count(*) FROM entries").fetchone()
    charge(ledger)
    reader.execute("SELECT count(*) FROM entries").fetchone()
    charge(ledger)
    (tmp_path / "copy").mkdir()
    shutil.copy(home / "meters.ledger", tmp_path / "copy" / "meters.ledger")
    reader.close()
    monkeypatch.setenv("UNDERSTUDY_HOME", str(tmp_path / "another-home"))
    assert len(Ledger.open(tmp_path / "copy" / "meters.ledger").entries()) == 2


def test_a_ledger_of_an_older_version_with_a_log_is_whole_after_its_next_charge(home: Path) -> None:
    ledger = Ledger.open_for(make_schema(), home)
    connection = sqlite3.connect(home / "meters.ledger")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    charge(ledger)
    connection = sqlite.connect(home / "meters.ledger", "rw")
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    connection.close()
    assert [path.name for path in home.iterdir()] == ["meters.ledger"]


def test_a_ledger_that_has_forgotten_a_release_beside_it_is_refused_with_the_remedy(
    study: Path,
) -> None:
    for attempt in (lambda: Ledger.open(study / "meters.ledger"), lambda: Ledger.open_for(make_schema(), study)):
        with pytest.raises(LedgerError, match="release in a folder beside it has recorded") as caught:
            attempt()
        assert "ledger adopt" in str(caught.value)


def test_adopting_it_counts_the_forgotten_release_as_spent(home: Path, study: Path) -> None:
    spent = Ledger.look(home / "meters.ledger").remaining()
    adopted = Ledger.adopt(study / "meters.ledger", reason="the newer file is lost")
    assert adopted.remaining().runs == spent.runs == 0
    assert adopted.remaining().epsilon == pytest.approx(spent.epsilon, abs=1e-9)
    with pytest.raises(BudgetExceeded):
        charge(Ledger.open_for(make_schema(), study))
    with pytest.raises(LedgerError, match="nothing to adopt"):
        Ledger.adopt(study / "meters.ledger", reason="again")


def test_what_registry_and_release_both_remember_is_counted_once(home: Path) -> None:
    ledger = Ledger.open_for(make_schema(max_runs=4), home)
    kept = (home / "meters.ledger").read_bytes()
    publish(ledger.charge(gaussian_plan(7.5, delta=2.5e-7), label="a", noise=NOISE), home / "january")
    before = ledger.remaining()
    (home / "meters.ledger").write_bytes(kept)
    adopted = Ledger.adopt(home / "meters.ledger", reason="restored")
    assert adopted.remaining().runs == before.runs == 3
    assert adopted.remaining().epsilon == pytest.approx(before.epsilon)


def test_releases_of_others_and_of_memory_say_nothing_about_a_ledger(home: Path) -> None:
    ledger = Ledger.open_for(make_schema(), home)
    other = Ledger.in_memory(ledger.guarantee, name="meters", max_runs=2)
    publish(charge(other), home / "in-memory")
    others = Ledger.create(home / "o.ledger", name="o", unit_sentence="", guarantee=ledger.guarantee, max_runs=2)
    publish(charge(others), home / "others")
    (home / "broken").mkdir()
    (home / "broken" / "certificate.json").write_text("{")
    assert Ledger.open_for(make_schema(), home).entries() == ()
