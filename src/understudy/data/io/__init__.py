"""Tables in, tables out: the user's files and frames ⇄ `Panel`."""

from understudy.data.io.context import read_context, read_context_windows
from understudy.data.io.draft import STATEMENT, AlikeColumns, DraftOptions, draft_schema
from understudy.data.io.read import MIN_UNITS, read_panel
from understudy.data.io.write import panel_to_arrow, write_panel

__all__ = [
    "MIN_UNITS",
    "STATEMENT",
    "AlikeColumns",
    "DraftOptions",
    "draft_schema",
    "panel_to_arrow",
    "read_context",
    "read_context_windows",
    "read_panel",
    "write_panel",
]
