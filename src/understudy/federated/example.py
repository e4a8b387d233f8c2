"""Two invented banks that know many of the same customers, with all files that a run between them needs."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from understudy.data import Continuous, Panel, Population, PrivacyUnit, Schema, Time, write_panel
from understudy.files import whole_folder
from understudy.synthesizers.vflgan_ts.partition import own_schema

PARTIES = ("north", "south")
_CUSTOMERS, _ONLY_HERE, _STEPS = 1000, 50, 24
_COLUMNS = {"north": ("balance", "savings", "credit"), "south": ("spending", "travel", "cards")}

_CONTRACT = """\
# Everything that all sides agree on: the same file at every organisation. A new name is a new run with its own charge.
name = "first"
schema = "joined.schema.toml"
mode = "sound"
epsilon = 8.0
delta = 1e-6
checkpoint_every = 25

[recipe]
iterations = 150
features = 32
learning_rate = 1e-3
"""
_AGGREGATOR = """\
contract = "contract.toml"
keys = "keys/aggregator"
address = "127.0.0.1:{port}"
folder = "aggregator"

[ledger]  # all that may ever be spent on the people whom the banks have in common
name = "customers-of-both"
epsilon = 16.0
max_runs = 2
"""
_PARTY = """\
contract = "contract.toml"
keys = "keys/{party}"
address = "127.0.0.1:{port}"
table = "{party}.csv"
folder = "{party}"

[ledger]  # all that may ever be spent on this bank's customers
name = "customers-of-{party}"
epsilon = 16.0
max_runs = 2
"""


def write_example(folder: Path, port: int = 7443, seed: int = 0) -> list[str]:
    """Writes tables, joined schema, contract and one file for each side; returns the files' names."""
    panel = _customers(np.random.default_rng(seed))
    with whole_folder(folder) as draft:
        panel.schema.save(draft / "joined.schema.toml")
        for place, party in enumerate(PARTIES):
            begin = place * _ONLY_HERE
            known = panel.take_units(np.arange(begin, begin + _CUSTOMERS + _ONLY_HERE))
            write_panel(_held(known, party), draft / f"{party}.csv")
            (draft / f"{party}.toml").write_text(_PARTY.format(party=party, port=port), encoding="utf-8")
        (draft / "contract.toml").write_text(_CONTRACT, encoding="utf-8")
        (draft / "aggregator.toml").write_text(_AGGREGATOR.format(port=port), encoding="utf-8")
    return sorted(path.name for path in folder.iterdir())


def _customers(rng: np.random.Generator) -> Panel:
    """Six waves of one amplitude per customer, as the sine set of VFLGAN-TS (Eq. 22)."""
    number = _CUSTOMERS + 2 * _ONLY_HERE
    amplitude = rng.normal(rng.choice([0.4, 0.6], number), 0.05)[:, None, None]
    frequency = np.array([1.0, 0.5, 0.75, 1.25, 1.5, 1.75]) / _STEPS
    values = amplitude * np.sin(2 * np.pi * frequency * np.arange(_STEPS)[:, None])
    values = np.clip(values + rng.normal(0, 0.05, values.shape), -1.25, 1.25)
    named = [(name, party) for party in PARTIES for name in _COLUMNS[party]]
    schema = Schema(
        name="two-banks",
        population=Population(_CUSTOMERS),
        unit=PrivacyUnit(column="customer"),
        time=Time(column="hour", steps=_STEPS, frequency="1h"),
        channels=tuple(Continuous(name, -1.25, 1.25, party=party) for name, party in named),
    )
    return Panel(
        schema=schema,
        values=values.astype(np.float32),
        lengths=np.full(number, _STEPS, dtype=np.int32),
        unit=np.arange(number),
        static=np.zeros((number, 0), dtype=np.float32),
        unit_ids=np.array([f"C{value:05d}" for value in rng.permutation(number)]),
    )


def _held(panel: Panel, party: str) -> Panel:
    own = own_schema(panel.schema, party)
    places = [panel.schema.channel_index(channel.name) for channel in own.channels]
    return replace(panel, schema=own, values=panel.values[:, :, places])
