"""`understudy pretrain pub2priv`: θ_T, which says what public signals know about every step."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli.console import Json, Output, Progress, Quiet
from understudy.cli.places import existing, require_room, unused
from understudy.cli.pretrain import Work, app
from understudy.errors import InputError

if TYPE_CHECKING:
    from understudy.synthesizers.packs import Pack

_PACK_BYTES = 5 * 2**20
_HELD_OUT = 0.2


class Preset(StrEnum):
    """Shapes of θ_T."""

    default = "default"
    paper = "paper"


@app.command("pub2priv")
def pub2priv(
    out: Annotated[Path, typer.Option(help="The pack to write, such as market.safetensors; it must not exist yet.")],
    public: Annotated[
        Path | None,
        typer.Option(help="Public signals: a table with rows in order of time, or .npy (step, feature)."),
    ] = None,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="Train on simulated signals: a pack for any context.")
    ] = False,
    window_steps: Annotated[int, typer.Option(min=8, help="Steps that θ_T sees at once (with --public).")] = 96,
    preset: Annotated[
        Preset, typer.Option(help="Shape of θ_T. paper: that of the publication's Table 3; needs hours.")
    ] = Preset.default,
    work: Annotated[Work, typer.Option(help="quick: for trying out.")] = Work.standard,
    seed: Annotated[int, typer.Option(min=0, help="Another seed gives another pack.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train the knowledge transformer of Pub2Priv. FILE must be public: nothing you protect may be in it."""
    if simulated == (public is not None):
        raise InputError("--public: name a table of public signals, or say --simulated; one of the two is expected.")
    unused(out, "--out")
    require_room(out, _PACK_BYTES)
    options: dict[str, Any] = {} if public is None else {"window-steps": window_steps}
    options |= {"preset": str(preset)} if preset is Preset.paper else {}
    options |= {"work": str(work), "seed": seed}
    output = Output(json=json, quiet=quiet)
    with output.progress() as progress:
        pack = _train(public, out.name, options, progress)
    pack.save(out)
    quality = pack.provenance["quality"]
    facts = {"pack": str(out), "sha256": pack.sha256, "quality": quality, "command": pack.provenance["command"]}
    lines = [
        f"Wrote {out}.",
        f"On public windows kept out: error {quality['error']:.3f} of the variance of what was hidden "
        f"({quality['error_untrained']:.3f} before training).",
        f"sha256 {pack.sha256}",
    ]
    output.result(facts, *lines)


def _train(public: Path | None, out: str, options: dict[str, Any], progress: Progress) -> "Pack":
    import numpy as np

    from understudy.privacy.canonical import file_sha256
    from understudy.synthesizers.pub2priv.context import read_signals
    from understudy.synthesizers.pub2priv.knowledge import Windows, pretrain, simulated, split, windows_from
    from understudy.synthesizers.pub2priv.recipe import KNOWLEDGE_RECIPES

    rng = np.random.default_rng([options["seed"], 1])
    windows: Windows = simulated
    source = "--simulated" if public is None else f"--public {public.name}"
    if public is None:
        held_out, trained_on = simulated(64, rng), {"simulated": "signals of six kinds"}
    else:
        signals = read_signals(existing(public, "--public"))
        learned, kept = split(signals, _HELD_OUT)
        steps = min(options["window-steps"], kept.shape[1])
        windows, held_out = windows_from(learned, steps), windows_from(kept, steps)(64, rng)
        trained_on = {public.name: file_sha256(public)}
    command = " ".join(
        [
            "understudy pretrain pub2priv",
            source,
            *(f"--{name} {value}" for name, value in options.items()),
            f"--out {out}",
        ]
    )
    return pretrain(
        windows,
        held_out,
        recipe=KNOWLEDGE_RECIPES["quick" if options["work"] == "quick" else options.get("preset", "default")],
        seed=options["seed"],
        provenance={"command": command, "public": trained_on},
        progress=progress,
    )
