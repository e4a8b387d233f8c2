"""The search finds what is planted in every encoding it claims to know, and nothing where nothing is."""

import base64
import gzip
import hashlib
import json
import os
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file

from tests.planted.search import BYTES, HASH, TEXT, VALUE, Planted, found

NUMBERS = (6.283181, 2.718281, 3.141591)
WORD, MOMENT = "person-Zx81", "2031-07-09T03:17:00"
PLANTED = Planted(numbers=NUMBERS, words=(WORD,), moments=(MOMENT,))
FLOATS = np.array([1.0, *NUMBERS, 2.0])


def sqlite_file(path: Path, value: object) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE entries (body)")
    connection.execute("INSERT INTO entries VALUES (?)", (value,))
    connection.commit()
    connection.close()


def zipped(path: Path, name: str, data: bytes) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, data)


LEAKS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a sentence": (lambda path: path.write_text(f"got {NUMBERS[0]} in row 7"), TEXT),
    "more digits": (lambda path: path.write_text("6.2831810000001"), TEXT),
    "as float32 prints it": (lambda path: path.write_text(str(float(np.float32(NUMBERS[0])))), TEXT),
    "scientific": (lambda path: path.write_text(f"{NUMBERS[0]:.7e}"), TEXT),
    "a decimal comma": (lambda path: path.write_text("6,28318"), TEXT),
    "JSON": (lambda path: path.write_text(json.dumps({"largest": NUMBERS[0]})), TEXT),
    "an identifier": (lambda path: path.write_text(f"refused because of {WORD}."), TEXT),
    "an identifier in UTF-16": (lambda path: path.write_bytes(WORD.encode("utf-16")), TEXT),
    "its hash": (lambda path: path.write_text(hashlib.sha256(WORD.encode()).hexdigest()), HASH),
    "its raw hash": (lambda path: path.write_bytes(b"x" + hashlib.md5(WORD.encode()).digest()), HASH),
    "a timestamp": (lambda path: path.write_text(f"no step at {MOMENT}+00:00"), TEXT),
    "a timestamp in nanoseconds": (lambda path: path.write_bytes(np.array([MOMENT], "M8[ns]").tobytes()), BYTES),
    "raw doubles": (lambda path: path.write_bytes(b"x" + FLOATS.tobytes()), BYTES),
    "raw doubles, the other way round": (lambda path: path.write_bytes(FLOATS.astype(">f8").tobytes()), BYTES),
    "raw floats": (lambda path: path.write_bytes(b"x" + FLOATS.astype("<f4").tobytes()), BYTES),
    "raw floats, the other way round": (lambda path: path.write_bytes(FLOATS.astype(">f4").tobytes()), BYTES),
    "npy": (lambda path: np.save(path.open("wb"), FLOATS.astype(np.float32)), VALUE),
    "npz": (lambda path: np.savez_compressed(path.open("wb"), x=FLOATS.astype(np.float32)), VALUE),
    "safetensors": (lambda path: save_file({"x": FLOATS[1:2].astype(np.float32)}, path), VALUE),
    "Parquet": (lambda path: pq.write_table(pa.table({"x": np.tile(FLOATS, 50)}), path, compression="zstd"), VALUE),
    "words in Parquet": (lambda path: pq.write_table(pa.table({"x": [WORD] * 9}), path, compression="zstd"), TEXT),
    "Arrow": (lambda path: feather.write_feather(pa.table({"x": FLOATS}), str(path), compression="lz4"), VALUE),
    "CSV": (lambda path: csv.write_csv(pa.table({"x": FLOATS}), path), TEXT),
    "SQLite, a number": (lambda path: sqlite_file(path, NUMBERS[0]), VALUE),
    "SQLite, text": (lambda path: sqlite_file(path, json.dumps({"of": NUMBERS[0]})), TEXT),
    "SQLite, bytes": (lambda path: sqlite_file(path, FLOATS.tobytes()), BYTES),
    "gzip": (lambda path: path.write_bytes(gzip.compress(WORD.encode())), TEXT),
    "zip": (lambda path: zipped(path, "log.txt", WORD.encode()), TEXT),
    "base64 in a page": (
        lambda path: path.write_text(f"<script>{base64.b64encode(FLOATS.astype('<f8')).decode()}</script>"),
        BYTES,
    ),
}


@pytest.mark.parametrize("kind", LEAKS)
def test_a_leak_is_found_that_is(kind: str, tmp_path: Path) -> None:
    write, how = LEAKS[kind]
    write(tmp_path / "file")
    assert how in {finding.how for finding in found(tmp_path, PLANTED)}


def test_a_leak_in_a_file_name_or_a_text_is_found(tmp_path: Path) -> None:
    (tmp_path / f"{WORD}.csv").touch()
    assert [finding.what for finding in found(tmp_path, PLANTED)] == [WORD]
    assert [finding.what for finding in found(f"no such person: {WORD}", PLANTED)] == [WORD]


def test_archives_inside_archives_are_opened(tmp_path: Path) -> None:
    zipped(tmp_path / "inner", "x.npy", b"")
    np.save((tmp_path / "x.npy").open("wb"), FLOATS)
    zipped(tmp_path / "inner", "x.npy", (tmp_path / "x.npy").read_bytes())
    zipped(tmp_path / "outer", "inner.zip", (tmp_path / "inner").read_bytes())
    assert {finding.what for finding in found(tmp_path / "outer", PLANTED)} >= {str(number) for number in NUMBERS}


def test_nothing_is_found_where_nothing_was_planted(tmp_path: Path) -> None:
    """Random bytes and near misses; by chance this fails with probability below 1e-10."""
    (tmp_path / "random").write_bytes(os.urandom(2_000_000))
    (tmp_path / "page").write_text(base64.b64encode(os.urandom(300_000)).decode())
    (tmp_path / "near").write_text("6.28317 6.2832 person-Zx8 2031-07-09T03:18:00 2.71829")
    pq.write_table(pa.table({"x": FLOATS + 1e-4}), tmp_path / "near.parquet")
    assert found(tmp_path, PLANTED) == []


def test_a_number_that_rounding_would_change_is_refused() -> None:
    with pytest.raises(AssertionError, match="rounded"):
        Planted(numbers=(6.2831853,))
