"""`understudy buy`: a fact for the schema, bought from the population's ledger.

Order as in `synth`: everything that can be checked without the table, then the table, then the charge; only
then is anything computed from the data.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli.charging import able_to_pay, charge_stays_known
from understudy.cli.console import Json, Output, Quiet
from understudy.cli.options import TableFile
from understudy.cli.places import existing, existing_table, named, require_room, unused, whole_file
from understudy.errors import InputError

if TYPE_CHECKING:
    from understudy.data import Schema
    from understudy.privacy.budget import Guarantee
    from understudy.privacy.charges import Remaining
    from understudy.privacy.ledger import Ledger
    from understudy.privacy.purchases import Bought, Purchase

app = typer.Typer(help="Buy a fact for the schema with differential privacy, from the ledger.", no_args_is_help=True)
Draft = Annotated[Path, typer.Option("--schema", help="Schema of the table; it may leave bounds and categories open.")]
Epsilon = Annotated[float, typer.Option(help="Epsilon of this purchase; a charge is never given back.")]
Out = Annotated[Path, typer.Option(help="Schema to write, beside the old one; it must not exist yet.")]
_SCHEMA_BYTES = 2**20


@dataclass(frozen=True, kw_only=True)
class Order:
    """One purchase as it was asked for."""

    file: Path | str
    schema: Path
    out: Path
    epsilon: float


@dataclass(frozen=True, kw_only=True)
class Done:
    """One purchase as it was made."""

    draft: "Schema"
    bought: "Bought"
    guarantee: "Guarantee"
    price: float
    ledger: "Ledger"
    left: "Remaining"


@app.command("bounds")
def bounds(
    file: TableFile,
    schema: Draft,
    column: Annotated[
        list[str], typer.Option(help="Continuous or integer column; may be repeated, columns share epsilon.")
    ],
    between: Annotated[
        tuple[float, float],
        typer.Option(metavar="LOW HIGH", help="Two public numbers between which the bounds lie."),
    ],
    epsilon: Epsilon,
    out: Out,
    coverage: Annotated[float, typer.Option(help="Share of units that each bound should cover.")] = 0.99,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Buy bounds of columns; values beyond them will be clipped."""
    from understudy.privacy.purchases import BuyBounds

    purchase = BuyBounds(columns=tuple(column), low=between[0], high=between[1], coverage=coverage)
    done = make(Order(file=named(file), schema=schema, out=out, epsilon=epsilon), purchase)
    found = [f"{name} from {ends['low']:g} to {ends['high']:g}" for name, ends in done.bought.facts.items()]
    lines = [f"{', '.join(found)}. Values beyond are clipped when the table is read."]
    blurred = purchase.blurred_share(done.draft, done.guarantee)
    if blurred is not None and blurred > 1 - coverage:
        lines.append(
            f"For a population of {done.draft.population.size} this epsilon places a bound to within "
            f"{min(1.0, blurred):.0%} of the units, so it may lie far beyond all values. A larger --epsilon, a lower "
            "--coverage or fewer columns at a time place it better; --between limits the damage."
        )
    _tell(Output(json=json, quiet=quiet), out, purchase, done, lines)


@app.command("categories")
def categories(
    file: TableFile,
    schema: Draft,
    column: Annotated[str, typer.Option(help="Categorical column without a list of categories.")],
    epsilon: Epsilon,
    out: Out,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Buy the categories of a column that enough units hold."""
    from understudy.privacy.purchases import BuyCategories

    purchase = BuyCategories(column=column)
    done = make(Order(file=named(file), schema=schema, out=out, epsilon=epsilon), purchase)
    found = ", ".join(str(category) for category in done.bought.facts[column])
    needed = purchase.threshold(done.guarantee)
    lines = [
        f"{column} has the categories {found}." if found else f"{column}: no category found; the column stays open.",
        f"A category needs about {needed} units to be found.",
    ]
    if found:
        lines[1] += (
            " Tables with any other category are refused: recode those rows first, to one of these or to one that you "
            "add to the list, such as OTHER."
        )
    _tell(Output(json=json, quiet=quiet), out, purchase, done, lines)


@app.command("population")
def population(
    file: TableFile, schema: Draft, epsilon: Epsilon, out: Out, json: Json = False, quiet: Quiet = False
) -> None:
    """Buy the number of units, for a schema that says population = { count_epsilon = … }."""
    from understudy.privacy.budget import check_delta, default_delta
    from understudy.privacy.purchases import BuyPopulation

    purchase = BuyPopulation()
    done = make(Order(file=named(file), schema=schema, out=out, epsilon=epsilon), purchase)
    size = done.bought.facts["population"]
    lines = [f"population = {size}, declared from now on; noise of about {1 / epsilon:.2g} units is in it."]
    try:
        check_delta(done.guarantee.delta, size)
    except InputError:
        lines.append(
            f"A run's delta = {done.guarantee.delta:.3g} is too large for so few units: give --delta "
            f"{default_delta(size):.2g} to `understudy synth`."
        )
    _tell(Output(json=json, quiet=quiet), out, purchase, done, lines)


def make(order: Order, purchase: "Purchase") -> Done:
    """Charges the ledger, answers, and writes the new schema.

    Privacy: reads the private table; all that leaves went through the grant of a charge already written.
    """
    from understudy.data import Schema
    from understudy.planning.choices import guarantee_for, require_budget
    from understudy.privacy.ledger import Ledger
    from understudy.privacy.noise import NoiseSource

    _check_places(order)
    draft = Schema.load(order.schema, draft=True)
    require_budget(draft)
    guarantee = guarantee_for(draft, order.epsilon, None)
    purchase.check(draft, guarantee)
    plan = purchase.plan(guarantee)
    ledger = able_to_pay(order.schema, draft, plan, purchase.label)
    private = purchase.read(order.file, draft)  # a folder or a store too, one file after the other
    require_room(order.out, _SCHEMA_BYTES)
    ledger = ledger or Ledger.open_for(draft, order.schema.absolute().parent)
    with charge_stays_known(ledger):
        grant = ledger.charge(plan, label=purchase.label, noise=NoiseSource.secure())
        bought = purchase.answer(grant, private, draft)
        _write(bought, order.out)
        left = ledger.remaining()
    return Done(draft=draft, bought=bought, guarantee=guarantee, price=plan.epsilon(), ledger=ledger, left=left)


def _check_places(order: Order) -> None:
    """Every refusal that needs neither schema nor table."""
    existing_table(order.file, "FILE")
    existing(order.schema, "--schema")
    unused(order.out, "--out")
    if order.out.absolute().parent.resolve() != order.schema.absolute().parent.resolve():
        raise InputError(
            f"--out: a place beside '{order.schema}' is expected, because the ledger lies there and the new schema "
            "charges the same one."
        )


def _write(bought: "Bought", out: Path) -> None:
    """Writes the schema; if the disk fails now, the error states the fact, because it is paid."""
    try:
        with whole_file(out) as text:
            bought.schema.save(text)
    except OSError as problem:
        problem.add_note(f"Write what was bought into the schema by hand: {bought.facts}.")
        raise


def _tell(output: Output, out: Path, purchase: "Purchase", done: Done, lines: list[str]) -> None:
    from understudy.data.drafts import still_open
    from understudy.privacy.budget import at_most

    left, ledger, unknown = done.left, done.ledger, still_open(done.bought.schema)
    facts: dict[str, Any] = {
        "schema": str(out),
        "label": purchase.label,
        "bought": done.bought.facts,
        "epsilon": done.price,
        "delta": done.guarantee.delta,
        "ledger": {"file": str(ledger.path), "epsilon_left": left.epsilon, "runs_left": left.runs},
        "still_open": list(unknown),
    }
    runs = "" if left.runs is None else f", and {left.runs} of {ledger.composition.max_runs} runs"
    output.result(
        facts,
        f"Bought: {lines[0]}",
        *lines[1:],
        f"Charged epsilon = {at_most(done.price, 4)} as '{purchase.label}'. The ledger counts it as a run, with a "
        f"run's share of delta ({at_most(done.guarantee.delta)}); `understudy ledger show` keeps where the fact came "
        "from.",
        f"Left in the ledger of '{ledger.name}': {left.epsilon:.4g}{runs}.",
        f"Wrote {out}." + (f" Still open: {', '.join(unknown)}." if unknown else ""),
    )
