"""A simulator of stays in intensive care: seven channels that are measured as often as their patient needs it.

Everything is invented, so the data is public. What is missing says as much as what is there: monitors run nearly
always, laboratories follow severity and bad values, three quarters of patients never have one of them, and nobody
walks at night.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float32

from understudy.data.channels import Categorical, Continuous, Integer
from understudy.data.io.write import write_panel
from understudy.data.panel import Panel
from understudy.data.schema import BudgetDeclaration, Population, PrivacyUnit, Schema
from understudy.data.timegrid import Time
from understudy.data.type_checks import require_argument

HOURS = 48
OUTCOMES = ("survived", "died")
_CHUNK_STAYS = 1000  # each chunk has its own generator, so the first stays are the same when more are made
_HOUR = np.arange(HOURS)
_DAYTIME = (_HOUR % 24 >= 8) & (_HOUR % 24 < 19)


def intensive_care_schema(num_stays: int) -> Schema:
    """Returns the public contract of the simulated stays."""
    return Schema(
        name="icu",
        population=Population(num_stays),
        unit=PrivacyUnit(column="stay", dtype="int64"),
        time=Time(column="hour", frequency="1h", start="2024-01-01T00:00:00", steps=HOURS, dtype="timestamp[ms]"),
        channels=(
            Continuous("heart_rate", 20.0, 220.0, missing=True, resolution=0.1),
            Continuous("blood_pressure", 30.0, 250.0, missing=True, resolution=0.1),
            Continuous("respiration", 2.0, 70.0, missing=True, resolution=0.1),
            Continuous("temperature", 30.0, 43.0, missing=True, resolution=0.1),
            Continuous("glucose", 20.0, 800.0, missing=True, resolution=0.1),
            Continuous("lactate", 0.1, 30.0, missing=True, resolution=0.1),
            Continuous("mobility", 0.0, 10.0, missing=True, resolution=0.1),
        ),
        static=(Integer("age", 18, 100), Categorical("outcome", OUTCOMES)),
        label="outcome",
        budget=BudgetDeclaration(epsilon=4.0, max_runs=5),
    )


def simulate_intensive_care(num_stays: int, seed: int = 7) -> Panel:
    """Returns the first two days of `num_stays` invented stays, from midnight to midnight, with age and outcome.

    >>> simulate_intensive_care(3).num_series
    3
    """
    require_argument(num_stays, int, "num_stays", "Write simulate_intensive_care(1000).")
    if num_stays < 1:
        raise ValueError("Expected at least one stay.")
    starts = range(0, num_stays, _CHUNK_STAYS)
    chunks = [_simulate_chunk(np.random.default_rng([seed, 2, place])) for place in range(len(starts))]
    values, static = (np.concatenate(parts)[:num_stays] for parts in zip(*chunks, strict=True))
    return Panel(
        schema=intensive_care_schema(num_stays),
        values=values,
        lengths=np.full(num_stays, HOURS, dtype=np.int32),
        unit=np.arange(num_stays, dtype=np.int64),
        static=static,
        private=False,
    )


def write_intensive_care(num_stays: int, directory: str | Path, seed: int = 7) -> tuple[Path, Path]:
    """Writes icu.parquet and schema.toml into `directory` and returns their paths."""
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    panel = simulate_intensive_care(num_stays, seed)
    table, schema = folder / "icu.parquet", folder / "schema.toml"
    write_panel(replace(panel, values=panel.values.astype(np.float32)), table)
    panel.schema.save(schema)
    return table, schema


def _simulate_chunk(
    rng: np.random.Generator,
) -> tuple[Float32[np.ndarray, "stay step channel"], Float32[np.ndarray, "stay static"]]:
    age = np.clip(np.rint(rng.normal(62.0, 15.0, _CHUNK_STAYS)), 18, 100)
    severity = rng.normal(0.02 * (age - 62.0), 1.0)
    died = rng.random(_CHUNK_STAYS) < 1 / (1 + np.exp(2.6 - 1.5 * severity))
    course = severity[:, None] + np.where(died, 0.9, -0.5)[:, None] * _HOUR / HOURS + 0.5 * _walk(rng, 0.9)
    values = _physiology(course, age, rng)
    observed = _observed(values, severity, rng)
    static = np.stack([age, died.astype(np.float64)], axis=1)
    return np.where(observed, values, np.nan).astype(np.float32), static.astype(np.float32)


def _physiology(course: np.ndarray, age: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Returns what every channel would show [stay, step, channel] if it were always measured."""
    own = rng.standard_normal((_CHUNK_STAYS, 7, 1))
    day = np.cos((_HOUR % 24 - 16) * np.pi / 12)
    diabetic = rng.random((_CHUNK_STAYS, 1)) < 0.3
    series = [
        84 + 11 * own[:, 0] + 9 * course + 3 * day + 4 * _walk(rng, 0.7),
        122 + 14 * own[:, 1] + 0.3 * (age[:, None] - 62) - 8 * course + 4 * day + 6 * _walk(rng, 0.6),
        18 + 2.5 * own[:, 2] + 2.2 * course + 2.0 * _walk(rng, 0.5),
        36.9 + 0.3 * own[:, 3] + 0.2 * course + 0.25 * day + 0.25 * _walk(rng, 0.9),
        np.exp(4.8 + 0.15 * own[:, 4] + 0.45 * diabetic + 0.06 * course + 0.15 * _walk(rng, 0.8)),
        np.exp(0.35 + 0.3 * own[:, 5] + 0.45 * course + 0.15 * _walk(rng, 0.8)),
        5.5 + 1.2 * own[:, 6] - 1.5 * course + 0.8 * _walk(rng, 0.3),
    ]
    low, high = np.transpose([channel.bounds for channel in intensive_care_schema(1).channels])
    return np.asarray(np.round(np.clip(np.stack(series, axis=2), low, high), 1))


def _walk(rng: np.random.Generator, memory: float) -> np.ndarray:
    """Returns stationary first-order autoregressions [stay, step] of variance one."""
    shocks = rng.standard_normal((_CHUNK_STAYS, HOURS)) * np.sqrt(1 - memory**2)
    walk = np.empty_like(shocks)
    walk[:, 0] = rng.standard_normal(_CHUNK_STAYS)
    for hour in range(1, HOURS):
        walk[:, hour] = memory * walk[:, hour - 1] + shocks[:, hour]
    return np.asarray(walk)


def _observed(
    values: np.ndarray, severity: np.ndarray, rng: np.random.Generator
) -> Bool[np.ndarray, "stay step channel"]:
    """Returns which values somebody measured."""
    early = np.where(_HOUR < 6, 0.45, 0.0)
    six_hourly = np.where(_HOUR % 6 == 0, 0.65, 0.1)
    sick = severity[:, None]
    lines = rng.random((_CHUNK_STAYS, 1)) < 0.85  # others have their pressure taken by cuff, once in a while
    tested = rng.random((_CHUNK_STAYS, 1)) < np.clip(0.28 + 0.14 * sick, 0.05, 0.9)
    walks = rng.random((_CHUNK_STAYS, 1)) < 0.7
    chance = [
        np.full((_CHUNK_STAYS, HOURS), 0.96),
        np.where(lines, 0.97 - early, 0.3),
        np.where(rng.random((_CHUNK_STAYS, 1)) < 0.9, 0.87, 0.4) + 0.0 * _HOUR,
        np.clip(0.12 + six_hourly + 0.03 * sick, 0.02, 0.95),
        np.clip(0.18 + 0.06 * sick + 0.35 * (values[:, :, 4] > 180), 0.02, 0.95),
        tested * np.clip(0.22 + 0.06 * sick + 0.3 * (values[:, :, 5] > 3), 0.03, 0.95),
        walks * _DAYTIME * 0.55,
    ]
    return np.stack([rng.random((_CHUNK_STAYS, HOURS)) < one for one in chance], axis=2)
