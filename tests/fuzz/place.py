"""A folder with everything that commands read, made the same way every time, so that an input can be tried again.

Every private cell carries a mark. Marks have no business on a screen, whatever happens to the table.
"""

import os
import sqlite3
from contextlib import closing
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.fuzz.case import Contents, Link
from understudy.data import Schema, read_panel
from understudy.privacy import keys, registry
from understudy.privacy.budget import Guarantee
from understudy.privacy.charges import Facts, declared
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.sqlite import Sqlite
from understudy.privacy.store import Store
from understudy.synthesizers.spectral import Spectral

NUM_UNITS, STEPS = 104, 3
NAME, NUMBER, COUNT, MOMENT = "Zq81VexKop", "739184625.4", "48271936", "1987-03-14T15:09:26"
# Any of these on the screen is a quoted cell: the mark, and what shortening, rounding or float32 would leave of it.
# Times, hashes and noise are printed too; each of these is long enough not to turn up in them by chance.
MARKS = (
    *("Zq81Ve", "81VexK", "VexKop"),
    *("739184625", "739184640", "739,184,62", "7.391846", "7.39185e+08", "7.39e+08", "7.4e+08"),
    *("48271936", "48,271,936", "4.827193", "4.82719e+07", "4.83e+07", "4.8e+07"),
    *("1987-03", "542732966"),
)
HOME, SCRATCH = "home", "scratch"
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
SCHEMAS = {path.name: path.read_text() for path in sorted((Path(__file__).parent / "files").glob("*.toml"))}
LONG_SCHEMA = SCHEMAS["schema.toml"]


def long_table() -> pa.Table:
    """A row per person and hour; every cell that is somebody's carries a mark."""
    units = [unit for unit in range(NUM_UNITS) for _ in range(STEPS)]
    steps = list(range(STEPS)) * NUM_UNITS
    return pa.table(
        {
            "person": [f"{NAME}{unit:03d}" for unit in units],
            "when": [f"2024-01-01T{step:02d}:00:00" for step in steps],
            "pulse": [float(f"{NUMBER}{unit:03d}{step}") for unit, step in zip(units, steps, strict=True)],
            "visits": [int(COUNT)] * len(units),
            "state": ["on" if unit % 3 else "off" for unit in units],
            "alarm": [(unit + step) % 2 for unit, step in zip(units, steps, strict=True)],
            "ward": ["north" if unit % 2 else "south" for unit in units],
        }
    )


def wide_table() -> pa.Table:
    """A row per person."""
    columns = {"person": [f"{NAME}{unit:03d}" for unit in range(NUM_UNITS)]}
    columns |= {f"pulse_{step}": [float(NUMBER)] * NUM_UNITS for step in range(STEPS)}
    columns |= {f"visits_{step}": [int(COUNT)] * NUM_UNITS for step in range(STEPS)}
    return pa.table(columns)


_TABLES = {"table": long_table, "wide": wide_table}
LAYOUTS = tuple(_TABLES)


@cache
def whole_table(layout: str) -> pa.Table:
    """The good table, "table" (long) or "wide"."""
    return _TABLES[layout]()


def build(folder: Path) -> None:
    """Writes schemas, tables, a ledger with a charge, a release and the holder's key; UNDERSTUDY_HOME is inside."""
    for name in (HOME, SCRATCH, f"{HOME}/keys", f"{HOME}/trusted"):
        (folder / name).mkdir()
    for name, text in SCHEMAS.items():
        (folder / name).write_text(text, encoding="utf-8")
    for layout in LAYOUTS:
        table = whole_table(layout)
        pacsv.write_csv(table, folder / f"{layout}.csv", pacsv.WriteOptions(quoting_style="none"))
        pq.write_table(table, folder / f"{layout}.parquet", compression="none")
        with pa.ipc.new_file(folder / f"{layout}.arrow", table.schema) as writer:
            writer.write_table(table)
    pem = KEY.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / HOME / "keys" / "default.key").write_bytes(pem)
    _release(folder)


@patch("understudy.privacy.store.now", lambda: "2024-01-01T00:00:00+00:00")
def _release(folder: Path) -> None:
    """Fits with reproducible noise at a fixed hour, so that bytes are the same every time, and calls it secure."""
    schema = Schema.loads(LONG_SCHEMA)
    ledger = _ledger(folder, schema)
    guarantee = Guarantee(0.5, ledger.remaining().delta)
    noise = NoiseSource.seeded(1)
    release = Spectral().fit(read_panel(folder / "table.csv", schema), ledger, guarantee=guarantee, noise=noise)
    certificate = replace(release.certificate, status="private", noise_is_secure=True)
    replace(release, certificate=certificate).save(folder / "release", key=signing_key())
    with closing(sqlite3.connect(registry.home() / "populations.sqlite", isolation_level=None)) as connection:
        connection.execute("DELETE FROM heads")  # a computer that charged it refuses every other row at once


def _ledger(folder: Path, schema: Schema) -> Ledger:
    path = folder / f"{schema.name}.ledger"
    Store.create(Sqlite(path), asdict(Facts.new(**declared(schema))) | {"identity": "0" * 32})
    registry.claim(schema.name, path, "0" * 32)
    return Ledger.open(path)


def signing_key() -> keys.SigningKey:
    """The holder's key, known to everybody who reads this."""
    return keys.SigningKey("default", KEY)


def contents(folder: Path) -> Contents:
    """Everything below the folder, hidden files, links and empty folders included."""
    found: Contents = {}
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(place, name)
            key = str(path.relative_to(folder))
            if path.is_symlink():
                found[key] = Link(str(path.readlink()))
            else:
                found[key] = path.read_bytes() if path.is_file() else None
    return found
