"""`understudy pets`: private evolution in two places, with files between them.

The data holder votes: charges the ledger once for the whole run, and writes one ballot per proposal. Another party
evolves: reads ballots, writes proposals, and at the end the release. Nothing but noisy histograms and released facts
leaves the holder.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from understudy.api.charging import charging
from understudy.api.places import existing, existing_table, folder_for, require_room, unused
from understudy.cli.console import Commands, Output
from understudy.cli.ledger import left_in
from understudy.cli.options import ContextFile, Delta, FewUnits, WindowSteps
from understudy.data import Schema, read_panel
from understudy.errors import InputError
from understudy.planning.choices import guarantee_for, require_budget
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers.release import Release

app = Commands()
Public = Annotated[Path | None, "Public table that first candidates come from. Both sides need the same file."]
Pack = Annotated[str, "Module pack: general, or a file. Both sides need the same one."]
_BALLOT_BYTES = 32 * 2**20
_STATE, _RELEASE = "state.safetensors", "release"


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
    from understudy.synthesizers.pets import PETS, two_places
    from understudy.synthesizers.pets.two_places import Message

    if scale == "public":
        raise InputError(
            "--scale: bought or bounds is expected; a public scale needs `understudy synth --method pets`."
        )
    if proposal is not None and epsilon is not None:
        raise InputError("--epsilon: a run is charged when it is opened, not when it votes. Omit it.")
    for path in files:
        existing_table(path, "FILE")
    for place, option in ((schema, "--schema"), (proposal, "--proposal"), (public, "--public")):
        if place is not None:
            existing(place, option)
    if context is not None:
        existing_table(context, "--context")
    folder_for(unused(out, "--out").parent, "--out")
    require_room(out, _BALLOT_BYTES)
    contract = Schema.load(schema)
    contract.require_declared()
    require_budget(contract)
    noise, few = NoiseSource.secure(), allow_few_units is not None
    # One file after another, so that only one is in memory. A run is charged before anything is computed from them.
    panels = (read_panel(file, contract, context=context, allow_few_units=few) for file in files)
    if proposal is None:
        method = PETS(selection="votes", scale=scale, window_steps=window_steps, pack=pack)  # type: ignore[arg-type]
        if public is not None:
            method = replace(method, start="public", public=str(public), recipe=None)
        if iterations is not None:
            method = replace(method, recipe=replace(method.settings, iterations=iterations))
        guarantee = guarantee_for(contract, epsilon, delta)
        method.spending_plan(contract, guarantee)  # what can be refused without the table is refused here
        first = next(panels)
        with charging(schema.absolute().parent, contract) as ledger:
            ballot = two_places.open_run(method, first, ledger, guarantee, noise, whole=len(files) == 1)
            ballot.save(out)
    else:
        asked = Message.load(proposal, "proposal")
        overrides = {} if allow_few_units is None else {"few_units": allow_few_units}
        with charging(schema.absolute().parent, contract) as ledger:
            ballot = two_places.answer(
                asked, panels, contract, ledger, noise, pack=pack, public=public, overrides=overrides
            )
            ballot.save(out)
    left, (paid, paid_words) = ballot.facts["left"], left_in(ledger)
    done = "The run is complete." if left == 0 else f"{left} votes of the run are left."
    output.result(
        {"ballot": str(out), "run": ballot.facts["run"], "votes_left": left, "ledger": paid},
        f"Wrote {out}. {done}",
        paid_words,
    )


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
    state = folder_for(folder, "FOLDER") / _STATE
    folder_for(unused(out, "--out").parent, "--out")
    known = state.is_file()
    following = (
        two_places.advance(Message.load(state, "state"), counted) if known else two_places.begin(counted, pack, public)
    )
    made = two_places.evolved(following)
    if isinstance(made, Release):
        release = unused(folder / _RELEASE, "FOLDER/release")
        made.save(release)
        facts = {"release": str(release), "votes_left": 0}
        output.result(facts, f"Wrote {release}.", made.certificate.sentence())
        return
    following.save(state)
    made.save(out)
    left = made.facts["left"]
    output.result({"proposal": str(out), "votes_left": left}, f"Wrote {out}. {left} votes are left.")
