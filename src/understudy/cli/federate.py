"""`understudy federate`: several organisations train one release together, each in a process of its own."""

from pathlib import Path
from typing import Annotated

import typer

from understudy.api.arguments import existing, unused
from understudy.api.checking import Verification
from understudy.cli.console import Commands, Output
from understudy.errors import InputError
from understudy.privacy.certificate import Certificate

app = Commands()
Folder = Annotated[Path, typer.Argument(help="Folder with contract.toml and a TOML file for each side.")]
Config = Annotated[Path, typer.Argument(help="TOML file of this side; its paths are relative to it.")]


@app.command("example")
def example(
    output: Output,
    folder: Annotated[Path, typer.Argument(help="Folder to create.")],
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the aggregator.")] = 7443,
) -> None:
    """Write two invented banks: tables, contract, and a file for each side."""
    from understudy.federated.example import write_example

    names = write_example(unused(folder, "FOLDER"), port)
    following = f"Next: understudy federate keys {folder}, then understudy federate up {folder}."
    output.result({"folder": str(folder), "files": names}, f"Wrote {folder}: {', '.join(names)}.", following)


@app.command("keys")
def keys(
    output: Output,
    folder: Folder,
    host: Annotated[str, "Name or address at which parties reach the aggregator."] = "127.0.0.1",
    days: Annotated[float, "Days for which the certificates hold."] = 365,
) -> None:
    """Make a key and a certificate for every side; each organisation gets its own folder."""
    from understudy.federated.config import load_contract
    from understudy.federated.transport import make_identities

    if not days > 0:
        raise InputError(f"--days: a number above 0 is expected, got {days:g}.")
    out = unused(folder / "keys", "FOLDER/keys")
    sides = make_identities(out, load_contract(folder / "contract.toml").parties, host=host, days=days)
    output.result(
        {"folder": str(out), "sides": sides, "days": days},
        f"Wrote keys for {', '.join(sides)} into {out}; they hold for {days:g} days.",
        "The holder of a key is that side: give every organisation its own folder and no other.",
    )


@app.command("aggregator")
def aggregator(output: Output, config: Config) -> None:
    """Lead a run: wait for all parties, train with them, write the release that all have signed."""
    from understudy.federated.config import SideConfig, load
    from understudy.federated.launch import run_aggregator

    side = load(config, SideConfig)
    output.say(f"Listening at {side.address} for {', '.join(side.contract.parties)}.")
    with output.progress() as progress:
        certificate = run_aggregator(side, progress)
    _report(output, side.out, certificate)


@app.command("party")
def party(output: Output, config: Config) -> None:
    """Take part in a run with your own table: charges your ledger before values are used."""
    from understudy.federated.config import PartyConfig, load
    from understudy.federated.launch import run_party

    side = load(config, PartyConfig)
    with output.progress() as progress:
        certificate = run_party(side, progress)
    _report(output, side.out, certificate)


@app.command("up")
def up(output: Output, folder: Folder) -> None:
    """Run all sides of a folder on this machine, each a process with its own keys and ledger; again to resume."""
    from understudy.federated.launch import up as run_all

    release = run_all(existing(folder, "FOLDER"))
    _report(output, release, Certificate.load(release))


@app.command("verify")
def verify(output: Output, folder: Folder) -> None:
    """Verify the release of `up` with the keys of all its sides, and that all hold the same one."""
    from understudy.cli.verify import report
    from understudy.federated.launch import verified

    release, certificate, checks = verified(existing(folder, "FOLDER"))
    report(output, release, Verification(certificate, tuple(checks)))


@app.command("flower")
def flower(
    output: Output,
    config: Annotated[Path, typer.Argument(help="The aggregator's TOML file.")],
    out: Annotated[Path, "Folder to create for the app."],
) -> None:
    """Write a Flower app that launches the run on a SuperLink and its SuperNodes."""
    from understudy.federated.config import SideConfig, load
    from understudy.federated.launch import write_flower_app

    names = write_flower_app(unused(out, "--out"), config, load(config, SideConfig))
    following = f"In Flower's environment: flwr run {out} NAME, where NAME is your SuperLink's."
    output.result({"app": str(out), "files": names}, f"Wrote {out}: {', '.join(names)}.", following)


def _report(output: Output, out: Path, certificate: Certificate) -> None:
    names = [str(entry.get("party")) for entry in certificate.parties]
    facts = {
        "release": str(out),
        "status": certificate.status,
        "epsilon": certificate.epsilon,
        "delta": certificate.delta,
        "signed_by": names,
        "iterations": certificate.executed.get("training", 0),
    }
    output.result(facts, f"Wrote {out}, signed by {', '.join(names)}.", certificate.sentence())
