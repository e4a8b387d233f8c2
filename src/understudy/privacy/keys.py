"""The holder's Ed25519 keys, and the public keys of others whose certificates this computer trusts.

Files in UNDERSTUDY_HOME: `keys/NAME.key` (private, readable by its owner only; sealed if there is a passphrase, or the
command of an external signer), `keys/NAME.pub`, `trusted/FINGERPRINT.pub`, each with the name of its signer, and
`revoked/FINGERPRINT.txt`. A signature says who issued a certificate; it says nothing about whether to trust them.
"""

import getpass
import json
import os
import re
import secrets
import shlex
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any, NoReturn, Protocol

from cryptography.exceptions import InvalidSignature, InvalidTag, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from understudy.errors import InputError
from understudy.files import whole_file
from understudy.privacy import canonical, store
from understudy.privacy.registry import home

DEFAULT_NAME = "default"
PASSPHRASE = "UNDERSTUDY_PASSPHRASE"
_SCRYPT = {"n": 2**15, "r": 8, "p": 1}  # 32 MiB and a tenth of a second for every guess
_SIGNING_SECONDS = 120  # a person may have to touch a token


@dataclass(frozen=True)
class PublicKey:
    """A name and 32 bytes in hexadecimal, and the last day on which certificates may be signed with it."""

    name: str
    hexadecimal: str
    until: str | None = None

    @property
    def fingerprint(self) -> str:
        """Short form to read aloud: eight groups of four."""
        return fingerprint(self.hexadecimal)


class Signer(Protocol):
    """What can sign: a private key, or a program or token that has one."""

    def sign(self, data: bytes) -> bytes: ...

    def public_key(self) -> Ed25519PublicKey: ...


@dataclass(frozen=True)
class ExternalSigner:
    """A command that gets the bytes on standard input and writes their signature, 64 bytes or their hexadecimal."""

    command: str
    public: str

    def public_key(self) -> Ed25519PublicKey:
        """The public half, as it was given when the command was added."""
        return Ed25519PublicKey.from_public_bytes(bytes.fromhex(self.public))

    def sign(self, data: bytes) -> bytes:
        """Runs the command; an answer that does not verify is refused."""
        parts = shlex.split(self.command)
        try:
            done = subprocess.run(parts, input=data, capture_output=True, timeout=_SIGNING_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise InputError(
                f"The signing command '{parts[0]}' did not run to its end ({type(problem).__name__}). Run it by hand: "
                "it gets bytes on standard input and writes their Ed25519 signature."
            ) from problem
        answer = done.stdout if len(done.stdout) == 64 else _bytes_of(done.stdout.decode("ascii", "replace").strip())
        if done.returncode or not is_signed_by(self.public, answer.hex(), data):
            raise InputError(
                f"The signing command '{parts[0]}' ended with {done.returncode} and gave no Ed25519 signature of its "
                "input by the key that was added. Check the token, its PIN, and the key with `understudy keys list`."
            )
        return answer


def _bytes_of(digits: str) -> bytes:
    return bytes.fromhex(digits) if re.fullmatch(r"(?:[0-9a-fA-F]{2})*", digits) else b""


@dataclass(frozen=True)
class SigningKey:
    """A key that can sign; it is never shown and never leaves its file."""

    name: str
    secret: Signer = field(repr=False)

    @property
    def public(self) -> PublicKey:
        """The half that may be handed out."""
        return PublicKey(self.name, self.secret.public_key().public_bytes_raw().hex())

    def sign(self, message: bytes) -> str:
        """Signature in hexadecimal."""
        return self.secret.sign(message).hex()

    def __reduce__(self) -> NoReturn:
        raise TypeError("A signing key can't be copied or saved; load it by name.")


def create(name: str = DEFAULT_NAME, passphrase: str | None = None) -> SigningKey:
    """Makes a new key pair, sealed if there is a passphrase; an existing one is never overwritten."""
    secret = Ed25519PrivateKey.generate()
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    if passphrase is None:
        return _kept(SigningKey(name, secret), secret.private_bytes(encoding, form, serialization.NoEncryption()))
    return _kept(SigningKey(name, secret), _sealed(secret, passphrase))


def add(name: str, command: str, public: str) -> SigningKey:
    """Adds a key that an external signer has, such as a token; it has to sign a random text first."""
    key = SigningKey(name, ExternalSigner(command, given(public).hexadecimal))
    key.sign(b"understudy key test\n" + secrets.token_bytes(32))
    return _kept(key, json.dumps({"command": command, "public": key.public.hexadecimal}).encode())


def _key_file(name: str) -> Path:
    return _folder("keys") / f"{_checked(name)}.key"


def _kept(key: SigningKey, content: bytes) -> SigningKey:
    path = _key_file(key.name)
    try:
        with whole_file(path, replace=False) as draft:
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(content)
    except FileExistsError:
        raise InputError(f"There already is a key named '{key.name}'. Choose another name.") from None
    except OSError as problem:
        raise InputError(
            f"'{path}' can't be written ({problem.strerror}). Free some space, or choose a writable UNDERSTUDY_HOME."
        ) from problem
    export(key.public, path.with_suffix(".pub"))
    return key


def _sealed(secret: Ed25519PrivateKey, passphrase: str) -> bytes:
    """The key encrypted with AES-256-GCM under what scrypt makes of the passphrase (RFC 7914)."""
    salt, nonce, public = secrets.token_bytes(16), secrets.token_bytes(12), secret.public_key().public_bytes_raw()
    sealed = AESGCM(_stretched(passphrase, salt)).encrypt(nonce, secret.private_bytes_raw(), public)
    parts = {"salt": salt, "nonce": nonce, "sealed": sealed, "public": public}
    return json.dumps({name: value.hex() for name, value in parts.items()}).encode()


def _stretched(passphrase: str, salt: bytes) -> bytes:
    return Scrypt(salt=salt, length=32, **_SCRYPT).derive(passphrase.encode())


def _unsealed(body: Mapping[str, Any], name: str) -> Ed25519PrivateKey:
    salt, nonce, sealed, public = (_bytes_of(body[part]) for part in ("salt", "nonce", "sealed", "public"))
    try:
        found = AESGCM(_stretched(passphrase_for(name), salt)).decrypt(nonce, sealed, public)
    except InvalidTag as problem:
        told = f"The passphrase of the key '{name}' is another one. Type it again, or set {PASSPHRASE}."
        raise InputError(told) from problem
    return Ed25519PrivateKey.from_private_bytes(found)


def passphrase_for(name: str) -> str:
    """The passphrase of a key: from the environment, else from the person at the terminal."""
    told = os.environ.get(PASSPHRASE)
    if told is None and sys.stdin is not None and sys.stdin.isatty():
        told = getpass.getpass(f"Passphrase of the key '{name}': ")
    if not told:
        raise InputError(f"The key '{name}' has a passphrase. Set {PASSPHRASE}, or run the command in a terminal.")
    return told


def load(name: str = DEFAULT_NAME) -> SigningKey:
    """The signing key of that name."""
    path = _key_file(name)
    if not path.is_file():
        raise InputError(f"There is no key named '{name}'. Make one with `understudy keys create {name}`.")
    secret: object
    try:
        body = _written(path)
        if body is None:
            secret = serialization.load_pem_private_key(path.read_bytes(), password=None)
        else:
            secret = ExternalSigner(body["command"], body["public"]) if "command" in body else _unsealed(body, name)
    except InputError:
        raise
    except (KeyError, ValueError, TypeError, UnsupportedAlgorithm):
        secret = None
    if not isinstance(secret, Ed25519PrivateKey | ExternalSigner):
        raise InputError(
            f"'{path}' is no private key (Ed25519) written by `understudy keys create`. Restore it or create another."
        )
    return SigningKey(name, secret)


def _written(path: Path) -> dict[str, Any] | None:
    """What `_keep` wrote as JSON; None for a key that has no passphrase."""
    content = path.read_bytes()
    return dict(canonical.loads(content)) if content.startswith(b"{") else None


def _public_of(path: Path) -> PublicKey:
    """The public half of a key file, without its passphrase."""
    with suppress(ValueError, TypeError, KeyError):
        body = _written(path)
        if body is not None:
            return PublicKey(path.stem, str(body["public"]))
    return load(path.stem).public


def rotate(name: str, passphrase: str | None = None) -> tuple[SigningKey, str]:
    """Makes a new key under a name; the old one gets a dated name. Also returns a line for others that it signs."""
    old = load(name)
    kept = f"{name}-until-{store.now()[:10]}-{old.public.fingerprint[:4]}"
    path, target = _key_file(name), _key_file(kept)
    os.link(path, target)  # a crash leaves the old key under both names, and nothing is lost
    export(replace(old.public, name=kept), target.with_suffix(".pub"))
    path.unlink()
    new = create(name, passphrase)
    told = f"understudy-rotation {old.public.hexadecimal} {new.public.hexadecimal} {name}"
    return new, f"{told} {old.sign(told.encode())}"


def load_or_create(name: str = DEFAULT_NAME) -> SigningKey:
    """The signing key of that name, made on first use; two processes at once get the same."""
    path = _key_file(name)
    if not path.exists():
        try:
            return create(name)
        except InputError:
            if not path.exists():  # else another process was first
                raise
    return load(name)


def own() -> tuple[PublicKey, ...]:
    """Public halves of this computer's keys."""
    return tuple(_public_of(path) for path in sorted(_folder("keys").glob("*.key")))


def trusted() -> tuple[PublicKey, ...]:
    """Keys whose certificates pass here: this computer's own and those that `trust` added."""
    return (*own(), *_others())


def _others() -> tuple[PublicKey, ...]:
    return tuple(read_public(path) for path in sorted(_folder("trusted").glob("*.pub")))


def trust(file: Path | str, name: str | None = None, until: str | None = None) -> PublicKey:
    """Adds the public key in `file` to the trusted ones. Compare its fingerprint through another channel first.

    Args:
        file: a key; or the line of a rotation, by which a key that is trusted already names its successor.
        until: the last day on which certificates may be signed with it, such as 2027-12-31.
    """
    if until is not None:
        _require_day(until)
    followed = _successor(Path(file))
    key = read_public(Path(file)) if followed is None else followed
    return record(name or key.name, key.hexadecimal, until)


def _require_day(text: str) -> None:
    try:
        date.fromisoformat(text)
    except ValueError as problem:
        raise InputError(f"--until: a day such as 2027-12-31 is expected, got '{text}'. Correct the date.") from problem


def _successor(file: Path) -> PublicKey | None:
    """The key that a line of `rotate` names, once its trusted predecessor is found to have signed the line."""
    with suppress(OSError, UnicodeDecodeError):
        text = file.read_text(encoding="utf-8")
        found = re.fullmatch(r"(understudy-rotation ([0-9a-f]{64}) ([0-9a-f]{64}) (\S+)) ([0-9a-f]{128})\s*", text)
        if found is None:
            return None
        told, old, new, _, signature = found.groups()
        known = next((key for key in _others() if key.hexadecimal == old), None)
        if known is None or revocation(old) is not None or not is_signed_by(old, signature, told.encode()):
            raise InputError(
                f"'{file}': a rotation signed by a key that is trusted here and not revoked is expected. Ask the "
                "signer for their new public key by another channel."
            )
        export(replace(known, name=f"{known.name}-before-{fingerprint(new)[:4]}"), _trusted_file(known))
        return PublicKey(known.name, new)
    return None


def revoke(hexadecimal: str, reason: str) -> PublicKey:
    """Puts a key on this computer's revocation list: nothing that it signed passes any more, whatever its date."""
    if not reason.strip():
        raise InputError("reason: a text is expected; `understudy verify` prints it.")
    key = PublicKey("revoked", hexadecimal)
    with whole_file(_folder("revoked") / f"{key.fingerprint.replace(' ', '')}.txt") as draft:
        draft.write_text(f"{store.now()} {' '.join(reason.split())}\n", encoding="utf-8")
    return key


def revocation(hexadecimal: str) -> str | None:
    """When and why a key was revoked here; None if it was not."""
    path = home() / "revoked" / f"{fingerprint(hexadecimal).replace(' ', '')}.txt"
    return path.read_text(encoding="utf-8").strip() if path.exists() else None


def record(name: str, hexadecimal: str, until: str | None = None) -> PublicKey:
    """Trusts a key under its signer's name; another key that wants a name already given is refused."""
    key, known = PublicKey(_checked(name), hexadecimal, until), recorded(name)
    if known is not None and known.hexadecimal != hexadecimal:
        raise InputError(
            f"The name '{name}' belongs to the key {known.fingerprint}, and this one is {key.fingerprint}. Either it "
            "is a forgery, or the signer has a new key: ask them by another channel, and record it under another name."
        )
    export(key, _trusted_file(key))
    return key


def _trusted_file(key: PublicKey) -> Path:
    return _folder("trusted") / f"{key.fingerprint.replace(' ', '')}.pub"


def recorded(name: str) -> PublicKey | None:
    """Returns the key that was trusted under a signer's name, None if there is none."""
    return next((key for key in _others() if key.name == name), None)


def export(key: PublicKey, path: Path) -> None:
    """Writes a public key as one line: the algorithm, the key, its name."""
    with whole_file(path) as draft:
        ends = f" until={key.until}" if key.until else ""
        draft.write_text(f"understudy-ed25519 {key.hexadecimal} {key.name}{ends}\n", encoding="utf-8")


def read_public(path: Path) -> PublicKey:
    """Reads what `export` wrote."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(
            f"'{path}' can't be read as a public key. Pass a file written by `understudy keys export`."
        ) from problem
    found = _parsed(text)
    if found is None:
        raise InputError(f"'{path}' is not a public key. Pass a file written by `understudy keys export`.")
    return found


def given(text: str) -> PublicKey:
    """Returns a public key that was named by its file, its line as `keys export` prints it, or its 64 digits."""
    found = PublicKey("given", text) if re.fullmatch(r"[0-9a-f]{64}", text) else _parsed(text)
    return read_public(Path(text)) if found is None else found


def _parsed(text: str) -> PublicKey | None:
    found = re.fullmatch(r"understudy-ed25519 ([0-9a-f]{64}) (\S+)(?: until=(\d{4}-\d\d-\d\d))?\s*", text)
    if found is None and "PUBLIC KEY" in text:  # as OpenSSL and tokens write it
        with suppress(ValueError, UnsupportedAlgorithm):
            public = serialization.load_pem_public_key(text.encode())
            if isinstance(public, Ed25519PublicKey):
                return PublicKey("given", public.public_bytes_raw().hex())
    return None if found is None else PublicKey(found[2], found[1], found[3])


def fingerprint(hexadecimal: str) -> str:
    """First 128 bits of the key's SHA-256, in groups of four digits."""
    digest = canonical.sha256(f"ed25519:{hexadecimal}")[:32]
    return " ".join(digest[start : start + 4] for start in range(0, 32, 4))


def is_signed_by(hexadecimal: str, signature: str, message: bytes) -> bool:
    """Whether `signature` of `message` was made with the private half of this public key, each in its one spelling."""
    if not re.fullmatch(r"[0-9a-f]{64}", hexadecimal) or not re.fullmatch(r"[0-9a-f]{128}", signature):
        return False
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(hexadecimal)).verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _folder(name: str) -> Path:
    folder = home() / name
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _checked(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise InputError("A key's name may hold letters, digits, '.', '_' and '-' only.")
    return name
