"""`understudy verify` recomputes what a certificate states, without the data; `understudy certificate` prints it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from understudy.api.places import existing, outside, unused, write
from understudy.cli.console import Output, clean, table
from understudy.errors import CertificateError, RevokedSigner, UnknownSigner
from understudy.privacy import keys
from understudy.privacy.certificate import Certificate, Check
from understudy.privacy.certificate import verify as check_all
from understudy.privacy.certificate_page import to_html, to_markdown
from understudy.privacy.keys import fingerprint


def verify(
    output: Output,
    release: Annotated[Path, typer.Argument(help="A release directory, or a certificate file alone.")],
    trust: Annotated[
        list[str] | None,
        typer.Option(
            "--trust",
            "--key",
            metavar="KEY",
            help="Public key that must have signed, or its file; may be repeated. Default: your own and trusted keys.",
        ),
    ] = None,
    signer: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of the signer: their key is recorded at first, and expected later."),
    ] = None,
) -> None:
    """Recompute epsilon, file hashes and the signature; exit 2 if anything differs, 5 if the signer is
    unknown, 7 if the key was revoked or had expired.
    """
    certificate, checks = checked(release, trust)
    recorded = None
    if signer is not None:
        checks, recorded = _by_name(certificate, checks, signer)
    report(output, release, certificate, checks, *([recorded] if recorded else []))


def report(output: Output, release: Path, certificate: Certificate, checks: list[Check], *also: str) -> None:
    """Prints the outcome of every check, and refuses a release of which one failed."""
    facts = {
        "holds": all(check.ok for check in checks),
        "signer_known": all(check.ok for check in checks if check.name == "signer" or check.unknown),
        "status": certificate.status,
        "epsilon": certificate.epsilon,
        "delta": certificate.delta,
        "amendments": list(certificate.amendments),
        "checks": [vars(check) for check in checks],
    }
    rows = (("ok" if check.ok else "?" if check.unknown else "NO", check.name, check.detail) for check in checks)
    found = table("", "check", "found", rows=rows)
    amended = (f"Ledger: {sentence}" for sentence in certificate.amendments)
    if facts["holds"]:
        output.result(facts, found, *also, certificate.sentence(), *amended)
        return
    output.say(found)
    raise _refusal(release, certificate, checks, facts)


def checked(release: Path, trust: Sequence[str] | None) -> tuple[Certificate, list[Check]]:
    """Returns a certificate and the outcome of every check that needs no data."""
    certificate = Certificate.load(existing(release, "RELEASE"))
    trusted = [keys.given(key) for key in trust] if trust else None
    return certificate, check_all(certificate, release if release.is_dir() else None, trusted)


def _by_name(certificate: Certificate, checks: list[Check], name: str) -> tuple[list[Check], str | None]:
    """Expects the key that was recorded under a signer's name, and records it if there is none and all else holds."""
    known, found, message = keys.recorded(name), certificate.signer, None
    if known is None and found is not None and all(check.ok or check.unknown for check in checks):
        known = keys.record(name, found)
        message = (
            f"Recorded the key {known.fingerprint} as '{name}', on first use: compare the fingerprint with {name} "
            "through another channel."
        )
    if known is None:
        return checks, None
    right = known.hexadecimal == found
    answer = Check("signer", right, f"{name}, {known.fingerprint}{'' if right else ' expected: another key signed'}")
    return [answer if check.name == "signer" else check for check in checks], message


def _refusal(release: Path, certificate: Certificate, checks: list[Check], facts: dict[str, Any]) -> CertificateError:
    failed = [check for check in checks if not check.ok]
    if all(check.unknown for check in failed):
        mark = fingerprint(str(certificate.signer))
        return UnknownSigner(
            f"'{release}' agrees with its certificate, but the key that signed it ({mark}) is unknown here: a forger "
            "can sign with a new key. Compare the fingerprint with the holder's through another channel; "
            "then --signer NAME records the key under that name, or --trust FILE takes the holder's public key.",
            **facts,
        )
    kind = RevokedSigner if all(check.unknown or check.revoked for check in failed) else CertificateError
    return kind(
        f"'{release}' does not hold: {', '.join(check.name for check in failed)}. "
        + " ".join(f"{check.name}: {check.detail.rstrip('.')}." for check in failed)
        + " Do not rely on it; download the release again.",
        **facts,
    )


def certificate(
    output: Output,
    release: Annotated[Path, typer.Argument(help="A release directory, or a certificate file.")],
    format: Annotated[Literal["html", "md", "json"], "One page as html or md, or the certificate as json."] = "md",
    out: Annotated[Path | None, "File for the page, outside the release. Default: print it."] = None,
) -> None:
    """Print what is protected, from whom and how it was measured, on one page."""
    found, checks = checked(release, None)
    require_holding(checks, release)
    writers = {"html": to_html, "md": to_markdown, "json": Certificate.dumps}
    text = writers["json" if output.json and out is None else format](found)
    if out is None:
        print(clean(text), end="")
        return
    target = unused(outside(out, release if release.is_dir() else release.parent, "--out"), "--out")
    write(target, text)
    output.result({"file": str(target), "format": format}, f"Wrote {target}.")


def require_holding(checks: Sequence[Check], source: Path) -> None:
    """Refuses to write about a certificate that does not hold; that its signer is unknown here is no reason."""
    failed = [check.name for check in checks if not check.ok and not check.unknown]
    if failed:
        raise CertificateError(
            f"The certificate of '{source}' does not hold ({', '.join(failed)}), so no page is written about it. "
            "`understudy verify` says more. Download the release again."
        )
