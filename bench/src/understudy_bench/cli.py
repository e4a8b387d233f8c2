"""`understudy-bench`: the papers' tables and the cost benchmarks."""

import os
import threading
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from understudy.api.arguments import existing, whole_file
from understudy.cli.console import Json, Output, Quiet, table
from understudy.errors import InputError

_KEPT = ("name", "scale", "day", "data", "rows", "controls", "notes")  # of a result: figures, and no series
_AT_A_TIME = 5  # figures of a table, which with their intervals fill a terminal

app = typer.Typer(help="List and run benchmarks.", no_args_is_help=True)


class Scale(StrEnum):
    """How much work a benchmark does."""

    quick = "quick"
    target = "target"
    full = "full"


@app.command("list")
def list_benchmarks(json: Json = False, quiet: Quiet = False) -> None:
    """List the benchmarks."""
    from understudy_bench.registry import BENCHMARKS

    rows = table("name", "what it shows")
    facts = []
    for name, benchmark in BENCHMARKS.items():
        rows.add_row(name, benchmark.about)
        facts.append({"name": name, "about": benchmark.about})
    Output(json=json, quiet=quiet).result({"benchmarks": facts, "scales": list(Scale)}, rows)


@app.command("run")
def run(
    name: Annotated[str, typer.Argument(help="A name that `understudy-bench list` prints.")],
    scale: Annotated[Scale, typer.Option(help="quick: minutes. target: where goals are judged. full: the paper's.")] = (
        Scale.quick
    ),
    out: Annotated[Path | None, typer.Option(help="Write the result there as JSON.")] = None,
    data: Annotated[Path | None, typer.Option(help="Folder with public data. Default: UNDERSTUDY_DATA.")] = None,
    pictures: Annotated[Path | None, typer.Option(help="Draw the result's pictures into that folder.")] = None,
    tied: Annotated[bool, typer.Option("--tied", hidden=True, help="End when standard input does.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run one benchmark; with --out a run that was cut goes on. Public data that are missing are named (exit 3)."""
    import json as json_format

    from understudy_bench.cells import Cells
    from understudy_bench.registry import BENCHMARKS

    if name not in BENCHMARKS:
        raise InputError(f"NAME: one of {', '.join(BENCHMARKS)} is expected, got '{name}'.")
    if tied:
        threading.Thread(target=_end_with_input, daemon=True).start()
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
    output.result(result, *_tables(result), *_units(result), *result.get("notes", ()), *written)


def _end_with_input() -> None:
    """Ends this process when its standard input is closed, be it by the death of who started it."""
    while os.read(0, 1):
        pass
    os._exit(1)


@app.command("report")
def report(
    folder: Annotated[Path, typer.Argument(help="Folder with results that `bench run … --out` wrote.")],
    out: Annotated[Path, typer.Option(help="The HTML page to write.")] = Path("results.html"),
    markdown: Annotated[Path | None, typer.Option(help="Write the same as Markdown there.")] = None,
    rule: Annotated[Path | None, typer.Option(help="Write there what --method auto goes by.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Put all results into one page: papers beside ours, and all methods beside each other."""
    written = write_report(folder, out, markdown)
    if rule is not None:
        written.append(_write_rule(folder, rule))
    Output(json=json, quiet=quiet).result({"files": written}, *(f"Wrote {path}." for path in written))


@app.command("keep")
def keep(
    folder: Annotated[Path, typer.Argument(help="Folder with results that `bench run … --out` wrote.")],
    into: Annotated[Path, typer.Option(help="Folder that is kept; what it has of a benchmark is replaced.")],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Copy the figures of results, without series that pictures are drawn from: what a repository may hold."""
    import json as json_format

    results, written = results_of(folder), []
    into.mkdir(parents=True, exist_ok=True)
    for name, result in results.items():
        with whole_file(into / f"{name}.json") as draft:
            kept = {part: result[part] for part in _KEPT if part in result}
            hashes = [fact for fact in kept["data"] if fact.endswith("sha256")]  # which look like keys
            kept["data"] = {fact: said for fact, said in kept["data"].items() if fact not in hashes}
            draft.write_text(json_format.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        written.append(str(into / f"{name}.json"))
    Output(json=json, quiet=quiet).result({"files": written}, *(f"Wrote {path}." for path in written))


@app.command("diagnose")
def diagnose(
    public: Annotated[Path | None, typer.Option(help="A table of public series. Default: simulated homes.")] = None,
    schema: Annotated[Path | None, typer.Option(help="Schema of the public table.")] = None,
    context: Annotated[Path | None, typer.Option(help="Table of public context by time.")] = None,
    window_steps: Annotated[int | None, typer.Option(min=1, help="Cut series into windows of this many steps.")] = None,
    noise: Annotated[float, typer.Option(min=1e-6, help="Noise multiplier of the updates.")] = 1.0,
    iterations: Annotated[int, typer.Option(min=1, help="Number of iterations.")] = 100,
    tightness: Annotated[str, typer.Option(help="Tightness of the bounds: loose, medium, tight or too-tight.")] = (
        "medium"
    ),
    operator: Annotated[str, typer.Option(help="Operator of the bounds: tanh, hard, soft or straight-through.")] = (
        "tanh"
    ),
    pictures: Annotated[Path | None, typer.Option(help="Folder for figures of the gradient norms.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed for weight initialisation.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Look at single units' gradients of dit while it trains on PUBLIC series. Never point it at private ones."""
    from understudy.synthesizers.dit.method import DiT
    from understudy.synthesizers.dit.recipe import Recipe
    from understudy_bench.adaln import diagnose as diagnostics
    from understudy_bench.adaln.ablation import PartlyBounded

    if (public is None) != (schema is None):
        raise InputError("--public, --schema: both or none are expected.")
    if tightness == "none":
        raise InputError(
            "--tightness: loose, medium, tight or too-tight is expected; 'none' is what they are compared with."
        )
    network = PartlyBounded(tightness=tightness, operator=operator)  # type: ignore[arg-type] # checked there
    method = DiT(recipe=Recipe(network=network, iterations=iterations), seed=seed)
    output = Output(json=json, quiet=quiet)
    with output.progress() as progress:
        series = diagnostics.public_series(public, schema, context, window_steps)
        found = diagnostics.diagnose(series, method, noise_multiplier=noise, progress=progress)
    facts, ratios, drawn = diagnostics.facts_of(found), diagnostics.ratios(found["aware"], found["vanilla"]), []
    if pictures is not None:
        pictures.mkdir(parents=True, exist_ok=True)
        drawn = [str(path) for path in diagnostics.picture(found).save(pictures)]
    told = {"internal": True, "noise_multiplier": noise, **facts, "ratios": ratios, "pictures": drawn}
    rows = table("", *(f">{name}" for name in facts), ">aware ÷ vanilla", title="gradients of single units")
    for row in diagnostics.rows_of(facts, ratios):
        rows.add_row(*row)
    output.result(told, diagnostics.PUBLIC, rows, *(f"Wrote {path}." for path in drawn))


def write_report(folder: Path, out: Path, markdown: Path | None) -> list[str]:
    """Writes the page of a folder's results, as Markdown too if a file is named; returns what was written."""
    from understudy_bench.results import page as results_page

    results = results_of(folder)
    pages = {out: results_page.page(results)} | ({} if markdown is None else {markdown: results_page.markdown(results)})
    for path, text in pages.items():
        with whole_file(path) as draft:
            draft.write_text(text, encoding="utf-8")
    return [str(path) for path in pages]


def _write_rule(folder: Path, out: Path) -> str:
    """Writes the rule that the record suggests, with the figures it was fitted to."""
    import json as json_format

    from understudy_bench.results.which_method import cells_of, context_cells, shipped

    results = results_of(folder)
    if sum(name.startswith("record-") for name in results) < 2:
        raise InputError("FOLDER: results of at least two `record-…` benchmarks are expected, to judge a rule by.")
    with whole_file(out) as draft:
        rules = shipped(cells_of(results), context_cells(results))
        draft.write_text(json_format.dumps(rules, indent=1) + "\n", encoding="utf-8")
    return str(out)


def results_of(folder: Path) -> dict[str, dict[str, Any]]:
    """Returns the results of a folder by benchmark; of one that was run at two scales the larger."""
    import json as json_format

    from understudy_bench.registry import BENCHMARKS

    found: dict[str, dict[str, Any]] = {}
    for file in sorted(existing(folder, "FOLDER").glob("*.json")):
        try:
            result = json_format.loads(file.read_text(encoding="utf-8"))
            name, scale = result["name"], list(Scale).index(Scale(result["scale"]))
        except (ValueError, KeyError, TypeError, UnicodeDecodeError) as problem:
            raise InputError(f"'{file.name}' is not a result of `understudy-bench run`. Take it out.") from problem
        earlier = found.get(name)
        if name in BENCHMARKS and (earlier is None or list(Scale).index(Scale(earlier["scale"])) <= scale):
            found[name] = result
    if not found:
        raise InputError(
            "FOLDER: results of `understudy-bench run NAME --out FOLDER/NAME.json` are expected, got none."
        )
    return {name: found[name] for name in BENCHMARKS if name in found}


def _draw(result: Mapping[str, Any], folder: Path) -> list[Path]:
    from understudy_bench.pictures.draw import draw

    return draw(result, folder)


def _tables(result: Mapping[str, Any]) -> Iterator[Table]:
    """A few figures at a time, so that none is cut off; the last table says what each row cost."""
    lines = [*result.get("rows", []), *result.get("controls", [])]
    metrics = list(dict.fromkeys(metric for line in lines for metric in line.get("metrics", {})))
    groups = [metrics[first : first + _AT_A_TIME] for first in range(0, len(metrics), _AT_A_TIME)]
    for place, names in enumerate([*groups, ["seconds", "peak_rss_mb"]]):
        title = f"{result.get('name')} ({result.get('scale')})" if not place else None
        rows = table("method", ">epsilon", *(f">{name}" for name in names), title=title)
        for line in lines:
            figures = {**line, **line.get("metrics", {})}
            rows.add_row(str(line.get("method")), *(_figure(figures.get(name)) for name in ("epsilon", *names)))
        yield rows


def _units(result: Mapping[str, Any]) -> Iterator[str]:
    """Says who is protected, once for all rows that say the same."""
    told = dict.fromkeys(line["unit"] for line in result.get("rows", []) if line.get("unit"))
    yield from (f"Unit: {unit}." for unit in told)


def _figure(value: Any) -> str:
    """A number, or a mean with its interval."""
    if isinstance(value, Mapping):
        return f"{_figure(value.get('mean'))} [{_figure(value.get('low'))}, {_figure(value.get('high'))}]"
    return f"{value:.4g}" if isinstance(value, int | float) else "" if value is None else str(value)
