"""`understudy pets`: private evolution in two places, with files between them.

The data holder votes: charges the ledger once for the whole run, and writes one ballot per proposal. Another party
evolves: reads ballots, writes proposals, and at the end the release. Nothing but noisy histograms and released facts
leaves the holder.
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.api.arguments import existing, existing_table, folder_for, require_room, unused
from understudy.api.charging import charging
from understudy.cli.console import Commands, Output
from understudy.cli.ledger import left_in
from understudy.cli.options import ContextFile, Delta, FewUnits, WindowSteps
from understudy.data import Schema, read_panel
from understudy.errors import InputError
from understudy.planning.choices import guarantee_for, require_budget
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers.release import Release

if TYPE_CHECKING:
    from understudy.synthesizers.pets import PETS

app = Commands()
Public = Annotated[Path | None, "Public table that first candidates come from. Both sides need the same file."]
Pack = Annotated[str, "Module pack: general, or a file. Both sides need the same one."]
_BALLOT_BYTES = 32 * 2**20


@app.command("vote")
def vote(
    output: Output,
    files: Annotated[
        list[str], typer.Argument(help="Private table. Several files of one population are read one at a time.")
    ],
    schema: Annotated[Path, "Schema of the private table; the ledger is in the same folder."],
    out: Annotated[Path, "Ballot file to write. It is public and goes to the evolving side."],
    proposal: Annotated[Path | None, "Proposal file to vote on. Without it, a new run is opened."] = None,
    epsilon: Annotated[float | None, "Epsilon of the whole run, charged when it is opened."] = None,
    delta: Delta = None,
    scale: Annotated[str, "Working scale: bought distributions, or declared bounds, which cost nothing."] = "bought",
    iterations: Annotated[int | None, typer.Option(min=1, help="Number of votes in the run.")] = None,
    window_steps: WindowSteps = None,
    pack: Pack = "general",
    public: Public = None,
    context: ContextFile = None,
    allow_few_units: FewUnits = None,
) -> None:
    """Open a run and charge the ledger, or count the votes on one proposal of an open run."""
    from understudy.synthesizers.pets import two_places
    from understudy.synthesizers.pets.two_places import Message

    if proposal is not None and epsilon is not None:
        raise InputError("--epsilon: a run is charged when it is opened, not when it votes. Omit it.")
    read = {"--schema": schema, "--proposal": proposal, "--context": context, "--public": public}
    for option, path in [*(("FILE", file) for file in files), *read.items()]:
        if path is not None:
            existing_table(path, option)
    folder_for(unused(out, "--out").parent, "--out")
    require_room(out, _BALLOT_BYTES)
    contract = Schema.load(schema)
    contract.require_declared()
    require_budget(contract)
    noise, few = NoiseSource.secure(), None if allow_few_units is None else {"few_units": allow_few_units}
    # One file after another, so that only one is in memory. A run is charged before anything is computed from them.
    panels = (read_panel(file, contract, context=context, allow_few_units=few is not None) for file in files)
    if proposal is None:
        method = _voting(scale, iterations, window_steps, pack, public)
        guarantee = guarantee_for(contract, epsilon, delta)
        method.spending_plan(contract, guarantee)  # what can be refused without the table is refused here
        first = next(panels)
    else:
        asked = Message.load(proposal, "proposal")
    with charging(schema.absolute().parent, contract) as ledger:
        if proposal is None:
            ballot = two_places.open_run(method, first, ledger, guarantee, noise, whole=len(files) == 1)
        else:
            own = {"pack": pack, "public": public, "overrides": few or {}}
            ballot = two_places.answer(asked, panels, contract, ledger, noise, **own)  # type: ignore[arg-type]
        ballot.save(out)
    left, (paid, paid_words) = ballot.facts["left"], left_in(ledger)
    done = "The run is complete." if left == 0 else f"{left} votes of the run are left."
    output.result(
        {"ballot": str(out), "run": ballot.facts["run"], "votes_left": left, "ledger": paid},
        f"Wrote {out}. {done}",
        paid_words,
    )


def _voting(scale: str, iterations: int | None, window_steps: int | None, pack: str, public: Path | None) -> "PETS":
    """Returns the method of a run that is opened."""
    from understudy.synthesizers.pets import PETS

    if scale == "public":
        raise InputError(
            "--scale: bought or bounds is expected; a public scale needs `understudy synth --method pets`."
        )
    method = PETS(selection="votes", scale=scale, window_steps=window_steps, pack=pack)  # type: ignore[arg-type]
    if public is not None:
        method = replace(method, start="public", public=str(public), recipe=None)
    if iterations is None:
        return method
    return replace(method, recipe=replace(method.settings, iterations=iterations))


@app.command("evolve")
def evolve(
    output: Output,
    folder: Annotated[Path, typer.Argument(help="Folder of the evolution's state; created for the first ballot.")],
    ballot: Annotated[Path, "First ballot of the data holder, or its answer to the last proposal."],
    out: Annotated[Path, "Proposal file to write, for the data holder."],
    pack: Pack = "general",
    public: Public = None,
) -> None:
    """Read a ballot and write the next proposal, or the release after the last vote. Reads no private data."""
    from understudy.synthesizers.pets import two_places
    from understudy.synthesizers.pets.two_places import Message

    counted = Message.load(existing(ballot, "--ballot"), "ballot")
    state = folder_for(folder, "FOLDER") / "state.safetensors"
    folder_for(unused(out, "--out").parent, "--out")
    if state.is_file():
        following = two_places.advance(Message.load(state, "state"), counted)
    else:
        following = two_places.begin(counted, pack, public)
    made = two_places.evolved(following)
    if isinstance(made, Release):
        release = unused(folder / "release", "FOLDER/release")
        made.save(release)
        facts = {"release": str(release), "votes_left": 0}
        output.result(facts, f"Wrote {release}.", made.certificate.sentence())
        return
    following.save(state)
    made.save(out)
    left = made.facts["left"]
    output.result({"proposal": str(out), "votes_left": left}, f"Wrote {out}. {left} votes are left.")
