"""Two banks (or more) with columns of the sine set, a contract between them, and all sides of a run in one place."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from understudy.data import Channel, Continuous, Panel, Population, PrivacyUnit, Schema, Time
from understudy.federated.config import Account, Contract
from understudy.federated.runs import AggregatorRun, PartyRun
from understudy.privacy import keys
from understudy.privacy.budget import Guarantee
from understudy.synthesizers.vflgan_ts.method import VFLGANTS
from understudy.synthesizers.vflgan_ts.partition import own_schema
from understudy.synthesizers.vflgan_ts.protocol import converse
from understudy.synthesizers.vflgan_ts.recipe import Recipe

NAMES = ("bank", "shop", "grid", "post")
FREQUENCIES = (0.01, 0.005, 0.0075, 0.0125, 0.015, 0.0175)  # the six-attribute set of VFLGAN-TS
STEPS, UNITS = 40, 120
SMALL = Recipe(iterations=6, batch=16, features=16)
INFINITE = Guarantee(math.inf, 1e-6)
FINITE = Guarantee(8.0, 1e-6)


def sines(num_units: int = UNITS, num_parties: int = 2, seed: int = 0) -> Panel:
    """Six sines of one amplitude per customer, dealt to the parties in equal shares."""
    rng = np.random.default_rng(seed)
    amplitude = rng.normal(np.repeat((0.4, 0.6), num_units // 2), 0.05)[:, None, None]
    values = amplitude * np.sin(2 * np.pi * 20 * np.array(FREQUENCIES) * np.arange(STEPS)[:, None] / 10)
    values = np.clip(values + rng.normal(0, 0.05, values.shape), -1.25, 1.25)
    ids = np.array([f"customer {number:03d}" for number in range(num_units)])
    return Panel(
        schema=schema(num_units, num_parties),
        values=values.astype(np.float32),
        lengths=np.full(num_units, STEPS, dtype=np.int32),
        unit=np.arange(num_units),
        static=np.zeros((num_units, 0), dtype=np.float32),
        unit_ids=ids,
    )


def schema(num_units: int = UNITS, num_parties: int = 2) -> Schema:
    channels: tuple[Channel, ...] = tuple(
        Continuous(f"wave{place}", -1.25, 1.25, party=NAMES[place * num_parties // len(FREQUENCIES)])
        for place in range(len(FREQUENCIES))
    )
    return Schema(
        name="sine-6",
        population=Population(num_units),
        unit=PrivacyUnit(column="customer"),
        time=Time(column="step", steps=STEPS),
        channels=channels,
    )


def contract(joined: Schema, **options: Any) -> Contract:
    """A run without privacy and without purchases, unless told otherwise."""
    method = options.pop("method", VFLGANTS(mode="plain", scale="bounds", recipe=SMALL))
    budget = INFINITE if method.mode in ("plain", "paper") else FINITE
    if method.mode == "plain":
        options = {"noise_seed": 5, **options}  # an order of rows that all runs of a test share
    return Contract(**{"name": "test", "schema": joined, "guarantee": budget, "method": method, **options})


def held(panel: Panel, party: str) -> Panel:
    """What one party has of a joined table."""
    own = own_schema(panel.schema, party)
    places = [panel.schema.channel_index(channel.name) for channel in own.channels]
    columns = [column.name for column in panel.schema.static]
    static = [columns.index(column.name) for column in own.static]
    return replace(panel, schema=own, values=panel.values[:, :, places], static=panel.static[:, static])


@dataclass(frozen=True)
class Banks:
    """All sides of one run, each with a folder of its own."""

    contract: Contract
    members: dict[str, PartyRun]
    aggregator: AggregatorRun

    def run(self, watch: Callable[..., None] | None = None) -> None:
        """Runs all sides in this process."""
        converse({name: member.side() for name, member in self.members.items()}, self.aggregator.side(), watch)


def banks(folder: Path, agreed: Contract, tables: dict[str, Panel]) -> Banks:
    """Returns sides that have yet to start."""

    def own(side: str) -> dict[str, Any]:
        place = folder / side
        (place / "state").mkdir(parents=True, exist_ok=True)
        account = Account(file=place / "ledger", name=f"people of {side} ({folder.name})", guarantee=agreed.guarantee)
        key = keys.load_or_create(side)
        return {"contract": agreed, "account": account, "state": place / "state", "key": key, "out": place / "release"}

    members = {name: PartyRun(party=name, panel=tables[name], **own(name)) for name in agreed.parties}
    return Banks(agreed, members, AggregatorRun(**own("aggregator")))


def usual(folder: Path, panel: Panel, **options: Any) -> Banks:
    """Sides whose tables hold the same customers."""
    agreed = contract(panel.schema, **options)
    return banks(folder, agreed, {name: held(panel, name) for name in agreed.parties})
