"""`understudy app` as a command: what it refuses before it listens."""

from pathlib import Path

import pytest

from tests.e2e.commands import run


def test_another_address_needs_a_flag_that_says_what_it_means(tmp_path: Path) -> None:
    refused = run("app", tmp_path, "--listen", "192.0.2.1")
    assert refused.code == 2
    assert "--others-can-reach-it" in refused.err


def test_all_addresses_at_once_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNDERSTUDY_APP_PASSWORD", "right")  # pragma: allowlist secret
    refused = run("app", tmp_path, "--listen", "0.0.0.0", "--others-can-reach-it")
    assert refused.code == 2
    assert "one address of this machine" in refused.err


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "Make it, or name another one" in run("app", tmp_path / "nothing").err


def test_a_missing_package_is_one_sentence_with_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("understudy.extras.find_spec", lambda module: None)
    refused = run("app", tmp_path)
    assert refused.code == 3
    assert "`app` needs Starlette, which is not installed." in refused.err
    assert "pip install 'understudy[app]'" in refused.err
