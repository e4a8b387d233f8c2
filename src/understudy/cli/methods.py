"""`understudy methods`: the methods there are."""

from understudy.api import listing
from understudy.cli.console import Output, table


def methods(output: Output) -> None:
    """List the methods: a line each, what they need, and their options."""
    found = listing.methods().rows
    facts = [dict(zip(listing.COLUMNS, row, strict=True)) for row in found]
    output.result({"methods": facts}, table(*listing.COLUMNS, rows=found))
