"""Simulators of the example data that comes with the package: homes with smart meters, stays in intensive care.

Everything is invented, so the data is public. It is awkward on purpose, because real tables are: spikes with a heavy
tail, gaps that come more often when the load is high, homes that leave early; monitors that run nearly always,
laboratories that follow severity, three quarters of patients who never have one of them, and nobody walks at night.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from jaxtyping import Bool, Float32, Int32

from understudy.data.channels import Categorical, Continuous, Integer
from understudy.data.constraints import NonNegative, ZeroWhen
from understudy.data.io.write import write_panel
from understudy.data.panel import Panel, broadcast_context
from understudy.data.schema import BudgetDeclaration, Population, PrivacyUnit, Schema
from understudy.data.timegrid import Time, step_ticks
from understudy.data.type_checks import require_argument

_CHUNK = 1000  # units; each chunk has its own generator, so the first units stay the same when more are made
STEPS = 168
MIN_STEPS = 120
TARIFFS = ("flat", "night", "dynamic")
NIGHT_HOURS = (0, 1, 2, 3, 4, 5, 6, 18, 19, 20, 21, 22, 23)

_HOUR = np.arange(STEPS) % 24
Homes = Bool[np.ndarray, " home"]
_WEEKEND = np.arange(STEPS) // 24 >= 5  # the declared start is a Monday


def households_schema(num_homes: int) -> Schema:
    """Returns the public contract of the simulated homes."""
    return Schema(
        name="households",
        population=Population(num_homes),
        unit=PrivacyUnit(column="household", dtype="int64"),
        time=Time(
            column="timestamp",
            frequency="1h",
            start="2024-03-04T00:00:00",
            steps=STEPS,
            min_steps=MIN_STEPS,
            dtype="timestamp[ms]",  # Parquet has no coarser one
        ),
        channels=(Continuous("load_kw", 0.0, 20.0, missing=True), Continuous("solar_kw", 0.0, 8.0)),
        static=(Categorical("tariff", TARIFFS),),
        context=(Continuous("temperature_c", -20.0, 35.0), Continuous("price_eur_mwh", -100.0, 500.0)),
        label="tariff",
        constraints=(NonNegative("load_kw"), ZeroWhen("solar_kw", hours=NIGHT_HOURS)),
        budget=BudgetDeclaration(epsilon=3.0, max_runs=5),
    )


def simulate_households(
    num_homes: int, seed: int = 7, context: Float32[np.ndarray, "step context"] | None = None
) -> Panel:
    """Returns a week of hourly load, solar output and tariff of `num_homes` invented homes.

    The same seed gives the same homes, and the first homes stay the same when more are asked for. They live through
    the seed's own week, unless another week's weather and prices are given as `context`.

    >>> simulate_households(3)
    Panel(3 series; schema 'households', 168 steps of 1h: load_kw (continuous), solar_kw (continuous))
    """
    context = simulate_context(seed) if context is None else context
    values, lengths, tariff = _in_chunks(num_homes, "num_homes", [seed, 1], partial(_simulate_homes, context))
    return Panel(
        schema=households_schema(num_homes),
        values=values,
        lengths=lengths,
        unit=np.arange(num_homes, dtype=np.int64),
        static=tariff[:, None],
        context=broadcast_context(context, num_homes),
        private=False,
    )


def write_households(num_homes: int, directory: str | Path, seed: int = 7) -> tuple[Path, Path, Path]:
    """Writes households.parquet, context.parquet and schema.toml into `directory` and returns their paths."""
    panel = simulate_households(num_homes, seed)
    table, schema = _written(panel, directory)
    context = table.with_name("context.parquet")
    ticks = pa.array(step_ticks(panel.schema.time, STEPS)).cast(pa.timestamp("us")).cast(pa.timestamp("ms"))
    public = np.round(simulate_context(seed).astype(np.float64), 2)
    columns = {channel.name: public[:, i] for i, channel in enumerate(panel.schema.context)}
    pq.write_table(pa.table({"timestamp": ticks, **columns}), context)
    return table, context, schema


def _in_chunks(
    number: int, argument: str, seed: list[int], simulate: Callable[[np.random.Generator], Any]
) -> list[Any]:
    """Returns the arrays of a number of units, simulated a chunk at a time."""
    require_argument(number, int, argument, "Write how many, such as 1000.")
    if number < 1:
        raise ValueError("Expected at least one unit.")
    chunks = [simulate(np.random.default_rng([*seed, place])) for place in range(-(-number // _CHUNK))]
    return [np.concatenate(parts)[:number] for parts in zip(*chunks, strict=True)]


def _written(panel: Panel, directory: str | Path) -> tuple[Path, Path]:
    """Writes a panel and its schema into a folder and returns their paths."""
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    table, schema = folder / f"{panel.schema.name}.parquet", folder / "schema.toml"
    panel.schema.save(schema)
    return write_panel(panel, table), schema


def simulate_context(seed: int = 7) -> Float32[np.ndarray, "step context"]:
    """Returns the week's public outdoor temperature and electricity price."""
    rng = np.random.default_rng([seed, 0])
    front = np.cumsum(rng.normal(0.0, 0.35, STEPS))  # slow weather
    temperature = 5.0 + 4.0 * np.sin((_HOUR - 9) * np.pi / 12) + front - front.mean()
    peaks = 45.0 * _bump(8, 1.8) + 60.0 * _bump(19, 2.0) - 30.0 * _bump(13, 2.5) * (1 + _WEEKEND)
    price = 70.0 + peaks - 20.0 * _WEEKEND + rng.normal(0.0, 6.0, STEPS)
    context = np.stack([np.clip(temperature, -20, 35), np.clip(price, -100, 500)], axis=1)
    return np.round(context, 2).astype(np.float32)


def _bump(hour: float, width: float) -> np.ndarray:
    """A smooth daily bump around an hour, periodic over midnight."""
    distance = np.abs((_HOUR - hour + 12) % 24 - 12)
    return np.asarray(np.exp(-0.5 * (distance / width) ** 2))


def _simulate_homes(
    context: Float32[np.ndarray, "step context"], rng: np.random.Generator
) -> tuple[Float32[np.ndarray, "home step channel"], Int32[np.ndarray, " home"], Float32[np.ndarray, " home"]]:
    heated = rng.random(_CHUNK) < 0.35
    panels = rng.random(_CHUNK) < 0.3
    # heated homes choose the night tariff more often, homes with panels the dynamic one
    night, dynamic, draw = 0.18 + 0.27 * heated, 0.10 + 0.20 * panels, rng.random(_CHUNK)
    tariff = np.select([draw < night, draw < night + dynamic], [1.0, 2.0], 0.0).astype(np.float32)
    load = _everyday_load(rng) + _heating(context[:, 0], heated, rng)
    load = _respond_to_tariff(load, tariff, context[:, 1], rng) + _spikes(rng)
    load = np.round(np.clip(load, 0.02, 20.0), 3)
    solar = np.round(_solar(panels, rng), 3)
    flaky = rng.random(_CHUNK) < 0.12
    ends_early = rng.random(_CHUNK) < 0.06 + 0.2 * flaky  # flaky meters more often
    lengths = np.where(ends_early, rng.integers(MIN_STEPS, STEPS, _CHUNK), STEPS).astype(np.int32)
    load = np.where(_gaps(load, flaky, rng), np.nan, load)
    values = np.stack([load, solar], axis=2).astype(np.float32)
    values[np.arange(STEPS) >= lengths[:, None]] = np.nan
    return values, lengths, tariff


def _everyday_load(rng: np.random.Generator) -> np.ndarray:
    """Base load and daily rhythm; working days have two peaks, weekends a long late one."""
    level = rng.lognormal(-1.3, 0.45, (_CHUNK, 1))
    at_work = rng.random((_CHUNK, 1)) < 0.6
    evening = rng.normal(0.9, 0.3, (_CHUNK, 1)).clip(0.2)
    working_day = 0.9 * _bump(7, 1.2) + 2.2 * evening * _bump(19, 2.2) + 0.8 * _bump(13, 3.0) * ~at_work
    weekend = 1.2 * _bump(11, 2.5) + 1.8 * evening * _bump(18, 3.0)
    rhythm = np.where(_WEEKEND, weekend, working_day)
    noise = np.exp(0.35 * rng.standard_normal((_CHUNK, STEPS), dtype=np.float32))
    return np.asarray(level * (0.6 + rhythm) * noise)


def _heating(temperature: np.ndarray, heated: Homes, rng: np.random.Generator) -> np.ndarray:
    """Electric heating follows the cold: the second mode of the load."""
    strength = heated[:, None] * rng.gamma(9.0, 0.026, (_CHUNK, 1))
    indoors = 17.0 + rng.normal(0.0, 1.0, (_CHUNK, 1)) - 2.5 * _bump(3, 2.5)
    duty = np.exp(0.2 * rng.standard_normal((_CHUNK, STEPS), dtype=np.float32))
    return np.asarray(strength * np.maximum(0.0, indoors - temperature) * duty)


def _respond_to_tariff(load: np.ndarray, tariff: np.ndarray, price: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Night tariffs move a boiler and part of the evening into the night; dynamic ones avoid high prices."""
    night, dynamic = (tariff == 1)[:, None], (tariff == 2)[:, None]
    start = rng.integers(23, 26, (_CHUNK, 1))
    in_block = (_HOUR - start) % 24 < rng.integers(3, 6, (_CHUNK, 1))
    boiler = rng.normal(2.2, 0.4, (_CHUNK, 1)).clip(1.0)
    load = np.where(night, load * (1 - 0.35 * _bump(19, 2.5)) + boiler * in_block, load)
    elasticity = rng.normal(0.55, 0.1, (_CHUNK, 1)).clip(0.2)
    shift = np.exp(-elasticity * (price - price.mean()) / price.std())
    return np.asarray(np.where(dynamic, load * shift, load))


def _spikes(rng: np.random.Generator) -> np.ndarray:
    """Ovens, kettles and cars: rare, short, with a heavy tail."""
    appetite = rng.gamma(2.0, 0.5, (_CHUNK, 1))
    chance = (0.015 + 0.10 * _bump(18.5, 2.0) + 0.05 * _bump(12, 1.5)) * appetite
    happens = rng.random((_CHUNK, STEPS), dtype=np.float32) < chance
    spikes = np.zeros((_CHUNK, STEPS))
    spikes[happens] = 0.8 + 1.1 * rng.pareto(2.4, int(happens.sum()))
    return spikes


def _solar(panels: Homes, rng: np.random.Generator) -> np.ndarray:
    """Output of roofs with panels: the sun, a cloudy week shared by all, each roof's own shade."""
    height = np.clip(np.cos((_HOUR - 12.25) * np.pi / 11.5), 0.0, None) ** 1.2 * ~np.isin(_HOUR, NIGHT_HOURS)
    cloudy_day = np.array([0.9, 0.35, 0.6, 0.95, 0.2, 0.75, 0.85])[np.arange(STEPS) // 24]
    size = panels[:, None] * rng.uniform(2.0, 6.5, (_CHUNK, 1))
    shade = rng.random((_CHUNK, STEPS), dtype=np.float32) ** (1.2 - cloudy_day)
    return np.asarray(np.clip(size * height * (0.25 + 0.75 * cloudy_day) * shade, 0.0, 8.0))


def _gaps(load: np.ndarray, flaky: Homes, rng: np.random.Generator) -> np.ndarray:
    """Runs of missing readings, likelier while the load is high and at homes with a flaky meter."""
    chance = 0.002 + 0.025 * flaky[:, None] + 0.02 * (load > 4.0)
    begins = rng.random(load.shape, dtype=np.float32) < chance
    ends = np.where(begins, np.arange(STEPS) + rng.geometric(0.35, load.shape), 0)
    return np.asarray(np.maximum.accumulate(ends, axis=1) > np.arange(STEPS))


HOURS = 48
OUTCOMES = ("survived", "died")
_STAY_HOUR = np.arange(HOURS)
_DAYTIME = (_STAY_HOUR % 24 >= 8) & (_STAY_HOUR % 24 < 19)


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
    values, static = _in_chunks(num_stays, "num_stays", [seed, 2], _simulate_stays)
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
    return _written(simulate_intensive_care(num_stays, seed), directory)


def _simulate_stays(
    rng: np.random.Generator,
) -> tuple[Float32[np.ndarray, "stay step channel"], Float32[np.ndarray, "stay static"]]:
    age = np.clip(np.rint(rng.normal(62.0, 15.0, _CHUNK)), 18, 100)
    severity = rng.normal(0.02 * (age - 62.0), 1.0)
    died = rng.random(_CHUNK) < 1 / (1 + np.exp(2.6 - 1.5 * severity))
    course = severity[:, None] + np.where(died, 0.9, -0.5)[:, None] * _STAY_HOUR / HOURS + 0.5 * _walk(rng, 0.9)
    values = _physiology(course, age, rng)
    observed = _observed(values, severity, rng)
    static = np.stack([age, died.astype(np.float64)], axis=1)
    return np.where(observed, values, np.nan).astype(np.float32), static.astype(np.float32)


def _physiology(course: np.ndarray, age: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Returns what every channel would show [stay, step, channel] if it were always measured."""
    own = rng.standard_normal((_CHUNK, 7, 1))
    day = np.cos((_STAY_HOUR % 24 - 16) * np.pi / 12)
    diabetic = rng.random((_CHUNK, 1)) < 0.3
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
    shocks = rng.standard_normal((_CHUNK, HOURS)) * np.sqrt(1 - memory**2)
    walk = np.empty_like(shocks)
    walk[:, 0] = rng.standard_normal(_CHUNK)
    for hour in range(1, HOURS):
        walk[:, hour] = memory * walk[:, hour - 1] + shocks[:, hour]
    return np.asarray(walk)


def _observed(
    values: np.ndarray, severity: np.ndarray, rng: np.random.Generator
) -> Bool[np.ndarray, "stay step channel"]:
    """Returns which values somebody measured."""
    early = np.where(_STAY_HOUR < 6, 0.45, 0.0)
    six_hourly = np.where(_STAY_HOUR % 6 == 0, 0.65, 0.1)
    sick = severity[:, None]
    lines = rng.random((_CHUNK, 1)) < 0.85  # others have their pressure taken by cuff, once in a while
    tested = rng.random((_CHUNK, 1)) < np.clip(0.28 + 0.14 * sick, 0.05, 0.9)
    walks = rng.random((_CHUNK, 1)) < 0.7
    chance = [
        np.full((_CHUNK, HOURS), 0.96),
        np.where(lines, 0.97 - early, 0.3),
        np.where(rng.random((_CHUNK, 1)) < 0.9, 0.87, 0.4) + 0.0 * _STAY_HOUR,
        np.clip(0.12 + six_hourly + 0.03 * sick, 0.02, 0.95),
        np.clip(0.18 + 0.06 * sick + 0.35 * (values[:, :, 4] > 180), 0.02, 0.95),
        tested * np.clip(0.22 + 0.06 * sick + 0.3 * (values[:, :, 5] > 3), 0.03, 0.95),
        walks * _DAYTIME * 0.55,
    ]
    return np.stack([rng.random((_CHUNK, HOURS)) < one for one in chance], axis=2)
