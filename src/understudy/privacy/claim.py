"""The certificate itself: its fields, its two JSON forms, and what can be recomputed from it alone."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

import pydantic

from understudy.data.type_checks import require_path
from understudy.errors import CertificateError, InputError, UnsupportedEvent
from understudy.privacy import accountants, canonical
from understudy.privacy.budget import MAX_PRIVATE_EPSILON, at_most
from understudy.privacy.events import Event, NonPrivate, from_json
from understudy.privacy.statements import ASSUMPTIONS, NOT_PROTECTED, THREAT_MODEL, VALUES_ADJACENCY
from understudy.privacy.workload import check_form

FORMAT = 1
FILE_NAME = "certificate.json"
_NOT_ALWAYS = ("parties", "marginal_obfuscation", "arithmetic")  # fields that are written only where they say something


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """All claims about one release. Every field is public.

    Attributes:
        parties: Organisations that made the release together, one entry each: `party`, its own `ledger` and what was
            `executed` of it, its key (`signer`) and its `signature`. Empty, and then not written, where one made it.
        arithmetic: For each label how its answers are computed: *exact*, whole numbers with exact discrete noise, or
            *idealised*, real numbers in the proof and floating point in the machine. Older certificates have none.
        marginal_obfuscation: What is said about a distribution that was to be hidden, a sentence each. No part of the
            privacy guarantee and never added to epsilon; empty, and then not written, where nothing was hidden.
    """

    status: str
    format: int = FORMAT
    population: str
    population_size: int | None
    unit: str
    unit_kind: str
    adjacency: str
    method: str
    epsilon: float
    delta: float
    epsilon_at_delta: tuple[tuple[float, float], ...]
    replace_one_epsilon: float
    events: tuple[Mapping[str, Any], ...]
    labels: tuple[str, ...]
    executed: Mapping[str, int]
    noise: str
    noise_is_secure: bool
    ledger: Mapping[str, Any]
    versions: Mapping[str, str]
    public_inputs: Mapping[str, str]
    overrides: Mapping[str, str]
    threat_model: tuple[str, ...] = THREAT_MODEL
    assumptions: tuple[str, ...] = ASSUMPTIONS
    not_protected: tuple[str, ...] = NOT_PROTECTED
    files: Mapping[str, str] = field(default_factory=dict)
    parties: tuple[Mapping[str, Any], ...] = ()
    marginal_obfuscation: tuple[str, ...] = ()
    arithmetic: Mapping[str, str] = field(default_factory=dict)
    signer: str | None = None
    signature: str | None = None

    @property
    def is_private(self) -> bool:
        """Whether the first field says so."""
        return self.status == "private"

    @property
    def hides_presence(self) -> bool:
        """Whether it is protected that a unit takes part, and not its values alone."""
        return self.adjacency != VALUES_ADJACENCY

    @property
    def amendments(self) -> tuple[str, ...]:
        """What was changed about the ledgers that paid, after they were made, a sentence each."""
        paid = [(self.ledger, ""), *((entry.get("ledger"), f"{entry.get('party')}: ") for entry in self.parties)]
        told = [(who, ledger.get("amendments")) for ledger, who in paid if isinstance(ledger, Mapping)]
        return tuple(f"{who}{sentence}" for who, found in told if isinstance(found, list) for sentence in found)

    def sentence(self) -> str:
        """The guarantee in one plain sentence."""
        if not self.is_private:
            return f"This release is {self.status}"
        odds = math.exp(self.epsilon)
        it = "it" if self.hides_presence else "its values"
        known = "" if self.hides_presence else " That it takes part is not protected."
        kept = " The charge was kept in memory only." if self.ledger.get("kind") == "in-memory" else ""
        return (
            f"{self.unit} With or without {it} in the data, any conclusion from this release is at most "
            f"{at_most(odds)} times likelier (epsilon = {at_most(self.epsilon)}), but for a chance of "
            f"{at_most(self.delta, 2)}.{known}{kept}"
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, `status` first."""
        silent = [name for name in _NOT_ALWAYS if not getattr(self, name)]
        return {item.name: getattr(self, item.name) for item in fields(self) if item.name not in silent}

    def dumps(self) -> str:
        """JSON for people: indented, `status` first."""
        body = json.loads(canonical.dumps(self.to_json()))
        return json.dumps({name: body[name] for name in self.to_json()}, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, body: Any) -> "Certificate":
        """The certificate that `to_json` wrote; missing or unknown fields are an error."""
        names = {item.name for item in fields(cls)}
        if not isinstance(body, dict) or set(body).union(_NOT_ALWAYS) != names:
            raise CertificateError(
                "This is not a certificate of format 1: fields are missing or unknown. It was edited, "
                "or written by "
                "another version."
            )
        try:
            values = dict(body)
            for name in ("epsilon", "delta", "replace_one_epsilon"):
                values[name] = canonical.number(body[name])
            pairs = body["epsilon_at_delta"]
            values["epsilon_at_delta"] = [(canonical.number(at), canonical.number(cost)) for at, cost in pairs]
            return _typed().validate_json(json.dumps(values), strict=True)
        except (TypeError, ValueError) as problem:
            raise CertificateError("A field of this certificate has the wrong form: it was edited.") from problem

    @classmethod
    def loads(cls, text: str) -> "Certificate":
        """Reads the text that `dumps` wrote."""
        try:
            body = canonical.loads(text)
        except ValueError as problem:
            raise CertificateError(
                "This is not a certificate: JSON that says each field once is expected. Get the release anew from its "
                "holder."
            ) from problem
        return cls.from_json(body)

    @classmethod
    def load(cls, path: Path | str) -> "Certificate":
        """Reads a certificate file, or the one in a release directory."""
        require_path(path, "Certificate.load")
        target = Path(path)
        target = target / FILE_NAME if target.is_dir() else target
        unreadable = CertificateError(f"There is no readable certificate at '{target}'.")
        if not target.is_file():  # devices may have no end
            raise unreadable
        try:
            return cls.loads(target.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as problem:
            raise unreadable from problem


@cache
def _typed() -> pydantic.TypeAdapter[Certificate]:
    """Knows of what type each field is, so that whoever reads a certificate can rely on it."""
    return pydantic.TypeAdapter(Certificate)


def signed_bytes(certificate: Certificate) -> bytes:
    """What a signature covers: all fields but the signature itself, in one canonical form."""
    body = certificate.to_json()
    del body["signature"]
    return b"understudy certificate\n" + canonical.dumps(body).encode()


def cosigned_bytes(certificate: Certificate) -> bytes:
    """What the signature of a party covers: all fields, the other parties' included, but no signature."""
    body = certificate.to_json()
    del body["signature"]
    body["parties"] = [
        {name: value for name, value in entry.items() if name != "signature"} for entry in certificate.parties
    ]
    return b"understudy party\n" + canonical.dumps(body).encode()


def file_hashes(directory: Path) -> dict[str, str]:
    """sha256 of every file below `directory` except the certificate, by relative path."""
    found = sorted(path for path in directory.rglob("*") if path.is_symlink() or not path.is_dir())
    for path in found:
        if path.is_symlink() or not path.is_file():
            raise InputError(f"'{path}' is a link or a device. A release holds plain files only: get it anew.")
    names = {path.relative_to(directory).as_posix(): path for path in found}
    names.pop(FILE_NAME, None)
    return {name: canonical.file_sha256(path) for name, path in names.items()}


def recompute(certificate: Certificate) -> float:
    """Epsilon at the certificate's delta, from its events alone."""
    return accountants.epsilon(parsed_events(certificate), certificate.delta)


def parsed_events(certificate: Certificate) -> tuple[Event, ...]:
    """The certificate's events as objects."""
    try:
        check_form(certificate.events)
        return tuple(from_json(body) for body in certificate.events)
    except (InputError, UnsupportedEvent, TypeError) as problem:
        raise CertificateError(f"The events of this certificate can't be accounted: {problem}") from problem


def status(
    events: tuple[Event, ...],
    epsilon: float,
    *,
    protects_a_person: bool,
    secure: bool,
    reproduction: str | None,
) -> str:
    """Says "private", or "not private: " and the first thing that is wrong."""
    reasons = [event.reason for event in events if isinstance(event, NonPrivate)]
    if not protects_a_person:
        return "not private: protects no person; its unit is one of many overlapping windows of the same series"
    if not secure:
        return "not private: reproducible noise; whoever knows the seed can subtract it"
    if reasons:
        return f"not private: {reasons[0]}"
    if not epsilon <= MAX_PRIVATE_EPSILON:
        return f"not private: epsilon is above {MAX_PRIVATE_EPSILON:g}, which hides nothing"
    if reproduction is not None:
        return f"not private: delta as in the paper being reproduced ({reproduction})"
    return "private"
