import pickle
import stat

import pytest

from understudy.errors import InputError
from understudy.privacy import keys
from understudy.privacy.registry import home


def test_a_private_key_is_readable_by_its_owner_only():
    keys.create("alice")
    assert stat.S_IMODE((home() / "keys" / "alice.key").stat().st_mode) == 0o600


def test_a_key_is_never_overwritten():
    first = keys.create("alice")
    with pytest.raises(InputError, match="already is a key"):
        keys.create("alice")
    assert keys.load("alice").public == first.public == keys.load_or_create("alice").public


def test_whoever_comes_second_to_make_a_key_takes_the_first_ones(monkeypatch):
    """Two processes found no key; the other one makes it just before ours does."""
    genuine, others = keys.create, []

    def late(name):
        others.append(genuine(name))
        return genuine(name)

    monkeypatch.setattr(keys, "create", late)
    assert keys.load_or_create("alice").public == others[0].public


def test_a_signature_holds_for_its_message_and_key_only():
    alice, mallory = keys.create("alice"), keys.create("mallory")
    signature = alice.sign(b"message")
    assert keys.is_signed_by(alice.public.hexadecimal, signature, b"message")
    assert not keys.is_signed_by(alice.public.hexadecimal, signature, b"massage")
    assert not keys.is_signed_by(mallory.public.hexadecimal, signature, b"message")
    assert not keys.is_signed_by("nonsense", signature, b"message")
    assert not keys.is_signed_by(alice.public.hexadecimal, "nonsense", b"message")


def test_a_public_key_can_be_carried_to_another_computer_and_trusted(tmp_path, monkeypatch):
    public = keys.create("alice").public
    keys.export(public, tmp_path / "alice.pub")
    monkeypatch.setenv("UNDERSTUDY_HOME", str(tmp_path / "elsewhere"))
    assert keys.trusted() == ()
    assert keys.trust(tmp_path / "alice.pub") == public
    assert keys.trusted() == (public,)
    assert len(public.fingerprint.split()) == 8


def test_a_secret_is_not_shown_and_not_pickled():
    key = keys.create("alice")
    assert "PrivateKey" not in repr(key)
    with pytest.raises(TypeError):
        pickle.dumps(key)


@pytest.mark.parametrize("name", ["", "../evil", "a b", ".hidden"])
def test_a_name_that_is_no_file_name_is_refused(name):
    with pytest.raises(InputError):
        keys.create(name)


def test_a_missing_key_says_how_to_make_it():
    with pytest.raises(InputError, match="understudy keys create bob"):
        keys.load("bob")


def test_files_that_are_no_keys_are_refused(tmp_path):
    (tmp_path / "x.pub").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError):
        keys.trust(tmp_path / "x.pub")
    keys.create("alice")
    (home() / "keys" / "alice.key").write_text("not a key")
    with pytest.raises(InputError, match="not a private key"):
        keys.load("alice")


def test_a_name_keeps_its_key_and_another_key_under_it_is_refused(tmp_path):
    first, second = keys.create("first").public, keys.create("second").public
    assert keys.record("bank", first.hexadecimal) == keys.recorded("bank")
    keys.record("bank", first.hexadecimal)
    with pytest.raises(InputError, match="belongs to the key") as caught:
        keys.record("bank", second.hexadecimal)
    assert second.fingerprint in str(caught.value)
    keys.export(second, tmp_path / "second.pub")
    with pytest.raises(InputError, match="another name"):
        keys.trust(tmp_path / "second.pub", "bank")
    assert keys.trust(tmp_path / "second.pub", "bank-2026").name == "bank-2026"


def test_a_key_is_given_by_its_file_its_line_or_its_digits(tmp_path):
    public = keys.create("mine").public
    keys.export(public, tmp_path / "mine.pub")
    for text in (str(tmp_path / "mine.pub"), (tmp_path / "mine.pub").read_text(), public.hexadecimal):
        assert keys.given(text).hexadecimal == public.hexadecimal
    with pytest.raises(InputError):
        keys.given("ab" * 31)
