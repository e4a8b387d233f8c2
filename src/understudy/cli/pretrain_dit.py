"""`understudy pretrain dit`: bounds and first weights of the diffusion transformer, from public series."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli.console import Json, Output, Progress, Quiet
from understudy.cli.places import existing, require_room, unused

if TYPE_CHECKING:
    from understudy.data import Panel
    from understudy.synthesizers.packs import Pack

_PACK_BYTES = 8 * 2**20


def dit(
    out: Annotated[Path, typer.Option(help="The pack to write, such as meters.safetensors; it must not exist yet.")],
    public: Annotated[Path, typer.Option(help="A table of public series with the columns of the private ones.")],
    schema: Annotated[Path, typer.Option(help="Schema of the public table.")],
    context: Annotated[Path | None, typer.Option(help="Table of public context by time.")] = None,
    window_steps: Annotated[int | None, typer.Option(min=1, help="Cut series into windows of this many steps.")] = None,
    window_stride: Annotated[int | None, typer.Option(min=1, help="Steps from one window to the next.")] = None,
    bounds_only: Annotated[bool, typer.Option("--bounds-only", help="Keep magnitudes and no weights.")] = False,
    iterations: Annotated[int, typer.Option(min=1, help="Updates without bounds; half as many follow within.")] = 600,
    seed: Annotated[int, typer.Option(min=0, help="Another seed gives another pack.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure the bounds of DiT and train its first weights. The data you protect must not be in FILE."""
    unused(out, "--out")
    require_room(out, _PACK_BYTES)
    options = {
        "window-steps": window_steps,
        "window-stride": window_stride,
        "iterations": iterations,
        "seed": seed,
    }
    output = Output(json=json, quiet=quiet)
    with output.progress() as progress:
        progress("reading", 0.0)
        series = public_series(public, schema, context, window_steps, window_stride)
        told = {name: value for name, value in options.items() if value is not None}
        files = [path for path in (public, schema, context) if path is not None]
        pack = _train(series, told, files, bounds_only, out.name, progress)
    pack.save(out)
    quality = pack.provenance["quality"]
    facts = {"pack": str(out), "sha256": pack.sha256, "quality": quality, "command": pack.provenance["command"]}
    last = quality.get("error", quality["error_without_bounds"])
    lines = [
        f"Wrote {out}.",
        f"On public series kept out: error {last:.3f}, where a network that knows the values only has "
        f"{quality['error_untrained']:.3f}.",
        f"sha256 {pack.sha256}",
    ]
    output.result(facts, *lines)


def public_series(
    public: Path, schema_path: Path, context: Path | None, steps: int | None, stride: int | None
) -> "Panel":
    from understudy.data import Schema, read_panel, windows

    schema = Schema.load(existing(schema_path, "--schema"))
    panel = read_panel(existing(public, "--public"), schema, context=context, allow_few_units=True)
    if steps is not None and steps < panel.num_steps:
        panel = windows.cut(panel, steps, stride or steps)
    return replace(panel, private=False, unit_ids=None)


def _train(
    series: "Panel", options: dict[str, Any], files: list[Path], bounds_only: bool, out: str, progress: Progress
) -> "Pack":
    from understudy.privacy.canonical import file_sha256
    from understudy.synthesizers.dit.method import DiT
    from understudy.synthesizers.dit.pretraining import pretrain

    named = zip(("--public", "--schema", "--context"), files, strict=False)
    parts = [f"{name} {path.name}" for name, path in named]  # files by name, never by place
    parts += [f"--{name} {value}" for name, value in options.items()]
    command = " ".join(["understudy pretrain dit", *parts, *["--bounds-only"] * bounds_only, f"--out {out}"])
    return pretrain(
        series,
        DiT(seed=options["seed"]),
        iterations=options["iterations"],
        with_weights=not bounds_only,
        provenance={"command": command, "public": {path.name: file_sha256(path) for path in files}},
        progress=progress,
    )
