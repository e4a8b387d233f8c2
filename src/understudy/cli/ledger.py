"""`understudy ledger`: what has been spent on a population and what is left."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from understudy.api.arguments import existing
from understudy.cli.console import Commands, Output, table
from understudy.data import Schema
from understudy.errors import InputError, LedgerError, MissingData
from understudy.extras import naming_extras
from understudy.privacy import postgresql, registry
from understudy.privacy.budget import at_least, at_most
from understudy.privacy.certificate import FILE_NAME, Certificate
from understudy.privacy.ledger import Ledger, known

app = Commands()
WHERE_HELP = "Schema in the folder of its ledger, a ledger file, or the URL of a shared one: postgresql://…"
Where = Annotated[str, typer.Argument(help=WHERE_HELP)]
Reason = Annotated[str, "Reason for the ledger and every later certificate."]


@app.command("show")
def show(output: Output, where: Where) -> None:
    """Print every charge and what is left."""
    ledger = _opened(where)
    facts, left = facts_of(ledger), ledger.remaining()
    charges = table(">run", "method", ">epsilon", ">delta", "charged", "executed", "noise")
    for entry in ledger.entries():
        done = ", ".join(f"{label} {count}" for label, count in entry.executed.items())
        cost = at_most(entry.epsilon, 4), at_most(entry.delta)
        done = done or ("nothing yet" if entry.epsilon else "no charge")
        noise = "secure" if entry.secure_noise else "reproducible"
        charges.add_row(str(entry.run), entry.label, *cost, entry.recorded_at, done, noise)
    runs = "" if left.runs is None else f", {left.runs} of {ledger.composition.max_runs} runs"
    output.result(
        facts,
        f"Population '{ledger.name}': {ledger.unit_sentence}",
        charges if facts["charges"] else "Nothing has been charged yet.",
        f"Left of epsilon = {ledger.guarantee.epsilon:g}: {at_least(left.epsilon)}, "
        f"at delta = {at_least(left.delta)} a run{runs}.",
        *facts["amendments"],
    )


@app.command("raise")
def raise_budget(
    output: Output,
    where: Where,
    reason: Reason,
    epsilon: Annotated[float | None, "New total epsilon of the population."] = None,
    max_runs: Annotated[int | None, "New number of runs; delta grows so that each run keeps its share."] = None,
) -> None:
    """Raise a population's budget, on the record: every later certificate names it."""
    ledger = _opened(where)
    ledger.raise_budget(epsilon=epsilon, max_runs=max_runs, reason=reason)
    output.result(facts_of(ledger), ledger.amendments()[-1])


@app.command("adopt")
def adopt(
    output: Output,
    where: Annotated[
        str, typer.Argument(help="File or URL of the ledger that is an older copy of the one used before.")
    ],
    reason: Reason,
) -> None:
    """Continue with an older copy of a ledger whose newest copy is lost. What was spent stays spent."""
    ledger = Ledger.adopt(_place(where), reason=reason)
    output.result(facts_of(ledger), ledger.amendments()[-1])


@app.command("move")
def move(
    output: Output,
    where: Where,
    to: Annotated[str, typer.Argument(metavar="TO", help="New place: postgresql://…, or the name of a new file.")],
) -> None:
    """Carry a ledger to another place, such as a database that a team shares. The old one is closed for good."""
    place = _place(where)
    if isinstance(place, Path) and place.suffix == ".toml":
        raise InputError("WHERE: the ledger itself is expected, not its schema. Pass the .ledger file beside it.")
    ledger = Ledger.move(place, to)
    output.result(facts_of(ledger), f"The ledger of '{ledger.name}' is at {ledger.path}; '{where}' is closed.")


@app.command("prepare")
def prepare(
    output: Output,
    database: Annotated[str, typer.Argument(help="URL of the database, as the owner of its tables: postgresql://…")],
    reader: Annotated[list[str] | None, "Role that may look at every ledger; may be repeated."] = None,
    charger: Annotated[list[str] | None, "Role that may also charge; may be repeated."] = None,
) -> None:
    """Make or migrate the tables of shared ledgers, and let roles of the database read or charge."""
    readers, chargers = reader or [], charger or []
    roles = [*(("reader", role) for role in readers), *(("charger", role) for role in chargers)]
    with naming_extras("understudy ledger prepare"):
        version = postgresql.prepare(database, roles)
    facts = {"version": version, "readers": readers, "chargers": chargers}
    output.result(facts, f"The tables are of version {version}.")


@app.command("list")
def list_ledgers(output: Output) -> None:
    """List the populations that this computer knows, and where their ledgers are."""
    known = registry.populations().items()
    facts = [{"name": name, "ledger": str(place), "there": registry.is_there(place)} for name, place in known]
    rows = ((str(one["name"]), f"{one['ledger']}{'' if one['there'] else ' (gone)'}") for one in facts)
    shown = table("population", "ledger", rows=rows) if facts else "No population has a ledger yet."
    output.result({"populations": facts}, shown)


@app.command("check")
def check(
    output: Output,
    where: Where,
    release: Annotated[Path, typer.Argument(help="Release made from this population, or a folder of such releases.")],
) -> None:
    """Check that a ledger contains the charges of releases; an older copy of the ledger does not."""
    ledger = _opened(where) if where.endswith(".toml") else Ledger.look(_place(where))  # a look claims nothing
    found = {path: Certificate.load(path) for path in _certificates(existing(release, "RELEASE"))}
    own = {path: one for path, one in found.items() if len(found) == 1 or one.population == ledger.name}
    if not own:
        raise LedgerError(f"No release in '{release}' belongs to '{ledger.name}'. Pass the ledger of their population.")
    for path, certificate in own.items():
        if certificate.ledger.get("kind") in ("in-memory", "scratch"):
            raise LedgerError(
                f"'{path}' was charged in memory only, so no ledger file contains it; its certificate says "
                f"'{certificate.status}'. `understudy ledger show` lists runs that are not private."
            )
        if not ledger.knows(str(certificate.ledger.get("head"))):
            raise LedgerError(
                f"The ledger of '{ledger.name}' does not contain '{path}'. Either the release belongs to another "
                "population, or an older copy of the ledger was put back. Put the newest copy back, or pass the "
                "ledger of the release's population."
            )
    amended = ledger.amendments()
    facts = {"ledger": str(ledger.path), "release": str(release), "remembers": True, "amendments": amended}
    facts |= {"releases": len(own), "of_others": len(found) - len(own)}
    told = f"'{release}'" if found.keys() == {release} else f"all {len(own)} releases of its population in '{release}'"
    output.result(facts, f"The ledger of '{ledger.name}' remembers {told}.", *amended)


def _certificates(release: Path) -> list[Path]:
    """Returns the release itself, or all that are below a folder."""
    if release.is_file() or (release / FILE_NAME).is_file():
        return [release]
    found = sorted(path.parent for path in release.rglob(FILE_NAME))
    if not found:
        raise MissingData(f"RELEASE: no {FILE_NAME} is in '{release}' or below it. Pass a release or a folder of them.")
    return found


def _place(where: str) -> Path | str:
    """Returns the place that an argument names; a file has to be there."""
    return where if "://" in where else existing(Path(where), "WHERE")


def _opened(where: str) -> Ledger:
    """Returns the ledger at a path, at a URL or in the folder of a schema."""
    place = _place(where)
    if isinstance(place, str) or place.suffix != ".toml":
        return Ledger.open(place)
    schema = Schema.load(place, draft=True)  # facts can be bought while others are still open
    ledger = Ledger.find_for(schema, place.absolute().parent)
    if ledger is None:
        raise LedgerError(f"'{schema.name}' has no ledger in this folder yet: the first run on it makes one.")
    return ledger


def facts_of_payer(certificate: Certificate) -> dict[str, Any] | None:
    """Returns the public facts of the ledger that paid for a release; None where this computer does not have it."""
    ledger = known(certificate.population)
    if ledger is None or not ledger.knows(str(certificate.ledger.get("head"))):
        return None
    return {name: fact for name, fact in facts_of(ledger).items() if name != "file"}  # where it lies is not public


def facts_of(ledger: Ledger) -> dict[str, Any]:
    """Returns a ledger's public facts as plain values."""
    shown = ("run", "label", "epsilon", "delta", "recorded_at", "executed", "secure_noise")
    return {
        "population": ledger.name,
        "unit": ledger.unit_sentence,
        "file": str(ledger.path),
        "epsilon": ledger.guarantee.epsilon,
        "delta": ledger.guarantee.delta,
        "composition": ledger.composition.kind,
        "max_runs": ledger.composition.max_runs,
        "amendments": list(ledger.amendments()),
        "head": ledger.head(),
        "remaining": asdict(ledger.remaining()),
        "charges": [{name: getattr(entry, name) for name in shown} for entry in ledger.entries()],
    }


def left_in(ledger: Ledger) -> tuple[dict[str, Any], str]:
    """Returns what the ledger has left, as facts and in words."""
    left = ledger.remaining()
    runs = "" if left.runs is None else f", and {left.runs} of {ledger.composition.max_runs} runs"
    words = f"Left in the ledger of '{ledger.name}': {at_least(left.epsilon)}{runs}."
    return {"file": str(ledger.path), "epsilon_left": left.epsilon, "runs_left": left.runs}, words
