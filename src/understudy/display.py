"""Tables for terminals and notebooks, in one style."""

import html
from collections.abc import Iterable, Sequence

from rich.console import Console, RenderableType
from rich.table import Table


def table(*columns: str, rows: Iterable[Iterable[str]] = (), title: str | None = None) -> Table:
    """Returns a table in the house style; a leading '>' in a column's name aligns it right."""
    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in columns:
        made.add_column(column.lstrip(">"), justify="right" if column.startswith(">") else "left")
    for row in rows:
        made.add_row(*row)
    return made


def html_table(columns: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """Returns the same as HTML; names come from files of unknown origin, so every cell is escaped."""

    def line(cells: Iterable[str], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"

    head = line((column.lstrip(">") for column in columns), "th")
    return f"<table><thead>{head}</thead><tbody>{''.join(line(row, 'td') for row in rows)}</tbody></table>"


def show(parts: Iterable[RenderableType]) -> None:
    """Prints lines and tables on standard output; brackets and colons in them are a user's, not mark-up."""
    console = Console(highlight=False, markup=False, emoji=False)
    for part in parts:
        console.print(part)
