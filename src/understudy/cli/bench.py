"""`understudy bench`: the papers' tables and the cost benchmarks."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from understudy.cli.console import Json, Output, Quiet, table
from understudy.cli.places import whole_file
from understudy.errors import InputError

app = typer.Typer(help="List and run benchmarks.", no_args_is_help=True)


class Scale(StrEnum):
    """How much work a benchmark does."""

    quick = "quick"
    target = "target"
    full = "full"


@app.command("list")
def list_benchmarks(json: Json = False, quiet: Quiet = False) -> None:
    """List the benchmarks."""
    from understudy.bench.registry import BENCHMARKS

    rows = table("name", "what it shows")
    facts = []
    for name, benchmark in BENCHMARKS.items():
        rows.add_row(name, benchmark.about)
        facts.append({"name": name, "about": benchmark.about})
    Output(json=json, quiet=quiet).result({"benchmarks": facts, "scales": list(Scale)}, rows)


@app.command("run")
def run(
    name: Annotated[str, typer.Argument(help="A name that `understudy bench list` prints.")],
    scale: Annotated[Scale, typer.Option(help="quick: minutes. target: where goals are judged. full: the paper's.")] = (
        Scale.quick
    ),
    out: Annotated[Path | None, typer.Option(help="Write the result there as JSON.")] = None,
    data: Annotated[Path | None, typer.Option(help="Folder with public data. Default: UNDERSTUDY_DATA.")] = None,
    pictures: Annotated[Path | None, typer.Option(help="Draw the result's pictures into that folder.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run one benchmark; with --out a run that was cut goes on. Public data that are missing are named (exit 3)."""
    import json as json_format

    from understudy.bench.cells import Cells
    from understudy.bench.registry import BENCHMARKS

    if name not in BENCHMARKS:
        raise InputError(f"NAME: one of {', '.join(BENCHMARKS)} is expected, got '{name}'.")
    output = Output(json=json, quiet=quiet)
    cells = Cells(None if out is None else Path(f"{out}.{scale}.cells"))
    with output.progress() as progress:
        result = BENCHMARKS[name](str(scale), data, progress, cells)
    if out is not None:
        with whole_file(out) as draft:
            draft.write_text(json_format.dumps(result, indent=2) + "\n", encoding="utf-8")
        cells.remove()
    drawn = _draw(result, pictures) if pictures is not None else []
    written = (f"Wrote {path}." for path in ([out] if out else []) + drawn)
    output.result(result, _rows(result), *result.get("notes", ()), *written)


def _draw(result: Mapping[str, Any], folder: Path) -> list[Path]:
    from understudy.report.bench_pictures import draw

    return draw(result, folder)


def _rows(result: Mapping[str, Any]) -> Table:
    lines = [*result.get("rows", []), *result.get("controls", [])]
    metrics = list(dict.fromkeys(metric for line in lines for metric in line.get("metrics", {})))
    columns = ("method", ">epsilon", "unit", *(f">{metric}" for metric in metrics), ">seconds", ">peak MB")
    rows = table(*columns, title=f"{result.get('name')} ({result.get('scale')})")
    for line in lines:
        figures = (_figure(line.get("metrics", {}).get(metric)) for metric in metrics)
        cost = (_figure(line.get("seconds")), _figure(line.get("peak_rss_mb")))
        rows.add_row(str(line.get("method")), _figure(line.get("epsilon")), str(line.get("unit")), *figures, *cost)
    return rows


def _figure(value: Any) -> str:
    """A number, or a mean with its interval."""
    if isinstance(value, Mapping):
        return f"{_figure(value.get('mean'))} [{_figure(value.get('low'))}, {_figure(value.get('high'))}]"
    return f"{value:.4g}" if isinstance(value, int | float) else "" if value is None else str(value)
