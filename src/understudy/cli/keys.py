"""`understudy keys`: the keys that sign certificates, and the keys that this computer trusts."""

from pathlib import Path
from typing import Annotated

import typer

from understudy.api.places import existing, unused, whole_file
from understudy.cli.console import Commands, Output, table
from understudy.privacy import keys

app = Commands()
Name = Annotated[str, typer.Argument(help="Name of the key.")]


@app.command("create")
def create(output: Output, name: Name = "default") -> None:
    """Make a signing key. Its private half stays in a file that only you can read."""
    public = keys.create(name).public
    output.result(
        {"name": public.name, "fingerprint": public.fingerprint},
        f"Made the key '{public.name}', fingerprint {public.fingerprint}.",
        f"Share its public half: understudy keys export {public.name} --out {public.name}.pub",
    )


@app.command("list")
def list_keys(output: Output) -> None:
    """List your own keys and those you trust."""
    own = keys.own()
    known = [("own" if key in own else "trusted", key) for key in keys.trusted()]
    facts = [{"name": key.name, "whose": whose, "fingerprint": key.fingerprint} for whose, key in known]
    nothing = "There are no keys yet: the first release makes one, or `understudy keys create` does."
    rows = (fact.values() for fact in facts)
    output.result({"keys": facts}, table("name", "whose", "fingerprint", rows=rows) if known else nothing)


@app.command("export")
def export(
    output: Output,
    name: Name = "default",
    out: Annotated[Path | None, "File for the public key. Default: print it."] = None,
) -> None:
    """Write a public key for those who will verify your certificates."""
    public = keys.load(name).public
    facts = {"name": public.name, "public_key": public.hexadecimal, "fingerprint": public.fingerprint}
    if out is None:
        output.result(facts, f"understudy-ed25519 {public.hexadecimal} {public.name}")
        return
    with whole_file(unused(out, "--out")) as draft:
        keys.export(public, draft)
    output.result(facts | {"file": str(out)}, f"Wrote {out}; its fingerprint is {public.fingerprint}.")


@app.command("trust")
def trust(
    output: Output,
    file: Annotated[Path, typer.Argument(help="Public key file from its owner.")],
    name: Annotated[str | None, "Name of the signer; it keeps this key. Default: the name in the file."] = None,
) -> None:
    """Trust certificates signed by this key. Compare its fingerprint through another channel first."""
    key = keys.trust(existing(file, "FILE"), name)
    output.result(
        {"name": key.name, "fingerprint": key.fingerprint},
        f"Certificates signed by '{key.name}' ({key.fingerprint}) are trusted from now on.",
    )
