"""`understudy data`: example data that the package makes, and partitions."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer

from understudy.api.places import existing, existing_table, unused
from understudy.cli.console import Commands, Output
from understudy.cli.options import TABLE_HELP
from understudy.data import Schema, write_households, write_intensive_care
from understudy.data.repartition import partition_by_unit
from understudy.errors import InputError

app = Commands()
MAX_UNITS = 100_000
MAX_PARTITIONS = 1000
_EXAMPLES: dict[str, tuple[Callable[..., tuple[Path, ...]], str]] = {
    "households": (write_households, "homes"),
    "icu": (write_intensive_care, "stays"),
}


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
    n: Annotated[int, typer.Option("--n", min=1, max=MAX_UNITS, help="Number of homes or stays.")] = 1000,
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
    output.result(
        facts,
        f"Wrote {n} invented {units} to {out}/",
        *(f"  {file.name}" for file in files),
    )


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
        int | None, typer.Option(min=1, max=MAX_PARTITIONS, help="Number of files. Default: by the population.")
    ] = None,
) -> None:
    """Write a table as a folder of files that share no unit, for tables larger than memory."""
    if not by_unit:
        raise InputError("--by-unit: this option is expected; tables are partitioned by unit only. Add --by-unit.")
    source = existing_table(file, "FILE")
    target = unused(out, "--out")
    contract = Schema.load(existing(schema or _schema_beside(source), "--schema"), draft=True)
    with output.progress() as progress:
        partition_by_unit(source, contract, target, num_partitions=partitions, progress=progress)
    output.result(
        {"folder": str(target), "schema": contract.name},
        f"Wrote {target}. It holds private rows: keep it as safe as the table.",
        "`understudy synth`, `buy` and `evaluate` take the folder in place of the table.",
    )


def _schema_beside(source: Path | str) -> Path:
    if isinstance(source, str):
        raise InputError("--schema: the schema of a table in a store is expected. Give its path.")
    return source.parent / "schema.toml"
