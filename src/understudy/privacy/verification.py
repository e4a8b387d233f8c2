"""Checks a release against its certificate, without the data."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from understudy.data.type_checks import require_argument
from understudy.errors import CertificateError, InputError
from understudy.privacy import accountants, keys
from understudy.privacy.budget import at_most, check_delta
from understudy.privacy.claim import (
    FORMAT,
    Certificate,
    cosigned_bytes,
    file_hashes,
    parsed_events,
    signed_bytes,
    status,
)
from understudy.privacy.events import Event, executions
from understudy.privacy.statements import adjacency
from understudy.privacy.workload import MAX_DELTAS, check_workload

_TOLERANCE = 0.01
_PROTECTING = ("entity", "event")  # kinds of units that are somebody's


@dataclass(frozen=True)
class Check:
    """One question put to a certificate and its answer.

    Attributes:
        unknown: Not ok only because the signing key is unknown on this computer.
    """

    name: str
    ok: bool
    detail: str
    unknown: bool = False


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
    if directory is not None:
        checks.append(_check_files(certificate, Path(directory)))
    checks.append(_check_signature(certificate))
    trusted_keys = None if trusted_keys is None else tuple(trusted_keys)
    trusted = keys.trusted() if trusted_keys is None else trusted_keys
    named = bool(trusted_keys)
    checks.append(_check_signer(certificate.signer, trusted, named=named))
    message = cosigned_bytes(certificate) if certificate.parties else b""
    return checks + [_check_party(entry, message, trusted, named=named) for entry in certificate.parties]


def _check_figures(certificate: Certificate, events: tuple[Event, ...]) -> list[Check]:
    check_workload(events)
    if len(certificate.epsilon_at_delta) > MAX_DELTAS:
        raise CertificateError(f"Epsilon at no more than {MAX_DELTAS} deltas is expected. Do not rely on it.")
    found = accountants.epsilon(events, certificate.delta)
    stated = f"stated {at_most(certificate.epsilon, 4)}, recomputed {at_most(found, 4)}"
    stated += f" at delta {at_most(certificate.delta)}"
    return [
        Check("epsilon", _agrees(certificate.epsilon, found), stated),
        _check_other_figures(certificate, events),
        _check_account(certificate, events),
        _check_status(certificate, events, found),
        _check_neighbours(certificate),
    ]


def _check_account(certificate: Certificate, events: tuple[Event, ...]) -> Check:
    """Every mechanism has a label, and none was executed more often than charged."""
    charged = dict(zip(certificate.labels, map(executions, events), strict=False))
    named = len(charged) == len(events) == len(certificate.labels) and set(certificate.executed) <= set(charged)
    within = named and all(0 <= number <= charged[label] for label, number in certificate.executed.items())
    return Check("account", within, f"{len(events)} mechanisms, none executed more often than charged")


def _check_neighbours(certificate: Certificate) -> Check:
    """The relation is the one for which these mechanisms were charged."""
    expected = adjacency(certificate.labels)
    relation = expected.partition(":")[0]
    return Check("neighbours", certificate.adjacency == expected, f"'{relation}' belongs to what was charged")


def _check_other_figures(certificate: Certificate, events: tuple[Event, ...]) -> Check:
    """The three deltas and the replace-one figure: a reader may quote any of them."""
    costs = [(cost, accountants.epsilon(events, at)) for at, cost in certificate.epsilon_at_delta]
    replaced = accountants.replace_one_epsilon(events, certificate.delta)
    right = all(_agrees(cost, found) for cost, found in [*costs, (certificate.replace_one_epsilon, replaced)])
    return Check("other figures", right, f"epsilon at three deltas; replace-one {at_most(replaced, 4)}")


def _check_status(certificate: Certificate, events: tuple[Event, ...], epsilon: float) -> Check:
    """A certificate may say "private" only if its own fields allow it."""
    if certificate.status.startswith("not private: "):
        return Check("status", True, certificate.status)
    check_delta(certificate.delta, certificate.population_size)
    expected = status(
        events,
        epsilon,
        protects_a_person=certificate.unit_kind in _PROTECTING,
        secure=certificate.noise_is_secure,
        reproduction=certificate.overrides.get("reproduction"),
    )
    return Check("status", certificate.status == expected == "private", expected)


def _check_files(certificate: Certificate, directory: Path) -> Check:
    if not directory.is_dir():
        return Check("files", False, f"'{directory}' is not a directory")
    try:
        found = file_hashes(directory)
    except InputError as problem:
        return Check("files", False, str(problem))
    missing = sorted(set(certificate.files) - set(found))
    extra = sorted(set(found) - set(certificate.files))
    altered = sorted(name for name in set(found) & set(certificate.files) if found[name] != certificate.files[name])
    problems = [
        f"{word}: {', '.join(names)}"
        for word, names in (("missing", missing), ("not certified", extra), ("altered", altered))
        if names
    ]
    return Check("files", not problems, "; ".join(problems) or f"{len(found)} files as certified")


def _check_signature(certificate: Certificate) -> Check:
    if certificate.signer is None or certificate.signature is None:
        return Check("signature", False, "the certificate is not signed")
    right = is_as_signed(certificate)
    return Check("signature", right, "the certificate is as it was signed" if right else "edited after it was signed")


def is_as_signed(certificate: Certificate) -> bool:
    """Whether somebody, whoever it is, vouches for all that the certificate says."""
    if certificate.signer is None or certificate.signature is None:
        return False
    return keys.is_signed_by(certificate.signer, certificate.signature, signed_bytes(certificate))


def _check_party(
    entry: Mapping[str, Any], message: bytes, trusted: tuple[keys.PublicKey, ...], *, named: bool
) -> Check:
    """One of several organisations: it signed just this certificate, with a key that is trusted here."""
    name, signer = f"party {entry.get('party')}", str(entry.get("signer"))
    if not keys.is_signed_by(signer, str(entry.get("signature")), message):
        return Check(name, False, "did not sign this certificate, or it was edited since")
    return replace(_check_signer(signer, trusted, named=named), name=name)


def _check_signer(signer: str | None, trusted: tuple[keys.PublicKey, ...], *, named: bool) -> Check:
    """Whether a known key signed; if keys were named for this question, another one contradicts and is not unknown."""
    if signer is None:
        return Check("signer", False, "nobody signed")
    mark = keys.fingerprint(signer)
    for key in trusted:
        if key.hexadecimal == signer:
            return Check("signer", True, f"{key.name}, {mark}")
    if named:
        return Check("signer", False, f"another key than expected: {mark}. Trust it with `understudy keys trust FILE`.")
    return Check("signer", False, f"unknown here: {mark}. `understudy keys trust FILE` records a key", unknown=True)


def _agrees(stated: float, found: float) -> bool:
    if math.isinf(stated) or math.isinf(found):
        return stated == found
    return abs(stated - found) <= _TOLERANCE * max(abs(found), 1e-9)
