"""`understudy pretrain`: modules that methods need beforehand, trained on public data only."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli.console import Json, Output, Progress, Quiet
from understudy.cli.places import existing, require_room, unused
from understudy.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from understudy.synthesizers.packs import Pack
    from understudy.synthesizers.pets.pretraining import Effort

app = typer.Typer(help="Train the modules that a method needs, on public data.", no_args_is_help=True)
_PACK_BYTES = 16 * 2**20
_HELD_OUT = 0.1


@app.callback()
def _pretrain() -> None:
    """Train what a method needs beforehand, on public data."""


class EncoderKind(StrEnum):
    """Which encoder the pack keeps."""

    pooled_conv = "pooled-conv"
    ts2vec = "ts2vec"


class Channels(StrEnum):
    """Whether channels are learned together or each by itself."""

    joint = "joint"
    each = "each"


class Work(StrEnum):
    """How long training takes."""

    quick = "quick"
    standard = "standard"


@app.command("pets")
def pets(
    out: Annotated[Path, typer.Option(help="The pack to write, such as meters.safetensors; it must not exist yet.")],
    public: Annotated[
        Path | None,
        typer.Option(help="Public series: a table with --schema, or .npy (series, step, channel)."),
    ] = None,
    schema: Annotated[Path | None, typer.Option(help="Schema of the public table.")] = None,
    rules: Annotated[bool, typer.Option("--rules", help="Train on rule-based series: a pack for any data.")] = False,
    encoder: Annotated[
        EncoderKind, typer.Option(help="Encoder: pooled-conv, distilled from TS2Vec at a tenth of its cost, or ts2vec.")
    ] = (EncoderKind.pooled_conv),
    channels: Annotated[
        Channels, typer.Option(help="Learn channels jointly, or each by itself, for any number of channels.")
    ] = (Channels.joint),
    window_steps: Annotated[int | None, typer.Option(min=8, help="Cut series into windows of this many steps.")] = None,
    work: Annotated[Work, typer.Option(help="Training length; quick is for trials.")] = Work.standard,
    seed: Annotated[int, typer.Option(min=0, help="Seed for weight initialisation and batches.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train the variation and similarity modules of PETS on public series, never on the data that you protect."""
    if rules == (public is not None):
        raise InputError("--public: name a table of public series, or say --rules; one of the two is expected.")
    unused(out, "--out")
    require_room(out, _PACK_BYTES)
    options = {"encoder": str(encoder), "channels": str(channels), "work": str(work), "seed": seed}
    if window_steps is not None:
        options["window-steps"] = window_steps
    output = Output(json=json, quiet=quiet)
    with output.progress() as progress:
        pack = _train(public, schema, out.name, options, progress)
    pack.save(out)
    facts = {
        "pack": str(out),
        "sha256": pack.sha256,
        "num_steps": pack.shape["num_steps"],
        "num_channels": pack.shape["num_channels"],
        "quality": pack.provenance["quality"],
        "command": pack.provenance["command"],
    }
    quality = ", ".join(f"{name.replace('_', ' ')} {share:.0%}" for name, share in facts["quality"].items())
    lines = [
        f"Wrote {out} ({facts['num_steps']} steps, {facts['num_channels']} channels).",
        f"On public series kept out: {quality} of the variance.",
        f"sha256 {pack.sha256}",
    ]
    output.result(facts, *lines)


def _train(public: Path | None, schema: Path | None, out: str, options: dict[str, Any], progress: Progress) -> "Pack":
    import numpy as np

    from understudy.privacy.canonical import file_sha256
    from understudy.synthesizers.pets.modules import Generation
    from understudy.synthesizers.pets.pretraining import drawn_from, general_rules, pretrain

    progress("reading", 0.0)
    rng = np.random.default_rng([options["seed"], 1])
    source: Generation = general_rules
    if public is None:
        held_out, trained_on = source(1000, rng), {"rules": "both presets and irregular series, in equal parts"}
    else:
        series = _public_series(public, schema, options, rng)
        held = max(1, int(_HELD_OUT * len(series)))
        source, held_out = drawn_from(series[held:]), series[:held]
        trained_on = {path.name: file_sha256(path) for path in (public, schema) if path is not None}
    return pretrain(
        source,
        held_out=held_out,
        effort=_effort(options["work"]),
        seed=options["seed"],
        encoder=options["encoder"],
        provenance={"command": _command(public, schema, out, options), "public": trained_on},
        progress=progress,
    )


def _public_series(
    path: Path, schema_path: Path | None, options: dict[str, Any], rng: "np.random.Generator"
) -> "np.ndarray":
    """Returns public series in working scale and random order; windows of one series stay together."""
    import numpy as np

    from understudy.data import Schema
    from understudy.synthesizers.pets.pretraining import (
        MIN_SERIES,
        one_channel_each,
        scaled_array,
        scaled_panel,
        windows_of,
    )
    from understudy.synthesizers.pets.public_side import read_public

    existing(path, "--public")
    if schema_path is not None:
        series = scaled_panel(read_public(path, Schema.load(existing(schema_path, "--schema"))))
    elif path.suffix == ".npy":
        series = scaled_array(np.load(path, allow_pickle=False))
    else:
        raise InputError("--schema: a table of public series needs one; an array (.npy) does not.")
    series = rng.permutation(series)
    if "window-steps" in options:
        series = windows_of(series, options["window-steps"])
    if options["channels"] == "each":
        series = one_channel_each(series)
    if len(series) < MIN_SERIES:
        raise InputError(f"--public: at least {MIN_SERIES} series are expected. Cut long ones with --window-steps.")
    return series


def _effort(work: str) -> "Effort":
    from understudy.synthesizers.pets.pretraining import Effort

    if work == "standard":
        return Effort()
    return Effort(autoencoder_iterations=50, ts2vec_iterations=10, distillation_iterations=100, distillation_series=400)


def _command(public: Path | None, schema: Path | None, out: str, options: dict[str, Any]) -> str:
    """Returns the command that makes this pack again; files by name, never by place."""
    parts = ["understudy pretrain pets", "--rules" if public is None else f"--public {public.name}"]
    if schema is not None:
        parts.append(f"--schema {schema.name}")
    parts += [f"--{name} {value}" for name, value in options.items()]
    return " ".join([*parts, f"--out {out}"])
