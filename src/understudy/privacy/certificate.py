"""What exactly is promised about one release, in a form anybody can recompute without the data.

The first field says whether the release is private. The rest says who is protected, from what, by which
events, at which cost, and what is not protected; then the hash of every released file and a signature.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from understudy.data.schema import Schema
from understudy.files import whole_file
from understudy.privacy import accountants
from understudy.privacy.budget import check_delta
from understudy.privacy.claim import FILE_NAME, Certificate, file_hashes, recompute, signed_bytes, status
from understudy.privacy.events import Event, to_json
from understudy.privacy.export import to_html, to_markdown
from understudy.privacy.grant import Grant, Receipt
from understudy.privacy.keys import SigningKey
from understudy.privacy.statements import THREAT_MODEL, adjacency
from understudy.privacy.verification import Check, verify

__all__ = [
    "FILE_NAME",
    "Certificate",
    "Check",
    "issue",
    "ledger_facts",
    "recompute",
    "seal",
    "sign",
    "to_html",
    "to_markdown",
    "verify",
]

_VERSIONED = ("understudy", "dp-accounting", "opendp", "cryptography", "numpy", "scipy")


def issue(
    grant: Grant,
    schema: Schema,
    *,
    method: str,
    public_inputs: Mapping[str, str] | None = None,
    overrides: Mapping[str, str] | None = None,
    trust: Sequence[str] = (),
    marginal_obfuscation: Sequence[str] = (),
    files: Mapping[str, str] | None = None,
) -> Certificate:
    """States what `grant` was charged for, about the unit that `schema` declares.

    Args:
        public_inputs: sha256 of everything public the release was made from (context, encoder), by name.
        overrides: named departures from the rules that a caller asked for, with their reasons; they are
        printed.
        trust: sentences about who is trusted beyond whoever runs the tool, such as an aggregator.
        marginal_obfuscation: sentences about a distribution that was to be hidden; no part of the guarantee.
        files: sha256 of released files; usually filled in later by `seal`.
    """
    plan, receipt = grant.plan, grant.receipt
    sizes = [size for size in (receipt.population, schema.protected_units) if size is not None]
    population = max(sizes, default=None)
    check_delta(plan.guarantee.delta, population, reproduction=receipt.reproduction)
    named = dict(overrides or {})
    if receipt.reproduction is not None:
        named["reproduction"] = receipt.reproduction
    cost = plan.epsilon()
    return Certificate(
        status=status(
            plan.events,
            cost,
            protects_a_person=schema.unit.protects_a_person,
            secure=receipt.secure_noise,
            reproduction=receipt.reproduction,
        ),
        population=schema.name,
        population_size=population,
        unit=schema.unit.sentence(),
        unit_kind=schema.unit.kind,
        adjacency=adjacency(entry.label for entry in plan.entries),
        method=method,
        epsilon=cost,
        delta=plan.guarantee.delta,
        epsilon_at_delta=_three_deltas(plan.events, plan.guarantee.delta, population),
        replace_one_epsilon=accountants.replace_one_epsilon(plan.events, plan.guarantee.delta),
        events=tuple(to_json(event) for event in plan.events),
        labels=tuple(entry.label for entry in plan.entries),
        executed=grant.executed,
        noise=grant.noise.description,
        noise_is_secure=receipt.secure_noise,
        ledger=ledger_facts(receipt),
        versions=_versions(),
        public_inputs=dict(public_inputs or {}),
        overrides=named,
        threat_model=(*THREAT_MODEL, *trust),
        marginal_obfuscation=tuple(marginal_obfuscation),
        arithmetic=grant.arithmetic,
        files=dict(files or {}),
    )


def seal(certificate: Certificate, directory: Path | str, key: SigningKey | None) -> Certificate:
    """Hashes every file of a release directory, signs, and writes `certificate.json` last.

    The written file appears whole or not at all. Without a key the certificate is unsigned and says so to
    whoever verifies it.
    """
    folder = Path(directory)
    sealed = sign(replace(certificate, files=file_hashes(folder)), key)
    with whole_file(folder / FILE_NAME) as draft:
        draft.write_text(sealed.dumps(), encoding="utf-8")
    return sealed


def sign(certificate: Certificate, key: SigningKey | None) -> Certificate:
    """The certificate with `key`'s name and signature over everything else in it."""
    if key is None:
        return replace(certificate, signer=None, signature=None)
    named = replace(certificate, signer=key.public.hexadecimal, signature=None)
    return replace(named, signature=key.sign(signed_bytes(named)))


def _three_deltas(events: tuple[Event, ...], delta: float, population: int | None) -> tuple[tuple[float, float], ...]:
    largest = 10 * delta if population is None else max(delta, min(10 * delta, 1 / (10 * population)))
    wanted = sorted({delta / 10, delta, min(largest, 0.1)})
    return tuple((at, accountants.epsilon(events, at)) for at in wanted)


def ledger_facts(receipt: Receipt) -> dict[str, Any]:
    """What a certificate says about the ledger that was charged."""
    amended = {"amendments": list(receipt.amendments)} if receipt.amendments else {}
    return {
        "name": receipt.ledger,
        "kind": receipt.ledger_kind,
        "run": receipt.run,
        "composition": receipt.composition,
        "head": receipt.head,
        **amended,
    }


def _versions() -> dict[str, str]:
    found = {}
    for package in _VERSIONED:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found
