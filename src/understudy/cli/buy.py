"""`understudy buy`: a fact for the schema, bought from the population's ledger."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from understudy.api.arguments import existing
from understudy.api.buy import bought
from understudy.cli.console import Commands, Output
from understudy.cli.ledger import left_in
from understudy.cli.options import TableFile
from understudy.data import Schema
from understudy.data.draft import still_open
from understudy.errors import InputError
from understudy.planning.choices import guarantee_for
from understudy.privacy.budget import Guarantee, at_most, check_delta, default_delta
from understudy.privacy.purchases import Bought, BuyBounds, BuyCategories, BuyPopulation, Purchase

app = Commands()


@dataclass(frozen=True, kw_only=True)
class Order:
    """What every purchase needs."""

    data: TableFile
    schema: Annotated[Path, "Schema of the table; it may leave bounds and categories open."]
    epsilon: Annotated[float, "Epsilon of this purchase; a charge is never given back."]
    out: Annotated[Path, "Schema to write, in the folder of the old one; it must not exist yet."]


@app.command("bounds")
def bounds(
    output: Output,
    order: Order,
    column: Annotated[list[str], "Continuous or integer column; may be repeated, columns share epsilon."],
    between: Annotated[
        tuple[float, float],
        typer.Option(metavar="LOW HIGH", help="Two public numbers between which the bounds lie."),
    ],
    coverage: Annotated[float, "Share of units that each bound should cover."] = 0.99,
) -> None:
    """Buy bounds of columns; values beyond them will be clipped."""
    purchase = BuyBounds(columns=tuple(column), low=between[0], high=between[1], coverage=coverage)

    def words(bought: Bought, draft: Schema, guarantee: Guarantee) -> list[str]:
        found = [f"{name} from {ends['low']:g} to {ends['high']:g}" for name, ends in bought.facts.items()]
        lines = [f"{', '.join(found)}. Values beyond are clipped when the table is read."]
        blurred = purchase.blurred_share(draft, guarantee)
        if blurred is not None and blurred > 1 - coverage:
            lines.append(
                f"For a population of {draft.population.size} this epsilon places a bound to within "
                f"{min(1.0, blurred):.0%} of the units, so it may lie far beyond all values. A larger --epsilon, a "
                "lower --coverage or fewer columns at a time place it better; --between limits the damage."
            )
        return lines

    _buy(output, purchase, order, words)


@app.command("categories")
def categories(
    output: Output,
    order: Order,
    column: Annotated[str, "Categorical column without a list of categories."],
) -> None:
    """Buy the categories of a column that enough units hold."""
    purchase = BuyCategories(column=column)

    def words(bought: Bought, draft: Schema, guarantee: Guarantee) -> list[str]:
        needed = f"A category needs about {purchase.threshold(guarantee)} units to be found."
        found = ", ".join(str(category) for category in bought.facts[column])
        if not found:
            return [f"{column}: no category found; the column stays open.", needed]
        return [
            f"{column} has the categories {found}.",
            f"{needed} Tables with any other category are refused: recode those rows first, to one of these or to one "
            "that you add to the list, such as OTHER.",
        ]

    _buy(output, purchase, order, words)


@app.command("population")
def population(output: Output, order: Order) -> None:
    """Buy the number of units, for a schema that says population = { count_epsilon = … }."""

    def words(bought: Bought, draft: Schema, guarantee: Guarantee) -> list[str]:
        size = bought.facts["population"]
        lines = [f"population = {size}, declared from now on; noise of about {1 / order.epsilon:.2g} units is in it."]
        try:
            check_delta(guarantee.delta, size)
        except InputError:
            lines.append(
                f"A run's delta = {guarantee.delta:.3g} is too large for so few units: give --delta "
                f"{default_delta(size):.2g} to `understudy synth`."
            )
        return lines

    _buy(output, BuyPopulation(), order, words)


def _buy(
    output: Output, purchase: Purchase, order: Order, words: Callable[[Bought, Schema, Guarantee], list[str]]
) -> None:
    """Buys the fact and reports it."""
    schema, out = existing(order.schema, "--schema"), order.out
    if out.absolute().parent.resolve() != schema.absolute().parent.resolve():
        raise InputError(
            f"--out: a file in the folder of '{schema}' is expected, because the new schema charges the ledger there."
        )
    found, ledger = bought(purchase, order.data, schema, order.epsilon, save_to=out)
    draft = Schema.load(schema, draft=True)
    guarantee = guarantee_for(draft, order.epsilon, None)
    left, left_words = left_in(ledger)
    first, *more = words(found, draft, guarantee)
    price, unknown = purchase.plan(guarantee).epsilon(), still_open(found.schema)
    output.result(
        {
            "schema": str(out),
            "label": purchase.label,
            "bought": found.facts,
            "epsilon": price,
            "delta": guarantee.delta,
            "ledger": left,
            "still_open": list(unknown),
        },
        f"Bought: {first}",
        *more,
        f"Charged epsilon = {at_most(price, 4)} as '{purchase.label}'. The ledger counts it as a run, with a run's "
        f"share of delta ({at_most(guarantee.delta)}); `understudy ledger show` keeps where the fact came from.",
        left_words,
        f"Wrote {out}." + (f" Still open: {', '.join(unknown)}." if unknown else ""),
    )
