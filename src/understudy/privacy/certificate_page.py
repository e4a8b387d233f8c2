"""One page about a certificate for a regulator, as Markdown or HTML: a pure function of the certificate.

The words are those of NIST SP 800-226 (privacy unit, privacy loss parameters, trust model, hazards), the headings those
of a data protection impact assessment (GDPR Article 35(7)).
"""

import base64
import hashlib
import html
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.resources import files

from understudy.privacy import canonical
from understudy.privacy.budget import at_most
from understudy.privacy.certificate import Certificate
from understudy.privacy.keys import fingerprint

_VALIDITY = (
    "The guarantee does not expire. It covers the files whose hashes certificate.json lists, unchanged, and whatever "
    "is computed from them. Further releases of the same population add to epsilon; its ledger adds them up."
)
Section = tuple[str, Sequence[tuple[str, str]], Sequence[str]]  # title, rows of a table, points of a list


def to_markdown(certificate: Certificate) -> str:
    """The page as Markdown."""
    lines = [f"# Privacy certificate: {_md(certificate.population)}", "", f"**{_md(_headline(certificate))}**", ""]
    digest = ("SHA-256 of certificate.json", canonical.sha256(certificate.dumps()))
    for title, rows, points in (("Issue", (*_issued(certificate), digest), ()), *_sections(certificate)):
        lines += [f"## {title}", ""]
        if rows:
            lines += ["| | |", "|---|---|", *(f"| {_md(name)} | {_md(value)} |" for name, value in rows), ""]
        lines += [f"- {_md(point)}" for point in points]
        lines += [""] if points else []
    return "\n".join(lines).rstrip() + "\n"


def to_html(certificate: Certificate) -> str:
    """The page as one HTML file, a sheet of paper long, without scripts or links to anywhere."""
    import segno

    title = html.escape(f"Privacy certificate: {certificate.population}")
    mark = "status" if certificate.is_private else "status not"
    style = files("understudy.privacy").joinpath("certificate.css").read_text(encoding="utf-8")
    digest = canonical.sha256(certificate.dumps())
    code = segno.make(f"sha256:{digest}", error="m", micro=False).svg_inline(border=2, omitsize=True)
    policy = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    sections = "".join(_html_section(*section) for section in _sections(certificate))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        f"style-src 'sha256-{policy}'; base-uri 'none'; form-action 'none'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{style}</style></head><body><main>"
        f'<header><div><p class="kind">Privacy certificate</p><h1>{html.escape(certificate.population)}</h1>'
        f'<p class="{mark}">{_text(_headline(certificate))}</p></div>'
        f'<figure role="img" aria-label="QR code of the hash of this certificate">{code}'
        f"<figcaption>SHA-256 of certificate.json <code>{digest}</code></figcaption></figure></header>"
        f'<div class="issue">{_html_table(_issued(certificate))}</div>'
        f'<div class="columns">{sections}</div></main></body></html>\n'
    )


def _html_section(title: str, rows: Sequence[tuple[str, str]], points: Sequence[str]) -> str:
    listed = "".join(f"<li>{_text(point)}</li>" for point in points)
    table = _html_table(rows) if rows else ""
    return f"<section><h2>{html.escape(title)}</h2>{table}{f'<ul>{listed}</ul>' if points else ''}</section>"


def _html_table(rows: Sequence[tuple[str, str]]) -> str:
    cells = (f'<tr><th scope="row">{_text(name)}</th><td>{_text(value)}</td></tr>' for name, value in rows)
    return f"<table>{''.join(cells)}</table>"


def _text(plain: str) -> str:
    """Returns text as mark-up, with its numbers in scientific notation as powers of ten."""
    return re.sub(r"(\d)e-0*(\d+)", r"\1&#8239;×&#8239;10<sup>−\2</sup>", html.escape(plain))


def _issued(certificate: Certificate) -> list[tuple[str, str]]:
    """Who issued it, when, what for, and how long it holds; what the certificate does not state is left out."""
    named = {"at": "Issued at", "name": "Issuer", "purpose": "Purpose", "contact": "Contact"}
    facts = dict(certificate.issued)
    if facts.get("at"):
        facts["at"] = f"{datetime.fromisoformat(facts['at']).astimezone(UTC):%d %B %Y, %H:%M} UTC"
    return [*((title, facts[key]) for key, title in named.items() if facts.get(key)), ("Validity", _VALIDITY)]


def _headline(certificate: Certificate) -> str:
    return f"Status: {certificate.status}. {certificate.sentence() if certificate.is_private else ''}".strip()


def _sections(certificate: Certificate) -> tuple[Section, ...]:
    hidden, size = certificate.marginal_obfuscation, certificate.population_size
    declared = "bought with differential privacy" if size is None else size
    protected = [
        ("Population", f"{certificate.population} (declared size: {declared})"),
        ("Privacy unit", certificate.unit),
        ("Neighbouring datasets", certificate.adjacency),
    ]
    others = "; ".join(f"{at_most(cost)} at {at_most(at)}" for at, cost in certificate.epsilon_at_delta)
    measured = [
        ("Epsilon, delta", f"{at_most(certificate.epsilon)} at {at_most(certificate.delta)}"),
        ("Epsilon at three deltas", others),
        ("Replace-one epsilon", at_most(certificate.replace_one_epsilon)),
        ("Highest odds ratio", at_most(math.exp(min(certificate.epsilon, 700.0)))),
        ("Model", "central differential privacy, (epsilon, delta)"),
    ]
    inputs = "; ".join(f"{name} (sha256 {digest[:16]}…)" for name, digest in certificate.public_inputs.items())
    done = [
        ("Method", certificate.method),
        ("Noise", certificate.noise),
        ("Public inputs", inputs or "none besides the schema"),
    ]
    counted = ", identifier or row count" if certificate.hides_presence else " or identifier"
    proportionate = (
        f"The recipient gets synthetic series or a model of the population; no original series{counted} leaves the "
        "holder.",
        "The privacy budget of the population is limited in advance and every use of it is recorded before data is "
        f"read (ledger '{certificate.ledger.get('name')}', run {certificate.ledger.get('run')}).",
    )
    departures = [
        *(f"Departure from the rules, by name: {name} ({reason})" for name, reason in certificate.overrides.items()),
        *(f"Ledger: {sentence}" for sentence in certificate.amendments),
    ]
    return (
        ("What is protected (privacy unit)", protected, ()),
        ("From whom (trust model and threat model)", (), certificate.threat_model),
        ("How it is measured (privacy loss parameters)", measured, _events(certificate)),
        *([("Marginal obfuscation (no part of the privacy loss)", (), hidden)] if hidden else []),
        *([("Fitness for use", (), certificate.findings)] if certificate.findings else []),
        ("What was done (description of the processing)", done, ()),
        ("Necessity and proportionality", (), proportionate),
        ("Risks that remain (privacy hazards)", (), certificate.not_protected),
        ("What it rests on (assumptions)", (), certificate.assumptions),
        ("Measures and accountability", _accountability(certificate), departures),
    )


def _events(certificate: Certificate) -> list[str]:
    described = []
    for label, event in zip(certificate.labels, certificate.events, strict=False):
        facts = ", ".join(f"{key} = {value}" for key, value in event.items() if key != "type")
        arithmetic = f", {certificate.arithmetic[label]} arithmetic" if label in certificate.arithmetic else ""
        described.append(f"Mechanism '{label}': {event.get('type')} ({facts}){arithmetic}")
    return described or ["No private data was read."]


def _accountability(certificate: Certificate) -> list[tuple[str, str]]:
    signer = "nobody" if certificate.signer is None else f"Ed25519 key {fingerprint(certificate.signer)}"
    kind, composition, head = (certificate.ledger.get(name) for name in ("kind", "composition", "head"))
    parties = []
    for entry in certificate.parties:
        ledger = entry["ledger"] if isinstance(entry.get("ledger"), Mapping) else {}
        paid = f"ledger '{ledger.get('name')}', run {ledger.get('run')}"
        parties.append(
            (f"Signed by {entry.get('party')}", f"Ed25519 key {fingerprint(str(entry.get('signer')))}; {paid}")
        )
    return [
        ("Ledger", f"{kind}, composition {composition}, head {str(head)[:16]}…"),
        ("Released files", f"{len(certificate.files)}, each listed with its sha256 in certificate.json"),
        ("Signed by", signer),
        *parties,
        ("Software", ", ".join(f"{name} {number}" for name, number in certificate.versions.items())),
        ("How to check", "understudy verify RELEASE recomputes epsilon, file hashes and signature without the data"),
    ]


def _md(text: str) -> str:
    """Text that can't start markup: a population's name is untrusted."""
    escaped = html.escape(str(text), quote=False).replace("\n", " ")
    for character in "\\`*_[]|#":
        escaped = escaped.replace(character, "\\" + character)
    return escaped
