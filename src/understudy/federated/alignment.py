"""Who is known to all parties: private set intersection of ids, passed on by the aggregator, before training.

The first party finds out step by step which of its ids the second, the third … party know too. What is left it then
offers to all others in the same way, so each learns which of *its* ids are known to all, and nothing about the rest.
Ids travel blinded by elliptic-curve keys that live for one run (openmined-psi); the aggregator passes on what it can't
read. Parties then sort the common ids by a keyed hash. The first party chooses its key and hands it to each of the
others encrypted, so the aggregator, which sees rows in that order, can't tell whose they are.

Privacy: not covered by epsilon. Discloses to every party which of its units all parties know, to the first party also
which of them the first two, three … know, and to all sides how many ids there are. A party that makes ids up learns
whether the others know them. Holds against an aggregator that passes letters on as they are.
"""

import hmac
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from understudy.errors import InputError
from understudy.synthesizers.vflgan_ts.protocol import Frame, Frames, documents_of, frame_of, say

STAGE = "align"
_FALSE_POSITIVES = 1e-9  # of structures that are not used: raw ones are exact
_ONCE = bytes(12)  # nonce: every key encrypts one message
Found = Generator[Frame, Frame, tuple[list[str], bytes]]  # common ids, and the key of their order


def aligned(party: str, parties: Sequence[str], ids: np.ndarray, order: bytes) -> Generator[Frame, Frame, np.ndarray]:
    """Returns the places of the ids that all parties know, in an order that is the same everywhere.

    Args:
        order: Secret key of the order; that of the first party counts.
    """
    names = [str(value) for value in ids.tolist()]
    if len(set(names)) != len(names):
        raise InputError("unit: two ids read the same as text, so parties can't tell them apart. Give each its own.")
    first, *others = parties
    side = _first(others, names, order) if party == first else _other(party, first, others, names)
    common, order = yield from side
    if not common:
        raise InputError("No entity is known to all parties. Are ids written alike everywhere? Nothing was charged.")
    place_of = {name: place for place, name in enumerate(names)}
    ordered = sorted(common, key=lambda name: hmac.digest(order, name.encode(), "sha256"))
    return np.array([place_of[name] for name in ordered], dtype=np.int64)


def passed_on(parties: Sequence[str], frames: Frames) -> Generator[Frames, Frames, Frames]:
    """The aggregator's part: passes letters on, round after round; returns what comes after the last."""
    for number in range(1, 2 * len(parties) + 1):  # two for every party after the first, then two for all at once
        letters: dict[str, dict[str, bytes]] = {name: {} for name in parties}
        for sender, frame in frames.items():
            receivers = {name for name in parties if name != sender and name in frame.tensors}
            for receiver, letter in documents_of(frame, number, STAGE, receivers, sender).items():
                letters[receiver][sender] = letter
        frames = yield {name: frame_of(number, STAGE, letters[name]) for name in parties}
    return frames


def _first(others: Sequence[str], names: list[str], order: bytes) -> Found:
    """Asks one party after another about what is left, then answers all of them."""
    rounds, left = count(1), names
    for other in others:
        client = _library().client.CreateWithNewKey(True)
        yield from say(STAGE, {other: client.CreateRequest(left).SerializeToString()}, set(), next(rounds))
        answers = yield from say(STAGE, {}, {other}, next(rounds))
        left = _known(client, left, _parts(answers[other], 2, other), other)
    requests = yield from say(STAGE, {}, set(others), next(rounds))
    letters = {}
    for other in others:
        public, request = _parts(requests[other], 2, other)
        secret = X25519PrivateKey.generate()
        sealed = _cipher(secret, public, other).encrypt(_ONCE, order, None)  # for the sender of `public`
        letters[other] = _letter(secret.public_key().public_bytes_raw(), sealed, *_answer(left, request, other))
    yield from say(STAGE, letters, set(), next(rounds))
    return left, order


def _other(party: str, first: str, others: Sequence[str], names: list[str]) -> Found:
    """Answers the first party when it is this one's turn, then asks it about all ids."""
    rounds = count(1)
    for other in others:
        asked = yield from say(STAGE, {}, {first} if other == party else set(), next(rounds))
        letters = {first: _letter(*_answer(names, asked[first], first))} if other == party else {}
        yield from say(STAGE, letters, set(), next(rounds))
    client, secret = _library().client.CreateWithNewKey(True), X25519PrivateKey.generate()
    request = _letter(secret.public_key().public_bytes_raw(), client.CreateRequest(names).SerializeToString())
    yield from say(STAGE, {first: request}, set(), next(rounds))
    answers = yield from say(STAGE, {}, {first}, next(rounds))
    public, sealed, *answer = _parts(answers[first], 4, first)
    with _understood(first):
        key = _cipher(secret, public, first).decrypt(_ONCE, sealed, None)
    return _known(client, names, answer, first), key


def _answer(names: list[str], request: bytes, sender: str) -> tuple[bytes, bytes]:
    """Returns one's own ids and those of a request, blinded."""
    psi = _library()
    server = psi.server.CreateWithNewKey(True)
    with _understood(sender):
        asked = psi.Request()
        asked.ParseFromString(request)
        setup = server.CreateSetupMessage(_FALSE_POSITIVES, len(asked.encrypted_elements), names, psi.DataStructure.RAW)
        return setup.SerializeToString(), server.ProcessRequest(asked).SerializeToString()


def _known(client: Any, names: list[str], answer: Sequence[bytes], sender: str) -> list[str]:
    """Returns which of the names asked about the other party knows."""
    psi = _library()
    with _understood(sender):
        setup, response = psi.ServerSetup(), psi.Response()
        setup.ParseFromString(answer[0])
        response.ParseFromString(answer[1])
        places = sorted(client.GetIntersection(setup, response))
    return [names[place] for place in places]


def _cipher(secret: X25519PrivateKey, public: bytes, sender: str) -> AESGCM:
    with _understood(sender):
        shared = secret.exchange(X25519PublicKey.from_public_bytes(public))
    return AESGCM(HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=b"understudy order").derive(shared))


def _letter(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(8, "little") + part for part in parts)


def _parts(letter: bytes, number: int, sender: str) -> list[bytes]:
    parts, place = [], 0
    while place < len(letter):
        end = place + 8 + int.from_bytes(letter[place : place + 8], "little")
        parts.append(letter[place + 8 : end])
        place = end
    if len(parts) != number or place != len(letter):
        raise _not_understood(sender)
    return parts


@contextmanager
def _understood(sender: str) -> Iterator[None]:
    """Turns what the library raises about another party's bytes into an error that says whose they were."""
    from google.protobuf.message import Error

    try:
        yield
    except (Error, InvalidTag, RuntimeError, ValueError) as problem:
        raise _not_understood(sender) from problem


def _not_understood(sender: str) -> InputError:
    return InputError(f"'{sender}': blinded ids are expected, got bytes that are none. All parties need one version.")


def _library() -> Any:
    try:
        import private_set_intersection.python as psi
    except ImportError:
        raise InputError(
            "alignment: 'psi' needs the package openmined-psi. Install understudy[vertical], or align rows before and "
            "choose 'as-given'."
        ) from None
    return psi
