"""`understudy certificate`: one page for a regulator, or the certificate itself."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.console import Json, Output, Quiet, clean
from understudy.cli.places import outside, unused, whole_file
from understudy.cli.verify import checked
from understudy.errors import CertificateError


class Format(StrEnum):
    """Forms in which a certificate can be read."""

    html = "html"
    md = "md"
    json = "json"


def certificate(
    release: Annotated[Path, typer.Argument(help="A release directory, or a certificate file.")],
    format: Annotated[Format, typer.Option(help="One page as html or md, or the certificate as json.")] = Format.md,
    out: Annotated[
        Path | None, typer.Option(help="Write it there, outside the release, instead of printing it.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say what is protected, from whom and how it was measured, on one page."""
    text = page(release, Format.json if json and out is None else format)
    if out is None:
        print(clean(text), end="")
        return
    target = unused(outside(out, release if release.is_dir() else release.parent, "--out"), "--out")
    with whole_file(target) as draft:
        draft.write_text(text, encoding="utf-8")
    Output(json=json, quiet=quiet).result({"file": str(target), "format": str(format)}, f"Wrote {target}.")


def page(release: Path, format: Format) -> str:
    """Returns a certificate in one of its forms; an edited one is refused."""
    from understudy.privacy.certificate_page import to_html, to_markdown

    found, checks = checked(release, None)
    failed = [check.name for check in checks if not check.ok and not check.unknown]
    if failed:
        raise CertificateError(
            f"'{release}' does not hold ({', '.join(failed)}), so no page is written about it. "
            "`understudy verify` says more."
        )
    writers = {Format.html: to_html, Format.md: to_markdown, Format.json: lambda whole: whole.dumps()}
    return writers[format](found)
