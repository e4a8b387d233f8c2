"""`report` and `compare` as a person types them: pages, refusals, and a choice that is charged."""

import re
from pathlib import Path

import pytest

from tests.e2e.commands import MAGIC_PERSON, MAGIC_VALUE, Clinic, charges, make_clinic, run
from tests.planted.search import Planted, found
from tests.unit.report.toy import METRICS


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Clinic:
    """One clinic for all tests here: releases take a while."""
    return make_clinic(tmp_path_factory.mktemp("clinic"))


@pytest.fixture
def released(clinic: Clinic, understudy_home: Path, monkeypatch: pytest.MonkeyPatch) -> Clinic:
    """The clinic with releases `first` and `second`; metrics that take no time."""
    monkeypatch.setenv("UNDERSTUDY_HOME", str(clinic.folder / "home"))
    monkeypatch.setattr("understudy.api.scoring.metrics_of", lambda names=(): METRICS)
    if not (clinic.folder / "record.json").exists():
        for name, epsilon in (("first", "0.5"), ("second", "0.2")):
            assert run(*clinic.synth(epsilon=epsilon, out=clinic.folder / name)).code == 0
        first, real = clinic.folder / "first", ("--real", clinic.table)
        assert run("evaluate", first, *real, "--record", clinic.folder / "record.json").code == 0
    return clinic


def test_a_release_alone_gives_a_public_page_with_its_ledger(released: Clinic, tmp_path: Path) -> None:
    outcome = run("report", released.folder / "first", "--out", tmp_path / "page.html", "--json")
    assert outcome.facts["kind"] == "public"
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<h3>Privacy ledger</h3>" in page
    assert "spectral" in page
    assert str(released.folder) not in page


def test_a_table_that_nothing_vouches_for_gets_no_public_page(released: Clinic, tmp_path: Path) -> None:
    """It may be the real one."""
    record = tmp_path / "record.json"
    real = ("--real", released.table, "--schema", released.schema)
    made = run("evaluate", released.table, *real, "--record", record)
    assert made.code == 0, made.err
    assert record.stat().st_mode & 0o077 == 0  # it shows real series
    outcome = run("report", record, "--public", "--out", tmp_path / "page.html")
    assert (outcome.code, "certificate is expected" in outcome.err) == (2, True), outcome.err
    assert not (tmp_path / "page.html").exists()


def test_a_record_gives_an_internal_page_and_a_public_one(released: Clinic, tmp_path: Path) -> None:
    record = released.folder / "record.json"
    assert run("report", record, "--out", tmp_path / "internal.html", "--json").facts["kind"] == "internal"
    facts = run("report", record, "--public", "--out", tmp_path / "p.html", "--figures", tmp_path / "f", "--json").facts
    assert facts["kind"] == "public"
    assert len(list((tmp_path / "f").iterdir())) == len(facts["figures"]) > 4
    assert not any(name.startswith("pca") for name in facts["figures"])  # one point is one real series
    assert (tmp_path / "internal.html").stat().st_mode & 0o077 == 0  # it shows real series
    assert (tmp_path / "p.html").stat().st_mode & 0o044 == 0o044
    drawn = run("report", record, "--out", tmp_path / "i.html", "--figures", tmp_path / "drawn")
    assert drawn.code == 0
    assert (tmp_path / "drawn").stat().st_mode & 0o077 == 0
    internal, public = ((tmp_path / name).read_text(encoding="utf-8") for name in ("internal.html", "p.html"))
    assert "Gap of means" in internal
    assert "Gap of means" not in public
    planted = Planted(numbers=(float(MAGIC_VALUE),), words=(MAGIC_PERSON,))
    assert found(tmp_path / "p.html", planted) == found(tmp_path / "f", planted) == []


@pytest.mark.parametrize(
    ("damage", "code", "says"),
    [
        (lambda record: record.unlink(), 3, "nothing is at"),
        (lambda record: record.write_text(record.read_text()[:-40]), 2, "Write it again"),
        (lambda record: record.write_text(record.read_text().replace('"format":2', '"format":7')), 2, "format 2"),
        (lambda record: record.write_bytes(b"\xff\xfe\x00"), 2, "not text"),
    ],
)
def test_a_record_that_is_not_one_is_refused(released: Clinic, tmp_path: Path, damage, code: int, says: str) -> None:
    record = tmp_path / "record.json"
    record.write_bytes((released.folder / "record.json").read_bytes())
    damage(record)
    outcome = run("report", record, "--out", tmp_path / "page.html")
    assert (outcome.code, says in outcome.err) == (code, True), outcome.err
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("file", ["synthetic.parquet", "model.safetensors", "certificate.json"])
def test_a_damaged_release_gets_no_page(released: Clinic, tmp_path: Path, file: str) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(released.folder / "first", copy)
    (copy / file).write_bytes((copy / file).read_bytes()[:-7] + b"damaged")
    outcome = run("report", copy, "--out", tmp_path / "page.html")
    assert outcome.code == 2
    assert "again" in outcome.err or "not a certificate" in outcome.err, outcome.err
    assert not (tmp_path / "page.html").exists()


def test_a_record_whose_certificate_was_edited_gets_no_page(released: Clinic, tmp_path: Path) -> None:
    from understudy.report.record import RunRecord

    record = RunRecord.load(released.folder / "record.json")
    flattered = {**record.public, "certificate": {**record.public["certificate"], "epsilon": 0.01}}
    (tmp_path / "record.json").write_text(RunRecord(public=flattered, internal=record.internal).dumps())
    outcome = run("report", tmp_path / "record.json", "--out", tmp_path / "page.html")
    assert outcome.code == 2
    assert "does not hold" in outcome.err


def test_pages_never_replace_what_is_there_nor_enter_a_release(released: Clinic, tmp_path: Path) -> None:
    (tmp_path / "mine.html").write_text("mine")
    first = released.folder / "first"
    assert run("report", first, "--out", tmp_path / "mine.html").code == 2
    assert run("report", first, "--out", first / "page.html").code == 2
    assert (tmp_path / "mine.html").read_text() == "mine"


def test_a_comparison_is_written_down_in_the_ledger_and_says_what_it_is(released: Clinic, tmp_path: Path) -> None:
    before = len(charges(released.ledger))
    both = (released.folder / "first", released.folder / "second")
    outcome = run("compare", *both, "--real", released.table, "--report", tmp_path / "compare.html", "--json")
    assert outcome.code == 0, outcome.err
    assert "covered by no guarantee" in outcome.facts["warning"]
    *_, note = charges(released.ledger)
    assert len(charges(released.ledger)) == before + 1
    assert note.label == "compared with real data, not covered: first, second"
    assert note.epsilon == 0
    assert (tmp_path / "compare.html").stat().st_mode & 0o077 == 0  # it shows real series
    page = (tmp_path / "compare.html").read_text(encoding="utf-8")
    assert "Choosing by this page is covered by no guarantee" in page
    assert "The ledger of &#39;clinic&#39; says that they were compared" in page


def test_a_choice_is_charged_and_certified(released: Clinic, tmp_path: Path) -> None:
    both = (released.folder / "first", released.folder / "second")
    price = ("--select", "--epsilon", "0.1", "--schema", released.schema, "--out", tmp_path / "choice.json")
    outcome = run("compare", *both, "--real", released.table, *price, "--json")
    assert outcome.code == 0, outcome.err
    assert re.fullmatch(r"Chosen: (first|second), among first, second", outcome.facts["choice"])
    *_, entry = charges(released.ledger)
    assert entry.epsilon == pytest.approx(0.1, rel=1e-3)
    assert entry.executed == {"choice among releases": 1}
    assert run("verify", tmp_path / "choice.json").code == 0


def test_a_choice_that_the_ledger_cannot_pay_is_refused_and_leaves_nothing(released: Clinic, tmp_path: Path) -> None:
    before = released.ledger.read_bytes()
    both = (released.folder / "first", released.folder / "second")
    price = ("--select", "--epsilon", "1.9", "--schema", released.schema, "--out", tmp_path / "choice.json")
    assert run("compare", *both, "--real", released.table, *price).code == 4
    assert not list(tmp_path.iterdir())
    assert released.ledger.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["first", "--report", "new.html"], 2, "wo to"),
        (["first", "first", "--report", "new.html"], 2, "names of their own"),
        (["first", "second"], 2, "--report or --select"),
        (["first", "second", "--select"], 2, "are expected"),
        (["first", "second", "--report", "new.html", "--epsilon", "1"], 2, "apply only with --select"),
        (["first", "nowhere", "--report", "new.html"], 3, "nothing is at"),
    ],
)
def test_comparisons_that_make_no_sense_are_refused(
    released: Clinic, arguments: list[str], code: int, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(released.folder)
    outcome = run("compare", *arguments, "--real", released.table)
    assert (outcome.code, says in outcome.err) == (code, True), outcome.err
    assert not (released.folder / "new.html").exists()
