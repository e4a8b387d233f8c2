"""`understudy keys`: the keys that sign certificates, and the keys that this computer trusts."""

from pathlib import Path
from typing import Annotated

import typer

from understudy.api.arguments import existing, unused, whole_file, write
from understudy.cli.console import Commands, Output, table
from understudy.privacy import keys

app = Commands()
Name = Annotated[str, typer.Argument(help="Name of the key.")]
Passphrase = Annotated[bool, "Seal the key with a passphrase, from UNDERSTUDY_PASSPHRASE or typed in."]


@app.command("create")
def create(output: Output, name: Name = "default", passphrase: Passphrase = False) -> None:
    """Make a signing key. Its private half stays in a file that only you can read."""
    public = keys.create(name, keys.passphrase_for(name) if passphrase else None).public
    share = f"Share its public half: understudy keys export {public.name} --out {public.name}.pub"
    made = f"Made the key '{public.name}', fingerprint {public.fingerprint}."
    output.result({"name": public.name, "fingerprint": public.fingerprint}, made, share)


@app.command("list")
def list_keys(output: Output) -> None:
    """List your own keys and those you trust."""
    own = keys.own()
    rows = [(key.name, "own" if key in own else "trusted", key.fingerprint) for key in keys.trusted()]
    names = ("name", "whose", "fingerprint")
    nothing = "There are no keys yet: the first release makes one, or `understudy keys create` does."
    facts = [dict(zip(names, row, strict=True)) for row in rows]
    output.result({"keys": facts}, table(*names, rows=rows) if rows else nothing)


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
    until: Annotated[str | None, "Last day on which certificates may be signed with it, such as 2027-12-31."] = None,
) -> None:
    """Trust certificates signed by this key. Compare its fingerprint through another channel first."""
    key = keys.trust(existing(file, "FILE"), name, until)
    facts = {"name": key.name, "fingerprint": key.fingerprint, "until": key.until}
    output.result(facts, f"Certificates signed by '{key.name}' ({key.fingerprint}) are trusted from now on.")


@app.command("add")
def add(
    output: Output,
    name: Name,
    command: Annotated[str, "Command that gets bytes on standard input and writes their Ed25519 signature."],
    public: Annotated[str, "Public key of that signer: a file (PEM too), or its 64 digits."],
) -> None:
    """Add a key that an external signer has, such as a token. It signs a random text to show that it works."""
    key = keys.add(name, command, public).public
    output.result({"name": key.name, "fingerprint": key.fingerprint}, f"Added '{key.name}' ({key.fingerprint}).")


@app.command("rotate")
def rotate(
    output: Output,
    name: Name,
    out: Annotated[Path, "File for the line that tells others, signed by the old key."],
    passphrase: Passphrase = False,
) -> None:
    """Make a new key under a name. Others who trust the old one trust the new one with `keys trust FILE`."""
    target = unused(out, "--out")
    new, line = keys.rotate(name, keys.passphrase_for(name) if passphrase else None)
    write(target, line + "\n")
    mark = new.public.fingerprint
    facts = {"name": name, "fingerprint": mark, "file": str(out)}
    output.result(facts, f"'{name}' is {mark} from now on. Send {out} to those who trust the old key.")


@app.command("revoke")
def revoke(
    output: Output,
    key: Annotated[str, typer.Argument(help="Public key to refuse: its file, or its 64 digits.")],
    reason: Annotated[str, "Reason that `verify` prints."],
) -> None:
    """Refuse, on this computer, everything that a key has signed or will sign."""
    found = keys.revoke(keys.given(key).hexadecimal, reason)
    output.result({"fingerprint": found.fingerprint}, f"Nothing signed by {found.fingerprint} passes here from now on.")
