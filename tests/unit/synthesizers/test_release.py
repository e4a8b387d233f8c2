import dataclasses
from pathlib import Path

import numpy as np
import pytest

from understudy.errors import InputError, ReleaseError
from understudy.privacy import keys
from understudy.privacy.budget import Guarantee
from understudy.privacy.certificate import seal, verify
from understudy.privacy.ledger import Ledger
from understudy.synthesizers import METHODS, Release
from understudy.synthesizers.contract.panels import make_panel, plain_schema
from understudy.synthesizers.independent import Independent


@pytest.fixture
def release() -> Release:
    return METHODS["spectral"]().fit(make_panel(plain_schema()), Ledger.in_memory(Guarantee(2.0, 1e-6)))


def test_a_release_is_four_files_and_none_of_them_runs_code(release: Release, tmp_path: Path) -> None:
    release.save(tmp_path / "out")
    found = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert found == ["certificate.json", "model.safetensors", "release.json", "schema.toml"]


def test_samples_are_shipped_and_covered_by_the_certificate(release: Release, tmp_path: Path) -> None:
    saved = release.save(tmp_path / "out", samples=release.sample(20))
    assert "synthetic.parquet" in saved.certificate.files
    assert all(check.ok for check in verify(saved.certificate, tmp_path / "out") if "signer" not in check.name)


def test_a_directory_that_exists_is_never_overwritten(release: Release, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(ReleaseError, match="never overwritten"):
        release.save(tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())


def test_a_fit_that_is_to_be_saved_where_something_is_charges_nothing(tmp_path: Path) -> None:
    ledger = Ledger.in_memory(Guarantee(2.0, 1e-6), max_runs=2)
    for _ in range(3):
        (tmp_path / "out").mkdir(exist_ok=True)
        with pytest.raises(ReleaseError, match="never overwritten"):
            METHODS["spectral"]().fit(make_panel(plain_schema()), ledger, save_to=tmp_path / "out")
    assert not ledger.entries()
    share = Guarantee(1.0, 5e-7)
    made = METHODS["spectral"]().fit(make_panel(plain_schema()), ledger, guarantee=share, save_to=tmp_path / "new")
    assert Release.load(tmp_path / "new").certificate == made.certificate


@pytest.mark.parametrize("name", ["model.safetensors", "release.json", "schema.toml", "certificate.json"])
@pytest.mark.parametrize("damage", [b"", b"{}", b"\x00\xff" * 40])
def test_a_damaged_file_is_refused(name: str, damage: bytes, release: Release, tmp_path: Path) -> None:
    release.save(tmp_path / "out")
    (tmp_path / "out" / name).write_bytes(damage)
    with pytest.raises(InputError):  # whose exit code is 2
        Release.load(tmp_path / "out")


ARRAYS = {
    "one array less": lambda arrays: arrays.pop("mean"),
    "no array at all": lambda arrays: arrays.clear(),
    "an array of another shape": lambda arrays: arrays.update(rotation=np.zeros(3)),
    "a matrix that can't be turned back": lambda arrays: arrays.update(rotation=0 * arrays["rotation"]),
    "shares that are no numbers": lambda arrays: arrays.update(kind_share=np.nan * arrays["kind_share"]),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_a_signed_release_is_damaged_that_has(
    kind: str, release: Release, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    arrays = dict(release.arrays)
    ARRAYS[kind](arrays)
    dataclasses.replace(release, arrays=arrays).save(tmp_path / "out")
    with pytest.raises(ReleaseError, match=r"model\.safetensors"):
        Release.load(tmp_path / "out").sample(5)
    assert not recwarn.list


def test_what_a_fit_draws_from_is_never_called_damaged(release: Release) -> None:
    with pytest.raises(KeyError):
        dataclasses.replace(release, arrays={}).sample(5)


@pytest.mark.parametrize(
    "facts",
    [
        "[" * 100_000,
        "9" * 5000,
        "[]",
        '{"format": 1, "method": []}',
        '{"format": 1, "method": "spectral", "options": 7}',
    ],
)
def test_a_signed_release_is_refused_that_says_this_about_its_method(
    facts: str, release: Release, tmp_path: Path
) -> None:
    release.save(tmp_path / "out")
    (tmp_path / "out" / "release.json").write_text(facts)
    (tmp_path / "out" / "certificate.json").unlink()
    seal(release.certificate, tmp_path / "out", keys.load_or_create())
    with pytest.raises(ReleaseError):
        Release.load(tmp_path / "out")


def test_a_certificate_that_was_edited_later_is_refused(release: Release, tmp_path: Path) -> None:
    release.save(tmp_path / "out")
    file = tmp_path / "out" / "certificate.json"
    file.write_text(file.read_text().replace('"noise_is_secure": true', '"noise_is_secure": false'))
    with pytest.raises(ReleaseError, match="edited"):
        Release.load(tmp_path / "out")


def test_a_missing_file_or_directory_is_refused(release: Release, tmp_path: Path) -> None:
    release.save(tmp_path / "out")
    (tmp_path / "out" / "model.safetensors").unlink()
    for place in ("out", "nowhere"):
        with pytest.raises(ReleaseError):
            Release.load(tmp_path / place)


def test_a_write_that_fails_leaves_nothing_behind(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Release, "write_files", full_disk)
    with pytest.raises(ReleaseError, match="No space left"):
        release.save(tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_sampling_needs_nothing_but_the_release(release: Release, tmp_path: Path) -> None:
    release.save(tmp_path / "out")
    loaded = Release.load(tmp_path / "out")
    first, second = (loaded.sample(5, rng=np.random.default_rng(1)).values for _ in range(2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, loaded.sample(5).values)


def test_the_start_of_samples_can_be_moved(release: Release) -> None:
    assert release.sample(2, start="2025-06-01T00:00:00").schema.time.start == "2025-06-01T00:00:00"


def test_the_control_says_that_it_cost_nothing() -> None:
    ledger = Ledger.in_memory(Guarantee(2.0, 1e-6))
    release = Independent().fit(make_panel(plain_schema()), ledger)
    assert release.certificate.epsilon == 0
    assert ledger.remaining().epsilon == 2.0


def test_the_control_draws_the_same_whatever_the_data() -> None:
    drawn = []
    for seed in (1, 2):
        panel = make_panel(plain_schema(), seed=seed)
        release = Independent().fit(panel, Ledger.in_memory(Guarantee(2.0, 1e-6)))
        drawn.append(release.sample(9, rng=np.random.default_rng(3)).values)
    assert np.array_equal(*drawn)


@pytest.mark.filterwarnings("error")
def test_context_that_no_panel_can_hold_is_refused(release: Release) -> None:
    with pytest.raises(InputError, match="finite"):
        release.sample(2, context=np.full((release.schema.num_steps, 1), 1e300))
