"""Command lines that read the files of the place, and what each may make there."""

Command = tuple[str, ...]
MADE, LEDGER = "made", ".ledger"
_ASKED = ("--epsilon", "0.1", "--out")
# By the command's first word: beginnings and endings of what may be new once it has succeeded.
MAKES: dict[str, tuple[str, ...]] = {
    "synth": (MADE, LEDGER),
    "buy": (MADE, LEDGER),
    "init": (MADE,),
    "sample": (MADE,),
}


def synth(table: str, schema: str, *more: str) -> Command:
    """A release from a table."""
    return ("synth", table, "--schema", schema, *_ASKED, MADE, "--n", "3", *more)


def plan(schema: str, *more: str) -> Command:
    """What a release would cost; the method that needs no trial fit."""
    return ("plan", schema, "--method", "independent", "--population", "20", *more)


def buy_population(table: str, schema: str) -> Command:
    """A noisy count."""
    return _buy("population", table, schema)


def buy_bounds(table: str, schema: str) -> Command:
    """Noisy bounds, far below every value of the table: an answer near one would look like a quotation."""
    return _buy("bounds", table, schema, "--column", "pulse", "--between", "-2", "2")


def buy_categories(table: str, schema: str) -> Command:
    """A list of categories, if enough people hold them."""
    return _buy("categories", table, schema, "--column", "ward", "--json")


def _buy(what: str, table: str, schema: str, *more: str) -> Command:
    return ("buy", what, table, "--schema", schema, *_ASKED, f"{MADE}.toml", *more)
