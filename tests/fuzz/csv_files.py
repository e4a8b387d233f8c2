"""Damaged CSV files."""

from collections.abc import Callable
from functools import cache

from hypothesis import strategies as st

from tests.fuzz.edits import COLUMN_NAMES, FEW, byte_edits, cells, place_in
from tests.fuzz.place import whole_table

Rows = list[list[str]]


@cache
def _csv_rows(name: str) -> tuple[tuple[str, ...], ...]:
    table = whole_table(name)
    return (tuple(table.column_names), *(tuple(str(cell) for cell in row.values()) for row in table.to_pylist()))


def csv_file(draw: st.DrawFn, name: str) -> bytes:
    """A CSV file after a few damages to its cells, rows and columns, and perhaps to its bytes."""
    rows = [list(row) for row in _csv_rows(name)]
    for _ in range(draw(FEW)):
        rows = draw(st.sampled_from(_ROW_EDITS))(draw, rows)
    comma, line = draw(st.sampled_from(((",", "\n"),) * 6 + ((";", "\n"), (",", "\r\n"), (", ", "\n"))))
    text = line.join(comma.join(row) for row in rows) + draw(st.sampled_from((line, line, "")))
    encoding = draw(st.sampled_from(("utf-8",) * 8 + ("utf-16", "latin-1", "utf-8-sig")))
    whole = text.encode(encoding, errors="replace")
    damage = draw(st.sampled_from(("none", "none", "anywhere", "head")))
    if damage == "none":
        return whole
    head = len(whole) if damage == "anywhere" else 160
    return byte_edits(draw, whole[:head]) + whole[head:]


def _set_cell(draw: st.DrawFn, rows: Rows) -> Rows:
    row = draw(st.integers(1, max(1, len(rows) - 1)))
    if row < len(rows) and rows[row]:
        rows[row][place_in(draw, rows[row])] = draw(cells)
    return rows


def _rename_column(draw: st.DrawFn, rows: Rows) -> Rows:
    if rows and rows[0]:
        rows[0][place_in(draw, rows[0])] = draw(st.sampled_from(COLUMN_NAMES))
    return rows


def _set_column(draw: st.DrawFn, rows: Rows) -> Rows:
    column, new = place_in(draw, rows[0] if rows else []), draw(cells)
    return rows[:1] + [[new if place == column else cell for place, cell in enumerate(row)] for row in rows[1:]]


def _drop_column(draw: st.DrawFn, rows: Rows) -> Rows:
    column = place_in(draw, rows[0] if rows else [])
    return [row[:column] + row[column + 1 :] for row in rows]


def _add_column(draw: st.DrawFn, rows: Rows) -> Rows:
    name, cell = draw(st.sampled_from(COLUMN_NAMES)), draw(cells)
    return [[*row, name if place == 0 else cell] for place, row in enumerate(rows)]


def _rows_dropped(draw: st.DrawFn, rows: Rows) -> Rows:
    begin = place_in(draw, rows)
    return rows[:begin] + rows[begin + draw(st.sampled_from((1, 1, 3, 200, 1000))) :]


def _repeat_row(draw: st.DrawFn, rows: Rows) -> Rows:
    place = place_in(draw, rows)
    return rows[:place] + [list(row) for row in rows[place : place + 1] for _ in range(2)] + rows[place + 1 :]


def _swap_rows(draw: st.DrawFn, rows: Rows) -> Rows:
    one, other = place_in(draw, rows), place_in(draw, rows)
    if rows:
        rows[one], rows[other] = rows[other], rows[one]
    return rows


def _join_rows(draw: st.DrawFn, rows: Rows) -> Rows:
    place = draw(st.sampled_from((0, 0, place_in(draw, rows))))
    return [*rows[:place], [cell for row in rows[place : place + 2] for cell in row], *rows[place + 2 :]]


def _only_the_head(draw: st.DrawFn, rows: Rows) -> Rows:
    return rows[: draw(st.integers(0, 4))]


_ROW_EDITS: tuple[Callable[[st.DrawFn, Rows], Rows], ...] = (
    *(_set_cell, _set_cell, _set_cell, _set_column, _drop_column, _add_column, _rename_column),
    *(_rows_dropped, _repeat_row, _swap_rows, _join_rows, _only_the_head),
)
