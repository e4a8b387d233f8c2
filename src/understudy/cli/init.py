"""`understudy init`: a schema draft from column names and types."""

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.console import Json, Output, Quiet
from understudy.cli.places import existing, unused, whole_file


def init(
    file: Annotated[Path, typer.Argument(help="The private table. Its header is read, its rows are not.")],
    out: Annotated[
        Path | None, typer.Option(help="Where the draft goes. Default: NAME.schema.toml beside the table.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a schema draft: who is protected, what is public, and bounds to fill in."""
    from understudy.data import draft_schema

    target = unused(out or file.with_name(f"{file.stem}.schema.toml"), "--out")
    text = draft_schema(existing(file, "FILE"))
    with whole_file(target) as draft:
        draft.write_text(text, encoding="utf-8")
    todo = text.count("TODO")
    Output(json=json, quiet=quiet).result(
        {"schema": str(target), "todo": todo},
        f"Wrote {target} from column names and types; no row was read.",
        f"Complete its {todo} TODO lines from public knowledge, then: understudy plan {target}",
    )
