"""`understudy init`: a schema draft from column names and types."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from understudy.api.places import existing_table, unused, write
from understudy.cli.console import Output
from understudy.data import draft_schema
from understudy.data.draft import STATEMENT, AlikeColumns
from understudy.data.schema import CsvFormat


def init(
    output: Output,
    file: Annotated[
        str, typer.Argument(help="Private table, or its URL in a database. No row is read but with --peek.")
    ],
    out: Annotated[Path | None, "Draft to write. Default: NAME.schema.toml in the folder of the table."] = None,
    unit: Annotated[str | None, "Column that identifies the privacy unit."] = None,
    time: Annotated[str | None, "Column of timestamps."] = None,
    peek: Annotated[
        bool,
        "Look at the text shape of up to 1000 rows of a CSV file to tell the kinds of its columns (whole numbers, "
        "numbers, true/false, timestamps, other text). No value is kept; the draft records the look.",
    ] = False,
    delimiter: Annotated[str, 'Character between columns of a CSV file; "\\t" for a tab.'] = ",",
    decimal: Annotated[str, "Decimal sign of a CSV file, . or ,"] = ".",
    encoding: Annotated[str, "Encoding of a CSV file, such as latin-1."] = "utf-8",
    missing: Annotated[list[str] | None, "Word for a missing value in a CSV file, such as ?; may be repeated."] = None,
    zone: Annotated[str | None, "Time zone of timestamps that carry none: Europe/Paris."] = None,
    columns_are_public: Annotated[bool, "Write column names that look like identifiers to the draft."] = False,
) -> None:
    """Write a schema draft: who is protected, what is public, and bounds to fill in."""
    place = existing_table(file, "FILE")
    beside = Path("table.schema.toml") if isinstance(place, str) else place.with_name(f"{place.stem}.schema.toml")
    target = unused(out or beside, "--out")
    sign = "\t" if delimiter == "\\t" else delimiter
    written = CsvFormat(delimiter=sign, decimal=decimal, encoding=encoding, missing=tuple(missing or ()))
    options: dict[str, Any] = {"csv": written, "zone": zone, "unit": unit, "time": time, "peek": peek}
    options["columns_are_public"] = columns_are_public
    asking = sys.stdin.isatty() and sys.stdout.isatty() and not (output.json or output.quiet)
    text, options = _drafted(place, options, asking=asking)
    write(target, text)
    peeked = options["peek"] and _is_csv(place)
    looked = "and the text shape of some rows" if peeked else "and types; no row was read"
    todo = text.count("TODO:")
    output.result(
        {"schema": str(target), "todo": todo, "peeked": peeked},
        f"Wrote {target} from column names {looked}.",
        f"Complete its {todo} TODO lines from public knowledge, then: understudy plan {target}",
    )


def _is_csv(place: Path | str) -> bool:
    return isinstance(place, Path) and place.suffix.lower() == ".csv"


def _drafted(file: Path | str, options: dict[str, Any], *, asking: bool) -> tuple[str, dict[str, Any]]:
    """Returns the draft and what was allowed for it; a person at a terminal is asked before anything is looked at."""
    try:
        text = draft_schema(file, **options)
    except AlikeColumns:
        if not asking:
            raise
        typer.confirm(
            "Many column names follow one pattern. With a column per person they are identifiers, and the draft would "
            "publish them. Are they public?",
            abort=True,
        )
        options = {**options, "columns_are_public": True}
        text = draft_schema(file, **options)
    untyped = _is_csv(file) and not options["peek"]
    if asking and untyped and typer.confirm(f"A CSV file has no types. May init look at {STATEMENT}?"):
        options = {**options, "peek": True}
        text = draft_schema(file, **options)
    return text, options
