"""`understudy verify` recomputes what a certificate states, without the data; `understudy certificate` prints it."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from understudy.api import checking
from understudy.api.arguments import existing, unused, write
from understudy.cli.console import Output, clean, table
from understudy.privacy.certificate import Certificate
from understudy.privacy.certificate_page import to_html, to_markdown


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
    report(output, release, checking.verify(existing(release, "RELEASE"), trust=trust, signer=signer))


def report(output: Output, release: Path, found: checking.Verification) -> None:
    """Prints the outcome of every check, and refuses a release of which one failed."""
    shown = table("", "check", "found", rows=found.rows())
    if not found:
        output.say(shown)
        raise found.refusal(release)
    amended = (f"Ledger: {sentence}" for sentence in found.certificate.amendments)
    output.result(found.as_dict(), shown, *found.remarks, found.certificate.sentence(), *amended)


def certificate(
    output: Output,
    release: Annotated[Path, typer.Argument(help="A release directory, or a certificate file.")],
    format: Annotated[Literal["html", "md", "json"], "One page as html or md, or the certificate as json."] = "md",
    out: Annotated[Path | None, "File for the page, outside the release. Default: print it."] = None,
) -> None:
    """Print what is protected, from whom and how it was measured, on one page."""
    found = checking.verify(existing(release, "RELEASE"))
    found.require_holding(release)
    writers = {"html": to_html, "md": to_markdown, "json": Certificate.dumps}
    text = writers["json" if output.json and out is None else format](found.certificate)
    if out is None:
        print(clean(text), end="")
        return
    write(unused(out, "--out", release=release if release.is_dir() else release.parent), text)
    output.result({"file": str(out), "format": format}, f"Wrote {out}.")
