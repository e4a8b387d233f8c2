"""One page about a certificate for a regulator, as Markdown or HTML, in the words regulators use.

The vocabulary follows NIST SP 800-226 (privacy unit, privacy loss parameters, trust model, hazards) and the
headings of a data protection impact assessment (GDPR Article 35(7)). The page adds nothing to the certificate: it is
a pure function of it.
"""

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

from understudy.privacy.budget import at_most
from understudy.privacy.certificate import Certificate
from understudy.privacy.keys import fingerprint

_STYLE = (
    "body{font:14px/1.45 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a}"
    "h1{font-size:1.4rem;margin:0 0 .5rem}"
    "h2{font-size:1.05rem;margin:1.2rem 0 .3rem;border-bottom:1px solid #ccc}"
    "table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.15rem .6rem .15rem 0;"
    "vertical-align:top;overflow-wrap:anywhere}th{width:14rem;font-weight:600}"
    "ul{margin:.2rem 0;padding-left:1.2rem}"
    ".status{padding:.5rem .8rem;border-radius:4px;background:#e6f4e6}"
    ".not{background:#fbe3e3;font-weight:600}"
    "@media print{body{margin:0;font-size:11px}}"
)
Section = tuple[str, Sequence[tuple[str, str]], Sequence[str]]  # title, rows of a table, points of a list


def to_markdown(certificate: Certificate) -> str:
    """The page as Markdown."""
    lines = [f"# Privacy certificate: {_md(certificate.population)}", "", f"**{_md(_headline(certificate))}**", ""]
    for title, rows, points in _sections(certificate):
        lines += [f"## {title}", ""]
        if rows:
            lines += ["| | |", "|---|---|", *(f"| {_md(name)} | {_md(value)} |" for name, value in rows), ""]
        lines += [f"- {_md(point)}" for point in points]
        lines += [""] if points else []
    return "\n".join(lines).rstrip() + "\n"


def to_html(certificate: Certificate) -> str:
    """The page as one HTML file without scripts or links to anywhere."""
    mark = "status" if certificate.is_private else "status not"
    parts = [f'<p class="{mark}">{html.escape(_headline(certificate))}</p>']
    for title, rows, points in _sections(certificate):
        parts.append(f"<h2>{html.escape(title)}</h2>")
        if rows:
            cells = (f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>" for name, value in rows)
            parts.append(f"<table>{''.join(cells)}</table>")
        if points:
            parts.append(f"<ul>{''.join(f'<li>{html.escape(point)}</li>' for point in points)}</ul>")
    title = html.escape(f"Privacy certificate: {certificate.population}")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>{''.join(parts)}</body></html>\n"
    )


def _headline(certificate: Certificate) -> str:
    return f"Status: {certificate.status}. {certificate.sentence() if certificate.is_private else ''}".strip()


def _sections(certificate: Certificate) -> tuple[Section, ...]:
    hidden = certificate.marginal_obfuscation
    return (
        ("What is protected (privacy unit)", _protected(certificate), ()),
        ("From whom (trust model and threat model)", (), certificate.threat_model),
        ("How it is measured (privacy loss parameters)", _measured(certificate), _events(certificate)),
        *([("Marginal obfuscation (no part of the privacy loss)", (), hidden)] if hidden else []),
        *([("Fitness for use", (), certificate.findings)] if certificate.findings else []),
        ("What was done (description of the processing)", _processing(certificate), ()),
        ("Necessity and proportionality", (), _proportionality(certificate)),
        ("Risks that remain (privacy hazards)", (), certificate.not_protected),
        ("What it rests on (assumptions)", (), certificate.assumptions),
        ("Measures and accountability", _accountability(certificate), _departures(certificate)),
    )


def _protected(certificate: Certificate) -> list[tuple[str, str]]:
    bought, size = "bought with differential privacy", certificate.population_size
    return [
        ("Population", f"{certificate.population} (declared size: {bought if size is None else size})"),
        ("Privacy unit", certificate.unit),
        ("Neighbouring datasets", certificate.adjacency),
    ]


def _measured(certificate: Certificate) -> list[tuple[str, str]]:
    others = "; ".join(f"{at_most(cost)} at {at_most(at)}" for at, cost in certificate.epsilon_at_delta)
    return [
        ("Epsilon, delta", f"{at_most(certificate.epsilon)} at {at_most(certificate.delta)}"),
        ("Epsilon at three deltas", others),
        ("Replace-one epsilon", at_most(certificate.replace_one_epsilon)),
        ("Highest odds ratio", at_most(math.exp(min(certificate.epsilon, 700.0)))),
        ("Model", "central differential privacy, (epsilon, delta)"),
    ]


def _events(certificate: Certificate) -> list[str]:
    described = []
    for label, event in zip(certificate.labels, certificate.events, strict=False):
        facts = ", ".join(f"{key} = {value}" for key, value in event.items() if key != "type")
        arithmetic = f", {certificate.arithmetic[label]} arithmetic" if label in certificate.arithmetic else ""
        described.append(f"Mechanism '{label}': {event.get('type')} ({facts}){arithmetic}")
    return described or ["No private data was read."]


def _processing(certificate: Certificate) -> list[tuple[str, str]]:
    inputs = "; ".join(f"{name} (sha256 {digest[:16]}…)" for name, digest in certificate.public_inputs.items())
    return [
        ("Method", certificate.method),
        ("Noise", certificate.noise),
        ("Public inputs", inputs or "none besides the schema"),
    ]


def _proportionality(certificate: Certificate) -> list[str]:
    counted = ", identifier or row count" if certificate.hides_presence else " or identifier"
    return [
        f"The recipient gets synthetic series or a model of the population; no original series{counted} leaves the "
        "holder.",
        "The privacy budget of the population is limited in advance and every use of it is recorded before data is "
        f"read (ledger '{certificate.ledger.get('name')}', run {certificate.ledger.get('run')}).",
    ]


def _accountability(certificate: Certificate) -> list[tuple[str, str]]:
    signer = "nobody" if certificate.signer is None else f"Ed25519 key {fingerprint(certificate.signer)}"
    kind, composition, head = (certificate.ledger.get(name) for name in ("kind", "composition", "head"))
    return [
        ("Ledger", f"{kind}, composition {composition}, head {str(head)[:16]}…"),
        ("Released files", f"{len(certificate.files)}, each listed with its sha256 in certificate.json"),
        ("Signed by", signer),
        *((f"Signed by {entry.get('party')}", _party(entry)) for entry in certificate.parties),
        ("Software", ", ".join(f"{name} {number}" for name, number in certificate.versions.items())),
        ("How to check", "understudy verify RELEASE recomputes epsilon, file hashes and signature without the data"),
    ]


def _party(entry: Mapping[str, Any]) -> str:
    stated, mark = entry.get("ledger"), fingerprint(str(entry.get("signer")))
    ledger = stated if isinstance(stated, Mapping) else {}
    return f"Ed25519 key {mark}; ledger '{ledger.get('name')}', run {ledger.get('run')}"


def _departures(certificate: Certificate) -> list[str]:
    named = certificate.overrides.items()
    return [
        *(f"Departure from the rules, by name: {name} ({reason})" for name, reason in named),
        *(f"Ledger: {sentence}" for sentence in certificate.amendments),
    ]


def _md(text: str) -> str:
    """Text that can't start markup: a population's name is untrusted."""
    escaped = html.escape(str(text), quote=False).replace("\n", " ")
    for character in "\\`*_[]|#":
        escaped = escaped.replace(character, "\\" + character)
    return escaped
