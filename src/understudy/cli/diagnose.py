"""`understudy audit diagnose`: how long gradients of `dit` are on public series, with bounds and without."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from understudy.cli.console import Output, bold, table
from understudy.cli.pretrain import public_series
from understudy.errors import InputError

if TYPE_CHECKING:
    from understudy.audit.diagnose import Norms
    from understudy.data import Panel

INTERNAL = "Internal, and of public series: norms of single units' gradients have no noise on them."
_SIMULATED_HOMES = 400


def diagnose(
    output: Output,
    public: Annotated[Path | None, typer.Option(help="A table of public series. Default: simulated homes.")] = None,
    schema: Annotated[Path | None, typer.Option(help="Schema of the public table.")] = None,
    context: Annotated[Path | None, typer.Option(help="Table of public context by time.")] = None,
    window_steps: Annotated[int | None, typer.Option(min=1, help="Cut series into windows of this many steps.")] = None,
    window_stride: Annotated[int | None, typer.Option(min=1, help="Steps from one window to the next.")] = None,
    noise: Annotated[float, typer.Option(min=1e-6, help="Noise multiplier of the updates.")] = 1.0,
    iterations: Annotated[int, typer.Option(min=1, help="Updates.")] = 100,
    tightness: Annotated[str, typer.Option(help="Of the bounds: loose, medium, tight or too-tight.")] = "medium",
    operator: Annotated[str, typer.Option(help="Of the bounds: tanh, hard, soft or straight-through.")] = "tanh",
    pictures: Annotated[Path | None, typer.Option(help="Draw the tails of the norms into that folder.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the first weights.")] = 0,
) -> None:
    """Look at single units' gradients of dit while it trains on PUBLIC series. Never point it at private ones."""
    from understudy.audit import diagnose as diagnostics
    from understudy.synthesizers.dit.method import DiT
    from understudy.synthesizers.dit.recipe import Network, Recipe

    network = Network(tightness=tightness, operator=operator)  # type: ignore[arg-type] # checked there
    if tightness == "none":
        raise InputError("--tightness: loose, medium, tight or too-tight is expected; 'none' is what it is beside.")
    method = DiT(recipe=Recipe(network=network, iterations=iterations), seed=seed)
    with output.progress() as progress:
        progress("reading", 0.0)
        series = _series(public, schema, context, window_steps, window_stride)
        found = diagnostics.diagnose(series, method, noise_multiplier=noise, progress=progress)
    ratios = diagnostics.ratios(found["aware"], found["vanilla"])
    facts: dict[str, Any] = {name: norms.figures() for name, norms in found.items()}
    drawn = [] if pictures is None else [str(path) for path in _draw(found, pictures)]
    told = {"internal": True, "noise_multiplier": noise, **facts, "ratios": ratios, "pictures": drawn}
    output.result(told, bold(INTERNAL), _shown(facts, ratios), *(f"Wrote {path}." for path in drawn))


def _series(
    public: Path | None, schema: Path | None, context: Path | None, steps: int | None, stride: int | None
) -> "Panel":
    from understudy.data import simulate_households

    if (public is None) != (schema is None):
        raise InputError("--public, --schema: both or none are expected.")
    if public is None or schema is None:
        return replace(simulate_households(_SIMULATED_HOMES), private=False, unit_ids=None)
    return public_series(public, schema, context, steps, stride)


def _shown(facts: dict[str, dict[str, float]], ratios: dict[str, float]) -> Table:
    shown = table("", *(f">{name}" for name in facts), ">aware ÷ vanilla", title="gradients of single units")
    names = {"total": "rho_emp", "cond": "rho_cond"}
    for figure in facts["vanilla"]:
        part, _, level = figure.removeprefix("s_").rpartition("_")
        ratio = ratios.get(f"{names.get(part, '')}_{level}")
        values = [f"{of[figure]:.3g}" for of in facts.values()]
        shown.add_row(figure, *values, "" if ratio is None else f"{ratio:.3f}")
    return shown


def _draw(found: "dict[str, Norms]", folder: Path) -> list[Path]:
    from understudy.report.gradient_pictures import tails

    folder.mkdir(parents=True, exist_ok=True)
    kinds = {name: {"cond": norms.conditioning, "other": norms.other} for name, norms in found.items()}
    clips = {name: norms.left_by_clip for name, norms in found.items()}
    return [path for drawing in tails(kinds, clips) for path in drawing.save(folder)]
