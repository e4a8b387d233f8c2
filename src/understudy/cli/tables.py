"""Tables that commands are told to read: a file, a folder of partitions, or the URL of either in a store."""

from pathlib import Path
from typing import TYPE_CHECKING

from understudy.cli.places import existing
from understudy.errors import MissingData

if TYPE_CHECKING:
    from understudy.data import Schema, Table

TABLE_HELP = ".parquet, .csv, .arrow, .feather, .npz or .npy, a folder of such tables, or a URL such as s3://…"


def named(text: str) -> Path | str:
    """Returns the place that an argument names: a path, or a URL as it is."""
    return text if "://" in text else Path(text)


def existing_table(place: Path | str, what: str) -> Path | str:
    """Returns the place of a file or folder that is there."""
    if isinstance(place, Path):
        return existing(place, what)
    from understudy.data.io import stores

    located = stores.located(place)
    try:
        if not stores.is_folder(located):
            stores.existing(located)
    except MissingData as missing:
        raise MissingData(f"{what}: {missing}") from None
    return place


def open_table_argument(place: Path | str, schema: "Schema", *, context: Path | None, allow_few_units: bool) -> "Table":
    """Opens the table that a command was told to read, checked: a small file in memory, others in partitions.

    Privacy: as `read_panel` and `open_table`.
    """
    from understudy.data.table import table_of

    return table_of(place, schema, context=context, allow_few_units=allow_few_units)


def in_partitions(place: Path | str) -> bool:
    """Tells whether a table is in partitions and may be larger than memory."""
    from understudy.data import table

    return table.in_partitions(place)
