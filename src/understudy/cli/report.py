"""`understudy report`: one page about a release or its evaluation, and its figures for a paper."""

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.console import Output, Progress
from understudy.cli.ledger import facts_of_payer
from understudy.cli.panels import read_release
from understudy.cli.places import existing, outside, unused, write
from understudy.cli.verify import require_holding
from understudy.errors import InputError
from understudy.files import whole_folder
from understudy.privacy.certificate import Certificate, verify
from understudy.report.record import RunRecord, public_record


def report(
    output: Output,
    source: Annotated[
        Path,
        typer.Argument(metavar="RECORD|RELEASE", help="Record that `evaluate --record` wrote, or a release directory."),
    ],
    out: Annotated[Path, "HTML file to write; it is self-contained."],
    context: Annotated[Path | None, "Table of public context by time, for a release whose series follow one."] = None,
    public: Annotated[bool, "Drop everything that was computed from real series."] = False,
    figures: Annotated[Path | None, "Folder to make for the figures, as SVG and PNG."] = None,
) -> None:
    """Write the page of a release or of its evaluation."""
    from understudy.report.page import drawings, render

    for path, name in ((out, "--out"), (figures, "--figures")):
        if path is not None:
            unused(outside(path, existing(source, "RECORD"), name), name)
    with output.progress() as progress:
        made = read_record(source, progress, context)
        if public and made.public["certificate"] is None:
            raise InputError(
                "--public: a release with a certificate is expected. Nothing vouches for a table without one, which "
                "may be real series. Omit --public, and keep the page internal."
            )
        shown = made.without_internal() if public else made
        progress("drawing", 0.5)
        write(out, render(shown), private=shown.internal is not None)  # it shows real series
        written = []
        if figures is not None:
            with whole_folder(figures, mode=0o755 if shown.internal is None else 0o700) as draft:
                written = [path for drawing in drawings(shown) for path in drawing.save(draft)]
    kind = "public" if shown.internal is None else "internal"
    facts = {"file": str(out), "kind": kind, "figures": [path.name for path in written]}
    lines = [f"Wrote {out}. {_KINDS[kind]}", *([f"Wrote {len(written)} figures to {figures}."] if written else [])]
    output.result(facts, *lines)


_KINDS = {
    "public": "Nothing in it was computed from real series: it may be published with the release.",
    "internal": "It shows real series, and no guarantee covers it: keep it internal. --public writes one to publish.",
}


def read_record(source: Path, progress: Progress, context: Path | None = None) -> RunRecord:
    """Returns the record in a file, or one made of a release alone; refuses a certificate that does not hold."""
    if source.is_dir():
        candidate = read_release(source, 0, progress, context)
        assert candidate.release is not None
        certificate = candidate.release.certificate
        require_holding(verify(certificate, source), source)
        return public_record(candidate.release, candidate.panel, ledger=facts_of_payer(certificate))
    made = RunRecord.load(source)
    if made.public["certificate"] is not None:
        require_holding(verify(Certificate.from_json(made.public["certificate"]), None), source)
    return made
