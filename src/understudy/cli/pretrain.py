"""`understudy pretrain`: modules that methods need beforehand, trained on public data only."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer

from understudy.api.arguments import existing, require_room, unused
from understudy.cli.console import EVERYWHERE, Commands, Output, Progress
from understudy.cli.options import ContextFile, WindowSteps, WindowStride
from understudy.data import Panel, Schema, read_panel, windows
from understudy.errors import InputError
from understudy.privacy.canonical import file_sha256
from understudy.synthesizers.packs import Pack

app = Commands()
Out = Annotated[Path, "The pack to write, such as meters.safetensors; it must not exist yet."]
Work = Annotated[Literal["quick", "standard"], "Training length; quick is for trials."]
Seed = Annotated[int, typer.Option(min=0, help="Seed for weight initialisation and batches.")]
Width = Annotated[int | None, typer.Option(min=2, help="Width of the layers.")]
Heads = Annotated[int | None, typer.Option(min=1, help="Heads of attention.")]
_PACK_BYTES = 16 * 2**20
_FILES = ("public", "schema", "context")  # options that name files to read


@app.command("pets")
def pets(
    output: Output,
    command: typer.Context,
    out: Out,
    public: Annotated[Path | None, "Public series: a table with --schema, or .npy (series, step, channel)."] = None,
    schema: Annotated[Path | None, "Schema of the public table."] = None,
    rules: Annotated[bool, "Train on rule-based series: a pack for any data."] = False,
    encoder: Annotated[
        Literal["pooled-conv", "ts2vec"],
        "Encoder: pooled-conv, distilled from TS2Vec at a tenth of its cost, or ts2vec.",
    ] = "pooled-conv",
    channels: Annotated[
        Literal["joint", "each"], "Learn channels jointly, or each by itself, for any number of channels."
    ] = "joint",
    window_steps: Annotated[int | None, typer.Option(min=8, help="Cut series into windows of this many steps.")] = None,
    work: Work = "standard",
    seed: Seed = 0,
) -> None:
    """Train the variation and similarity modules of PETS on public series, never on the data that you protect."""
    _one_of("rules", rules, public, "series")

    def train(provenance: dict[str, Any], progress: Progress) -> Pack:
        from understudy.synthesizers.pets.modules import Generation
        from understudy.synthesizers.pets.pretraining import Effort, drawn_from, pretrain
        from understudy.synthesizers.pets.rules import general_rules

        rng = np.random.default_rng([seed, 1])
        source: Generation = general_rules
        if public is None:
            provenance["public"] = {"rules": "both presets and irregular series, in equal parts"}
            held_out = source(1000, rng)
        else:
            series = _working_series(public, schema, window_steps, channels == "each", rng)
            held = max(1, len(series) // 10)
            source, held_out = drawn_from(series[held:]), series[:held]
        quick = {"autoencoder_iterations": 50, "ts2vec_iterations": 10, "distillation_iterations": 100}
        effort = Effort(**quick, distillation_series=400) if work == "quick" else Effort()
        own = {"seed": seed, "encoder": encoder, "provenance": provenance, "progress": progress}
        return pretrain(source, held_out=held_out, effort=effort, **own)  # type: ignore[arg-type]

    def quality(found: dict[str, float]) -> str:
        shares = (f"{name.replace('_', ' ')} {share:.0%}" for name, share in found.items())
        return f"{', '.join(shares)} of the variance"

    _train(output, command, out, train, quality, shape=("num_steps", "num_channels"))


@app.command("pub2priv")
def pub2priv(
    output: Output,
    command: typer.Context,
    out: Out,
    public: Annotated[
        Path | None, "Public signals: a table with rows in order of time, or .npy (step, feature)."
    ] = None,
    simulated: Annotated[bool, "Train on simulated signals: a pack for any context."] = False,
    window_steps: Annotated[int, typer.Option(min=8, help="Steps that θ_T sees at once (with --public).")] = 96,
    preset: Annotated[
        Literal["default", "paper"], "Shape of θ_T. paper: that of the publication's Table 3; needs hours."
    ] = "default",
    width: Width = None,
    num_heads: Heads = None,
    depth: Annotated[int | None, typer.Option(min=1, help="Pairs of layers, along time and along features.")] = None,
    iterations: Annotated[int | None, typer.Option(min=1, help="Updates on public signals.")] = None,
    work: Work = "standard",
    seed: Seed = 0,
) -> None:
    """Train the knowledge transformer of Pub2Priv. FILE must be public: nothing you protect may be in it."""
    _one_of("simulated", simulated, public, "signals")

    def train(provenance: dict[str, Any], progress: Progress) -> Pack:
        from understudy.synthesizers.pub2priv import knowledge
        from understudy.synthesizers.pub2priv.context import read_signals
        from understudy.synthesizers.pub2priv.recipe import KNOWLEDGE_RECIPES

        recipe = KNOWLEDGE_RECIPES["quick" if work == "quick" else preset]
        recipe = recipe.of_size(width=width, num_heads=num_heads, depth=depth, iterations=iterations)
        windows: knowledge.Windows = partial(knowledge.simulated, most_steps=recipe.network["most_steps"])
        own = windows
        if public is None:
            provenance["public"] = {"simulated": "signals of six kinds"}
        else:
            learned, kept = knowledge.split(read_signals(public), 0.2)
            steps = min(window_steps, kept.shape[1])
            recipe = recipe.of_size(most_steps=max(steps, recipe.network["most_steps"]))
            windows, own = knowledge.windows_from(learned, steps), knowledge.windows_from(kept, steps)
        judged = own(64, np.random.default_rng([seed, 1]))
        return knowledge.pretrain(windows, judged, recipe=recipe, seed=seed, provenance=provenance, progress=progress)

    def quality(found: dict[str, float]) -> str:
        before = f"({found['error_untrained']:.3f} before training)"
        return f"error {found['error']:.3f} of the variance of what was hidden {before}"

    _train(output, command, out, train, quality)


@app.command("dit")
def dit(
    output: Output,
    command: typer.Context,
    out: Out,
    public: Annotated[Path, "A table of public series with the columns of the private ones."],
    schema: Annotated[Path, "Schema of the public table."],
    context: ContextFile = None,
    window_steps: WindowSteps = None,
    window_stride: WindowStride = None,
    bounds_only: Annotated[bool, "Keep magnitudes and no weights."] = False,
    preset: Annotated[
        Literal["default", "paper"], "Shape of the network, as of the run that starts from the pack."
    ] = "default",
    width: Width = None,
    num_heads: Heads = None,
    depth: Annotated[int | None, typer.Option(min=1, help="Blocks.")] = None,
    patch: Annotated[int | None, typer.Option(min=1, help="Steps per token.")] = None,
    iterations: Annotated[int, typer.Option(min=1, help="Updates without bounds; half as many follow within.")] = 600,
    seed: Seed = 0,
) -> None:
    """Measure the bounds of DiT and train its first weights. The data you protect must not be in FILE."""

    def train(provenance: dict[str, Any], progress: Progress) -> Pack:
        from understudy.synthesizers.dit.method import DiT
        from understudy.synthesizers.dit.pretraining import pretrain

        series, method = _public_series(public, schema, context, window_steps, window_stride), DiT.from_preset(preset)
        sizes = {"width": width, "num_heads": num_heads, "depth": depth, "patch": patch}
        asked: dict[str, Any] = {name: size for name, size in sizes.items() if size is not None}
        recipe = replace(method.recipe, network=replace(method.recipe.network, **asked))
        own = {"with_weights": not bounds_only, "provenance": provenance, "progress": progress}
        return pretrain(series, replace(method, seed=seed, recipe=recipe), iterations=iterations, **own)  # type: ignore

    def quality(found: dict[str, float]) -> str:
        last, untrained = found.get("error", found["error_without_bounds"]), found["error_untrained"]
        return f"error {last:.3f}, where a network that knows the values only has {untrained:.3f}"

    _train(output, command, out, train, quality)


def _one_of(option: str, asked: bool, public: Path | None, what: str) -> None:
    if asked == (public is not None):
        raise InputError(f"--public: name a table of public {what}, or say --{option}; one of the two is expected.")


def _public_series(public: Path, schema: Path, context: str | None, steps: int | None, stride: int | None) -> Panel:
    """Returns the series of a public table, cut into windows."""
    contract = Schema.load(existing(schema, "--schema"))
    panel = read_panel(existing(public, "--public"), contract, context=context, allow_few_units=True)
    if steps is not None and steps < panel.num_steps:
        panel = windows.cut(panel, steps, stride or steps)
    return replace(panel, private=False, unit_ids=None)


def _working_series(
    path: Path, schema: Path | None, steps: int | None, each_channel: bool, rng: np.random.Generator
) -> np.ndarray:
    """Returns public series in working scale and random order; windows of one series stay together."""
    from understudy.synthesizers.pets import pretraining
    from understudy.synthesizers.pets.method import read_public

    if schema is not None:
        series = pretraining.scaled_panel(read_public(path, Schema.load(schema)))
    elif path.suffix == ".npy":
        series = pretraining.scaled_array(np.load(path, allow_pickle=False))
    else:
        raise InputError("--schema: a table of public series needs one; an array (.npy) does not.")
    series = rng.permutation(series)
    if steps is not None:
        series = pretraining.windows_of(series, steps)
    if each_channel:
        series = pretraining.one_channel_each(series)
    if len(series) < pretraining.MIN_SERIES:
        raise InputError(
            f"--public: at least {pretraining.MIN_SERIES} series are expected. Cut long ones with --window-steps."
        )
    return series


def _train(
    output: Output,
    command: typer.Context,
    out: Path,
    train: Callable[[dict[str, Any], Progress], Pack],
    quality: Callable[[dict[str, float]], str],
    shape: tuple[str, ...] = (),
) -> None:
    """Saves a pack, with the command that makes it again: files by name and hash, never by place."""
    unused(out, "--out")
    require_room(out, _PACK_BYTES)
    words, hashes = [command.command_path], {}
    for name in (str(option.name) for option in command.command.params):
        option, value = f"--{name.replace('_', '-')}", command.params.get(name)
        if value is None or value is False or name in EVERYWHERE:
            continue
        if name in _FILES:
            hashes[Path(value).name] = file_sha256(existing(Path(value), option))
        told = Path(value).name if name in (*_FILES, "out") else value
        words.append(option if value is True else f"{option} {told}")
    with output.progress() as progress:
        progress("reading", 0.0)
        pack = train({"command": " ".join(words), "public": hashes}, progress)
    pack.save(out)
    sizes = {name: pack.shape[name] for name in shape}
    size = f" ({sizes['num_steps']} steps, {sizes['num_channels']} channels)" if sizes else ""
    output.result(
        {"pack": str(out), "sha256": pack.sha256, **sizes, **{k: pack.provenance[k] for k in ("quality", "command")}},
        f"Wrote {out}{size}.",
        f"On public series kept out: {quality(pack.provenance['quality'])}.",
        f"sha256 {pack.sha256}",
    )
