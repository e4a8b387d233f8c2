"""What exactly is promised about one release, in a form that recipients can recompute without the data.

The first field says whether the release is private. The rest says who is protected, from what, by which events, at
which cost, and what is not protected; then the hash of every released file and a signature. `verify` checks all of it.
"""

import html
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy import display
from understudy.data.type_checks import require_argument, require_path
from understudy.errors import CertificateError, InputError, UnsupportedEvent
from understudy.files import whole_file
from understudy.privacy import accounting, canonical, keys, store
from understudy.privacy.budget import MAX_PRIVATE_EPSILON, at_most, check_delta
from understudy.privacy.events import EXACT, Event, NonPrivate, PureDP, Relation, from_json, relation, to_json

if TYPE_CHECKING:
    from understudy.data import Schema
    from understudy.privacy.grant import Grant, Receipt

FORMAT = 1
FILE_NAME = "certificate.json"
_NOT_ALWAYS = (
    "parties",
    "marginal_obfuscation",
    "findings",
    "arithmetic",
    "issued",
)  # fields that are written only where they say something
_VERSIONED = ("understudy", "dp-accounting", "opendp", "cryptography", "numpy", "scipy")
_TOLERANCE = 0.01
MAX_BYTES = 600_000  # of a certificate: a thousand events and two thousand files have room
MAX_PARTIES = 100
_PROTECTING = ("entity", "event")  # kinds of units that protect a person
ADJACENCIES: Mapping[Relation, str] = {
    "add-or-remove": (
        "Add or remove: two datasets are neighbours if one has a unit that the other has not. The replace-one figure "
        "is for neighbours in which one unit's data is exchanged for other data."
    ),
    "values": (
        "Values: neighbouring datasets hold the same units with as many series or windows each; one unit's values are "
        "replaced by a null record. Participation, and with how many series, is not protected. The replace-one figure "
        "is for neighbours in which one unit's values are exchanged for other values."
    ),
}
THREAT_MODEL = (
    "Protected against: recipients of the synthetic data or the model, with any side knowledge, any feasible "
    "computing power and full knowledge of this software.",
    "Not protected against: the data holder, who runs the tool and holds the table (trusted curator).",
    "Not protected against: readers of evaluation or audit reports, timings, memory or error messages of the run.",
)
ASSUMPTIONS = (
    "The schema (bounds, categories, time axis, population size) and all public inputs were chosen without looking at "
    "the private table, or were bought with differential privacy as a charge to the same ledger.",
    "The unit column names the same person, meter or account wherever it appears, in this and in every other run.",
    "The ledger file was not replaced by an older copy of itself.",
    "Answers whose arithmetic is exact are sums of whole numbers with exact discrete noise. The others (gradients, "
    "choices) are analysed in real arithmetic and computed in floating point.",
)
NOT_PROTECTED = (
    "Facts about the population as a whole: learning them is the purpose of the release.",
    "What a person's data has in common with many others, including what can be inferred from it about that person.",
    "Several units that belong together (a family, a company) are protected less: k of them by k times this epsilon, "
    "at a delta that grows faster than k.",
    "Anything declared public: bounds, categories, context columns, the time axis, the population size.",
)


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """All claims about one release. Every field is public.

    Attributes:
        issued: When (`at`, UTC, by the signer's clock) and, where the schema's `[issuer]` says so, by whom (`name`),
            for what (`purpose`) and whom to ask (`contact`).
        parties: Organisations that made the release together, one entry each: `party`, its own `ledger` and what was
            `executed` of it, its key (`signer`) and its `signature`. Empty, and then not written, where one made it.
        arithmetic: For each label how its answers are computed: *exact*, whole numbers with exact discrete noise, or
            *idealised*, real numbers in the proof and floating point in the machine.
        marginal_obfuscation: What is said about a distribution that was to be hidden, a sentence each. No part of the
            privacy guarantee and never added to epsilon; empty, and then not written, where nothing was hidden.
        findings: What the shipped series say against their own use, a sentence each; made from them alone.
    """

    status: str
    format: int = FORMAT
    population: str
    population_size: int | None
    unit: str
    unit_kind: str
    adjacency: str
    method: str
    epsilon: canonical.Number
    delta: canonical.Number
    epsilon_at_delta: tuple[tuple[canonical.Number, canonical.Number], ...]
    replace_one_epsilon: canonical.Number
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
    findings: tuple[str, ...] = ()
    arithmetic: Mapping[str, str] = field(default_factory=dict)
    issued: Mapping[str, str] = field(default_factory=dict)
    signer: str | None = None
    signature: str | None = None

    @property
    def is_private(self) -> bool:
        """Whether the first field says so."""
        return self.status == "private"

    @property
    def hides_presence(self) -> bool:
        """Whether it is protected that a unit takes part, and not its values alone."""
        return self.adjacency != ADJACENCIES["values"]

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

    def __repr__(self) -> str:
        return f"Certificate({self.sentence()})"

    def _repr_html_(self) -> str:
        facts = {"status": self.status, "method": self.method, "population": self.population, "unit": self.unit}
        facts |= {"epsilon": at_most(self.epsilon), "delta": at_most(self.delta), "noise": self.noise}
        facts |= {"signed by": "nobody" if self.signer is None else keys.fingerprint(self.signer)}
        table = display.html_table(("", "certificate"), facts.items())
        return f"<p><strong>{html.escape(self.sentence())}</strong></p>{table}"

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
                "This is not a certificate of format 1: fields are missing or unknown. It was edited, or written by "
                "another version. Download the release again, or use the version that wrote it."
            )
        try:
            return canonical.typed(cls, body)
        except (TypeError, ValueError) as problem:
            raise CertificateError(
                "A field of this certificate has the wrong form: it was edited. Download the release again."
            ) from problem

    @classmethod
    def loads(cls, text: str) -> "Certificate":
        """Reads the text that `dumps` wrote."""
        _require_size(len(text))
        try:
            body = canonical.loads(text)
        except ValueError as problem:
            raise CertificateError(
                "This is not a certificate: JSON that says each field once is expected. Download the release "
                "again from its holder."
            ) from problem
        return cls.from_json(body)

    @classmethod
    def load(cls, path: Path | str) -> "Certificate":
        """Reads a certificate file, or the one in a release directory."""
        require_path(path, "Certificate.load")
        target = Path(path)
        target = target / FILE_NAME if target.is_dir() else target
        try:
            if not target.is_file():  # devices may have no end
                raise FileNotFoundError
            _require_size(target.stat().st_size)
            return cls.loads(target.read_text(encoding="utf-8"))
        except CertificateError as problem:
            raise CertificateError(f"'{target}': {problem}") from problem
        except (OSError, UnicodeDecodeError) as problem:
            raise CertificateError(
                f"There is no readable certificate at '{target}'. Pass a release folder or its certificate.json."
            ) from problem


def _require_size(number: int) -> None:
    if number > MAX_BYTES:
        raise CertificateError(
            f"A certificate of at most {MAX_BYTES:,} bytes is expected: this one is larger than any that is issued. Do "
            "not rely on it."
        )


def signed_bytes(certificate: Certificate) -> bytes:
    """What a signature covers: all fields but the signature itself, in one canonical form."""
    return _message("certificate", certificate)


def cosigned_bytes(certificate: Certificate) -> bytes:
    """What the signature of a party covers: all fields, the other parties' included, but no signature."""
    unsigned = ({name: value for name, value in entry.items() if name != "signature"} for entry in certificate.parties)
    return _message("party", replace(certificate, parties=tuple(unsigned)))


def _message(kind: str, certificate: Certificate) -> bytes:
    body = certificate.to_json()
    del body["signature"]
    return f"understudy {kind}\n{canonical.dumps(body)}".encode()


def file_hashes(directory: Path) -> dict[str, str]:
    """sha256 of every file below `directory` except the certificate, by relative path."""
    found = sorted(path for path in directory.rglob("*") if path.is_symlink() or not path.is_dir())
    for path in found:
        if path.is_symlink() or not path.is_file():
            raise InputError(f"'{path}' is a link or a device. A release holds plain files only: download it again.")
    names = {path.relative_to(directory).as_posix(): path for path in found}
    names.pop(FILE_NAME, None)
    return {name: canonical.file_sha256(path) for name, path in names.items()}


def recompute(certificate: Certificate) -> float:
    """Epsilon at the certificate's delta, from its events alone."""
    return accounting.epsilon(parsed_events(certificate), certificate.delta)


def parsed_events(certificate: Certificate) -> tuple[Event, ...]:
    """The certificate's events as objects."""
    try:
        accounting.check_form(certificate.events)
        return tuple(from_json(body) for body in certificate.events)
    except (InputError, UnsupportedEvent, TypeError) as problem:
        raise CertificateError(f"The events of this certificate can't be accounted: {problem}") from problem


def status_of(certificate: Certificate, events: tuple[Event, ...], epsilon: float) -> str:
    """Says "private", or "not private: " and the first thing that is wrong, by the certificate's own fields."""
    reasons = [event.reason for event in events if isinstance(event, NonPrivate)]
    reproduction = certificate.overrides.get("reproduction")
    if certificate.unit_kind not in _PROTECTING:
        return "not private: protects no person; its unit is one of many overlapping windows of the same series"
    if certificate.ledger.get("kind") == "scratch":
        return "not private: charged to a scratch ledger, which forgets what was spent; for simulated data only"
    if not certificate.noise_is_secure:
        return "not private: reproducible noise, which anyone with the seed can subtract"
    if reasons:
        return f"not private: {reasons[0]}"
    if not epsilon <= MAX_PRIVATE_EPSILON:
        return f"not private: epsilon is above {MAX_PRIVATE_EPSILON:g}, which hides nothing"
    if reproduction is not None:
        return f"not private: delta as in the paper being reproduced ({reproduction})"
    return "private"


def issue(
    grant: "Grant",
    schema: "Schema",
    *,
    method: str,
    public_inputs: Mapping[str, str] | None = None,
    overrides: Mapping[str, str] | None = None,
    trust: Sequence[str] = (),
    marginal_obfuscation: Sequence[str] = (),
) -> Certificate:
    """States what `grant` was charged for, about the unit that `schema` declares.

    Args:
        public_inputs: sha256 of everything public the release was made from (context, encoder), by name.
        overrides: Named departures from the rules that a caller asked for, with their reasons.
        trust: Sentences about who is trusted besides the data holder, such as an aggregator.
    """
    plan, receipt = grant.plan, grant.receipt
    sizes = [size for size in (receipt.population, schema.protected_units) if size is not None]
    population = max(sizes, default=None)
    check_delta(plan.guarantee.delta, population, reproduction=receipt.reproduction)
    named = dict(overrides or {})
    if receipt.reproduction is not None:
        named["reproduction"] = receipt.reproduction
    cost = plan.epsilon()
    issued = Certificate(
        status="",
        population=schema.name,
        population_size=population,
        unit=schema.unit.sentence(),
        unit_kind=schema.unit.kind,
        adjacency=ADJACENCIES[relation(plan.events)],
        method=method,
        epsilon=cost,
        delta=plan.guarantee.delta,
        epsilon_at_delta=_three_deltas(plan.events, plan.guarantee.delta, population),
        replace_one_epsilon=accounting.replace_one_epsilon(plan.events, plan.guarantee.delta),
        events=tuple(to_json(event) for event in plan.events),
        labels=tuple(entry.label for entry in plan.entries),
        executed=grant.executed,
        noise=grant.noise.description,
        noise_is_secure=receipt.secure_noise,
        ledger=ledger_facts(receipt),
        versions={package: _version(package) for package in _VERSIONED},
        public_inputs=dict(public_inputs or {}),
        overrides=named,
        threat_model=(*THREAT_MODEL, *trust),
        marginal_obfuscation=tuple(marginal_obfuscation),
        arithmetic=grant.arithmetic,
        issued={"at": store.now(), **({} if schema.issuer is None else schema.issuer.stated)},
    )
    return replace(issued, status=status_of(issued, plan.events, cost))


def seal(certificate: Certificate, directory: Path | str, key: keys.SigningKey | None) -> Certificate:
    """Hashes every file of a release directory, signs if there is a key, and writes `certificate.json` last."""
    folder = Path(directory)
    sealed = sign(replace(certificate, files=file_hashes(folder)), key)
    text = sealed.dumps()
    _require_size(len(text.encode()))  # nothing is issued that `verify` would not read
    with whole_file(folder / FILE_NAME) as draft:
        draft.write_text(text, encoding="utf-8")
    return sealed


def sign(certificate: Certificate, key: keys.SigningKey | None) -> Certificate:
    """The certificate with `key`'s name and signature over everything else in it."""
    if key is None:
        return replace(certificate, signer=None, signature=None)
    named = replace(certificate, signer=key.public.hexadecimal, signature=None)
    return replace(named, signature=key.sign(signed_bytes(named)))


def _three_deltas(events: tuple[Event, ...], delta: float, population: int | None) -> tuple[tuple[float, float], ...]:
    largest = 10 * delta if population is None else max(delta, min(10 * delta, 1 / (10 * population)))
    wanted = sorted({delta / 10, delta, min(largest, 0.1)})
    return tuple((at, accounting.epsilon(events, at)) for at in wanted)


def ledger_facts(receipt: "Receipt") -> dict[str, Any]:
    """What a certificate says about the ledger that was charged."""
    amended = {"amendments": list(receipt.amendments)} if receipt.amendments else {}
    named = {"name": receipt.ledger, "kind": receipt.ledger_kind, "run": receipt.run}
    return {**named, "composition": receipt.composition, "head": receipt.head, **amended}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


@dataclass(frozen=True)
class Check:
    """One question put to a certificate and its answer.

    Attributes:
        unknown: Not ok only because the signing key is unknown on this computer, or not among those that were named.
        revoked: Not ok only because the signing key was revoked on this computer or had expired.
    """

    name: str
    ok: bool
    detail: str
    unknown: bool = False
    revoked: bool = False


def verify(
    certificate: Certificate,
    directory: Path | str | None,
    trusted_keys: Iterable[keys.PublicKey] | None = None,
) -> list[Check]:
    """Recomputes epsilon from the events, every file's hash, and the signature.

    Args:
        directory: the release; None checks the certificate alone.
        trusted_keys: the signer must be among them. None means this computer's own and trusted keys; a signer who is
            not among those is unknown, which is not ok: anybody can sign a forgery with a new key.
    """
    require_argument(certificate, Certificate, "verify: certificate", "Read it first: Certificate.load(folder).")
    checks = [Check("format", certificate.format == FORMAT, f"certificate format {certificate.format}")]
    try:
        checks += _check_figures(certificate, parsed_events(certificate))
    except (CertificateError, InputError) as problem:
        checks.append(Check("epsilon", False, str(problem)))
    except (ArithmeticError, MemoryError, TypeError, ValueError, UnsupportedEvent):  # of numbers that no mechanism has
        checks.append(Check("epsilon", False, "no account of these events can be computed. Do not rely on it."))
    if directory is not None:
        checks.append(_check_files(certificate, Path(directory)))
    checks.append(_check_signature(certificate))
    trusted_keys = None if trusted_keys is None else tuple(trusted_keys)
    trusted = keys.trusted() if trusted_keys is None else trusted_keys
    checks.append(_check_signer(certificate.signer, trusted, certificate.issued))
    if len(certificate.parties) > MAX_PARTIES:
        return [*checks, Check("parties", False, f"at most {MAX_PARTIES} are expected. Do not rely on it.")]
    message = cosigned_bytes(certificate) if certificate.parties else b""
    return checks + [_check_party(entry, message, trusted, certificate.issued) for entry in certificate.parties]


def _check_figures(certificate: Certificate, events: tuple[Event, ...]) -> list[Check]:
    accounting.check_workload(events)
    if len(certificate.epsilon_at_delta) > accounting.MAX_DELTAS:
        raise CertificateError(
            f"Epsilon at no more than {accounting.MAX_DELTAS} deltas is expected. Do not rely on it."
        )
    found, neighbours = accounting.epsilon(events, certificate.delta), relation(events)
    stated = f"stated {at_most(certificate.epsilon, 4)}, recomputed {at_most(found, 4)}"
    stated += f" at delta {at_most(certificate.delta)}"
    same_relation = certificate.adjacency == ADJACENCIES[neighbours]
    return [
        Check("epsilon", _agrees(certificate.epsilon, found), stated),
        _check_other_figures(certificate, events),
        _check_account(certificate, events),
        _check_arithmetic(certificate, events),
        _check_status(certificate, events, found),
        Check("neighbours", same_relation, f"'{neighbours}' belongs to the mechanisms"),
    ]


def _check_account(certificate: Certificate, events: tuple[Event, ...]) -> Check:
    """Every mechanism has a label, and none was executed more often than charged."""
    charged = {label: event.executions for label, event in zip(certificate.labels, events, strict=False)}
    named = len(charged) == len(events) == len(certificate.labels) and set(certificate.executed) <= set(charged)
    within = named and all(0 <= number <= charged[label] for label, number in certificate.executed.items())
    return Check("account", within, f"{len(events)} mechanisms, none executed more often than charged")


def _check_arithmetic(certificate: Certificate, events: tuple[Event, ...]) -> Check:
    """Sums with discrete noise are exact and gradients are not; the event of a choice or a count does not tell."""
    told = {label: event for label, event in zip(certificate.labels, events, strict=False) if type(event) is not PureDP}
    expected = {label: "exact" if isinstance(event, EXACT) else "idealised" for label, event in told.items()}
    stated = {label: kind for label, kind in certificate.arithmetic.items() if label in told}
    return Check("arithmetic", stated == expected, "exact or idealised, as the mechanisms are")


def _check_other_figures(certificate: Certificate, events: tuple[Event, ...]) -> Check:
    """The three deltas and the replace-one figure: a reader may quote any of them."""
    costs = [(cost, accounting.epsilon(events, at)) for at, cost in certificate.epsilon_at_delta]
    replaced = accounting.replace_one_epsilon(events, certificate.delta)
    right = all(_agrees(cost, found) for cost, found in [*costs, (certificate.replace_one_epsilon, replaced)])
    return Check("other figures", right, f"epsilon at three deltas; replace-one {at_most(replaced, 4)}")


def _check_status(certificate: Certificate, events: tuple[Event, ...], epsilon: float) -> Check:
    """A certificate may say "private" only if its own fields allow it."""
    if certificate.status.startswith("not private: "):
        return Check("status", True, certificate.status)
    check_delta(certificate.delta, certificate.population_size)
    expected = status_of(certificate, events, epsilon)
    return Check("status", certificate.status == expected == "private", expected)


def _check_files(certificate: Certificate, directory: Path) -> Check:
    if not directory.is_dir():
        return Check("files", False, f"'{directory}' is not a directory")
    try:
        found = file_hashes(directory)
    except InputError as problem:
        return Check("files", False, str(problem))
    same = set(found) & set(certificate.files)
    problems = {
        "missing": sorted(set(certificate.files) - same),
        "not certified": sorted(set(found) - same),
        "altered": sorted(name for name in same if found[name] != certificate.files[name]),
    }
    told = "; ".join(f"{word}: {', '.join(names)}" for word, names in problems.items() if names)
    return Check("files", not told, told or f"{len(found)} files as certified")


def _check_signature(certificate: Certificate) -> Check:
    if certificate.signer is None or certificate.signature is None:
        return Check("signature", False, "the certificate is not signed")
    right = is_as_signed(certificate)
    return Check("signature", right, "the certificate is as it was signed" if right else "edited after it was signed")


def is_as_signed(certificate: Certificate) -> bool:
    """Return whether some key, known or not, signed all that the certificate says."""
    signer, signature = certificate.signer or "", certificate.signature or ""
    return keys.is_signed_by(signer, signature, signed_bytes(certificate))


def _check_party(
    entry: Mapping[str, Any], message: bytes, trusted: tuple[keys.PublicKey, ...], issued: Mapping[str, str]
) -> Check:
    """One of several organisations: it signed just this certificate, with a key that is trusted here."""
    name, signer = f"party {entry.get('party')}", str(entry.get("signer"))
    if not keys.is_signed_by(signer, str(entry.get("signature")), message):
        return Check(name, False, "did not sign this certificate, or it was edited since")
    return replace(_check_signer(signer, trusted, issued), name=name)


def _check_signer(signer: str | None, trusted: tuple[keys.PublicKey, ...], issued: Mapping[str, str]) -> Check:
    """Whether a key signed that is known, was not revoked here, and had not expired on the day that is stated."""
    if signer is None:
        return Check("signer", False, "the certificate is not signed")
    mark, revoked = keys.fingerprint(signer), keys.revocation(signer)
    if revoked is not None:
        return Check("signer", False, f"revoked here: {mark}, {revoked}", revoked=True)
    key = next((key for key in trusted if key.hexadecimal == signer), None)
    if key is None:
        told = f"unknown: {mark}. `understudy keys trust FILE` records a key"
        return Check("signer", False, told, unknown=True)
    if key.until is not None and not issued.get("at", "~")[:10] <= key.until:
        told = f"{key.name}, {mark}, expired on {key.until}, before the certificate says that it was issued"
        return Check("signer", False, told, revoked=True)
    return Check("signer", True, f"{key.name}, {mark}")


def _agrees(stated: float, found: float) -> bool:
    if math.isinf(stated) or math.isinf(found):
        return stated == found
    return abs(stated - found) <= _TOLERANCE * max(abs(found), 1e-9)
