import pickle
import shlex
import shutil
import stat
import subprocess
import sys
from pathlib import Path

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
    with pytest.raises(InputError, match="no private key"):
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


# --- passphrases ---------------------------------------------------------------------------------------------


def test_a_sealed_key_opens_with_its_passphrase_only(monkeypatch):
    made = keys.create("alice", "correct horse")
    content = (home() / "keys" / "alice.key").read_bytes()
    assert made.secret.private_bytes_raw().hex().encode() not in content
    monkeypatch.setenv(keys.PASSPHRASE, "correct horse")
    assert keys.load("alice").sign(b"x") == made.sign(b"x")
    monkeypatch.setenv(keys.PASSPHRASE, "wrong")
    with pytest.raises(InputError, match="passphrase of the key 'alice' is another one"):
        keys.load("alice")
    monkeypatch.delenv(keys.PASSPHRASE)
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError, match="Set UNDERSTUDY_PASSPHRASE"):
        keys.load("alice")
    assert keys.own() == (made.public,)


@pytest.mark.parametrize("part", ["salt", "nonce", "sealed", "public"])
def test_a_sealed_key_that_was_changed_is_refused(part, monkeypatch):
    keys.create("alice", "correct horse")
    path = home() / "keys" / "alice.key"
    body = keys.canonical.loads(path.read_bytes())
    body[part] = ("0" if body[part][0] != "0" else "1") + body[part][1:]
    path.write_text(keys.canonical.dumps(body))
    monkeypatch.setenv(keys.PASSPHRASE, "correct horse")
    with pytest.raises(InputError):
        keys.load("alice")


# --- rotation, revocation ------------------------------------------------------------------------------------


def test_a_rotation_is_followed_by_those_who_trust_the_old_key(tmp_path, monkeypatch):
    old = keys.create("bank").public
    keys.export(old, tmp_path / "bank.pub")
    new, line = keys.rotate("bank")
    (tmp_path / "rotation").write_text(line)
    assert keys.load("bank").public == new.public
    assert {key.hexadecimal for key in keys.own()} == {old.hexadecimal, new.public.hexadecimal}
    monkeypatch.setenv("UNDERSTUDY_HOME", str(tmp_path / "elsewhere"))
    with pytest.raises(InputError, match="trusted here"):
        keys.trust(tmp_path / "rotation")
    keys.trust(tmp_path / "bank.pub", "the-bank")
    assert keys.trust(tmp_path / "rotation") == keys.recorded("the-bank")
    assert keys.recorded("the-bank").hexadecimal == new.public.hexadecimal
    assert {key.hexadecimal for key in keys.trusted()} == {old.hexadecimal, new.public.hexadecimal}


def test_a_rotation_by_another_key_or_by_a_revoked_one_is_refused(tmp_path, monkeypatch):
    bank, mallory = keys.create("bank"), keys.create("mallory")
    told = f"understudy-rotation {bank.public.hexadecimal} {mallory.public.hexadecimal} bank"
    keys.export(bank.public, tmp_path / "bank.pub")
    monkeypatch.setenv("UNDERSTUDY_HOME", str(tmp_path / "elsewhere"))
    keys.trust(tmp_path / "bank.pub")
    (tmp_path / "forged").write_text(f"{told} {mallory.sign(told.encode())}")
    with pytest.raises(InputError, match="a rotation signed by a key that is trusted here"):
        keys.trust(tmp_path / "forged")
    keys.revoke(bank.public.hexadecimal, "stolen")
    (tmp_path / "stolen").write_text(f"{told} {bank.sign(told.encode())}")
    with pytest.raises(InputError, match="not revoked"):
        keys.trust(tmp_path / "stolen")


# --- external signers ----------------------------------------------------------------------------------------

SIGN = (
    "import sys; from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey as K; "
    "sys.stdout.buffer.write(K.from_private_bytes(bytes(32)).sign(sys.stdin.buffer.read()))"
)


def test_an_external_signer_signs_and_is_asked_for_nothing_else():
    public = keys.Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key().public_bytes_raw().hex()
    command = shlex.join([sys.executable, "-c", SIGN])
    added = keys.add("token", command, public)
    assert keys.is_signed_by(public, keys.load("token").sign(b"message"), b"message")
    assert keys.own() == (added.public,)


@pytest.mark.parametrize("command", ["true", "cat", "false", "/no/such/program"])
def test_a_command_that_does_not_sign_is_not_added(command):
    with pytest.raises(InputError, match="signing command"):
        keys.add("token", command, "ab" * 32)
    assert keys.own() == ()


def test_a_token_signs_through_pkcs11(tmp_path, monkeypatch):
    """SoftHSM, a token in software, by OpenSC's command."""
    module = Path("/usr/lib/softhsm/libsofthsm2.so")
    if shutil.which("pkcs11-tool") is None or not module.exists():
        pytest.skip("SoftHSM or OpenSC is not installed: scripts/ensure-postgresql.sh does it")
    (tmp_path / "tokens").mkdir()
    (tmp_path / "conf").write_text(f"directories.tokendir = {tmp_path / 'tokens'}\n")
    monkeypatch.setenv("SOFTHSM2_CONF", str(tmp_path / "conf"))
    tool = ["pkcs11-tool", "--module", str(module)]
    for command in (
        ["softhsm2-util", "--init-token", "--free", "--label", "t", "--pin", "1234", "--so-pin", "1234"],
        [*tool, "--login", "--pin", "1234", "--keypairgen", "--key-type", "EC:edwards25519", "--id", "01"],
        [*tool, "--read-object", "--type", "pubkey", "--id", "01", "-o", str(tmp_path / "token.pem")],
    ):
        subprocess.run(command, check=True, capture_output=True)
    sign = shlex.join([*tool, "--login", "--pin", "1234", "--sign", "--mechanism", "EDDSA", "--id", "01"])
    script = tmp_path / "sign"
    script.write_text(f'#!/bin/sh\nset -e\ncat > "$0.in"\n{sign} -i "$0.in" -o "$0.out" 1>&2\ncat "$0.out"\n')
    script.chmod(0o700)
    key = keys.add("token", str(script), str(tmp_path / "token.pem"))
    assert keys.is_signed_by(key.public.hexadecimal, keys.load("token").sign(b"message"), b"message")


def test_a_signature_has_one_spelling():
    """Else two certificates that differ would both be as they were signed."""
    key = keys.create("alice")
    public, signature = key.public.hexadecimal, key.sign(b"text")
    assert keys.is_signed_by(public, signature, b"text")
    for other in (signature.upper(), f"{signature[:64]} {signature[64:]}", f" {signature}"):
        assert not keys.is_signed_by(public, other, b"text")
    assert not keys.is_signed_by(public.upper(), signature, b"text")
