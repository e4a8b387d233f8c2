"""`understudy init`: a schema draft from column names; `understudy data`: example data, and partitions."""

import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from understudy.api.arguments import existing, existing_table, unused, write
from understudy.cli.console import Commands, Output
from understudy.cli.options import TABLE_HELP
from understudy.data import Schema, draft_schema, write_households, write_intensive_care
from understudy.data.draft import STATEMENT, AlikeColumns
from understudy.data.repartition import partition_by_unit
from understudy.data.schema import CsvFormat
from understudy.errors import InputError

app = Commands()
_EXAMPLES: dict[str, tuple[Callable[..., tuple[Path, ...]], str]] = {
    "households": (write_households, "homes"),
    "icu": (write_intensive_care, "stays"),
}


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


@app.command("make")
def make(
    output: Output,
    name: Annotated[
        Literal["households", "icu"],
        typer.Argument(
            help="`households`: a week of hourly load and solar output of invented homes, with weather and prices. "
            "`icu`: two days of seven vital signs and laboratory values of invented patients, with gaps and an outcome."
        ),
    ],
    out: Annotated[Path, "Folder for the table, its public context and schema.toml."],
    n: Annotated[int, typer.Option("--n", min=1, max=100_000, help="Number of homes or stays.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulation.")] = 7,
) -> None:
    """Make example data: a table, its public context and its schema with a budget."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".understudy-make-", dir=out.parent) as draft:  # all files or none
        write, units = _EXAMPLES[name]
        made: tuple[Path, ...] = write(n, draft, seed)
        files = [unused(out / path.name, "--out") for path in made]
        out.mkdir(exist_ok=True)
        for path, target in zip(made, files, strict=True):
            shutil.move(path, target)
    facts = {"name": name, "series": n, "files": [str(file) for file in files]}
    output.result(facts, f"Wrote {n} invented {units} to {out}/", *(f"  {file.name}" for file in files))


@app.command("partition")
def partition(
    output: Output,
    file: Annotated[str, typer.Argument(help=f"The private table, its rows in any order: {TABLE_HELP}")],
    out: Annotated[Path, "Folder to make; it must not exist yet."],
    by_unit: Annotated[bool, "Put all rows of a unit into one file."] = False,
    schema: Annotated[
        Path | None, "Schema of the table; may be a draft. Default: schema.toml in the folder of the table."
    ] = None,
    partitions: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Number of files. Default: by the population.")
    ] = None,
) -> None:
    """Write a table as a folder of files that share no unit, for tables larger than memory."""
    if not by_unit:
        raise InputError("--by-unit: this option is expected; tables are partitioned by unit only. Add --by-unit.")
    source = existing_table(file, "FILE")
    target = unused(out, "--out")
    if schema is None and isinstance(source, str):
        raise InputError("--schema: the schema of a table in a store is expected. Give its path.")
    contract = Schema.load(existing(schema or source.parent / "schema.toml", "--schema"), draft=True)
    with output.progress() as progress:
        partition_by_unit(source, contract, target, num_partitions=partitions, progress=progress)
    output.result(
        {"folder": str(target), "schema": contract.name},
        f"Wrote {target}. It holds private rows: keep it as safe as the table.",
        "`understudy synth`, `buy` and `evaluate` take the folder in place of the table.",
    )
