"""Two invented banks that know many of the same customers, with all files that a run between them needs."""

from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np

from understudy.data import Continuous, Panel, Population, PrivacyUnit, Schema, Time, write_panel
from understudy.files import whole_folder
from understudy.synthesizers.vflgan_ts.partition import own_schema

PARTIES = ("north", "south")
_CUSTOMERS, _ONLY_HERE, _STEPS = 1000, 50, 24
_COLUMNS = {"north": ("balance", "savings", "credit"), "south": ("spending", "travel", "cards")}


def write_example(folder: Path, port: int = 7443, seed: int = 0) -> list[str]:
    """Writes tables, joined schema, contract and one file for each side; returns the files' names."""
    panel, patterns = _customers(np.random.default_rng(seed)), files("understudy.federated") / "two_banks"

    def written(side: str, pattern: str, **facts: object) -> None:
        text = (patterns / f"{pattern}.toml.txt").read_text(encoding="utf-8")
        (draft / f"{side}.toml").write_text(text.format(**facts), encoding="utf-8")

    with whole_folder(folder) as draft:
        panel.schema.save(draft / "joined.schema.toml")
        for place, party in enumerate(PARTIES):
            begin = place * _ONLY_HERE
            known = panel.take_units(np.arange(begin, begin + _CUSTOMERS + _ONLY_HERE))
            write_panel(_held(known, party), draft / f"{party}.csv")
            written(party, "party", party=party, port=port)
        written("contract", "contract")
        written("aggregator", "aggregator", port=port)
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
