"""Public facts for a schema, bought from the ledger of the people it describes: `understudy.buy`.

Order as in `synthesize`: everything that can be checked without the table, then the table, then the charge; only then
is anything computed from the data. Every purchase counts as a run. What is known from public sources is free.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from understudy.api.arguments import check_table, existing_table, require_room, unused
from understudy.api.charging import Payer, charging, check_budget, payer_of
from understudy.data import Schema
from understudy.files import whole_file
from understudy.planning.choices import contract_of, guarantee_for, require_budget
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.purchases import Bought, BuyBounds, BuyCategories, BuyPopulation, Purchase

_SCHEMA_BYTES = 2**20
_EXAMPLE = "us.buy.bounds(df, schema, columns='kwh', between=(0, 100), epsilon=0.5, ledger='meters.ledger')"


def bounds(
    data: Any,
    schema: Schema | Path | str,
    *,
    columns: str | Sequence[str],
    between: tuple[float, float],
    epsilon: float,
    coverage: float = 0.99,
    ledger: Payer | None = None,
    save_to: Path | str | None = None,
) -> Bought:
    """Buys bounds of columns; values beyond them will be clipped.

    Args:
        data: The private table.
        schema: Its schema, or the schema's file; it may leave bounds and categories open.
        columns: Continuous or integer columns; several share epsilon.
        between: Two public numbers between which the bounds lie.
        epsilon: Epsilon of this purchase; a charge is never given back.
        coverage: Share of units that each bound should cover.
        ledger: As `synthesize` takes it.
        save_to: Schema file to write.
    """
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    purchase = BuyBounds(columns=names, low=between[0], high=between[1], coverage=coverage)
    return bought(purchase, data, schema, epsilon, ledger=ledger, save_to=save_to)[0]


def categories(
    data: Any,
    schema: Schema | Path | str,
    *,
    column: str,
    epsilon: float,
    ledger: Payer | None = None,
    save_to: Path | str | None = None,
) -> Bought:
    """Buys the categories of a column that enough units hold; other arguments as `bounds` takes them."""
    return bought(BuyCategories(column=column), data, schema, epsilon, ledger=ledger, save_to=save_to)[0]


def population(
    data: Any,
    schema: Schema | Path | str,
    *,
    epsilon: float,
    ledger: Payer | None = None,
    save_to: Path | str | None = None,
) -> Bought:
    """Buys the number of units; other arguments as `bounds` takes them."""
    return bought(BuyPopulation(), data, schema, epsilon, ledger=ledger, save_to=save_to)[0]


def bought(
    purchase: Purchase,
    data: Any,
    schema: Schema | Path | str,
    epsilon: float,
    *,
    ledger: Payer | None = None,
    save_to: Path | str | None = None,
) -> tuple[Bought, Ledger]:
    """Charges the ledger, answers, and writes the new schema where it was asked for; returns the ledger, too.

    Privacy: reads the private table; all that leaves went through the grant of a charge already written.
    """
    check_table(data, "data", _EXAMPLE)
    target = None if save_to is None else unused(Path(save_to), "save_to")
    draft, file = contract_of(schema, draft=True)
    existing_table(data, "data")
    require_budget(draft)
    payer, draft = payer_of(ledger, draft, file)
    guarantee = guarantee_for(draft, epsilon, payer.composition.run_delta if isinstance(payer, Ledger) else None)
    purchase.check(draft, guarantee)
    plan = purchase.plan(guarantee)
    check_budget(payer, draft, plan, purchase.label)
    private = purchase.read(data, draft)  # a folder or a store too, one file after the other
    if target is not None:
        require_room(target, _SCHEMA_BYTES)
    with charging(payer, draft) as account:
        grant = account.charge(plan, label=purchase.label, noise=NoiseSource.secure())
        found = purchase.answer(grant, private, draft)
        if target is not None:
            try:
                with whole_file(target) as text:
                    found.schema.save(text)
            except OSError as problem:  # the disk fails now, and the fact is paid
                problem.add_note(f"Write what was bought into the schema by hand: {found.facts}.")
                raise
    return found, account
