"""A missing extra is one sentence with the command that brings it."""

import pytest

from understudy.errors import MissingExtra, UnderstudyError
from understudy.extras import require_extra


def test_a_package_that_is_there_passes() -> None:
    require_extra("numpy", extra="neural", by="dit")


def test_a_missing_package_is_one_sentence_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("understudy.extras.find_spec", lambda module: None)
    with pytest.raises(MissingExtra) as refused:
        require_extra("torch", extra="neural", by="dit")
    assert str(refused.value) == (
        "`dit` needs PyTorch, which is not installed. Install it with: pip install 'understudy[neural]'."
    )
    assert isinstance(refused.value, UnderstudyError)
    assert isinstance(refused.value, ImportError)
    assert (refused.value.exit_code, refused.value.facts) == (3, {"module": "torch", "extra": "neural"})
