"""`verify` recomputes everything from the certificate, and whatever was touched afterwards fails."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.commands import Clinic, make_clinic, run


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home-of-the-holder")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Clinic:
    clinic = make_clinic(tmp_path_factory.mktemp("verify") / "clinic")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNDERSTUDY_HOME", str(home))
        assert run(*clinic.synth()).code == 0
    return clinic


@pytest.fixture
def release(original: Clinic, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the release that a test may damage, on the computer of its holder."""
    monkeypatch.setenv("UNDERSTUDY_HOME", str(home))
    return Path(shutil.copytree(original.release, tmp_path / "release"))


def edit(release: Path, change: Callable[[dict[str, object]], None]) -> None:
    path = release / "certificate.json"
    body = json.loads(path.read_text())
    change(body)
    path.write_text(json.dumps(body, indent=2))


def test_a_release_holds_and_its_epsilon_is_recomputed_to_one_percent(release: Path) -> None:
    outcome = run("verify", release, "--json")
    certificate = json.loads((release / "certificate.json").read_text())
    assert outcome.code == 0
    assert outcome.facts["holds"]
    assert outcome.facts["epsilon"] == pytest.approx(0.5, rel=0.01)
    assert certificate["epsilon"] == pytest.approx(0.5, rel=0.01)
    assert next(iter(certificate)) == "status"


def test_a_certificate_alone_can_be_verified(release: Path, tmp_path: Path) -> None:
    alone = shutil.copy(release / "certificate.json", tmp_path / "alone.json")
    assert run("verify", alone).code == 0


EDITS: dict[str, Callable[[dict[str, object]], None]] = {
    "epsilon": lambda body: body.update(epsilon=0.1),
    "the unit": lambda body: body.update(unit="Everybody is protected from everything."),
    "the events": lambda body: body.update(events=[]),
    "a hash": lambda body: body["files"].update({"release.json": "0" * 64}),  # type: ignore[attr-defined]
    "an override": lambda body: body.update(overrides={"few_units": "why not"}),
    "the noise": lambda body: body.update(noise="dice"),
    "its own fields": lambda body: body.update(extra=1),
}


@pytest.mark.parametrize("what", EDITS)
def test_a_certificate_fails_after_somebody_edited(what: str, release: Path) -> None:
    edit(release, EDITS[what])
    outcome = run("verify", release)
    assert outcome.code == 2
    assert "error: " in outcome.err


def test_an_altered_data_file_fails_by_name(release: Path) -> None:
    data = release / "synthetic.parquet"
    content = bytearray(data.read_bytes())
    content[len(content) // 2] ^= 1
    data.write_bytes(content)
    outcome = run("verify", release)
    assert outcome.code == 2
    assert "synthetic.parquet" in outcome.err


@pytest.mark.parametrize("change", ["added", "removed"])
def test_a_file_fails_that_was(change: str, release: Path) -> None:
    if change == "added":
        (release / "more.csv").write_text("a,b\n")
    else:
        (release / "synthetic.parquet").unlink()
    assert run("verify", release).code == 2


def test_a_foreign_signature_fails(release: Path, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from understudy.privacy import keys
    from understudy.privacy.certificate import Certificate, seal

    monkeypatch.setenv("UNDERSTUDY_HOME", str(tmp_path / "stranger"))
    seal(Certificate.load(release), release, keys.create("stranger"))
    run("keys", "export", "stranger", "--out", tmp_path / "stranger.pub")
    assert run("verify", release, "--key", tmp_path / "stranger.pub").code == 0
    monkeypatch.setenv("UNDERSTUDY_HOME", str(home))
    outcome = run("verify", release)
    assert outcome.code == 5
    assert "signed" in outcome.err
    assert run("keys", "export", "--out", tmp_path / "holder.pub").code == 0
    assert run("verify", release, "--trust", tmp_path / "holder.pub").code == 5
    assert run("keys", "revoke", tmp_path / "stranger.pub", "--reason", "a stranger").code == 0
    outcome = run("verify", release, "--trust", tmp_path / "stranger.pub")
    assert outcome.code == 7
    assert "a stranger" in outcome.err


def test_a_sealed_key_is_made_rotated_and_followed(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNDERSTUDY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("UNDERSTUDY_PASSPHRASE", "correct horse")
    assert run("keys", "create", "holder", "--passphrase").code == 0
    assert run("keys", "export", "holder", "--out", tmp_path / "holder.pub").code == 0
    assert run("keys", "rotate", "holder", "--out", tmp_path / "rotation", "--passphrase").code == 0
    monkeypatch.setenv("UNDERSTUDY_HOME", str(tmp_path / "recipient"))
    assert (
        run("keys", "trust", tmp_path / "holder.pub", "--until", "2999-12-31", "--json").facts["until"] == "2999-12-31"
    )
    assert run("keys", "trust", tmp_path / "holder.pub", "--until", "soon").code == 2
    assert run("keys", "trust", tmp_path / "rotation").code == 0
    assert len(run("keys", "list", "--json").facts["keys"]) == 2


@pytest.fixture
def forged(original: Clinic, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The private table handed out as synthetic data, with a certificate signed by a key made for the purpose."""
    from understudy.privacy import keys
    from understudy.privacy.certificate import Certificate, seal

    (release / "synthetic.parquet").write_bytes(original.table.read_bytes())
    monkeypatch.setenv("UNDERSTUDY_HOME", str(tmp_path / "forger"))
    seal(Certificate.load(release), release, keys.create("hospital"))
    monkeypatch.setenv("UNDERSTUDY_HOME", str(tmp_path / "fresh"))
    return release


def test_a_forged_release_does_not_hold_on_a_fresh_machine(forged: Path) -> None:
    outcome = run("verify", forged, "--json")
    assert outcome.code == 5
    assert outcome.facts["exit_code"] == 5
    assert outcome.facts["holds"] is False
    assert outcome.facts["signer_known"] is False
    assert [check["name"] for check in outcome.facts["checks"] if not check["ok"]] == ["signer"]
    shown = run("verify", forged)
    assert "a forger can sign with a new key" in shown.err
    assert "--signer NAME" in shown.err


def test_a_signer_is_recorded_by_name_at_first_and_a_forger_fails_under_that_name(
    original: Clinic, forged: Path, tmp_path: Path
) -> None:
    genuine = Path(shutil.copytree(original.release, tmp_path / "genuine"))
    assert run("verify", genuine).code == 5
    first = run("verify", genuine, "--signer", "hospital", "--json")
    assert first.code == 0
    assert first.facts["holds"]
    assert first.facts["signer_known"]
    assert run("verify", genuine).code == 0
    assert run("verify", genuine, "--signer", "hospital").code == 0
    outcome = run("verify", forged, "--signer", "hospital", "--json")
    assert outcome.code == 2
    assert outcome.facts["holds"] is False
    assert run("verify", forged).code == 5


def test_a_broken_release_records_nobody(forged: Path) -> None:
    (forged / "synthetic.parquet").write_bytes(b"other")
    assert run("verify", forged, "--signer", "hospital").code == 2
    assert not run("keys", "list", "--json").facts["keys"]


def test_somebody_else_verifies_with_the_holders_public_key(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("keys", "export", "--out", tmp_path / "holder.pub").code == 0
    monkeypatch.setenv("UNDERSTUDY_HOME", str(tmp_path / "elsewhere"))
    assert run("verify", release, "--key", tmp_path / "holder.pub").code == 0
    assert run("keys", "create", "mine").code == 0
    assert run("verify", release).code == 5
    assert run("keys", "trust", tmp_path / "holder.pub").code == 0
    assert run("verify", release).code == 0


def test_no_page_is_written_about_an_edited_certificate(release: Path, tmp_path: Path) -> None:
    assert run("certificate", release, "--format", "html", "--out", tmp_path / "page.html").code == 0
    edit(release, EDITS["epsilon"])
    outcome = run("certificate", release, "--format", "html", "--out", tmp_path / "second.html")
    assert outcome.code == 2
    assert not (tmp_path / "second.html").exists()


def test_a_release_that_is_not_there_is_missing_data(tmp_path: Path) -> None:
    assert run("verify", tmp_path / "nowhere").code == 3
