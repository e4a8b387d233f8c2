"""The holder's Ed25519 keys, and the public keys of others whose certificates this computer trusts.

Files in UNDERSTUDY_HOME: `keys/NAME.key` (private, readable by its owner only), `keys/NAME.pub`, and
`trusted/FINGERPRINT.pub`, each with the name of its signer. A signature says who issued a certificate; it says nothing
about whether to trust them.
"""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from understudy.errors import InputError
from understudy.files import whole_file
from understudy.privacy import canonical
from understudy.privacy.registry import home

DEFAULT_NAME = "default"


@dataclass(frozen=True)
class PublicKey:
    """A name and 32 bytes in hexadecimal."""

    name: str
    hexadecimal: str

    @property
    def fingerprint(self) -> str:
        """Short form to read aloud: eight groups of four."""
        return fingerprint(self.hexadecimal)


@dataclass(frozen=True)
class SigningKey:
    """A key that can sign; it is never shown and never leaves its file."""

    name: str
    secret: Ed25519PrivateKey = field(repr=False)

    @property
    def public(self) -> PublicKey:
        """The half that may be handed out."""
        return PublicKey(self.name, self.secret.public_key().public_bytes_raw().hex())

    def sign(self, message: bytes) -> str:
        """Signature in hexadecimal."""
        return self.secret.sign(message).hex()

    def __reduce__(self) -> NoReturn:
        raise TypeError("A signing key can't be copied or saved; load it by name.")


def create(name: str = DEFAULT_NAME) -> SigningKey:
    """Makes a new key pair; an existing one is never overwritten."""
    secret = Ed25519PrivateKey.generate()
    path = _folder("keys") / f"{_checked(name)}.key"
    pem = secret.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    try:
        with whole_file(path, replace=False) as draft:
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(pem)
    except FileExistsError:
        raise InputError(f"There already is a key named '{name}'. Choose another name.") from None
    except OSError as problem:
        raise InputError(
            f"'{path}' can't be written ({problem.strerror}). Free some space, or choose a writable UNDERSTUDY_HOME."
        ) from problem
    key = SigningKey(name, secret)
    export(key.public, path.with_suffix(".pub"))
    return key


def load(name: str = DEFAULT_NAME) -> SigningKey:
    """The signing key of that name."""
    path = _folder("keys") / f"{_checked(name)}.key"
    if not path.is_file():
        raise InputError(f"There is no key named '{name}'. Make one with `understudy keys create {name}`.")
    try:
        secret = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as problem:
        raise InputError(
            f"'{path}' is not a private key written by `understudy keys create`. Restore it, or create another key."
        ) from problem
    if not isinstance(secret, Ed25519PrivateKey):
        raise InputError(
            f"'{path}' is not an Ed25519 key. Restore it, or create another key with `understudy keys create`."
        )
    return SigningKey(name, secret)


def load_or_create(name: str = DEFAULT_NAME) -> SigningKey:
    """The signing key of that name, made on first use; two processes at once get the same."""
    path = _folder("keys") / f"{_checked(name)}.key"
    if not path.exists():
        try:
            return create(name)
        except InputError:
            if not path.exists():  # else another process was first
                raise
    return load(name)


def own() -> tuple[PublicKey, ...]:
    """Public halves of this computer's keys."""
    return tuple(load(path.stem).public for path in sorted(_folder("keys").glob("*.key")))


def trusted() -> tuple[PublicKey, ...]:
    """Keys whose certificates pass here: this computer's own and those that `trust` added."""
    return (*own(), *_others())


def _others() -> tuple[PublicKey, ...]:
    return tuple(read_public(path) for path in sorted(_folder("trusted").glob("*.pub")))


def trust(file: Path | str, name: str | None = None) -> PublicKey:
    """Adds the public key in `file` to the trusted ones. Compare its fingerprint through another channel first."""
    key = read_public(Path(file))
    return record(name or key.name, key.hexadecimal)


def record(name: str, hexadecimal: str) -> PublicKey:
    """Trusts a key under its signer's name; another key that wants a name already given is refused."""
    key, known = PublicKey(_checked(name), hexadecimal), recorded(name)
    if known is not None and known.hexadecimal != hexadecimal:
        raise InputError(
            f"The name '{name}' belongs to the key {known.fingerprint}, and this one is {key.fingerprint}. Either it "
            "is a forgery, or the signer has a new key: ask them by another channel, and record it under another name."
        )
    export(key, _folder("trusted") / f"{key.fingerprint.replace(' ', '')}.pub")
    return key


def recorded(name: str) -> PublicKey | None:
    """Returns the key that was trusted under a signer's name, None if there is none."""
    return next((key for key in _others() if key.name == name), None)


def export(key: PublicKey, path: Path) -> None:
    """Writes a public key as one line: the algorithm, the key, its name."""
    with whole_file(path) as draft:
        draft.write_text(f"understudy-ed25519 {key.hexadecimal} {key.name}\n", encoding="utf-8")


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
    found = re.fullmatch(r"understudy-ed25519 ([0-9a-f]{64}) (\S+)\s*", text)
    return None if found is None else PublicKey(found[2], found[1])


def fingerprint(hexadecimal: str) -> str:
    """First 128 bits of the key's SHA-256, in groups of four digits."""
    digest = canonical.sha256(f"ed25519:{hexadecimal}")[:32]
    return " ".join(digest[start : start + 4] for start in range(0, 32, 4))


def is_signed_by(hexadecimal: str, signature: str, message: bytes) -> bool:
    """Whether `signature` of `message` was made with the private half of this public key."""
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
