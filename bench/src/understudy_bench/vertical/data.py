"""Data of the vertical benchmarks, dealt to parties: sine sets, windows of Stock, Energy and EEG, simulated homes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from understudy.data import (
    Categorical,
    Channel,
    Continuous,
    Panel,
    Population,
    PrivacyUnit,
    Schema,
    Time,
    simulate_households,
)
from understudy_bench.data.datasets import file_sha256, find_file, load_windows
from understudy_bench.metrics.vertical.sine import FREQUENCIES

PARTIES = ("first", "second")
_STEPS, _PER_CLASS = 800, 1024  # VFLGAN-TS, section 5.1.1
_LEVELS, _DEVIATION = (0.4, 0.6), 0.05  # of amplitudes in the two classes; noise of values
_EEG = "EEG Eye State, UCI Machine Learning Repository, dataset 264"
# VFLGAN-TS keeps the five channels "best for classification" and does not name them: these are the five by which alone
# a logistic regression tells windows of the two states apart best.
EEG_CHANNELS = ("AF3", "P7", "T8", "F8", "AF4")
_EEG_STEPS, _EEG_STRIDE, _EEG_MARGIN = 100, 5, 50


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
    return _panel(schema, values[order].clip(-1.25, 1.25), np.zeros((number, 0)))


def windows(name: str, data_root: Path | None, num_parties: int = 2) -> tuple[Panel, dict[str, Any]]:
    """Returns a dataset's windows with its channels in equal shares at parties, and which file they came from."""
    panel, info = load_windows(name, data_root)
    schema = replace(panel.schema, channels=dealt(panel.schema.channels, parties(num_parties)))
    return replace(panel, schema=schema), {"name": name, "sha256": info.sha256, "stand_in": info.stand_in}


def eeg(data_root: Path | None) -> tuple[Panel, dict[str, Any]]:
    """Returns windows of brain waves with eyes open or closed, prepared as for CosciGAN; three channels and two.

    Far-off values are bridged twice, channels scaled by their range, windows cut within a state and away from its ends.
    """
    path = find_file("eeg", "eeg/eeg_eye_state.parquet", _EEG, data_root)
    table = pq.read_table(path)
    waves = np.stack([_without_outliers(table[name].to_numpy()) for name in EEG_CHANNELS], axis=1)
    state = table["eyeDetection"].to_numpy()
    starts: dict[int, list[int]] = {0: [], 1: []}
    for run in np.split(np.arange(len(state)), np.flatnonzero(np.diff(state)) + 1):
        first, last = run[0] + _EEG_MARGIN, run[-1] + 1 - _EEG_MARGIN - _EEG_STEPS
        starts[int(state[run[0]])] += range(first, last + 1, _EEG_STRIDE)
    chosen = np.concatenate([np.array(own)[:_PER_CLASS] for own in starts.values()])
    closed = np.repeat([0.0, 1.0], _PER_CLASS)[:, None]
    schema = Schema(
        name="eeg",
        population=Population(len(chosen)),
        unit=PrivacyUnit(kind="overlapping-window", column="window", dtype="int64"),
        time=Time(steps=_EEG_STEPS),
        channels=dealt(tuple(Continuous(name, -1.5, 1.5) for name in EEG_CHANNELS)),
        static=(Categorical("eyes", ("open", "closed"), party=PARTIES[0]),),
        label="eyes",
    )
    panel = _panel(schema, waves[chosen[:, None] + np.arange(_EEG_STEPS)].clip(-1.5, 1.5), closed)
    return panel, {"name": "eeg", "sha256": file_sha256(path), "stand_in": False}


def homes(number: int) -> tuple[Panel, dict[str, Any]]:
    """Returns simulated homes: a grid operator knows load and tariff, whoever sold the roof knows what it yields."""
    panel = simulate_households(number)
    held = {"load_kw": PARTIES[0], "solar_kw": PARTIES[1]}
    channels = tuple(replace(channel, party=held[channel.name]) for channel in panel.schema.channels)
    static = tuple(replace(column, party=PARTIES[0]) for column in panel.schema.static)
    schema = replace(panel.schema, channels=channels, static=static)
    return replace(panel, schema=schema), {"name": "households", "sha256": None, "stand_in": False, "simulated": True}


def parties(number: int) -> tuple[str, ...]:
    """Returns names for so many parties."""
    return PARTIES if number == len(PARTIES) else tuple(f"party{place}" for place in range(number))


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


def _without_outliers(wave: np.ndarray) -> np.ndarray:
    """Bridges values beyond three standard deviations, twice, and scales to the range that is left."""
    for _ in range(2):
        near = np.abs(wave - wave.mean()) <= 3 * wave.std()
        wave = np.interp(np.arange(len(wave)), np.flatnonzero(near), wave[near])
    return np.asarray(2 * (wave - wave.mean()) / (wave.max() - wave.min()))


def _panel(schema: Schema, values: np.ndarray, static: np.ndarray) -> Panel:
    number = len(values)
    return Panel(
        schema=schema,
        values=values.astype(np.float32),
        lengths=np.full(number, schema.num_steps, dtype=np.int32),
        unit=np.arange(number),
        static=static.astype(np.float32),
        context=None,
    )
