"""A missing extra is one sentence with the command that brings it."""

import sys

import pytest

from understudy.errors import MissingExtra, UnderstudyError
from understudy.extras import naming_extras, require_extra
from understudy.synthesizers.registry import Methods


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


def test_a_package_below_a_missing_one_is_missing_too() -> None:
    with pytest.raises(MissingExtra, match=r"understudy\[mine\]"):
        require_extra("no_such_package.part", extra="mine", by="--option")


def test_a_method_whose_package_is_missing_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    for module in [name for name in sys.modules if name.startswith("understudy.synthesizers.dit")]:
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(MissingExtra, match="`dit` needs PyTorch"):
        Methods(dit="dit.published.MaskedDiT")["dit"]


def test_a_broken_import_of_our_own_is_no_missing_extra() -> None:
    with pytest.raises(ModuleNotFoundError) as broken, naming_extras("dit"):
        import understudy.no_such_room  # noqa: F401
    assert not isinstance(broken.value, MissingExtra)
