"""`understudy pets`: private evolution in two places, with files between them.

The data holder votes: charges the ledger once for the whole run, and writes one ballot per proposal. Another party
evolves: reads ballots, writes proposals, and at the end the release. Nothing but noisy histograms and released facts
leaves the holder.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.charging import charge_stays_known
from understudy.cli.console import Json, Output, Quiet
from understudy.cli.places import existing, folder_for, require_room, unused
from understudy.errors import InputError

if TYPE_CHECKING:
    from understudy.data import Panel, Schema
    from understudy.privacy.ledger import Ledger
    from understudy.synthesizers.pets import PETS
    from understudy.synthesizers.pets.two_places import Message

app = typer.Typer(
    help="Run private evolution in two places: vote where the data is, evolve elsewhere.", no_args_is_help=True
)
Pack = Annotated[str, typer.Option(help="Module pack: general, or a file. Both sides need the same one.")]
_BALLOT_BYTES = 32 * 2**20
_STATE, _RELEASE = "state.safetensors", "release"


@dataclass(frozen=True, kw_only=True)
class Request:
    """Arguments of one `pets vote`."""

    files: list[Path]
    schema: Path
    out: Path
    proposal: Path | None
    epsilon: float | None
    delta: float | None
    pack: str
    context: Path | None
    few_units: str | None


@app.command("vote")
def vote(
    files: Annotated[
        list[Path], typer.Argument(help="Private table. Several files of one population are read one at a time.")
    ],
    schema: Annotated[Path, typer.Option(help="Schema of the private table; the ledger is in the same folder.")],
    out: Annotated[Path, typer.Option(help="Ballot file to write. It is public and goes to the evolving side.")],
    proposal: Annotated[
        Path | None, typer.Option(help="Proposal file to vote on. Without it, a new run is opened.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="Epsilon of the whole run, charged when it is opened.")] = None,
    delta: Annotated[
        float | None, typer.Option(help="Delta of the run. Default: the ledger's delta divided by max_runs.")
    ] = None,
    scale: Annotated[
        str, typer.Option(help="Working scale: bought distributions, or declared bounds, which cost nothing.")
    ] = "bought",
    iterations: Annotated[int | None, typer.Option(min=1, help="Number of votes in the run.")] = None,
    window_steps: Annotated[int | None, typer.Option(min=1, help="Cut series into windows of this many steps.")] = None,
    pack: Pack = "general",
    context: Annotated[Path | None, typer.Option(help="Table of public context by time.")] = None,
    allow_few_units: Annotated[
        str | None,
        typer.Option(metavar="REASON", help="Accept fewer than 100 units; the certificate states the reason."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Open a run and charge the ledger, or count the votes on one proposal of an open run."""
    output = Output(json=json, quiet=quiet)
    request = Request(
        files=files, schema=schema, out=out, proposal=proposal, epsilon=epsilon, delta=delta, pack=pack,
        context=context, few_units=allow_few_units,
    )  # fmt: skip
    ballot, ledger = cast(request, _method(scale, iterations, window_steps, pack))
    left, remaining = ballot.facts["left"], ledger.remaining()
    facts = {
        "ballot": str(out),
        "run": ballot.facts["run"],
        "votes_left": left,
        "ledger": {"file": str(ledger.path), "epsilon_left": remaining.epsilon, "runs_left": remaining.runs},
    }
    done = "The run is complete." if left == 0 else f"{left} votes of the run are left."
    output.result(facts, f"Wrote {out}. {done}", f"Left in the ledger of '{ledger.name}': {remaining.epsilon:.4g}.")


@app.command("evolve")
def evolve(
    folder: Annotated[Path, typer.Argument(help="Folder of the evolution's state; created for the first ballot.")],
    ballot: Annotated[Path, typer.Option(help="First ballot of the data holder, or its answer to the last proposal.")],
    out: Annotated[Path, typer.Option(help="Proposal file to write, for the data holder.")],
    pack: Pack = "general",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Read a ballot and write the next proposal, or the release after the last vote. Reads no private data."""
    from understudy.synthesizers.pets import two_places
    from understudy.synthesizers.pets.two_places import Message
    from understudy.synthesizers.release import Release

    output = Output(json=json, quiet=quiet)
    counted = Message.load(existing(ballot, "--ballot"), "ballot")
    state = folder_for(folder, "FOLDER") / _STATE
    folder_for(unused(out, "--out").parent, "--out")
    made = (
        two_places.advance(Message.load(state, "state"), counted)
        if state.is_file()
        else two_places.begin(counted, pack)
    )
    if isinstance(made, Release):
        made.save(unused(folder / _RELEASE, "FOLDER/release"))
        output.result(
            {"release": str(folder / _RELEASE), "votes_left": 0},
            f"Wrote {folder / _RELEASE}.",
            made.certificate.sentence(),
        )
        return
    made.save(state)
    two_places.proposal_of_state(made).save(out)
    left = made.facts["left"]
    output.result({"proposal": str(out), "votes_left": left}, f"Wrote {out}. {left} votes are left.")


def cast(request: Request, method: "PETS") -> tuple["Message", "Ledger"]:
    """Returns the written ballot and the ledger it was paid from.

    Privacy: reads the private table; a run is charged before anything is computed from it.
    """
    from understudy.data import Schema
    from understudy.planning.choices import guarantee_for, require_budget
    from understudy.privacy.ledger import Ledger
    from understudy.privacy.noise import NoiseSource
    from understudy.synthesizers.pets import two_places
    from understudy.synthesizers.pets.two_places import Message

    _check_places(request)
    schema = Schema.load(request.schema)
    schema.require_declared()
    require_budget(schema)
    noise = NoiseSource.secure()
    if request.proposal is None:
        guarantee = guarantee_for(schema, request.epsilon, request.delta)
        method.spending_plan(schema, guarantee)  # what can be refused without the table is refused here
        panel, whole = next(_panels(request, schema)), len(request.files) == 1
        ledger = Ledger.open_for(request.schema)
        with charge_stays_known(ledger):
            ballot = two_places.open_run(method, panel, ledger, guarantee, noise, whole=whole)
            ballot.save(request.out)
        return ballot, ledger
    proposal = Message.load(request.proposal, "proposal")
    ledger = Ledger.open_for(request.schema)
    with charge_stays_known(ledger):
        overrides = {} if request.few_units is None else {"few_units": request.few_units}
        panels = _panels(request, schema)
        ballot = two_places.answer(proposal, panels, schema, ledger, noise, pack=request.pack, overrides=overrides)
        ballot.save(request.out)
    return ballot, ledger


def _method(scale: str, iterations: int | None, window_steps: int | None, pack: str) -> "PETS":
    from understudy.synthesizers.pets import PETS

    if scale == "public":
        raise InputError(
            "--scale: bought or bounds is expected; a public scale needs `understudy synth --method pets`."
        )
    method = PETS(scale=scale, window_steps=window_steps, pack=pack)  # type: ignore[arg-type]
    return method if iterations is None else replace(method, recipe=replace(method.settings, iterations=iterations))


def _check_places(request: Request) -> None:
    """Every refusal that needs neither schema nor table."""
    for file in request.files:
        existing(file, "FILE")
    existing(request.schema, "--schema")
    unused(request.out, "--out")
    for path, option in ((request.proposal, "--proposal"), (request.context, "--context")):
        if path is not None:
            existing(path, option)
    if request.proposal is not None and request.epsilon is not None:
        raise InputError("--epsilon: a run is charged when it is opened, not when it votes. Leave it out.")
    folder_for(request.out.parent, "--out")
    require_room(request.out, _BALLOT_BYTES)


def _panels(request: Request, schema: "Schema") -> Iterator["Panel"]:
    """Reads one file after another, so that only one is in memory."""
    from understudy.data import read_panel

    for file in request.files:
        yield read_panel(file, schema, context=request.context, allow_few_units=request.few_units is not None)
