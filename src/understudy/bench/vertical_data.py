"""Data of the vertical benchmarks: the sine sets of paper 004, and windows of Stock and Energy dealt to two parties."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from understudy.data import Channel, Continuous, Panel, Population, PrivacyUnit, Schema, Time
from understudy.data.datasets import load_windows
from understudy.evaluate.vertical.sine import FREQUENCIES

PARTIES = ("first", "second")
_STEPS, _PER_CLASS = 800, 1024  # paper 004, section 5.1.1
_LEVELS, _DEVIATION = (0.4, 0.6), 0.05  # of amplitudes in the two classes; noise of values


def sines(name: str, num_steps: int = _STEPS, seed: int = 0) -> Panel:
    """Returns channels A·sin(2πft) + noise of one amplitude per series (Eq. 22), half of them at each party."""
    rng = np.random.default_rng(seed)
    level = np.repeat(_LEVELS, _PER_CLASS)
    number = len(level)
    amplitude = rng.normal(level, _DEVIATION)[:, None, None]
    clock = np.arange(num_steps)[:, None]
    values = amplitude * np.sin(2 * np.pi * np.array(FREQUENCIES[name]) * clock)  # Eq. 22
    values = values + rng.normal(0, _DEVIATION, values.shape)
    channels = tuple(Continuous(f"wave{place}", -1.25, 1.25) for place in range(values.shape[2]))
    schema = Schema(
        name=name,
        population=Population(number),
        unit=PrivacyUnit(column="series"),
        time=Time(column="step", steps=num_steps),
        channels=dealt(channels),
    )
    order = rng.permutation(number)
    return Panel(
        schema=schema,
        values=values[order].clip(-1.25, 1.25).astype(np.float32),
        lengths=np.full(number, num_steps, dtype=np.int32),
        unit=np.arange(number),
        static=np.zeros((number, 0), dtype=np.float32),
        context=None,
    )


def windows(name: str, data_root: Path | None) -> tuple[Panel, dict[str, Any]]:
    """Returns a dataset's windows with half of its channels at each party, and which file they came from."""
    panel, info = load_windows(name, data_root)
    schema = replace(panel.schema, channels=dealt(panel.schema.channels))
    return replace(panel, schema=schema), {"name": name, "sha256": info.sha256, "stand_in": info.stand_in}


def dealt(channels: tuple[Channel, ...], parties: tuple[str, ...] = PARTIES) -> tuple[Channel, ...]:
    """Returns channels with a party each, in equal shares, in order."""
    return tuple(
        replace(channel, party=parties[place * len(parties) // len(channels)]) for place, channel in enumerate(channels)
    )


def split(panel: Panel, seed: int = 0) -> tuple[Panel, Panel]:
    """Returns four fifths to learn from and the rest, both by chance."""
    order = np.random.default_rng(seed).permutation(panel.num_units)
    cut = int(0.8 * panel.num_units)
    train, rest = panel.take_units(order[:cut]), panel.take_units(order[cut:])
    return replace(train, schema=replace(train.schema, population=Population(cut))), rest
