"""`understudy data`: example data that comes with the package, and partitions."""

import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.console import Commands, Output, bold, table
from understudy.cli.options import TABLE_HELP
from understudy.cli.places import existing, existing_table, named, unused
from understudy.errors import InputError

app = Commands(help="List, describe and make example data; partition large tables.", no_args_is_help=True)
_MADE = {"households": "a week of hourly load and solar output of invented homes, with public weather and prices"}
MAX_HOMES = 100_000
MAX_PARTITIONS = 1000


@app.command("list")
def list_data(output: Output) -> None:
    """List the example data that can be made here."""
    rows = table("name", "kind", "state")
    for name in _MADE:
        rows.add_row(name, "simulated", f"understudy data make {name}")
    output.result({"data": [{"name": name, "kind": "simulated", "there": True} for name in _MADE]}, rows)


@app.command("describe")
def describe(
    output: Output,
    name: Annotated[str, typer.Argument(help="Name that `understudy data list` prints.")],
) -> None:
    """Print the columns, bounds and time axis of a dataset."""
    _require_made(name)
    from understudy.data.households import households_schema

    schema = households_schema(10_000)
    columns = table("column", "role", "kind", ">low", ">high")
    facts = []
    groups = (("channel", schema.channels), ("static", schema.static), ("public context", schema.context))
    for role, group in groups:
        for column in group:
            low, high = column.bounds
            columns.add_row(column.name, role, column.kind, f"{low:g}", f"{high:g}")
            facts.append({"name": column.name, "role": role, "kind": column.kind, "low": low, "high": high})
    steps = f"{schema.num_steps} steps of {schema.time.frequency}"
    output.result(
        {"name": name, "steps": schema.num_steps, "frequency": schema.time.frequency, "columns": facts},
        bold(f"{name}: {_MADE[name]}"),
        f"{steps}. {schema.unit.sentence()}",
        columns,
    )


@app.command("make")
def make(
    output: Output,
    name: Annotated[str, typer.Argument(help="Name of the example: households.")],
    out: Annotated[Path, typer.Option(help="Folder for the table, the public context and schema.toml.")],
    n: Annotated[int, typer.Option("--n", min=1, max=MAX_HOMES, help="Number of homes.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulation.")] = 7,
) -> None:
    """Make example data: a table, its public context and its schema with a budget."""
    _require_made(name)
    files = make_households(n, out, seed)
    lines = [f"Wrote {n} invented homes to {out}/", *(f"  {file.name}" for file in files)]
    facts = {"name": name, "series": n, "files": [str(file) for file in files]}
    output.result(facts, "\n".join(lines))


@app.command("partition")
def partition(
    output: Output,
    file: Annotated[str, typer.Argument(help=f"The private table, its rows in any order: {TABLE_HELP}")],
    out: Annotated[Path, typer.Option(help="Folder to make; it must not exist yet.")],
    by_unit: Annotated[bool, typer.Option("--by-unit", help="Put all rows of a unit into one file.")] = False,
    schema: Annotated[
        Path | None,
        typer.Option(help="Schema of the table; may be a draft. Default: schema.toml in the folder of the table."),
    ] = None,
    partitions: Annotated[
        int | None, typer.Option(min=1, max=MAX_PARTITIONS, help="Number of files. Default: by the population.")
    ] = None,
) -> None:
    """Write a table as a folder of files that share no unit, for tables larger than memory."""
    from understudy.data import Schema
    from understudy.data.repartition import partition_by_unit

    if not by_unit:
        raise InputError("--by-unit: this option is expected; tables are partitioned by unit only. Add --by-unit.")
    source = existing_table(named(file), "FILE")
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


def make_households(num_homes: int, folder: Path, seed: int = 7) -> tuple[Path, ...]:
    """Writes all files of the example or none."""
    from understudy.data import write_households

    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".understudy-make-", dir=folder.parent) as draft:
        made = write_households(num_homes, draft, seed)
        targets = tuple(unused(folder / path.name, "--out") for path in made)
        folder.mkdir(exist_ok=True)
        for path, target in zip(made, targets, strict=True):
            shutil.move(path, target)
    return targets


def _require_made(name: str) -> None:
    if name not in _MADE:
        raise InputError(f"NAME: one of {', '.join(_MADE)} is expected, got '{name}'.")
