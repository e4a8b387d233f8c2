"""`understudy verify`: anyone, without the data, recomputes what a certificate states."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from understudy.cli.console import Json, Output, Quiet, table
from understudy.cli.places import existing
from understudy.errors import CertificateError

if TYPE_CHECKING:
    from understudy.privacy.certificate import Certificate, Check


def verify(
    release: Annotated[Path, typer.Argument(help="A release directory, or a certificate file alone.")],
    key: Annotated[
        Path | None,
        typer.Option(help="Public key that must have signed. Default: your own and trusted keys."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Recompute epsilon, file hashes and the signature from the certificate; exit 2 if anything is off."""
    certificate, checks = checked(release, key)
    output = Output(json=json, quiet=quiet)
    failed = [check.name for check in checks if not check.ok]
    if not failed:
        facts = {
            "holds": True,
            "status": certificate.status,
            "epsilon": certificate.epsilon,
            "delta": certificate.delta,
        }
        output.result(facts | {"checks": [vars(check) for check in checks]}, _table(checks), certificate.sentence())
        return
    output.say(_table(checks))
    raise CertificateError(
        f"'{release}' does not hold: {', '.join(failed)}. "
        + " ".join(f"{check.name}: {check.detail.rstrip('.')}." for check in checks if not check.ok)
        + " Do not rely on it; get it anew from its holder."
    )


def checked(release: Path, key: Path | None) -> tuple["Certificate", list["Check"]]:
    """Returns a certificate and the answers to every question that can be put to it."""
    from understudy.privacy import keys
    from understudy.privacy.certificate import Certificate
    from understudy.privacy.certificate import verify as put_questions

    certificate = Certificate.load(existing(release, "RELEASE"))
    trusted = None if key is None else [keys.read_public(existing(key, "--key"))]
    return certificate, put_questions(certificate, release if release.is_dir() else None, trusted)


def _table(checks: list["Check"]) -> Table:
    answers = table("", "check", "found")
    for check in checks:
        answers.add_row("ok" if check.ok else "NO", check.name, check.detail)
    return answers
