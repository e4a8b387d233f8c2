"""Looks for recognisable private values in everything a tool wrote, whatever the encoding.

    planted = Planted(numbers=(6.283183,), words=("person-Zx81",), moments=("2031-07-09T03:17:00",))
    assert found(folder, planted) == []

Text is searched for words and for the first digits of numbers; bytes for words, their hashes, doubles, timestamps and
neighbouring floats, in both byte orders; archives, SQLite files, Parquet, Arrow, npy and safetensors are opened, and so
is base64 inside text. Pixels of pictures are not read.

False alarms: text and bytes are compared on at least 6 digits or 64 bits, so a megabyte of random bytes holds one of
ten numbers with probability below 10⁻⁹. Values inside arrays are compared as float32, which drawn values hit now and
then: `Finding.how` is then `VALUE`, and a caller decides how many are too many.
"""

import base64
import binascii
import gzip
import hashlib
import io
import re
import sqlite3
import struct
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.numpy import load as load_tensors

DIGITS = 6
TEXT, BYTES, HASH, VALUE = "text", "bytes", "hash", "value in an array"
_BASE64 = re.compile(rb"[A-Za-z0-9+/]{24,}={0,2}")
_DEPTH = 4  # archives inside archives


@dataclass(frozen=True)
class Finding:
    """One planted thing, where it was found and in which form."""

    where: str
    what: str
    how: str


@dataclass(frozen=True, kw_only=True)
class Planted:
    """What was put into private data to be recognised.

    Attributes:
        numbers: Values of one series in order; each has at least DIGITS digits that rounding leaves alone.
        words: Identifiers and categories.
        moments: Timestamps in ISO form; also found as seconds to nanoseconds since 1970.
    """

    numbers: tuple[float, ...] = ()
    words: tuple[str, ...] = ()
    moments: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for number in self.numbers:
            near = {f"{version:.{DIGITS}g}" for version in (number, float(np.float32(number)))}
            assert near == {_first_digits(number)}, f"{number} reads differently once it is rounded"

    @cached_property
    def patterns(self) -> dict[bytes, tuple[str, str]]:
        """Bytes to look for, with what they are and in which form."""
        found: dict[bytes, tuple[str, str]] = {}
        for word in (*self.words, *self.moments, *(moment.replace("T", " ") for moment in self.moments)):
            found |= {word.encode(code): (word, TEXT) for code in ("utf-8", "utf-16-le", "utf-16-be")}
            for name in ("md5", "sha1", "sha256"):
                digest = hashlib.new(name, word.encode(), usedforsecurity=False)
                found |= dict.fromkeys((digest.digest(), digest.hexdigest().encode()), (word, HASH))
        for number in self.numbers:
            found |= {form: (str(number), TEXT) for form in _spelled(number)}
            found |= {struct.pack(f"{order}d", number): (str(number), BYTES) for order in "<>"}
            found |= {struct.pack(f"{o}d", float(np.float32(number))): (str(number), BYTES) for o in "<>"}
        for first, second in zip(self.numbers, self.numbers[1:], strict=False):
            found |= {struct.pack(f"{order}ff", first, second): (f"{first}, {second}", BYTES) for order in "<>"}
        for moment in self.moments:
            for unit in ("ms", "us", "ns"):
                ticks = int(np.datetime64(moment, unit).astype(np.int64))
                forms = (struct.pack("<q", ticks), struct.pack(">q", ticks), str(ticks).encode())
                found |= dict.fromkeys(forms, (moment, BYTES))
        return found


def found(place: Path | str | bytes, planted: Planted) -> list[Finding]:
    """Returns everything planted that a folder (names included), a file, a text or bytes hold."""
    if isinstance(place, Path) and place.is_dir():
        files = sorted(path for path in place.rglob("*"))
        names = {path: str(path.relative_to(place)) for path in files}
        named = (_in_bytes(name.encode(), f"the name of {path.name}", planted) for path, name in names.items())
        held = (found(path, planted) for path in files if path.is_file())
        return [finding for findings in (*named, *held) for finding in findings]
    if isinstance(place, Path):
        return _distinct(_in_file(place.read_bytes(), place.name, planted, _DEPTH))
    data = place.encode() if isinstance(place, str) else place
    return _distinct(_in_file(data, "text", planted, _DEPTH))


def _in_file(data: bytes, where: str, planted: Planted, depth: int) -> Iterator[Finding]:
    yield from _in_bytes(data, where, planted)
    if depth == 0:
        return
    for name, part in _parts(data):
        yield from _in_file(part, f"{where}/{name}", planted, depth - 1)
    for name, array in _arrays(data):
        yield from _in_array(array, f"{where}/{name}", planted)


def _in_bytes(data: bytes, where: str, planted: Planted) -> Iterator[Finding]:
    for pattern, (what, how) in planted.patterns.items():
        if pattern in data:
            yield Finding(where, what, how)


def _in_array(array: np.ndarray, where: str, planted: Planted) -> Iterator[Finding]:
    if array.dtype.kind in "fiu":
        values = np.unique(array.astype(np.float32))
        for number in planted.numbers:
            if np.float32(number) in values:
                yield Finding(where, str(number), VALUE)
    if array.dtype.kind in "OSUM":
        text = "\0".join(str(value) for value in array.reshape(-1).tolist()).encode()
        yield from _in_bytes(text, where, planted)


def _parts(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yields what is packed inside: members of archives, and base64 in text."""
    if data[:2] == b"PK" and zipfile.is_zipfile(io.BytesIO(data)):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            yield from ((name, archive.read(name)) for name in archive.namelist())
    if data[:2] == b"\x1f\x8b":
        yield "unpacked", gzip.decompress(data)
    for number, match in enumerate(_BASE64.findall(data)):
        try:
            yield f"base64 {number}", base64.b64decode(match + b"=" * (-len(match) % 4))
        except binascii.Error:
            continue


def _arrays(data: bytes) -> Iterator[tuple[str, np.ndarray]]:
    """Yields the arrays that a file of a known kind holds."""
    if data[:6] == b"\x93NUMPY":
        yield "array", np.load(io.BytesIO(data), allow_pickle=False)
    elif data[:4] == b"PAR1":
        yield from _columns(pq.read_table(pa.BufferReader(data)))
    elif data[:6] == b"ARROW1":
        yield from _columns(pa.ipc.open_file(pa.BufferReader(data)).read_all())
    elif data[:16] == b"SQLite format 3\0":
        yield from _tables(data)
    elif data[8:9] == b"{" and int.from_bytes(data[:8], "little") < len(data):
        yield from load_tensors(data).items()


def _columns(table: pa.Table) -> Iterator[tuple[str, np.ndarray]]:
    for name, column in zip(table.column_names, table.columns, strict=True):
        yield name, column.to_numpy()


def _tables(data: bytes) -> Iterator[tuple[str, np.ndarray]]:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        connection = sqlite3.connect(f"file:{file.name}?immutable=1", uri=True)
        try:
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            for table in tables:
                cells = [cell for row in connection.execute(f'SELECT * FROM "{table}"') for cell in row]
                yield table, np.array([cell for cell in cells if isinstance(cell, float)], dtype=np.float64)
                yield table, np.array([str(cell) for cell in cells], dtype=object)
        finally:
            connection.close()


def _spelled(number: float) -> Iterable[bytes]:
    digits = _first_digits(number)
    scientific = f"{number:.{DIGITS - 1}e}".split("e")[0]
    return {form.encode() for form in (digits, digits.replace(".", ","), scientific)}


def _first_digits(number: float) -> str:
    """The number cut off after DIGITS digits: how every longer spelling of it begins."""
    text = np.format_float_positional(number, trim="-")
    whole, _, rest = text.partition(".")
    return f"{whole}.{rest[: DIGITS - len(whole.lstrip('-'))]}"


def _distinct(findings: Iterable[Finding]) -> list[Finding]:
    return list(dict.fromkeys(findings))
