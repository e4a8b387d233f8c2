"""Small damages, to bytes and to documents: what disks, editors, careless hands and enemies do to files."""

import json
from collections.abc import Callable, Sized
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

from tests.fuzz.place import COUNT, MOMENT, NAME, NUMBER

Strategy = st.SearchStrategy[Any]
FEW = st.sampled_from((1, 1, 1, 2, 4))
_LARGE = (2**31, 2**53 + 1, 2**63, -(2**63) - 1, 2**64, 10**30, 10**400)

numbers: Strategy = st.one_of(
    st.sampled_from((0, -1, 1, *_LARGE)),
    st.integers(-5, 2000),
    st.floats(),
    st.sampled_from((5e-324, 1e-300, 1.7e308, 1e-12, 0.5)),
)
texts: Strategy = st.one_of(
    st.text(max_size=8),
    st.sampled_from(("", " ", "\n", "\x1b[31m", "\x00", "..", "../x", "a/b", "inf", "nan", "é\u202e")),
    st.sampled_from(("{", "{channel}", "{0}", "[b]", "1y", "999999999999999h", "1us", "rdp", "zcdp", "basic", "clip")),
    st.sampled_from(("person", "when", "pulse", "visits", "ward", "entity", "event", "dictionary", "bool", "int8")),
    st.sampled_from(
        ("0001-01-01T00:00:00", "9999-12-31T23:59:59+14:00", "timestamp[ns]", "timestamp[s, tz=Mars/Base]")
    ),
)
plain: Strategy = st.one_of(st.none(), st.booleans(), numbers, texts)
values: Strategy = st.one_of(
    plain, plain, plain, st.lists(plain, max_size=3), st.dictionaries(texts, plain, max_size=3), st.just([[[[{}]]]])
)
cells: Strategy = st.one_of(
    st.sampled_from((NAME, NUMBER, COUNT, MOMENT, f"-{NUMBER}", f"{COUNT}{'0' * 30}", f"{NUMBER}e300", f"{COUNT}e308")),
    st.sampled_from(("", "NA", "null", "nan", "inf", "-inf", "true", "2", "-1", "1e400", "0x10", "north", "off")),
    st.sampled_from((f'"{NAME}', f"{NAME}\x00", f"={NAME}()", f"{NAME},{NAME}", f"{NAME}\n{NUMBER}", f"\u202e{NAME}")),
    st.text(max_size=4).map(NAME.__add__),
    st.sampled_from(("2024-01-01", "2024-01-01T00:30:00", "2024-01-01T01:00:00Z", "9999-12-31T23:59:59", "24:00")),
)


COLUMN_NAMES = ("shoe", "", "pulse", "when", "person", "__index_level_0__", '"', "\x1b[1m", "a\nb")


def place_in(draw: st.DrawFn, items: Sized) -> int:
    """A place in a list, text or table; 0 if it is empty."""
    return draw(st.integers(0, max(0, len(items) - 1)))


def byte_edits(draw: st.DrawFn, base: bytes) -> bytes:
    """`base` after a few damages, usually one."""
    found = base
    for _ in range(draw(FEW)):
        found = draw(st.sampled_from(_BYTE_EDITS))(draw, found)
    return found


def _flip(draw: st.DrawFn, found: bytes) -> bytes:
    if not found:
        return b"\x00"
    place, bit = place_in(draw, found), draw(st.integers(0, 7))
    return found[:place] + bytes([found[place] ^ (1 << bit)]) + found[place + 1 :]


def _cut(draw: st.DrawFn, found: bytes) -> bytes:
    return found[: place_in(draw, found)]


def _drop(draw: st.DrawFn, found: bytes) -> bytes:
    place = place_in(draw, found)
    return found[:place] + found[place + draw(st.integers(1, 40)) :]


def _insert(draw: st.DrawFn, found: bytes) -> bytes:
    place = place_in(draw, found)
    return found[:place] + draw(_INSERTS) + found[place:]


def _overwrite(draw: st.DrawFn, found: bytes) -> bytes:
    place, new = place_in(draw, found), draw(_INSERTS)
    return found[:place] + new + found[place + len(new) :]


def _repeat(draw: st.DrawFn, found: bytes) -> bytes:
    place = place_in(draw, found)
    piece = found[place : place + draw(st.integers(1, 200))]
    return found[:place] + piece * draw(st.integers(2, 5)) + found[place + len(piece) :]


_BYTE_EDITS: tuple[Callable[[st.DrawFn, bytes], bytes], ...] = (_flip, _flip, _cut, _drop, _insert, _overwrite, _repeat)
_INSERTS = st.one_of(
    st.binary(min_size=1, max_size=12),
    st.sampled_from((b"\x00", b"\n", b"\r", b'"', b",", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xff" * 8)),
    st.sampled_from((b"[" * 3000, b'{"a":' * 3000, b"9" * 5000, b"1e999", b"a = " + b"[" * 3000, b"NaN", b"-")),
)


def document_edits(draw: st.DrawFn, base: Any, strange: Strategy = values) -> Any:
    """A document of dicts and lists after a few damages, usually one, anywhere inside."""
    found = deepcopy(base)
    for _ in range(draw(FEW)):
        _edit_somewhere(draw, found, strange)
    return found


def _edit_somewhere(draw: st.DrawFn, found: Any, strange: Strategy) -> None:
    """Walks down at random and changes what it finds there."""
    while True:
        keys = list(found) if isinstance(found, dict) else list(range(len(found)))
        if not keys:
            break
        key = draw(st.sampled_from(keys))
        if not isinstance(found[key], dict | list) or draw(st.integers(0, 3)) == 0:
            break
        found = found[key]
    _edit_here(draw, found, strange)


def _edit_here(draw: st.DrawFn, found: Any, strange: Strategy) -> None:
    action = draw(st.sampled_from(("set", "set", "set", "drop", "add", "copy"))) if found else "add"
    (_edit_table if isinstance(found, dict) else _edit_list)(draw, found, strange, action)


def _edit_table(draw: st.DrawFn, found: dict[str, Any], strange: Strategy, action: str) -> None:
    if action == "add":
        found[draw(texts)] = deepcopy(draw(strange))
        return
    key, other = draw(st.sampled_from(list(found))), draw(st.sampled_from(list(found)))
    if action == "drop":
        del found[key]
    else:
        found[key] = deepcopy(draw(strange) if action == "set" else found[other])


def _edit_list(draw: st.DrawFn, found: list[Any], strange: Strategy, action: str) -> None:
    place = place_in(draw, found)
    if action == "add":
        found.append(deepcopy(draw(strange)))
    elif action == "drop":
        del found[place]
    else:
        found[place : place + 1] = deepcopy([draw(strange)] if action == "set" else [found[place], found[place]])


def to_json(document: Any) -> bytes:
    """JSON as Python writes it, NaN and lone surrogates included."""
    return json.dumps(document).encode()
